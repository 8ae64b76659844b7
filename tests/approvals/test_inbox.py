"""The queue: highest risk, then least time; only what a person may decide; a page at a time; few queries."""

import re
import time
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.models import Agent
from access.rules import person
from approvals import decisions, inbox, presenting, wanted
from approvals.models import Policy, ProposedAction
from approvals.templatetags.approving import counted
from approvals.wanted import VIEWS, Wanted
from config import clock
from runs import bar
from runs.models import Run
from tests.approvals.mailing import propose_change, propose_mail

pytestmark = pytest.mark.django_db(transaction=True)


def text(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", page).split())


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
    assert kept.after(second.action).id == third.action.pk
    assert inbox.queue(riley).after(second.action).id == third.action.pk, "it keeps its place though it is gone from the queue"


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


# filters ------------------------------------------------------------------------------------------------------------------------------


def counts(queue: inbox.Queue) -> dict[str, int]:
    return {chip.key: chip.count for chip in queue.chips}


def test_each_view_shows_what_it_says_and_counts_the_others(cast):
    held, free, mine, voted, own = (propose_mail(cast, name=name) for name in ("Held", "Free", "Mine", "Voted", "Own"))
    decisions.claim(held.action, by=person(cast.sam.pk))
    decisions.claim(mine.action, by=person(cast.riley.pk))
    Policy.objects.update(quorum=2)
    decide(voted, cast.riley)
    Run.objects.filter(pk=own.run.pk).update(owner=cast.riley)
    riley = person(cast.riley.pk)
    found = {view: inbox.queue(riley, Wanted(view)) for view in VIEWS}
    assert {view: {row.id for row in queue.rows} for view, queue in found.items()} == {
        "mine": {free.action.pk, mine.action.pk},
        "": {held.action.pk, free.action.pk, mine.action.pk},
        "others": {voted.action.pk, own.action.pk},
        "all": {each.action.pk for each in (held, free, mine, voted, own)},
    }
    assert all(counts(queue) == {"mine": 2, "": 3, "others": 2, "all": 5} for queue in found.values())
    assert [queue.count for queue in found.values()] == [2, 3, 2, 5]
    assert {queue.waiting for queue in found.values()} == {3}, "the top bar does not depend on the filter"
    ProposedAction.objects.update(claimed_until=clock.now() - timedelta(seconds=1))
    assert counts(inbox.queue(riley))["mine"] == 3, "a claim that lapsed holds nothing"


@pytest.mark.parametrize("words", ["marta", "MARTA reply", "zn-7", "support-triage", "Send the reply", "send_mail", "Łodz"])
def test_each_word_is_found_in_what_anybody_may_see(cast, words):
    proposed = propose_mail(cast, title="Ticket ZN-7 from Lódź")
    propose_change(cast)
    other = Agent.objects.create(workspace=cast.workspace, name="crm-tidy", owner=cast.priya)
    Run.objects.exclude(pk=proposed.run.pk).update(agent=other)
    found = inbox.queue(person(cast.riley.pk), Wanted(q=words))
    assert [row.id for row in found.rows] == [proposed.action.pk]
    assert (found.count, found.waiting, counts(found)["all"]) == (1, 2, 1)


@pytest.mark.parametrize("words", ["4111", "Hello Marta", "(", "\\", "%", "x" * 500])
def test_nothing_is_found_by_what_is_hidden_or_makes_no_sense(cast, words):
    propose_mail(cast, name="card 4111 1111 1111 1111", body="Hello Marta")
    found = inbox.queue(person(cast.riley.pk), wanted.read({"q": words, "view": "nonsense"}))
    assert (found.rows, found.hidden, found.wanted.view) == ([], 1, "")


def test_a_page_that_was_left_in_the_middle_goes_on_there_whatever_came_and_went(cast):
    made = [propose_mail(cast, name=name) for name in "BCDEF"]
    riley = person(cast.riley.pk)
    first = inbox.queue(riley, limit=2)
    assert subjects(first) == ["E-mail a reply to B", "E-mail a reply to C"]
    decide(made[1], cast.sam)  # the one that the next page begins after
    urgent = propose_mail(cast, name="Urgent")
    ProposedAction.objects.filter(pk=urgent.action.pk).update(risk=3)
    rest = inbox.queue(riley, after=first.more, limit=2)
    assert subjects(rest) == ["E-mail a reply to D", "E-mail a reply to E"]
    assert subjects(inbox.queue(riley, after=rest.more, limit=2)) == ["E-mail a reply to F"]
    assert subjects(inbox.queue(riley, limit=2)) == ["E-mail a reply to Urgent", "E-mail a reply to B"]


def test_who_asked_for_more_rows_keeps_them(cast, monkeypatch):
    for name in "ABCDE":
        propose_mail(cast, name=name)
    monkeypatch.setattr(inbox, "PAGE", 2)
    riley = person(cast.riley.pk)
    assert [len(inbox.queue(riley, shown=shown, limit=2).rows) for shown in (0, 1, 2, 3, 4, 5, 99)] == [2, 2, 2, 4, 4, 5, 5]


def test_addresses_carry_the_filter_and_a_page_says_what_it_hides(cast, riley):
    held = propose_mail(cast, name="Held")
    decisions.claim(held.action, by=person(cast.sam.pk))
    page = riley.get("/inbox?view=mine&q=reply").content.decode()
    said = text(page)
    assert "Nothing with “reply” waits for you and is held by nobody else." in said
    assert said.count("1 that waits for you is hidden by this filter.") == 1 and "Without this filter" not in said, "once, in the panel"
    assert 'ws-connect="/ws/pages/inbox?view=mine&amp;q=reply"' in page and "data-empty" in page
    page = riley.get("/inbox?q=held").content.decode()
    assert f'href="/actions/{held.action.pk}?q=held"' in page and 'href="/inbox?view=others&amp;q=held"' in page
    # a decision made there comes back to there, without script and with it
    sent = {"verdict": "rejected", "digest": held.action.digest, "reason": "Not like this."}
    bare = riley.post(held.url("decision"), sent, headers={"Referer": f"https://handrail.test{held.url()}?q=held"})
    assert bare["Location"] == f"{held.url()}?q=held"
    there = {"HX-Request": "true", "HX-Target": "panel", "HX-Current-URL": f"https://handrail.test{held.url()}?q=held"}
    assert riley.post(held.url("decision"), sent, headers=there)["HX-Replace-Url"] == f"{held.url()}?q=held"
    elsewhere = {"HX-Request": "true", "HX-Target": "panel", "HX-Current-URL": "https://handrail.test/runs?q=held"}
    assert riley.post(held.url("decision"), sent, headers=elsewhere)["HX-Replace-Url"] == held.url()


def test_more_than_are_counted_are_told_as_so_many_at_least(cast, monkeypatch):
    for name in "ABCD":
        propose_mail(cast, name=name)
    monkeypatch.setattr(inbox, "COUNTED", 2)
    found = inbox.queue(person(cast.riley.pk))
    assert counted(found.count) == counted(found.waiting) == "2+" and len(found.rows) == 4


# next ---------------------------------------------------------------------------------------------------------------------------------


def test_a_push_says_what_is_next_by_the_queue_that_it_draws(cast, riley):
    done, low = (propose_mail(cast, name=name) for name in ("Done", "Low"))
    decide(done, cast.riley)
    actor = person(cast.riley.pk)
    first = presenting.push_inbox(actor, done.action.pk)
    assert f'data-next="row-{low.action.pk}"' in first.html
    late = propose_mail(cast, name="Late")
    ProposedAction.objects.filter(pk=late.action.pk).update(expires_at=done.action.expires_at)
    again = presenting.push_inbox(actor, done.action.pk, last_key=first.key)
    assert again.key == first.key and 'id="status-' not in again.html, "nothing but the queue changed"
    assert f'data-next="row-{again.queue.after(done.action).id}"' in again.html
    page = riley.get(done.url(), headers={"HX-Request": "true", "HX-Target": "panel"}).content.decode()
    assert re.search(r'data-next="([^"]+)"', page)


# the top bar of other pages -----------------------------------------------------------------------------------------------------------


def test_all_that_a_person_has_open_counts_once_for_the_same_news(cast):
    propose_mail(cast)
    riley, sam = person(cast.riley.pk), person(cast.sam.pk)
    with CaptureQueriesContext(connection) as alone:
        bar.drawn(riley)
    heard = time.monotonic()
    with CaptureQueriesContext(connection) as queries:
        told = {bar.drawn(riley, heard) for _ in range(5)}
    assert len(queries) == len(alone) and len(told) == 1 and ">1<" in told.pop()
    propose_mail(cast)
    assert ">1<" in bar.drawn(riley, heard), "what was drawn after the news will do"
    assert ">2<" in bar.drawn(riley, time.monotonic()) and ">2<" in bar.drawn(sam, heard)
