"""What a role may do is changed with a reason, by two admins where there are two, and never behind anybody's back."""

from datetime import timedelta
from functools import partial

import pytest
from django.core.management import CommandError, call_command

from access import people, roles, rules, second_admin, standing
from access.errors import Forbidden
from access.models import AuditEntry, Membership, Role, RoleChange, User
from access.reasons import WhyNeeded
from access.role_models import RoleVersion
from access.roles import InForce, Waiting, Wanted
from config import clock
from tests.cast import Cast, member
from tests.factories import actor
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)  # on both databases: locks, and updates with a join
WHY = "Reviewers asked to follow a citation."


def role(cast: Cast, name: str = "operator") -> Role:
    return Role.objects.get(workspace=cast.workspace, name=name)


def held(of: Role) -> frozenset[str]:
    return frozenset(rules.held_by(Role.objects.get(pk=of.pk)))


def ask(cast: Cast, of: Role | None, *, more: set[str] = frozenset(), less: set[str] = frozenset(), by: User | None = None, **given):
    now = held(of) if of else frozenset()
    wanted = Wanted(given.pop("name", of.name if of else ""), (now | more) - less, **given)
    by = actor(by or cast.ada)
    return roles.ask(cast.workspace.pk, of, wanted, base=Role.objects.get(pk=of.pk).version if of else 0, by=by, why=WHY)


@pytest.fixture
def rafael(cast: Cast) -> User:
    return member(cast.workspace, "rafael", "admin")


def version(user: User) -> int:
    return User.objects.values_list("access_version", flat=True).get(pk=user.pk)


# one admin ------------------------------------------------------------------------------------------------------------------------


def test_with_one_admin_a_change_is_in_force_at_once_with_its_version_its_entry_and_its_holders_told(cast: Cast) -> None:
    of, told = role(cast), []
    standing.changed.connect(lambda **_: told.append(True), weak=False, dispatch_uid="test-roles")
    before, riley = actor(cast.otto), version(cast.riley)
    made = ask(cast, of, more={"audit.view"}, less={"runs.start"})
    standing.changed.disconnect(dispatch_uid="test-roles")
    assert isinstance(made, InForce) and made.role.version == 2
    assert rules.changed({before.standing}) == {before.standing} and told, "what Otto has open looks again"
    assert version(cast.riley) == riley, "and nobody else's"
    assert rules.can(actor(cast.otto), "audit.view", cast.workspace.pk) and not rules.can(actor(cast.otto), "runs.start", cast.workspace.pk)
    newest, first = roles.history(of)
    assert (newest.version, newest.asked_by, newest.confirmed_by) == (2, cast.ada, None) and set(newest.holds) == held(of)
    assert first.version == 1 and first.at is None and "runs.start" in first.holds
    entry = AuditEntry.objects.get(verb="role_changed")
    assert (entry.subject_id, entry.data["added"], entry.data["removed"]) == (str(of.pk), ["audit.view"], ["runs.start"])
    assert entry.actor_id == str(cast.ada.pk) and WHY not in str(entry.data)


def test_what_can_not_be_kept_changes_nothing_and_says_why(cast: Cast) -> None:
    of = role(cast)
    refused = [
        (lambda: ask(cast, of, more={"approvals.decide", "policies.manage"}), roles.KeptApart, "who writes the rules"),
        (lambda: ask(cast, of, more={"actions.redeem"}), roles.RoleRefused, "only agents"),
        (lambda: ask(cast, of, more={"no.such"}), roles.RoleRefused, "nobody knows"),
        (lambda: ask(cast, of), roles.RoleRefused, "Nothing would change"),
        (lambda: ask(cast, of, name="Reviewer"), roles.RoleRefused, "already, or was"),
        (lambda: ask(cast, of, name="op\u200berator two"), roles.RoleRefused, "can be seen"),
        (lambda: ask(cast, of, name="r\u0435viewer"), roles.RoleRefused, "Cyrillic small letter ie"),
        (lambda: ask(cast, of, retired=True), roles.RoleRefused, "1 person holds it"),
        (lambda: ask(cast, role(cast, "admin"), less={"access.manage"}), roles.LastAdmin, "last person"),
    ]
    for make, error, words in refused:
        with pytest.raises(error, match=words):
            make()
    with pytest.raises(WhyNeeded):
        roles.ask(cast.workspace.pk, of, Wanted("Operator", frozenset()), base=1, by=actor(cast.ada), why=" ")
    assert not RoleVersion.objects.exists() and not RoleChange.objects.exists()
    assert {each.version for each in Role.objects.filter(workspace=cast.workspace)} == {1} and "access.manage" in held(role(cast, "admin"))


def test_a_change_made_from_an_older_version_is_refused(cast: Cast) -> None:
    of = role(cast)
    ask(cast, of, more={"audit.view"})
    with pytest.raises(roles.RoleChanged, match="Version 2 is in force by now; yours was made from version 1"):
        roles.ask(cast.workspace.pk, of, Wanted("operator", frozenset({"runs.view"})), base=1, by=actor(cast.ada), why=WHY)
    assert "audit.view" in held(of) and roles.history(of)[0].version == 2


def test_a_role_is_made_restored_and_retired_when_nobody_holds_it(cast: Cast) -> None:
    made = ask(cast, None, name="Auditor", more={"audit.view", "runs.view"}).role
    assert held(made) == {"audit.view", "runs.view"} and made.version == 1 and not roles.people(made)
    ask(cast, made, less={"runs.view"}, name="Auditor")
    back = roles.ask(
        cast.workspace.pk, made, Wanted("Auditor", frozenset({"audit.view", "runs.view"}), restores=1), base=2, by=actor(cast.ada), why=WHY
    )
    assert held(back.role) == {"audit.view", "runs.view"} and roles.history(made)[0].restores == 1 and back.role.version == 3
    ask(cast, made, name="Auditor", retired=True)
    assert held(made) == frozenset() and made.pk not in {each.pk for each in roles.listed(cast.workspace.pk)}
    roles.ask(cast.workspace.pk, made, Wanted("Auditor", frozenset({"audit.view"}), restores=2), base=4, by=actor(cast.ada), why=WHY)
    assert made.pk in {each.pk for each in roles.listed(cast.workspace.pk)}
    assert [each.version for each in roles.history(made)] == [5, 4, 3, 2, 1]


# two admins -----------------------------------------------------------------------------------------------------------------------


def test_with_two_admins_nothing_changes_until_the_other_one_confirms(cast: Cast, rafael: User) -> None:
    of, before = role(cast), held(role(cast))
    asked = ask(cast, of, more={"audit.view"})
    assert isinstance(asked, Waiting) and held(of) == before and roles.waits(of) == asked.change
    with pytest.raises(roles.NotTheSecond):
        roles.confirm(asked.change, by=actor(cast.ada))
    with pytest.raises(roles.ChangeWaits):
        ask(cast, of, more={"runs.write"} - {"runs.write"}, less={"runs.start"}, by=rafael)
    otto = version(cast.otto)
    made = roles.confirm(asked.change, by=actor(rafael))
    assert "audit.view" in held(of) and made.version == 2 and version(cast.otto) == otto + 1
    newest = roles.history(of)[0]
    assert (newest.asked_by, newest.confirmed_by) == (cast.ada, rafael)
    verbs = list(AuditEntry.objects.filter(verb__startswith="role_").order_by("at").values_list("verb", "actor_id"))
    assert verbs == [("role_change_asked", str(cast.ada.pk)), ("role_changed", str(rafael.pk))]
    with pytest.raises(roles.ChangeOver, match="Rafael confirmed it"):
        roles.confirm(asked.change, by=actor(rafael))


def test_a_change_is_refused_or_withdrawn_once_and_changes_nothing(cast: Cast, rafael: User) -> None:
    of, before = role(cast), held(role(cast))
    refuse, withdraw = (roles.refuse, {"why": "Not now."}), (roles.withdraw, {})
    for (settle, given), by, other, wrong in ((refuse, rafael, cast.ada, roles.NotTheSecond), (withdraw, cast.ada, rafael, Forbidden)):
        change = ask(cast, of, more={"audit.view"}).change
        with pytest.raises(wrong):
            settle(change, by=actor(other), **given)
        settle(change, by=actor(by), **given)
        with pytest.raises(roles.ChangeOver):
            roles.confirm(change, by=actor(rafael))
        assert held(of) == before and roles.waits(of) is None


def test_without_an_answer_it_lapses_after_a_day_and_another_one_may_be_asked_for(cast: Cast, rafael: User) -> None:
    of = role(cast)
    change = ask(cast, of, more={"audit.view"}).change
    RoleChange.objects.filter(pk=change.pk).update(lapses_at=clock.now() - timedelta(seconds=1))
    assert roles.state(RoleChange.objects.get(pk=change.pk)) == "lapsed" and roles.waits(of) is None
    with pytest.raises(roles.ChangeOver, match="It lapsed without an answer"):
        roles.confirm(change, by=actor(rafael))
    assert isinstance(ask(cast, of, more={"audit.view"}), Waiting)
    assert RoleChange.objects.get(pk=change.pk).state == "lapsed"


def test_a_confirmation_is_held_to_what_is_so_when_it_comes(cast: Cast, rafael: User) -> None:
    of = role(cast)
    change = ask(cast, of, more={"audit.view"}).change
    Membership.objects.filter(user=cast.ada).update(deactivated_at=clock.now())
    with pytest.raises(roles.ChangeOver, match="Whoever asked for it may not"):
        roles.confirm(change, by=actor(rafael))
    Membership.objects.filter(user=cast.ada).update(deactivated_at=None)
    another = ask(cast, of, more={"audit.view"}).change
    Role.objects.filter(pk=of.pk).update(version=5)  # as somebody could who owns the database
    with pytest.raises(roles.ChangeOver, match="Version 5 is in force by now"):
        roles.confirm(another, by=actor(rafael))
    with pytest.raises(roles.ChangeOver, match="Something else changed"):
        roles.confirm(another, by=actor(rafael))
    assert {each.state for each in RoleChange.objects.all()} == {"overtaken"} and "audit.view" not in held(of)
    assert AuditEntry.objects.filter(verb="role_change_overtaken").count() == 2 and roles.waits(of) is None


def test_the_installation_says_whether_a_workspace_takes_two(cast: Cast, capsys: pytest.CaptureFixture[str]) -> None:
    of = role(cast)
    call_command("secondadmin", "fernhill", "always")
    assert "a second admin confirms now" in capsys.readouterr().out
    with pytest.raises(roles.RoleRefused, match="nobody else"):
        ask(cast, of, more={"audit.view"})
    member(cast.workspace, "rafael", "admin")
    call_command("secondadmin", "fernhill", "never")
    assert isinstance(ask(cast, of, more={"audit.view"}), InForce)
    assert [each.data["when"] for each in AuditEntry.objects.filter(verb="second_admin_set").order_by("at")] == ["always", "never"]
    with pytest.raises(CommandError, match="no workspace"):
        call_command("secondadmin", "nowhere", "two")


def test_of_changes_and_confirmations_at_once_one_is_in_force(cast: Cast, rafael: User) -> None:
    of, change = role(cast, "manager"), ask(cast, role(cast), more={"audit.view"}).change
    nora = member(cast.workspace, "nora", "admin")
    confirmed = together([partial(roles.confirm, change, by=actor(each)) for each in (rafael, nora, rafael)])
    assert sorted(type(each).__name__ for each in confirmed) == ["ChangeOver", "ChangeOver", "Role"]
    call_command("secondadmin", "fernhill", "never")
    wanted = [Wanted("manager", frozenset({"runs.view", more})) for more in ("runs.events", "audit.view", "approvals.view")]
    said = together([partial(roles.ask, cast.workspace.pk, of, each, base=1, by=actor(cast.ada), why=WHY) for each in wanted])
    assert sorted(type(each).__name__ for each in said) == ["InForce", "RoleChanged", "RoleChanged"]
    assert [each.version for each in roles.history(of)] == [2, 1] and len(held(of)) == 2


def test_a_role_that_is_made_twice_at_once_is_made_once_and_the_other_is_told_so(cast: Cast) -> None:
    done = together([lambda: ask(cast, None, more={"runs.view"}, name="onlooker")] * 3)
    assert sorted(type(each).__name__ for each in done) == ["InForce", "RoleRefused", "RoleRefused"]


def test_who_could_confirm_is_told_how_many_wait_and_nobody_else(cast: Cast, rafael: User) -> None:
    ask(cast, role(cast), more={"audit.view"})
    assert [second_admin.waiting_for(actor(each)) for each in (rafael, cast.ada, cast.morgan, cast.olga)] == [1, 0, 0, 0]


@pytest.mark.parametrize("how", ["let go", "another role"])
def test_who_sends_the_second_admin_away_is_not_at_once_the_only_one(cast: Cast, rafael: User, how: str, monkeypatch) -> None:
    ada, of = actor(cast.ada), role(cast)
    if how == "let go":
        people.deactivate(people.one(ada, cast.workspace.pk, rafael.pk), by=ada, why="He left us today.")
    else:
        people.give_role(people.one(ada, cast.workspace.pk, rafael.pk), role(cast, "manager"), by=ada, why="He leads the team now.")
    with pytest.raises(roles.RoleRefused, match="within the last day"):
        ask(cast, of, more={"audit.view"})
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + timedelta(days=1, minutes=1))
    assert isinstance(ask(cast, of, more={"audit.view"}), InForce)


@pytest.mark.parametrize("how", ["let go", "another role", "less in the role"])
def test_nor_is_who_takes_another_right_from_the_only_other_person_with_it(cast: Cast, how: str) -> None:
    keeper = Role.objects.create(workspace=cast.workspace, name="keeper", capabilities=["runs.view", "redaction.manage"])
    Membership.objects.filter(user=cast.morgan).update(role=keeper)
    ada, morgan = actor(cast.ada), people.one(actor(cast.ada), cast.workspace.pk, cast.morgan.pk)
    if how == "let go":
        people.deactivate(morgan, by=ada, why="She left us today.")
    elif how == "another role":
        people.give_role(morgan, role(cast, "manager"), by=ada, why="She leads the team now.")
    else:
        assert isinstance(ask(cast, keeper, less={"redaction.manage"}), InForce)
    assert len(rules.holders(cast.workspace.pk, "redaction.manage")) == 1
    assert [roles.needs_second(cast.workspace.pk, right) for right in ("redaction.manage", "policies.manage")] == [True, False]
