"""Who may do what. Every person of the cast, a stranger, agents with good and bad keys; and whatever comes as an id."""

from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import AnonymousUser

from access import keys, permissions, rules
from access.errors import Forbidden, NotFound, NotSignedIn
from access.models import Agent, AgentKey, AuditEntry, Membership, Role, User, Workspace
from access.rules import CAPABILITIES, NOBODY, ROLES, SYSTEM, Actor
from approvals.models import Decision, Grant, ProposedAction
from artifacts.models import Artifact, Payload
from config import clock
from runs.models import Event, Lease, Run, Signal
from tests import factories
from tests.approvals.mailing import propose_mail
from tests.cast import member, workspace
from tests.factories import actor, agent_actor, bearer

# once more in full, so that a right that somebody gains or loses is seen here
MAY = {
    "riley": {"runs.view", "runs.events", "approvals.view", "approvals.decide", "artifacts.view"},
    "sam": {"runs.view", "runs.events", "approvals.view", "approvals.decide", "artifacts.view"},
    "morgan": {"runs.view", "runs.events", "approvals.view", "artifacts.view", "reveal.internal", "audit.view"},
    "otto": {
        "runs.view",
        "runs.events",
        "runs.start",
        "runs.steer",
        "runs.recover",
        "approvals.view",
        "approvals.freeze",
        "artifacts.view",
        "reveal.internal",
    },
    "ada": {"runs.view", "runs.events", "approvals.view", "approvals.freeze", "artifacts.view", "access.manage", "audit.view"}
    | {"policies.manage", "payloads.erase", "redaction.manage"},
}
ONLY_AGENTS = {"runs.write", "actions.propose", "actions.redeem"}
ONLY_PEOPLE = {"approvals.decide", "approvals.freeze", "approvals.view", "access.manage", "policies.manage", "audit.view", "runs.recover"}
ONLY_PEOPLE |= {"payloads.erase", "redaction.manage"}
pytestmark = pytest.mark.django_db


# people -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAY)
def test_each_person_may_what_their_role_says_and_nothing_else(cast, name):
    someone = actor(getattr(cast, name))
    assert {word for word in CAPABILITIES if rules.can(someone, word, cast.workspace.pk)} == MAY[name]
    assert not any(rules.can(someone, word, cast.elsewhere.pk) for word in CAPABILITIES)


def test_no_role_can_do_what_only_agents_do_and_no_agent_what_only_people_do():
    assert not ONLY_AGENTS & {word for held in ROLES.values() for word in held}
    assert not ONLY_PEOPLE & set(rules.AGENT_CAPABILITIES)
    given = {word for held in ROLES.values() for word in held}
    programs = {*rules.AGENT_CAPABILITIES, *rules.PROVISIONER_CAPABILITIES}
    assert given | programs | {"reveal.personal"} == set(CAPABILITIES) and "reveal.personal" not in given


def test_who_decides_neither_starts_nor_recovers_runs_and_who_manages_rights_decides_nothing():
    assert not {"runs.start", "runs.steer", "runs.recover", "access.manage"} & set(ROLES["reviewer"])
    assert all("approvals.decide" not in ROLES[name] for name in ("manager", "operator", "admin"))


def test_a_person_is_read_with_one_query(cast, django_assert_num_queries):
    with django_assert_num_queries(1):
        someone = rules.person(cast.riley.pk, signed_in="demo")
    assert (someone.kind, someone.id, someone.name, someone.signed_in) == ("human", str(cast.riley.pk), "Riley", "demo")
    assert someone.user_id == cast.riley.pk and someone.is_known and someone.role == "reviewer"


def test_a_person_of_two_workspaces_may_in_each_what_they_are_there(cast):
    role = Role.objects.create(workspace=cast.elsewhere, name="manager", capabilities=list(ROLES["manager"]))
    Membership.objects.create(workspace=cast.elsewhere, user=cast.riley, role=role)
    riley = actor(cast.riley)
    assert rules.can(riley, "approvals.decide", cast.workspace.pk) and not rules.can(riley, "approvals.decide", cast.elsewhere.pk)
    assert rules.can(riley, "audit.view", cast.elsewhere.pk) and not rules.can(riley, "audit.view", cast.workspace.pk)


def test_a_word_in_a_role_that_is_no_capability_grants_nothing(cast):
    Role.objects.filter(workspace=cast.workspace, name="manager").update(capabilities=["runs.view", "everything", "*", "runs.*"])
    assert set(actor(cast.morgan).grants[cast.workspace.pk]) == {"runs.view"}


def test_a_role_that_lists_what_agents_do_gives_nobody_that(cast):
    Role.objects.filter(workspace=cast.workspace, name="manager").update(capabilities=["runs.view", *rules.AGENTS_ALONE])
    assert set(actor(cast.morgan).grants[cast.workspace.pk]) == {"runs.view"}
    assert {*rules.AGENT_CAPABILITIES, *rules.PROVISIONER_CAPABILITIES} >= rules.AGENTS_ALONE


def test_a_deactivated_member_may_nothing_there(cast):
    Membership.objects.filter(user=cast.riley).update(deactivated_at=clock.now())
    assert actor(cast.riley).grants == {}
    assert cast.riley not in rules.holders(cast.workspace.pk, "approvals.decide")


def test_a_deactivated_account_is_nobody(cast):
    User.objects.filter(pk=cast.riley.pk).update(is_active=False)
    assert actor(cast.riley) == NOBODY
    assert cast.riley not in rules.holders(cast.workspace.pk, "approvals.decide")


def test_an_account_without_a_workspace_is_somebody_who_may_nothing(cast):
    someone = actor(User.objects.create_user("new@fernhill.example", None, name="New"))
    assert someone.is_known and someone.grants == {}
    with pytest.raises(Forbidden):
        rules.require(someone, "runs.view")


def test_an_id_that_is_nobodys_is_nobody():
    assert rules.person(uuid4()) == NOBODY


def test_holders_of_a_right_are_told_by_name(cast):
    assert [user.name for user in rules.holders(cast.workspace.pk, "approvals.decide")] == ["Riley", "Sam"]
    assert [user.name for user in rules.holders(cast.elsewhere.pk, "approvals.decide")] == ["Olga"]


# the way in -----------------------------------------------------------------------------------------------------------------------------


def came_in(user: Any = None, header: bytes | None = None, **session: str) -> Actor:
    return rules.authenticate({"headers": [(b"authorization", header)] if header is not None else [], "user": user, "session": session})


def test_a_signed_in_person_comes_in_and_how_is_remembered(cast):
    assert came_in(cast.riley, signed_in="demo") == rules.person(cast.riley.pk, signed_in="demo")
    assert came_in(cast.riley).signed_in == "password"


@pytest.mark.parametrize("user", [None, AnonymousUser()])
def test_who_is_not_signed_in_is_nobody(user):
    assert came_in(user) == NOBODY


def test_an_agent_comes_in_by_its_key(cast):
    key, token = keys.make(cast.agent, name="test", by=SYSTEM)
    agent = bearer(token)
    assert (agent.kind, agent.id, agent.name, agent.key_id) == ("agent", str(cast.agent.pk), "support-triage", str(key.pk))
    assert agent.grants == {cast.workspace.pk: frozenset(rules.AGENT_CAPABILITIES)} and agent.user_id is None
    assert came_in(header=b"bearer   " + token.encode() + b" ") == agent


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"Bearer",
        b"Bearer ",
        b"Bearer hr_",
        b"Bearer hr_wrong",
        b"Basic cmlsZXk6eA==",
        b"\xff\xfe",
        b"Bearer \x00",
        b"Bearer " + b"x" * 10**6,
    ],
    ids=lambda header: repr(header[:12]),
)
def test_a_header_that_names_no_key_is_nobody_whatever_the_cookie_says(cast, header):
    assert came_in(cast.riley, header) == NOBODY


def test_a_key_wins_over_a_cookie(cast):
    _, token = keys.make(cast.agent, name="test", by=SYSTEM)
    assert came_in(cast.riley, b"Bearer " + token.encode()).kind == "agent"


def test_the_hash_of_a_key_opens_nothing(cast):
    key, _ = keys.make(cast.agent, name="test", by=SYSTEM)
    assert bearer(key.digest) == bearer(key.prefix) == NOBODY


def test_a_key_ends_with_its_time(cast, monkeypatch):
    key, token = keys.make(cast.agent, name="test", by=SYSTEM, days=1)
    monkeypatch.setattr(clock, "now", lambda: key.expires_at - timedelta(microseconds=1))
    agent = bearer(token)
    assert agent.is_known and rules.refresh(agent) == agent
    monkeypatch.setattr(clock, "now", lambda: key.expires_at)
    assert bearer(token) == rules.refresh(agent) == NOBODY


@pytest.mark.parametrize("ended", ["revoked", "its owner left"])
def test_a_key_ends_when_it_is_revoked_or_its_owner_leaves(cast, ended):
    key, token = keys.make(cast.agent, name="test", by=SYSTEM)
    agent = bearer(token)
    if ended == "revoked":
        AgentKey.objects.filter(pk=key.pk).update(revoked_at=clock.now())
    else:
        User.objects.filter(pk=cast.priya.pk).update(is_active=False)
    assert bearer(token) == rules.refresh(agent) == NOBODY


def test_a_key_may_less_than_an_agent_but_never_more(cast):
    narrow = agent_actor(cast.agent, capabilities=("runs.view", "runs.events"))
    assert narrow.grants[cast.workspace.pk] == {"runs.view", "runs.events"}
    key, token = keys.make(cast.agent, name="test", by=SYSTEM)
    AgentKey.objects.filter(pk=key.pk).update(capabilities=["runs.view", "approvals.decide", "access.manage", "*"])
    assert factories.bearer(token).grants[cast.workspace.pk] == {"runs.view"}


# what is seen -----------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def things(cast) -> dict[type, Any]:
    """One of each thing that a run of Fernhill has."""
    proposed = propose_mail(cast, file="a,b\n")
    run = proposed.run
    signal = Signal.objects.create(run=run, kind="cancel", key="1", actor_kind="human", actor_id=str(cast.otto.pk))
    event = factories.line(run, 1)
    return {Run: run, Event: event, Signal: signal, ProposedAction: proposed.action, Artifact: Artifact.objects.first()}


def reach(who: Actor, thing: Any, capability: str) -> str:
    """What asking for one thing is answered with; the list must agree."""
    listed = rules.visible(who, type(thing), capability).filter(pk=thing.pk).exists()
    try:
        assert rules.get(who, type(thing), thing.pk, capability).pk == thing.pk
        answer = "it"
    except (Forbidden, NotFound, NotSignedIn) as refused:
        answer = type(refused).__name__
    assert listed == (answer == "it")
    return answer


@pytest.mark.parametrize("name", MAY)
def test_people_of_a_workspace_reach_what_they_may_and_are_told_what_they_lack(cast, things, name):
    someone = actor(getattr(cast, name))
    wanted = {
        Run: ("runs.view", "runs.steer", "runs.start"),
        Event: ("runs.events",),
        Signal: ("runs.view", "runs.steer"),
        ProposedAction: ("approvals.view", "approvals.decide", "runs.recover"),
        Artifact: ("artifacts.view",),
    }
    for model, capabilities in wanted.items():
        for capability in capabilities:
            assert reach(someone, things[model], capability) == ("it" if capability in MAY[name] else "Forbidden"), (model, capability)


def test_a_refusal_names_the_right_in_words(cast, things):
    with pytest.raises(Forbidden) as refused:
        rules.get(actor(cast.morgan), ProposedAction, things[ProposedAction].pk, "approvals.decide")
    assert refused.value.detail == "This needs the right “Approve, edit, reject, ask”."
    assert refused.value.extra == {"capability": "approvals.decide"}


def test_an_outsider_finds_nothing_whatever_rights_they_have_at_home(cast, things):
    for thing in things.values():
        for capability in CAPABILITIES:
            assert reach(actor(cast.olga), thing, capability) == "NotFound"


def test_nobody_is_asked_to_sign_in_first(things):
    for who in (NOBODY, Actor("nobody", grants={})):
        assert reach(who, things[Run], "runs.view") == "NotSignedIn"
    with pytest.raises(NotSignedIn):
        rules.require(NOBODY, "runs.view")


def test_the_system_itself_reaches_nothing_by_these_rules(things):
    assert reach(SYSTEM, things[Run], "runs.view") == "NotFound"


def test_a_right_that_was_withdrawn_is_gone_at_the_next_look(cast, things):
    before = actor(cast.riley)
    assert reach(before, things[Run], "runs.view") == "it"
    Membership.objects.filter(user=cast.riley).update(deactivated_at=clock.now())
    assert reach(rules.refresh(before), things[Run], "runs.view") == "NotFound"
    User.objects.filter(pk=cast.riley.pk).update(is_active=False)
    assert rules.refresh(before) == NOBODY


def test_an_agent_reaches_its_own_runs_and_no_colleagues(cast, things):
    colleague = Agent.objects.create(workspace=cast.workspace, name="notes", owner=cast.priya)
    theirs = factories.make_run(cast, agent=colleague)
    own, other = agent_actor(cast.agent), agent_actor(colleague)
    assert reach(own, things[Run], "runs.view") == reach(own, things[Run], "runs.write") == "it"
    assert reach(own, theirs, "runs.view") == reach(own, theirs, "runs.write") == "NotFound"
    assert reach(other, theirs, "runs.view") == "it"
    for model in (Run, Event, Signal, ProposedAction):
        assert reach(other, things[model], "runs.view") == "NotFound"
        assert reach(own, things[model], "runs.view") == "it"


def test_an_agent_of_another_workspace_finds_nothing(cast, things):
    stranger = agent_actor(cast.other_agent)
    for thing in things.values():
        assert all(reach(stranger, thing, word) == "NotFound" for word in rules.AGENT_CAPABILITIES)


def test_an_agent_reaches_no_kind_of_thing_that_has_no_agent(cast, things):
    own = agent_actor(cast.agent)
    for model, capability in (
        (Artifact, "artifacts.view"),
        (Payload, "artifacts.view"),
        (Decision, "runs.view"),
        (AuditEntry, "runs.view"),
    ):
        assert not rules.visible(own, model, capability).exists()


@pytest.mark.parametrize("model", [User, Lease])
def test_a_kind_of_thing_that_names_no_workspace_can_be_asked_for_by_nobody(cast, model):
    with pytest.raises(AttributeError, match="workspace_path"):
        rules.visible(actor(cast.ada), model, "access.manage")


@pytest.mark.parametrize("model", [Workspace, Role, Membership, Agent, AgentKey, AuditEntry])
def test_what_admins_manage_is_found_by_them_alone(cast, model):
    keys.make(cast.agent, name="test", by=SYSTEM)
    mine = rules.visible(actor(cast.ada), model, "access.manage").first()
    assert rules.get(actor(cast.ada), model, mine.pk, "access.manage") == mine
    for who in (cast.riley, cast.otto, cast.olga):
        with pytest.raises(NotFound):
            rules.get(actor(who), model, mine.pk, "access.manage")


def test_a_right_that_does_not_exist_is_nobodys(cast, things):
    for who in (cast.ada, cast.priya):
        assert reach(actor(who), things[Run], "runs.everything") == "Forbidden"
        with pytest.raises(Forbidden):
            rules.require(actor(who), "runs.everything")


HOSTILE = (
    None,
    "",
    " ",
    "x",
    "\x00",
    "0' OR '1'='1",
    "../../etc/passwd",
    "٣",
    "𝟙",
    "a" * 100_000,
    "00000000-0000-0000-0000-000000000000",
    "{00000000-0000-0000-0000-000000000000}",
    b"\xff" * 16,
    0,
    -1,
    2**63,
    2**200,
    -(2**200),
    1.5,
    float("nan"),
    float("inf"),
    True,
    [],
    ["x"],
    {},
    {"pk": 1},
    ("x",),
    (1, 2, 3),
    (None, None, None),
    object(),
    UUID("019ae4b0-0000-7000-8000-000000000000"),
)


@pytest.mark.parametrize("pk", HOSTILE, ids=lambda pk: "an object" if type(pk) is object else repr(pk)[:20])
def test_whatever_comes_as_an_id_finds_nothing_and_breaks_nothing(cast, pk):
    admin = actor(member(cast.workspace, "every", *ROLES))
    for model, capability in ((Run, "runs.view"), (Event, "runs.events"), (ProposedAction, "approvals.view"), (Artifact, "artifacts.view")):
        with pytest.raises(NotFound):
            rules.get(admin, model, pk, capability)
    with suppress(
        NotFound
    ):  # Python reads True, 1.5 and digits of other scripts as numbers; so they may name a role, but never another place's
        assert rules.get(admin, Role, pk, "access.manage").workspace == cast.workspace
    assert Run.objects.count() == 0, "the transaction is still good"


# for lists, and for sockets --------------------------------------------------------------------------------------------------------------


def test_a_new_thing_is_made_in_the_workspace_where_one_may(cast):
    assert rules.require(actor(cast.otto), "runs.start") == cast.workspace.pk
    with pytest.raises(Forbidden) as refused:
        rules.require(actor(cast.riley), "runs.start")
    assert refused.value.detail == "This needs the right “Start runs”."


def test_a_hub_learns_whose_rights_changed_with_two_queries(cast, django_assert_num_queries):
    third = workspace("third")
    riley, sam, otto, morgan = (actor(user) for user in (cast.riley, cast.sam, cast.otto, cast.morgan))
    third.memberships.create(user=cast.olga, role=third.roles.create(name="owner"))
    good, revoked = (agent_actor(Agent.objects.create(workspace=third, name=name, owner=cast.olga)) for name in ("good", "revoked"))
    everybody = {who.standing for who in (riley, sam, otto, morgan, good, revoked)}
    assert rules.changed(everybody) == set()
    User.objects.filter(pk=cast.sam.pk).update(access_version=99)
    User.objects.filter(pk=cast.otto.pk).update(is_active=False)
    AgentKey.objects.filter(pk=UUID(revoked.key_id)).update(revoked_at=clock.now())
    cast.morgan.memberships.all().delete()
    cast.morgan.delete()
    with django_assert_num_queries(2):
        assert rules.changed(everybody) == {sam.standing, otto.standing, morgan.standing, revoked.standing}
    with django_assert_num_queries(0):
        assert rules.changed([]) == set()
        assert rules.changed([NOBODY.standing]) == {NOBODY.standing}


def test_grants_of_actions_stay_in_their_workspace(cast, things):
    for capability in CAPABILITIES:
        assert not rules.visible(actor(cast.olga), Grant, capability).exists()


def test_a_right_is_called_on_the_page_of_permissions_as_in_a_refusal():
    """There those of seeing stand under “See”."""
    for group in permissions.GROUPS:
        for right in group.rights:
            name = right.title[0].lower() + right.title[1:]
            assert CAPABILITIES[right.capability] in (right.title, f"See {name}", f"See the {name}")
