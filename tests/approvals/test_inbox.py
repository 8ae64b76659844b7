"""The queue: highest risk, then least time; only what a person may decide; a page at a time; few queries."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.rules import person
from approvals import decisions, inbox
from approvals.models import ProposedAction
from config import clock
from tests.approvals.mailing import propose_change, propose_mail

pytestmark = pytest.mark.django_db(transaction=True)


def subjects(queue: inbox.Queue) -> list[str]:
    return [row.subject for row in queue.rows]


def decide(proposed, who, verdict="approved", reason=""):
    decisions.decide(proposed.action, reviewer=person(who.pk), verdict=verdict, digest=proposed.action.digest, reason=reason)


def test_what_waits_stands_by_risk_and_then_by_time_left(cast):
    low, high, soon = propose_change(cast), propose_mail(cast, name="High"), propose_mail(cast, name="Soon")
    ProposedAction.objects.filter(pk=low.action.pk).update(risk=1)
    ProposedAction.objects.filter(pk=high.action.pk).update(risk=3)
    ProposedAction.objects.filter(pk=soon.action.pk).update(risk=3, expires_at=clock.now() + timedelta(minutes=5))
    assert subjects(inbox.queue(person(cast.riley.pk))) == ["E-mail a reply to Soon", "E-mail a reply to High", "Change the record"]


def test_the_owner_does_not_find_it_in_the_queue_and_a_reviewer_does(cast):
    propose_mail(cast)
    assert inbox.queue(person(cast.riley.pk)).count == 1
    cast.agent.owner = cast.riley
    cast.agent.save()
    assert inbox.queue(person(cast.riley.pk)).count == 0
    assert inbox.queue(person(cast.sam.pk)).count == 1


def test_who_may_only_look_sees_what_waits_in_the_workspace(cast):
    propose_mail(cast)
    queue = inbox.queue(person(cast.morgan.pk))
    assert (queue.count, queue.decides) == (1, False)


def test_nothing_of_another_workspace_is_found(cast):
    propose_mail(cast)
    assert inbox.queue(person(cast.olga.pk)).rows == []
    assert inbox.queue(person(cast.olga.pk)).gone == []


def test_what_was_decided_is_no_longer_yours_and_says_by_whom(cast):
    mine, theirs = propose_mail(cast, name="A"), propose_mail(cast, name="B")
    decide(mine, cast.riley)
    decide(theirs, cast.sam, "rejected", "Not like this.")
    queue = inbox.queue(person(cast.riley.pk))
    assert (queue.rows, queue.count) == ([], 0)
    assert [(gone.word, gone.by) for gone in queue.gone] == [("Rejected", "Sam"), ("Approved", "you")]
    assert queue.decided_today == 1


def test_what_ran_out_is_not_offered_even_before_the_job_says_so(cast):
    proposed = propose_mail(cast)
    ProposedAction.objects.filter(pk=proposed.action.pk).update(expires_at=clock.now() - timedelta(seconds=1))
    assert inbox.queue(person(cast.riley.pk)).rows == []
    decisions.expire_due()
    assert [gone.word for gone in inbox.queue(person(cast.riley.pk)).gone] == ["Expired"]


def test_the_open_action_keeps_its_place_until_it_is_left(cast):
    first, second, third = (propose_mail(cast, name=name) for name in "ABC")
    decide(second, cast.sam)
    riley = person(cast.riley.pk)
    assert subjects(inbox.queue(riley)) == ["E-mail a reply to A", "E-mail a reply to C"]
    kept = inbox.queue(riley, keep=second.action.pk)
    assert subjects(kept) == ["E-mail a reply to A", "E-mail a reply to B", "E-mail a reply to C"]
    assert (kept.rows[1].gone.word, kept.rows[1].gone.by, kept.count) == ("Approved", "Sam", 2)
    assert kept.gone == []
    assert kept.after(second.action.pk).id == third.action.pk
    assert inbox.queue(riley).after(second.action.pk).id == first.action.pk


def test_a_claim_is_seen_until_it_lapses(cast):
    proposed = propose_mail(cast)
    decisions.claim(proposed.action, by=person(cast.sam.pk))
    assert inbox.queue(person(cast.riley.pk)).rows[0].claimed_by == "Sam"
    assert inbox.queue(person(cast.sam.pk)).rows[0].claimed_by_me
    ProposedAction.objects.update(claimed_until=clock.now() - timedelta(seconds=1))
    assert inbox.queue(person(cast.riley.pk)).rows[0].claimed_by == ""


def test_pages_follow_each_other_without_a_gap_or_a_repeat(cast):
    for name in "ABCDEFG":
        propose_mail(cast, name=name)
    same = clock.now() + timedelta(hours=1)
    ProposedAction.objects.update(expires_at=same)
    riley, seen, after = person(cast.riley.pk), [], None
    while True:
        page = inbox.queue(riley, after=after, limit=3)
        assert page.count == 7
        seen += [row.id for row in page.rows]
        after = page.more
        if after is None:
            break
    assert len(seen) == 7 and len(set(seen)) == 7


def test_a_cursor_from_another_workspace_gives_nothing(cast):
    proposed = propose_mail(cast)
    assert inbox.queue(person(cast.olga.pk), after=proposed.action.pk).rows == []


def test_the_queue_takes_the_same_few_queries_for_one_row_and_for_many(cast):
    riley = person(cast.riley.pk)
    propose_mail(cast, name="A")
    with CaptureQueriesContext(
        connection,
    ) as one:
        inbox.queue(riley)
    for name in "BCDE":
        decide(propose_mail(cast, name=name), cast.sam) if name in "BC" else propose_mail(cast, name=name)
    with CaptureQueriesContext(connection) as many:
        inbox.queue(riley)
    assert len(one) == len(many) <= 4
