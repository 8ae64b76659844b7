"""The pages of runs: who sees what, in how many queries, and that the page, a reply and a push are the same bytes."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from access import rules
from access.models import User
from artifacts.models import Artifact
from config import clock
from runs import log as channel
from runs import presenting, pushing, reading
from runs.models import Run
from runs.timeline import Fold
from runs.vocabulary import MilestoneReached
from tests.cast import Cast
from tests.ids import without_ids
from tests.runs import lines
from tests.runs.played import play

SignIn = Callable[[User], Client]


@pytest.fixture(autouse=True)
def fresh_cache() -> Iterator[None]:
    from django.core.cache import cache

    cache.clear()
    yield


def page(client: Client, url: str, status: int = 200) -> str:
    response = client.get(url)
    assert response.status_code == status, response.content[:500]
    return response.content.decode()


def run_of(run: Run) -> Run:
    return Run.objects.select_related(*presenting.RELATED).get(pk=run.pk)


# The page of a run ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("log", [lines.begun, lines.drafted, lines.proposed, lines.approved, lines.finished, lines.cancelled])
def test_a_run_has_a_page_at_every_point_of_its_life(cast: Cast, sign_in: SignIn, log: Callable[[], Any]) -> None:
    run = play(cast, log())
    html = page(sign_in(cast.riley), reverse("runs:run", args=(run.pk,)))
    assert "Ticket ZN-4821, duplicate charge" in html and "RN-7Q4K" in html
    assert "style=" not in html and not re.search(r"\son\w+=", html)


def test_who_may_decide_is_led_to_the_waiting_action_and_its_owner_is_not(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.proposed())
    url = reverse("runs:run", args=(run.pk,))
    action = f"/actions/{lines.SEND}"
    riley = page(sign_in(cast.riley), url)
    assert "Review the e-mail" in riley and action in riley and "You or Sam can decide." in riley
    priya = page(sign_in(cast.priya), url)
    assert "Review the e-mail" not in priya and "Riley or Sam can decide." in priya


def test_only_who_may_steer_can_cancel_and_the_others_are_told_who_can(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.proposed())
    url = reverse("runs:run", args=(run.pk,))
    assert 'id="cancel-f"' in page(sign_in(cast.otto), url)
    riley = page(sign_in(cast.riley), url)
    assert 'id="cancel-f"' not in riley and "Otto can steer it." in riley


def test_the_cancel_dialog_says_what_will_happen(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.proposed())
    html = page(sign_in(cast.otto), reverse("runs:run", args=(run.pk,)))
    assert "Was not sent. The request for approval is withdrawn." in html.replace("\n", " ")


def test_the_cancel_dialog_says_of_what_is_under_way_that_it_is_undone_if_it_happened(cast: Cast, sign_in: SignIn) -> None:
    log = lines.approved()
    log.add("action.redeemed", {"action": lines.SEND, "grant": lines.SIGNAL, "digest": lines.DIGEST, "token": 2, "worker": "w1"})
    lines.propose(log, lines.NOTE, "update_crm", "write", needs=0, subject="Add a note to account 00932")
    log.add("action.redeemed", {"action": lines.NOTE, "grant": lines.SIGNAL, "digest": lines.DIGEST, "token": 2, "worker": "w1"})
    log.add("action.unknown", {"action": lines.NOTE, "grant": lines.SIGNAL, "reason": "dropped"})
    run = play(cast, log)
    html = page(sign_in(cast.otto), reverse("runs:run", args=(run.pk,)))
    assert "Is under way. The run ends once its outcome is known.</p>" in html, "an e-mail stays sent"
    assert "It is not known whether it happened. The run ends once its outcome is known; if it happened, it is undone.</p>" in html


def test_the_row_that_waits_names_who_can_decide(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.proposed())
    html = page(sign_in(cast.riley), reverse("runs:run", args=(run.pk,)))
    row = html[html.index('data-kind="block"') :].partition("</li>")[0]
    assert re.search(r"Expires .*You or Sam can decide\.", re.sub(r"<[^>]+>", "", row))
    back = page(sign_in(cast.riley), reverse("runs:run", args=(run.pk,)) + f"?at={run.seq}")
    assert "can decide" not in back[back.index('data-kind="block"') :].partition("</li>")[0]  # it was so then, and may not be now


def test_a_failure_is_never_hidden(cast: Cast, sign_in: SignIn) -> None:
    log = lines.begun()
    log.add("step.started", {"step": "read_ticket#1", "kind": "tool", "plan_step": 1}, who="agent")
    log.add("tool.started", {"tool": "read_ticket", "step": "read_ticket#1"}, who="agent")
    log.add("tool.ended", {"tool": "read_ticket", "outcome": "error", "step": "read_ticket#1", "error": "timeout"}, who="agent")
    log.add("step.failed", {"step": "read_ticket#1", "attempt": 1, "error": "timeout"}, who="agent", detail="504 from the desk")
    log.add("run.parked", {"reason": "retries_exhausted"}, detail="Read the ticket: 504 from the desk")
    run = play(cast, log)
    html = page(sign_in(cast.morgan), reverse("runs:run", args=(run.pk,)))
    assert "Stuck" in html and re.search("Failed</span> *504 from the desk", html)


def test_who_may_say_how_a_stuck_run_goes_on_is_led_there(cast: Cast, sign_in: SignIn) -> None:
    log = lines.begun()
    log.add("run.parked", {"reason": "error"})
    run = play(cast, log)
    word, there = "Choose how it goes on", f"/recovery#case-{run.pk}"
    address = reverse("runs:run", args=(run.pk,))
    assert word in (html := page(sign_in(cast.otto), address)) and there in html
    assert word not in page(sign_in(cast.riley), address)


def test_what_is_hidden_is_not_in_the_page(cast: Cast, sign_in: SignIn) -> None:
    log = lines.begun()
    log.add("note.posted", {}, who="agent", note="Their card is 4111 1111 1111 1111, the file is /home/otto/x.txt")
    run = play(cast, log, title="Refund to 4111 1111 1111 1111")
    client = sign_in(cast.riley)
    for url in (reverse("runs:run", args=(run.pk,)), reverse("runs:events", args=(run.pk,)), reverse("runs:list")):
        html = page(client, url)
        assert "4111" not in without_ids(html) and "/home/otto" not in html
        assert "card number hidden" in html


def test_hostile_text_is_only_text(cast: Cast, sign_in: SignIn) -> None:
    evil = "<script>alert(1)</script>{{ run.pk }}{% now %}\u202e\x1b[31m"
    log = lines.begun((evil, "Send"))
    log.add("note.posted", {}, who="agent", note=evil)
    run = play(cast, log, title=evil)
    client = sign_in(cast.riley)
    for url in (reverse("runs:run", args=(run.pk,)), reverse("runs:events", args=(run.pk,)), reverse("runs:list")):
        html = page(client, url)
        assert "<script>alert" not in html and "&lt;script&gt;" in html
        assert "\u202e" not in html and "\x1b" not in html
        assert "{{ run.pk }}" in html


@pytest.mark.parametrize("log", [lines.proposed, lines.finished])
def test_the_page_of_a_run_takes_a_fixed_number_of_queries(
    cast: Cast, sign_in: SignIn, django_assert_max_num_queries: Any, log: Callable[[], Any]
) -> None:
    run = play(cast, log())
    client = sign_in(cast.riley)
    with django_assert_max_num_queries(14):  # one of them for what is frozen, and one for the group that decides
        page(client, reverse("runs:run", args=(run.pk,)))


def test_nobody_from_elsewhere_finds_a_run(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.proposed())
    olga = sign_in(cast.olga)
    for name in ("runs:run", "runs:events"):
        page(olga, reverse(name, args=(run.pk,)), status=404)
    page(olga, reverse("runs:event", args=(run.pk, 1)), status=404)
    page(olga, "/r/RN-7Q4K", status=404)
    assert "ZN-4821" not in page(olga, reverse("runs:list"))


def test_a_short_reference_leads_to_the_run_however_it_is_typed(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.proposed())
    response = sign_in(cast.riley).get("/r/rn 7q4k")
    assert (response.status_code, response.headers["Location"]) == (302, reverse("runs:run", args=(run.pk,)))


# One fragment for the page, the reply and the push ------------------------------------------------------------------------------------


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that stands still: countdowns are drawn from the time."""
    monkeypatch.setattr(clock, "now", lambda: datetime(2026, 11, 26, 14, 36, tzinfo=UTC))


def without_oob(html: str) -> str:
    return html.replace(' hx-swap-oob="morph"', "")


@pytest.mark.parametrize("log", [lines.begun, lines.proposed, lines.approved, lines.finished])
def test_a_push_has_the_bytes_of_the_page(cast: Cast, sign_in: SignIn, still: None, log: Callable[[], Any]) -> None:
    run = play(cast, log())
    html = page(sign_in(cast.otto), reverse("runs:run", args=(run.pk,)))
    pushed, seq = pushing.push(run.pk, rules.person(cast.otto.pk), after=0)
    assert seq == run.seq
    parts = presenting.fragments(run_of(run), rules.person(cast.otto.pk))
    for name, part in parts.items():
        assert part in html or name == "cancel" and run.ended_at, name
        assert part in without_oob(pushed), name


def test_a_push_brings_a_page_that_was_drawn_earlier_up_to_date(cast: Cast, sign_in: SignIn, still: None) -> None:
    """Each pushed root replaces what has its id; after that the old page is the new page."""
    later = play(cast, lines.approved())
    told = reading.lines(later)
    now = dict(_by_id(cast, told))
    for after in range(1, later.seq):
        drawn = dict(_by_id(cast, told[:after]))
        pushed, _ = pushing.push(later.pk, rules.person(cast.otto.pk), after=after)
        roots = re.findall(r'id="([\w-]+)" hx-swap-oob="morph"', pushed)
        assert roots and set(roots) <= set(drawn), after
        assert _swapped(drawn["run-timeline"], pushed, roots) == now["run-timeline"], after


def _swapped(old: str, pushed: str, roots: list[str]) -> str:
    """HTML as a push leaves it: each of its roots in the place of what has the same id."""
    for root in roots:
        if f' id="{root}"' in old:
            old = old.replace(_element(old, root), _element(without_oob(pushed), root))
    return old


def _element(html: str, name: str) -> str:
    """The element with this id, with all that is in it."""
    start = re.search(rf'<(\w+)[^>]* id="{name}"', html)
    assert start is not None, name
    depth = 0
    for tag in re.finditer(rf"<(/?){start[1]}\b", html[start.start() :]):
        depth += -1 if tag[1] else 1
        if not depth:
            return html[start.start() : start.start() + tag.end() + 1]
    raise AssertionError(name)


def test_a_push_brings_the_steps_that_a_fork_had_taken_over_and_does_anew(cast: Cast) -> None:
    """The page had no place for them: so they come with the whole timeline, in their order."""
    whole = lines.forked()
    run = play(cast, whole)
    for after in range(3, run.seq):
        drawn = dict(_by_id(cast, whole.lines[:after]))
        pushed, _ = pushing.push(run.pk, rules.person(cast.otto.pk), after=after)
        roots = re.findall(r'id="([\w-]+)" hx-swap-oob="morph"', pushed)
        assert set(roots) <= set(drawn), after
        if whole.lines[after]["body"]["type"] == "step.started":
            assert "run-timeline" in roots, after


def _by_id(cast: Cast, told: reading.Lines) -> Iterator[tuple[str, str]]:
    from runs import evidence, timeline
    from runs.presenting import View

    run = Run.objects.select_related(*presenting.RELATED).get(ref="RN-7Q4K")
    names = presenting.view(run, rules.person(cast.otto.pk)).names
    story = timeline.fold(told)
    run.state, run.ended_at, run.seq = story.state, story.ended_at, story.seq
    seen = View(run, rules.person(cast.otto.pk), story, evidence.answers(told), names)
    for name, html in presenting.drawn(seen).items():
        yield f"run-{name}", html
        for inner in re.findall(r' id="([\w-]+)"', html):
            yield inner, html


def test_a_push_sends_only_the_sections_that_changed(cast: Cast) -> None:
    log = lines.proposed()
    run = play(cast, log)
    pushed, _ = pushing.push(run.pk, rules.person(cast.riley.pk), after=run.seq - 1)
    roots = re.findall(r'id="([\w-]+)" hx-swap-oob="morph"', pushed)
    assert "s4" in roots and "s3" not in roots and "run-timeline" not in roots


def test_a_push_to_who_has_read_everything_is_empty(cast: Cast) -> None:
    run = play(cast, lines.proposed())
    assert pushing.push(run.pk, rules.person(cast.riley.pk), after=run.seq) == ("", run.seq)


def test_a_push_says_that_nothing_follows_once_the_run_has_ended(cast: Cast) -> None:
    run = play(cast, lines.finished())
    pushed, _ = pushing.push(run.pk, rules.person(cast.riley.pk), after=run.seq - 1)
    assert "data-live-end" in pushed and f'data-seq="{run.seq}"' in pushed


# Cancel -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_cancelling_from_the_page_ends_the_run_once_however_often_it_is_pressed(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.begun())
    client = sign_in(cast.otto)
    sent = {"kind": "cancel", "key": "page-cancel", "note": "Solved by phone."}
    for _ in range(3):
        response = client.post(reverse("runs:signals", args=(run.pk,)), sent)
        assert (response.status_code, response.headers["Location"]) == (302, reverse("runs:run", args=(run.pk,)) + "#said")
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert list(run.events.filter(type="run.cancelled").values_list("seq", flat=True)) == [run.seq]
    html = page(client, reverse("runs:run", args=(run.pk,)))
    assert "Cancelled. Nothing more is done or sent." in html and "Solved by phone." in html


def test_who_may_not_steer_cancels_nothing(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.begun())
    response = sign_in(cast.riley).post(reverse("runs:signals", args=(run.pk,)), {"kind": "cancel", "key": "x"})
    assert response.status_code == 403
    run.refresh_from_db()
    assert run.state == "running"


def test_a_get_sends_no_signal(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.begun())
    assert sign_in(cast.otto).get(reverse("runs:signals", args=(run.pk,))).status_code == 405


# Raw events ---------------------------------------------------------------------------------------------------------------------------


def test_the_raw_log_shows_every_event_and_that_the_chain_is_whole(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.finished())
    html = page(sign_in(cast.morgan), reverse("runs:events", args=(run.pk,)))
    assert html.count("data-row=") == run.seq
    assert "Hash chain unbroken" in html and f"/api/v1/runs/{run.pk}/stream" in html


def test_the_raw_log_says_in_words_what_each_event_is(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.finished())
    client, url = sign_in(cast.morgan), reverse("runs:events", args=(run.pk,))
    cells = [re.sub(r"<[^>]+>", "", each) for each in re.findall(r'<td role="cell" class="sum">(.*?)</td>', page(client, url), re.DOTALL)]
    assert len(cells) == run.seq
    assert not [words for words in cells if re.search(r"#\d|[a-z]_[a-z]", words)]
    for words in (
        "Started: Read the ticket",
        "Read the ticket, Ticket id ZN-4821",
        "Read the ticket: answered, 0.9 s",
        "A script answered: Draft a reply",
        "Waiting for a decision",
        "Checkpoint: 3 steps done, 3 left",
        "Does what was approved: Send the reply",
    ):
        assert words in cells
    assert "Step 1 and 5 more" in page(client, url)
    found = page(client, f"{url}?q=does+what+was+approved+send+the+reply")
    assert len(re.findall(r"data-row=", found)) == 1


def test_the_raw_log_says_where_the_chain_is_broken(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.proposed())
    Run.objects.filter(pk=run.pk).update(head_hash=b"\1" * 32)
    html = page(sign_in(cast.morgan), reverse("runs:events", args=(run.pk,)))
    assert "Hash chain broken" in html and 'role="alert"' in html


def test_events_are_filtered_by_type_and_by_word(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.finished())
    client, url = sign_in(cast.morgan), reverse("runs:events", args=(run.pk,))
    rows = re.findall(r'data-row="(\d+)"', page(client, f"{url}?type=tool"))
    assert len(rows) == 8
    assert re.findall(r'data-row="(\d+)"', page(client, f"{url}?q=duplicate+zn-4821")) == ["1"]
    assert "No event matches “nothing like it”." in page(client, f"{url}?q=nothing+like+it")


def test_a_long_log_is_read_in_windows(cast: Cast, sign_in: SignIn, django_assert_max_num_queries: Any) -> None:
    log = lines.begun()
    for number in range(500):
        log.add("note.posted", {}, who="agent", note=f"Note {number}")
    run = play(cast, log)
    client, url = sign_in(cast.morgan), reverse("runs:events", args=(run.pk,))
    newest = re.findall(r'data-row="(\d+)"', page(client, url))
    assert (int(newest[0]), int(newest[-1])) == (run.seq - 199, run.seq)
    older = re.findall(r'data-row="(\d+)"', page(client, f"{url}?before={newest[0]}"))
    assert (int(older[0]), int(older[-1])) == (run.seq - 399, run.seq - 200)
    around = page(client, reverse("runs:event", args=(run.pk, 120)))
    assert 'data-shows="120"' in around and 'data-row="21"' in around
    with django_assert_max_num_queries(25):  # two of them for who saw what is hidden
        page(client, url)


def test_one_event_is_shown_in_full_with_its_payloads_as_redacted(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.proposed())
    seq = run.events.get(type="action.proposed").seq
    response = sign_in(cast.morgan).get(
        reverse("runs:event", args=(run.pk, seq)), headers={"HX-Request": "true", "HX-Target": "event-detail"}
    )
    html = response.content.decode()
    assert html.lstrip().startswith('<aside class="detail"') and lines.DIGEST in html
    assert "marta@brightwater.example" not in html and "e-mail address hidden" in html


def test_there_is_no_page_for_an_event_that_is_not_there(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.begun())
    for seq in (0, run.seq + 1, 10**15):
        page(sign_in(cast.morgan), reverse("runs:event", args=(run.pk, seq)), status=404)


# The list -----------------------------------------------------------------------------------------------------------------------------


def listed(html: str) -> list[str]:
    return re.findall(r'class="sub mono">(RN-\w+)<', html)


@pytest.fixture
def some(cast: Cast) -> dict[str, Run]:
    failed = lines.begun()
    failed.add("run.failed", {"reason": "error"})

    def ago(hours: int) -> datetime:
        return clock.now() - timedelta(hours=hours)

    return {
        "done": play(cast, lines.finished(), ref="RN-D0NE", title="Renewal reminder, Jürgen Öztürk", created_at=ago(9)),
        "failed": play(cast, failed, ref="RN-FA1D", title="Invoice run", created_at=ago(3)),
        "waiting": play(cast, lines.proposed(), ref="RN-WA1T", title="Ticket ZN-4821", created_at=ago(5)),
        "running": play(cast, lines.drafted(), ref="RN-RVN1", title="Ticket ZN-4840", owner=cast.otto, tokens=300_000),
        "cancelled": play(
            cast, lines.cancelled(), ref="RN-CA7C", title="Address change", created_at=ago(1), steps=9, budgets={"steps": 16}
        ),
    }


def test_what_waits_for_people_stands_first_then_what_runs_then_what_ended_newest_first(
    cast: Cast, sign_in: SignIn, some: dict[str, Run]
) -> None:
    assert listed(page(sign_in(cast.morgan), "/runs")) == ["RN-WA1T", "RN-RVN1", "RN-CA7C", "RN-FA1D", "RN-D0NE"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("state=failed", ["RN-FA1D"]),
        ("state=waiting", ["RN-WA1T"]),
        ("q=zn-48", ["RN-WA1T", "RN-RVN1"]),
        ("q=rn+wa1t", ["RN-WA1T"]),
        ("q=otto", ["RN-RVN1"]),
        ("q=ozturk", ["RN-D0NE"]),
        ("q=JÜRGEN+ÖZTÜRK", ["RN-D0NE"]),
        ("q=addréss", ["RN-CA7C"]),
        ("q=ticket+priya", ["RN-WA1T"]),
        ("agent=support-triage&state=done", ["RN-D0NE"]),
        ("agent=nobody", []),
        ("view=people", ["RN-WA1T"]),
        ("view=budget", ["RN-RVN1", "RN-CA7C"]),
        ("view=soon", ["RN-WA1T"]),
        ("state=nonsense&view=nonsense&older=nonsense&n=x", ["RN-WA1T", "RN-RVN1", "RN-CA7C", "RN-FA1D", "RN-D0NE"]),
    ],
)
def test_runs_are_found_by_state_word_agent_and_view(
    cast: Cast, sign_in: SignIn, some: dict[str, Run], query: str, found: list[str]
) -> None:
    assert listed(page(sign_in(cast.morgan), f"/runs?{query}")) == found


def test_the_most_used_budget_is_told_its_steps_too_and_what_holds_nothing_is_no_view(
    cast: Cast, sign_in: SignIn, some: dict[str, Run]
) -> None:
    html = page(sign_in(cast.morgan), "/runs")
    assert 'data-p="56"' in html and "56 %" in html
    assert "Over half the budget" in html and "Owned by you" not in html


def test_what_waits_on_no_person_has_a_view_of_its_own_so_that_the_numbers_add_up(
    cast: Cast, sign_in: SignIn, some: dict[str, Run]
) -> None:
    assert "Waiting on other things" not in page(sign_in(cast.morgan), "/runs")
    Run.objects.filter(pk=some["running"].pk).update(state="waiting", waiting={"on": "webhook", "source": "contracts"})
    html = " ".join(strip_tags(page(sign_in(cast.morgan), "/runs")).split())
    assert "Waiting on people 1 Waiting on other things 1" in html and "All 5 Waiting 2" in html
    assert listed(page(sign_in(cast.morgan), "/runs?view=others")) == ["RN-RVN1"]


def test_what_a_filter_leaves_is_counted_beside_all_that_the_tiles_and_views_count(
    cast: Cast, sign_in: SignIn, some: dict[str, Run]
) -> None:
    client = sign_in(cast.morgan)
    assert "All 5 Waiting" in " ".join(strip_tags(page(client, "/runs?state=failed")).split())
    assert "All 2 of 5 Waiting 1" in " ".join(strip_tags(page(client, "/runs?q=ticket")).split())


def test_a_budget_hardly_used_is_told_and_where_all_runs_are_on_one_page_there_are_no_pages(
    cast: Cast, sign_in: SignIn, some: dict[str, Run]
) -> None:
    Run.objects.filter(pk=some["waiting"].pk).update(budgets={"steps": 1000}, steps=3)
    html = page(sign_in(cast.morgan), "/runs")
    assert "&lt; 1 %" in html and "1 to 5 of 5" in html
    assert "Older" not in html and "Newer" not in html


def test_an_empty_answer_says_why_and_offers_one_way_on(cast: Cast, sign_in: SignIn, some: dict[str, Run]) -> None:
    html = page(sign_in(cast.morgan), "/runs?state=failed&q=renewal")
    assert "No failed run matches “renewal”." in html and "1 run matches without the state filter." in html
    assert "No runs yet." in page(sign_in(cast.olga), "/runs")


def test_a_row_says_whom_it_waits_for_and_what_was_done_outside(cast: Cast, sign_in: SignIn, some: dict[str, Run]) -> None:
    html = page(sign_in(cast.riley), "/runs")
    assert "You or Sam" in html
    assert 'aria-label="2 done, 0 undone, 0 waiting"' in html and 'aria-label="0 done, 0 undone, 1 waiting"' in html
    assert "Draft a reply<" in html and ">step 3 of 6<" in html


def test_a_row_of_a_run_on_which_nobody_decided_in_time_says_that_nothing_was_done(cast: Cast, sign_in: SignIn) -> None:
    log = lines.proposed()
    log.add("action.expired", {"action": lines.SEND})
    log.add("run.queued", {"reason": "decision"})
    log.add("run.resumed", {"reason": "claimed", "worker": "w1", "token": 2})
    log.add("run.succeeded", {})
    play(cast, log)
    row = page(sign_in(cast.riley), "/runs").partition("RN-7Q4K")[2].partition("</tr>")[0]
    assert "Nobody decided in time" in row and "Nothing done" in row and ">Done<" not in row


def test_a_row_says_nothing_of_what_a_run_was_stuck_by_once_it_went_on(cast: Cast, sign_in: SignIn) -> None:
    log = lines.drafted()
    log.add("run.parked", {"reason": "retries_exhausted"})
    log.add("run.queued", {"reason": "recovered"})
    log.add("run.resumed", {"reason": "claimed", "worker": "w1", "token": 2})
    log.add("run.succeeded", {})
    play(cast, log)
    html = page(sign_in(cast.riley), "/runs")
    assert "RN-7Q4K" in html and "failed for good" not in html


def test_where_several_must_decide_all_of_them_are_named_or_counted(cast: Cast, sign_in: SignIn, some: dict[str, Run]) -> None:
    for needs, said in ((2, "You and Sam"), (3, "3 reviewers")):
        Run.objects.filter(ref="RN-WA1T").update(waiting=some["waiting"].waiting | {"needs": needs})
        assert said in page(sign_in(cast.riley), "/runs")


def test_a_run_of_which_all_was_rejected_is_listed_as_having_done_nothing(cast: Cast, sign_in: SignIn) -> None:
    play(cast, lines.rejected(), ref="RN-N0NE", title="A note")
    html = page(sign_in(cast.riley), "/runs")
    assert "Nothing done" in html and 'class="sub asks"' not in html


def test_runs_of_one_title_also_say_what_each_asks_for(cast: Cast, sign_in: SignIn) -> None:
    play(cast, lines.proposed(), ref="RN-0NE1", title="A note")
    assert 'class="sub asks"' not in page(sign_in(cast.riley), "/runs")
    play(cast, lines.proposed(), ref="RN-TW02", title="A note")
    assert page(sign_in(cast.riley), "/runs").count('class="sub asks">E-mail a reply to') == 2


def test_the_tiles_count_what_waits_for_people_and_what_failed(cast: Cast, sign_in: SignIn, some: dict[str, Run]) -> None:
    html = page(sign_in(cast.riley), "/runs/counts")
    assert re.findall(r"<b>([^<]+)</b>", html) == ["1", "0", "1", "12 min"]
    assert "1 on you" in html and "Failures a day, last seven days: 0, 0, 0, 0, 0, 0, 1" in html and "1 in seven days" in html
    assert html.count('<rect x="') == 7, "a day on which nothing failed is drawn too"


def test_pages_follow_each_other_without_gap_or_repeat(cast: Cast, sign_in: SignIn) -> None:
    for number in range(60):
        play(cast, lines.begun() if number % 3 else lines.proposed(), ref=f"RN-{number:04d}")
    client = sign_in(cast.morgan)
    seen: list[str] = []
    html = page(client, "/runs")
    first = listed(html)
    while True:
        seen += listed(html)
        older = re.search(r'href="(/runs\?[^"]*older=[^"]+)"', html)
        if older is None:
            break
        html = page(client, older[1].replace("&amp;", "&"))
    assert len(seen) == len(set(seen)) == 60
    assert "51 to 60 of 60" in html
    back = re.search(r'href="(/runs\?[^"]*newer=[^"]+)"', html)
    assert back
    html = page(client, back[1].replace("&amp;", "&"))
    assert listed(html) == seen[25:50] and "26 to 50 of 60" in html
    back = re.search(r'href="(/runs\?[^"]*newer=[^"]+)"', html)
    assert back and listed(page(client, back[1].replace("&amp;", "&"))) == first


def test_a_fork_that_only_found_what_was_done_and_was_not_allowed_its_own_did_nothing(cast: Cast, sign_in: SignIn) -> None:
    """On its page and in the list alike."""
    log = lines.forked()
    log.add("effect.done", {"tool": "update_crm", "key": lines.OWNER, "can_undo": True, "action": lines.NOTE}, subject="A note")
    decided = {"action": lines.SEND, "digest": lines.DIGEST, "decision": lines.NOTE, "verdict": "rejected", "round": 1}
    log.add("action.decided", decided, who="riley", after=720, reason="Name the amount.")
    log.add("run.queued", {"reason": "decision"})
    log.add("run.resumed", {"reason": "claimed", "worker": "w1", "token": 2})
    log.add("run.succeeded", {})
    parent = play(cast, lines.approved(), ref="RN-AAAA")
    fork = play(cast, log, forked_from=parent)
    riley = sign_in(cast.riley)
    assert "Ended, nothing done" in page(riley, reverse("runs:run", args=(fork.pk,)))
    assert "Nothing done" in page(riley, reverse("runs:list"))


def test_the_list_takes_a_fixed_number_of_queries(cast: Cast, sign_in: SignIn, django_assert_max_num_queries: Any) -> None:
    for number in range(30):
        play(cast, [lines.proposed, lines.finished, lines.drafted][number % 3](), ref=f"RN-{number:04d}")
    client = sign_in(cast.riley)
    with django_assert_max_num_queries(22):  # one of them for what was undone after the end
        page(client, "/runs")


# Artifacts ----------------------------------------------------------------------------------------------------------------------------


def test_an_artifact_is_shown_as_redacted_with_its_place_in_the_log(cast: Cast, sign_in: SignIn) -> None:
    log = lines.drafted()
    seq = lines.artifact(log, "note.txt", "Write to marta@brightwater.example", label="personal")
    run = play(cast, log)
    made = Artifact.objects.get(name="note.txt").pk
    client = sign_in(cast.riley)
    html = page(client, reverse("artifacts:artifact", args=(made,)))
    assert "marta@brightwater.example" not in html and "e-mail address hidden" in html
    around = page(client, reverse("runs:around", args=(run.pk, made)))
    assert f"#{seq}</a>" in around and "ticket.eml" in around
    page(sign_in(cast.olga), reverse("artifacts:artifact", args=(made,)), status=404)


def test_of_an_artifact_that_waits_with_its_action_it_is_said_for_whom(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, lines.proposed())
    made = Artifact.objects.filter(run_id=run.pk).order_by("-created_at").first()
    around = page(sign_in(cast.riley), reverse("runs:around", args=(run.pk, made.pk)))
    assert "Waiting for a reviewer</span>" in around


def test_a_download_is_redacted_text_that_no_browser_runs(cast: Cast, sign_in: SignIn) -> None:
    log = lines.begun()
    lines.artifact(log, "page.html", "<script>alert(1)</script> 4111 1111 1111 1111")
    play(cast, log)
    response = sign_in(cast.riley).get(reverse("artifacts:content", args=(Artifact.objects.get().pk,)))
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["Content-Disposition"].startswith("attachment;")
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Security-Policy"].startswith("sandbox")
    assert "4111" not in response.content.decode() and "[card number hidden]" in response.content.decode()


# Long runs ----------------------------------------------------------------------------------------------------------------------------


def test_of_a_very_long_section_the_newest_rows_are_drawn_and_the_rest_is_one_link_away(cast: Cast, sign_in: SignIn) -> None:
    log = lines.begun()
    for number in range(300):
        log.add("note.posted", {}, who="agent", note=f"Note {number}")
    run = play(cast, log)
    html = page(sign_in(cast.morgan), reverse("runs:run", args=(run.pk,)))
    assert html.count('<li class="ev') == 200
    assert "103 events, #1 to #103" in re.sub(r"<[^>]+>", "", html) and 'href="?at=1"' in html


def test_pushes_to_many_viewers_share_one_reading_of_the_log(cast: Cast, django_assert_max_num_queries: Any) -> None:
    run = play(cast, lines.proposed())
    first, _ = pushing.push(run.pk, rules.person(cast.riley.pk), after=0)
    actor = rules.person(cast.riley.pk)
    with django_assert_max_num_queries(5):  # the run, names, who decides and of which group, who steers
        again, _ = pushing.push(run.pk, actor, after=0)
    assert re.sub(r'data-p="\d+"', "", first) == re.sub(r'data-p="\d+"', "", again)


def test_a_shared_reading_grows_with_the_log(cast: Cast) -> None:
    run = play(cast, lines.proposed())
    before = reading.told_lately(run)
    held = channel.Held(Run.objects.get(pk=run.pk))
    held.append(MilestoneReached(), actor=rules.SYSTEM, texts={"title": channel.Text("Half of it")})
    channel._flush(held, run.seq)
    run.refresh_from_db()
    after = reading.told_lately(run)
    assert after == reading.Told(reading.lines(run), reading.story(run), reading.answers(run), before.read_at)


def test_a_push_tells_only_what_is_new_of_a_run_and_a_late_viewer_takes_nothing_back(cast: Cast, monkeypatch: Any) -> None:
    run = play(cast, lines.proposed())
    early = Run.objects.get(pk=run.pk)
    first = reading.told_lately(run)
    told: list[int] = []
    monkeypatch.setattr(Fold, "_tell", lambda fold, line, real=Fold._tell: told.append(line["seq"]) or real(fold, line))
    with channel.holding(run.pk) as held:
        seq = held.append(MilestoneReached(), actor=rules.SYSTEM, texts={"title": channel.Text("Half of it")})
    run = Run.objects.get(pk=run.pk)
    assert reading.told_lately(run).story.seq == seq and told == [seq]
    assert reading.told_lately(early).story == first.story
    assert reading.told_lately(run).story.seq == seq and told.count(seq) == 1
    monkeypatch.setattr(reading, "KEPT", 0.0)
    assert reading.told_lately(run) != first and told.count(seq) == 2, "after a while all is read again: something may have been erased"
