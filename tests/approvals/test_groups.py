"""Reviewer groups: a rule asks so many of some of those who may decide, and nobody else counts, whatever becomes of the group meanwhile."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from access.errors import Forbidden
from access.ids import uuid7
from access.models import AuditEntry, User
from access.rules import person
from approvals import decisions, groups, inbox, policy, standing_grants, trying
from approvals.errors import GroupChanged, GroupRefused, GroupTooSmall, NotInGroup
from approvals.models import Decision, GroupVersion, Policy, PolicySet, ProposedAction, ReviewerGroup
from approvals.notifications import audience, chasing, delegation
from approvals.notifications.models import Escalation, Notice
from approvals.wanted import Wanted
from config import clock
from runs.models import Event
from tests import proving
from tests.approvals.mailing import Proposed, propose_change, propose_mail, sent, text
from tests.approvals.noticing import Clock
from tests.approvals.test_policy_page import form, post, tried
from tests.approvals.test_policy_versions import changing, rule, save
from tests.cast import member
from tests.factories import agent_actor
from tests.together import together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture
def tess(cast) -> User:
    """Somebody who may decide, and is in no group."""
    return member(cast.workspace, "tess", "reviewer")


@pytest.fixture
def finance(cast) -> ReviewerGroup:
    sent.clear()
    return made(cast, cast.riley, cast.sam)


def made(cast: Any, *people: User, name: str = "Finance") -> ReviewerGroup:
    return groups.make(
        cast.workspace.pk, name=name, members=[each.pk for each in people], by=person(cast.ada.pk), why="They know the books."
    )


def asks(cast: Any, group: ReviewerGroup | None, *, quorum: int = 2, tool: str = "send_mail") -> None:
    policy.set_rule(cast.workspace.pk, tool, name="Outside e-mail", outcome="reviewers", by=None, quorum=quorum, group=group)


def put(cast: Any, group: ReviewerGroup, *people: User, **changes: Any) -> int:
    """Save the group with these people; gives how many approvals count no more."""
    now = ReviewerGroup.objects.get(pk=group.pk)
    given: dict[str, Any] = {"name": now.name, "closed": now.closed_at is not None, "why": "Another team now.", "base": now.version}
    return groups.change(now, members=[each.pk for each in people], by=person(cast.ada.pk), **given | changes)[1]


def approve(proposed: Proposed, who: User) -> decisions.Decided:
    return decisions.decide(proposed.action, reviewer=person(who.pk), verdict="approved", digest=proposed.action.digest)


def page(who: User, address: str) -> str:
    browser = Client()
    browser.force_login(who)
    return text(browser.get(address))


# who counts -----------------------------------------------------------------------------------------------------------------------


def test_only_so_many_of_the_group_let_it_go_and_nobody_else_counts(cast, tess, finance):
    asks(cast, finance)
    proposed = propose_mail(cast)
    for verdict in ("approved", "rejected"):
        with pytest.raises(NotInGroup, match="Only Finance decides on this, and you are not in it."):
            decisions.decide(proposed.action, reviewer=person(tess.pk), verdict=verdict, digest=proposed.action.digest, reason="Not so.")
    with pytest.raises(NotInGroup):
        decisions.claim(proposed.again(), by=person(tess.pk))
    theirs = page(tess, proposed.url())
    assert "Only Finance decides on this, and you are not in it." in theirs and "drawn redacted" in theirs
    ours = page(cast.sam, proposed.url())
    assert "Two of 2 in Finance." in ours and "2 people in Finance: you and 1 other." in ours and "drawn redacted" not in ours
    approve(proposed, cast.riley)
    assert (proposed.again().state, sent) == ("waiting", [])
    told = Client()
    told.force_login(cast.morgan)
    answer = told.get(f"/api/v1/actions/{proposed.action.pk}").json()
    assert answer["reviewers"] == {"needed": 2, "approved": 1, "group": {"id": str(finance.pk), "name": "Finance"}}
    approve(proposed, cast.sam)
    assert proposed.walk() == "succeeded" and len(sent) == 1
    assert set(Decision.objects.values_list("group_version", flat=True)) == {1}


def test_a_page_of_a_run_names_only_those_of_the_group(cast, tess, finance):
    asks(cast, finance, quorum=1)
    proposed = propose_mail(cast)
    assert "Waiting for Finance" in page(cast.riley, proposed.url())
    assert "Riley or Sam can decide." in page(cast.morgan, f"/runs/{proposed.run.pk}")
    assert "1 in Finance" in page(cast.morgan, "/runs") and "Tess" not in page(cast.morgan, "/runs")


def test_the_list_says_how_many_more_of_the_group_and_names_the_one_who_is_left(cast, tess, finance):
    group = made(cast, cast.riley, cast.sam, tess, name="Ledger")
    asks(cast, group, quorum=2)
    proposed = propose_mail(cast)
    assert "2 in Ledger" in page(cast.morgan, "/runs")
    approve(proposed, cast.riley)
    assert "1 more in Ledger" in page(cast.morgan, "/runs")
    put(cast, group, cast.riley, cast.sam)
    assert "Priya Waiting Sam " in page(cast.morgan, "/runs") and "Priya Waiting You " in page(cast.sam, "/runs")
    put(cast, group, cast.sam, tess)
    assert "2 in Ledger" in page(cast.morgan, "/runs"), "an approval of who was taken out counts no more"


def test_many_groups_are_listed_a_page_at_a_time(cast, django_assert_max_num_queries):
    ada = Client()
    ada.force_login(cast.ada)
    for n in range(30):
        made(cast, cast.riley, cast.sam, name=f"Group {n:02}")
    with django_assert_max_num_queries(16):
        first = text(ada.get("/groups"))
    assert "1 to 25 of 30" in first and "Group 24" in first and "Group 25" not in first
    assert "Group 29" in text(ada.get("/groups?page=2")) and "Group 00" in text(ada.get("/groups?page=nonsense"))


def test_what_waits_for_a_group_is_in_the_queue_of_its_members_alone(cast, tess, finance, django_assert_max_num_queries):
    asks(cast, finance)
    mine, everybodys = propose_mail(cast), propose_change(cast)
    approve(mine, cast.sam)
    with django_assert_max_num_queries(4):
        riley = inbox.queue(person(cast.riley.pk))
    assert {row.id: (row.group, row.approved, row.needs) for row in riley.rows} == {
        mine.action.pk: ("Finance", 1, 2),
        everybodys.action.pk: ("", 0, 1),
    }
    others = inbox.queue(person(tess.pk), Wanted("others"))
    assert [row.id for row in others.rows] == [mine.action.pk]
    assert [row.id for row in inbox.queue(person(tess.pk)).rows] == [everybodys.action.pk] and others.waiting == 1
    assert [row.id for row in inbox.queue(person(cast.riley.pk), Wanted(q="finance")).rows] == [mine.action.pk]
    shown = page(cast.riley, "/inbox")
    assert "1 of 2 approved , Finance" in shown and "One reviewer" in shown, "each row says whom it asks"


def test_reminders_escalations_and_stand_ins_keep_to_the_group(cast, tess, finance, monkeypatch):
    asks(cast, finance)
    proposed = propose_mail(cast)
    now = clock.now()
    days = {"starts_at": now, "ends_at": now + timedelta(days=1)}
    delegation.delegate(cast.workspace.pk, by=person(cast.riley.pk), to=tess.pk, **days)
    (notice,) = Notice.objects.filter(kind="waits")
    assert [user.name for user in audience.people(notice)] == ["Riley", "Sam"], "Tess can't stand in for her here"
    assert "for Riley" not in page(cast.sam, proposed.url())
    ada = person(cast.ada.pk)
    for hours, user in ((1, tess), (2, cast.sam)):
        chasing.add_step(cast.workspace.pk, after=timedelta(hours=hours), to=user.pk, by=ada)
    Clock(monkeypatch).on(hours=3)
    assert chasing.escalate_due() == 1 and Escalation.objects.get().to == cast.sam


def test_a_standing_grant_of_somebody_outside_the_group_covers_nothing(cast, tess, finance):
    asks(cast, finance, quorum=1, tool="change_record")
    for owner in (tess, cast.riley):
        of = standing_grants.wanted(cast.workspace.pk, tool="change_record", asks=[], budget=5, lasts=timedelta(hours=1))
        assert len(standing_grants.back_test(of, person(owner.pk)).covered) == (0 if owner == tess else 1)
        standing_grants.make(of, by=person(owner.pk), shown=standing_grants.token(of, person(owner.pk)))
        assert changing(cast, record=owner.name).state == ("waiting" if owner == tess else "succeeded")


# while it waits --------------------------------------------------------------------------------------------------------------------


def test_what_somebody_approved_who_was_taken_out_counts_no_more_and_stays_in_the_record(cast, tess, finance):
    asks(cast, finance)
    proposed = propose_mail(cast)
    approve(proposed, cast.riley)
    assert put(cast, finance, cast.sam, tess) == 1
    told = page(cast.sam, proposed.url())
    assert "0 of 2 approved" in told and "It counts no more: Riley was taken out of Finance" in told
    with pytest.raises(NotInGroup):
        decisions.claim(proposed.again(), by=person(cast.riley.pk))
    approve(proposed, cast.sam)
    assert proposed.again().state == "waiting"
    assert put(cast, finance, cast.riley, cast.sam, tess) == 0
    assert "1 of 2 approved" in page(tess, proposed.url()), "nobody lets it go by coming back"
    assert inbox.queue(person(tess.pk)).rows[0].approved == 1
    approve(proposed, tess)
    assert proposed.walk() == "succeeded" and len(sent) == 1
    assert Decision.objects.filter(action=proposed.action, verdict="approved").count() == 3, "all that was said is kept"


def test_who_may_decide_no_more_at_all_counts_no_more_either(cast, tess):
    sent.clear()
    asks(cast, None)
    proposed = propose_mail(cast)
    approve(proposed, cast.riley)
    cast.riley.memberships.update(deactivated_at=clock.now())
    assert "It counts no more: Riley may no longer decide." in page(cast.sam, proposed.url())
    approve(proposed, cast.sam)
    assert proposed.again().state == "waiting"
    approve(proposed, tess)
    assert proposed.again().state == "approved"


def test_who_gets_back_the_right_to_decide_lets_nothing_go_by_that_and_leaves_nothing_stuck(cast, tess):
    sent.clear()
    asks(cast, None)
    proposed = propose_mail(cast)
    approve(proposed, cast.riley)
    cast.riley.memberships.update(deactivated_at=clock.now())
    approve(proposed, cast.sam)
    cast.riley.memberships.update(deactivated_at=None)
    assert proposed.again().state == "waiting"
    assert "Enough approve by now. One who may decide says it once more" in page(cast.morgan, proposed.url())
    assert "The e-mail is sent as soon as one of you says it once more." in page(cast.riley, proposed.url())
    assert approve(proposed, cast.sam).again and proposed.again().state == "approved"
    assert approve(proposed, cast.riley).again and proposed.walk() == "succeeded" and len(sent) == 1
    assert Decision.objects.count() == 2


def test_where_too_few_are_left_who_could_approve_the_page_says_so(cast, finance):
    asks(cast, finance)
    proposed = propose_mail(cast)
    approve(proposed, cast.riley)
    assert "Too few are left" not in page(cast.sam, proposed.url())
    asks(cast, None)
    put(cast, finance, cast.sam)
    put(cast, finance, cast.riley, cast.sam)
    assert "Too few are left who could approve it, so it can’t be approved as it is." in page(cast.sam, proposed.url())
    assert approve(proposed, cast.riley).again and proposed.again().state == "waiting"


def test_what_was_granted_before_stays_granted(cast, finance, tess):
    asks(cast, finance, quorum=1)
    proposed = propose_mail(cast)
    approve(proposed, cast.riley)
    put(cast, finance, cast.sam, tess)
    assert proposed.walk() == "succeeded" and len(sent) == 1


@pytest.mark.both_databases
def test_of_taking_somebody_out_and_their_approval_at_once_one_comes_first(cast, tess, finance):
    asks(cast, finance, quorum=1)
    for _ in range(4):
        put(cast, finance, cast.riley, cast.sam)
        proposed, before = propose_mail(cast), ReviewerGroup.objects.get(pk=finance.pk).version
        said, out = together([lambda it=proposed: approve(it, cast.riley), lambda: put(cast, finance, cast.sam)])
        assert not isinstance(out, Exception), out
        if isinstance(said, NotInGroup):
            assert proposed.again().state == "waiting" and not Decision.objects.filter(action=proposed.action).exists()
        else:
            assert (proposed.again().state, Decision.objects.get(action=proposed.action).group_version) == ("approved", before), said


def test_renamed_it_is_the_same_and_closed_it_lets_nothing_through(cast, finance):
    asks(cast, finance)
    proposed = propose_mail(cast)
    put(cast, finance, cast.riley, cast.sam, name="Ledger")
    assert "Two of 2 in Ledger." in page(cast.sam, proposed.url())
    with pytest.raises(GroupRefused, match="Rule 1, “Outside e-mail”, asks it"):
        put(cast, finance, cast.riley, cast.sam, closed=True)
    old = policy.rules(cast.workspace.pk)
    asks(cast, None)
    put(cast, finance, cast.riley, cast.sam, closed=True)
    with pytest.raises(NotInGroup, match="that group is closed: nobody can. It can be proposed anew."):
        approve(proposed, cast.riley)
    assert "Two of Ledger, where nobody may decide on this: it can’t be approved as it is." in page(cast.sam, proposed.url())
    assert inbox.queue(person(cast.riley.pk)).rows == []
    with pytest.raises(GroupRefused, match="asks Ledger, which is closed"):
        save(cast, *old)
    case = trying.cases.read([proposed.again()])[proposed.action.pk]
    judged = policy.judge(list(Policy.objects.filter(policy_set__version=old[0].version)), case)
    assert (judged.outcome, judged.why) == ("never", "no_group")
    put(cast, finance, cast.riley, cast.sam, closed=False)
    approve(proposed, cast.riley)
    approve(proposed, cast.sam)
    assert proposed.again().state == "approved"


def test_what_was_approved_before_a_group_was_closed_does_not_count_once_it_is_open_again(cast, tess, finance):
    asks(cast, finance)
    proposed = propose_mail(cast)
    approve(proposed, cast.riley)
    asks(cast, None)
    assert put(cast, finance, cast.riley, cast.sam, closed=True) == 1, "whoever closes it is told, and whoever opens it"
    assert put(cast, finance, cast.riley, cast.sam, tess, closed=False) == 1
    assert put(cast, finance, cast.riley, cast.sam, tess, closed=True) == 0, "what is lost is lost once"
    assert put(cast, finance, cast.riley, cast.sam, tess, closed=False) == 0
    told = page(cast.sam, proposed.url())
    assert "0 of 2 approved" in told and "Riley was taken out of Finance, it was closed meanwhile, or Riley may no longer decide." in told
    approve(proposed, cast.sam)
    assert proposed.again().state == "waiting"
    put(cast, finance, cast.riley, cast.sam, tess, name="Ledger")
    assert "1 of 2 approved" in page(tess, proposed.url()), "another change takes nothing back"
    approve(proposed, tess)
    assert proposed.walk() == "succeeded" and len(sent) == 1


# rules that could never be met -----------------------------------------------------------------------------------------------------


def test_a_rule_that_its_group_could_never_meet_is_refused_wherever_it_is_made(cast, tess):
    small, empty = made(cast, cast.riley, name="One"), made(cast, name="None")
    for group, said in ((small, "asks 2 of One, in which one person may decide"), (empty, "asks 2 of None, in which nobody may decide")):
        with pytest.raises(GroupTooSmall, match=said):
            save(cast, rule(cast, "reviewers", "send_mail", quorum=2, group=group))
    theirs = ReviewerGroup.objects.create(workspace=cast.elsewhere, name="Theirs")
    with pytest.raises(GroupRefused, match="not in this workspace"):
        save(cast, rule(cast, "reviewers", "send_mail", group=theirs))
    assert not PolicySet.objects.exists()
    pair = made(cast, cast.riley, cast.sam, name="Pair")
    save(cast, rule(cast, "reviewers", "send_mail", quorum=2, group=pair))
    with pytest.raises(GroupTooSmall, match="asks 2 of Pair, in which one person may decide: that could never be met."):
        put(cast, pair, cast.riley)
    assert put(cast, pair, cast.riley, tess) == 0


def test_a_group_takes_only_people_who_may_decide_and_one_name_once(cast, finance):
    with pytest.raises(GroupRefused, match="Only people who may decide"):
        made(cast, cast.morgan, name="Managers")
    with pytest.raises(GroupRefused, match="There is a group “FINANCE” already"):
        made(cast, cast.riley, name="FINANCE")
    for name in ("", " ", "x" * 61, "Fin\u200bance", "Fin\u0430nce", "4111 1111 1111 1111"):  # the last but one with a Cyrillic letter
        with pytest.raises(GroupRefused):
            made(cast, cast.riley, name=name)
    with pytest.raises(GroupRefused, match="at most 200 people"):
        groups.make(cast.workspace.pk, name="All", members=[uuid7() for _ in range(201)], by=person(cast.ada.pk), why="Too many.")
    with pytest.raises(GroupRefused, match="The reason has 0 characters"):
        groups.make(cast.workspace.pk, name="Quiet", members=[], by=person(cast.ada.pk))
    with pytest.raises(GroupChanged):
        groups.change(finance, name="Finance", members=[], closed=False, by=person(cast.ada.pk), why="Too late.", base=7)
    assert GroupVersion.objects.count() == 1 == AuditEntry.objects.filter(verb="group_saved").count()


# pages ------------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def ada(cast) -> Client:
    browser = Client()
    browser.force_login(cast.ada)
    return proving.shown(browser)


def test_ada_makes_a_group_lets_a_rule_ask_it_and_changes_it(cast, ada, tess):
    proposed = propose_mail(cast)
    given = {"name": "Finance", "member": [str(cast.riley.pk)], "why": "They know the books."}
    there = ada.post("/groups/new", given)
    assert there.status_code == 302
    (finance,) = ReviewerGroup.objects.all()
    draft = form(cast, **{"from": str(finance.pk)})
    short = post(ada, draft)
    assert short.status_code == 422 and "asks 2 of Finance, in which one person may decide: that could never be met." in text(short)
    assert f'value="{finance.pk}" selected' in short.content.decode() and "After the ZN-4710 review." in short.content.decode()
    old = given | {"member": [str(cast.riley.pk), str(cast.sam.pk)], "base": "1", "why": "Sam joins them."}
    assert ada.post(there["Location"], old).status_code == 302
    shown = post(ada, draft)
    assert "One reviewer becomes → Two of Finance" in text(shown)
    assert post(ada, draft | {"do": "save", "tried": tried(shown)}).status_code == 302
    assert "Two of Finance" in text(ada.get("/policies"))
    late = ada.post(there["Location"], given | {"base": "1"})
    assert late.status_code == 409 and "Version 2 counts by now; yours was made from version 1." in text(late)
    fewer = ada.post(there["Location"], given | {"base": "2"})
    assert fewer.status_code == 422 and "Nothing was saved. Put more people in, or ask fewer." in text(fewer)
    said = text(ada.get(there["Location"]))
    assert "Rule 1, “Outside e-mail, known customer”, asks 2 of it." in said and "Ada: Sam in. Sam joins them." in said
    assert proposed.again().policy.group is None, "what waits keeps the rule that it was judged by"
    assert approve(proposed, tess).action.state == "approved"


def test_a_try_says_what_would_ask_as_many_of_another_group(cast, finance):
    propose_mail(cast)
    other = made(cast, cast.riley, cast.sam, name="Ledger")
    save(cast, rule(cast, "reviewers", "send_mail", quorum=2, group=finance))
    found = trying.tried(cast.workspace.pk, [rule(cast, "reviewers", "send_mail", quorum=2, group=other)])
    assert [(each.before, each.after) for each in found.differs] == [("Two of Finance", "Two of Ledger")]
    assert (found.more, found.fewer, found.others) == (0, 0, 1)


def test_everybody_who_sees_approvals_reads_groups_and_only_who_changes_policies_changes_them(cast, finance, client):
    asks(cast, finance)
    client.force_login(cast.riley)
    assert "Finance You are in it Riley, Sam 1, Outside e-mail" in text(client.get("/groups"))
    seen = client.get(f"/groups/{finance.pk}")
    assert "They know the books." in text(seen) and 'name="member"' not in seen.content.decode()
    assert client.post(f"/groups/{finance.pk}", {"name": "Mine"}).status_code == 403
    (told,) = client.get("/api/v1/groups").json()["items"]
    assert (told["name"], [each["name"] for each in told["decide"]]) == ("Finance", ["Riley", "Sam"])
    whole = client.get(f"/api/v1/groups/{finance.pk}").json()
    assert whole["rules"] == [{"position": 1, "name": "Outside e-mail", "needs": 2}]
    assert whole["versions"][0]["why"] == "They know the books."
    assert client.get("/api/v1/policies").json()["rules"][0]["group"] == {"id": str(finance.pk), "name": "Finance"}
    with pytest.raises(Forbidden):
        approve(propose_mail(cast), cast.priya)
    assert agent_actor(cast.agent).workspaces("approvals.view") == []
    assert ProposedAction.objects.count() == 1 and Event.objects.filter(type="action.decided").count() == 0


def test_no_more_than_so_many_groups_are_made(cast, finance, monkeypatch):
    monkeypatch.setattr(groups, "MAX_GROUPS", 1)
    with pytest.raises(GroupRefused, match="There are 1 groups already"):
        made(cast, cast.riley, name="Ledger")
