"""A run too long to be drawn whole: where in it one is, what is said in it, and how it stood at any of its events."""

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse

from access import rules
from access.models import User
from runs import looking
from runs.consumers import RunPage
from runs.models import Glance, Run
from runs.story import overview
from runs.story.shapes import Text
from runs.timeline import fold
from tests.cast import Cast
from tests.runs import lines
from tests.runs.played import play

SignIn = Callable[[User], Client]
YEARS = ("Sort 2023", "Sort 2024", "Sort 2025")


def sorting() -> lines.Log:
    """Two years sorted, each with a failure, the third begun: 3 + 2 × 223 + 21 events."""
    log = lines.begun(YEARS)
    for number, batches in ((1, 110), (2, 110), (3, 10)):
        step = f"sort#{number}"
        log.add("step.started", {"step": step, "kind": "tool", "plan_step": number, "attempt": 1}, who="agent", after=3)
        for batch in range(batches):
            log.add("tool.started", {"tool": "move_files", "effect": "read"}, who="agent", after=1 + batch % 7)
            log.add("tool.ended", {"tool": "move_files", "outcome": "ok", "ms": 40}, who="agent")
        if number < 3:
            moved = "Kestrel Print moved" if number == 2 else "Halden Marine moved"
            log.add("milestone.reached", {}, who="agent", title=moved)
            log.add("step.failed", {"step": step, "attempt": 1, "error": "timeout"}, who="agent")
            log.add("step.completed", {"step": step, "plan_step": number, "ms": 950}, who="agent")
    return log


@pytest.fixture
def run(cast: Cast) -> Run:
    return play(cast, sorting(), title="Invoice archive")


def page(client: Client, run: Run, query: str = "") -> str:
    response = client.get(reverse("runs:run", args=(run.pk,)) + query)
    assert response.status_code == 200
    return response.content.decode()


def words(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html)


def test_a_long_run_is_one_map_and_one_row_for_each_finished_step(cast: Cast, sign_in: SignIn, run: Run) -> None:
    html = page(sign_in(cast.riley), run)
    assert f"{run.seq} events" in words(html) and "2 failures" in words(html) and "style=" not in html
    assert len(re.findall(r'class="step fstep"', html)) == 2
    assert re.search(r'class="mm__d" d="M', html) and sum(map(int, re.findall(r'<li data-p="(\d+)"', html))) == 100


def test_a_finished_step_opens_at_its_place_and_the_rest_stays_folded(cast: Cast, sign_in: SignIn, run: Run) -> None:
    html = page(sign_in(cast.riley), run, "?at=300")
    assert html.count('class="step fstep"') == 1 and html.count('id="here"') == 1
    assert "As it stood at #300" in words(html) and "Sort 2024" in html
    assert "ws-connect" not in html and 'id="run-steer"' not in html  # it is of now, and so are undo and steer


def test_what_is_said_in_a_long_run_is_found_with_how_many_came_before(cast: Cast, sign_in: SignIn, run: Run) -> None:
    riley = sign_in(cast.riley)
    html = page(riley, run, "?q=kestrel")
    (hit,) = set(re.findall(r'at=(\d+)"><span class="num">', html))
    assert html.count("found</mark>") == 1  # in the folded step that holds it
    assert "1 found" in words(html) and "Kestrel Print moved" in words(html)
    assert "1 of 1" in words(page(riley, run, f"?q=kestrel&at={hit}"))
    assert "Nothing found" in page(riley, run, "?q=nobody+says+this")


def test_a_place_beyond_the_log_or_none_at_all_is_now(cast: Cast, sign_in: SignIn, run: Run) -> None:
    riley = sign_in(cast.riley)
    for query in ("?at=99999", "?at=x", "?at=", "?q=%00"):
        html = page(riley, run, query)
        assert "As it stood at" not in html and "ws-connect" in html


def test_who_may_not_read_events_cannot_search_them(cast: Cast, sign_in: SignIn, run: Run) -> None:
    role = cast.riley.memberships.get(workspace=cast.workspace).role
    role.capabilities = [each for each in role.capabilities if each != "runs.events"]
    role.save()
    html = page(sign_in(cast.riley), run, "?q=kestrel")
    assert "Find in this run" not in html and "in this run</h2>" not in html


def test_the_rows_around_a_place_are_drawn_and_the_others_counted() -> None:
    log = lines.begun(YEARS)
    log.add("step.started", {"step": "sort#1", "kind": "tool", "plan_step": 1, "attempt": 1}, who="agent")
    for _ in range(500):
        log.add("milestone.reached", {}, who="agent", title="A batch")
    section = next(each for each in fold(log.lines).sections if each.number == 1)
    newest, middle = overview.stretched(section, 0), overview.stretched(section, 250)
    assert newest.before and not newest.after and len(newest.items) == overview.NEWEST
    assert middle.before and middle.after and middle.here == 250
    assert middle.before.rows + len(middle.items) + middle.after.rows == len(section.items)
    assert middle.before.told == f"{middle.before.rows - 1} milestones"


def batches(count: int) -> overview.Section:
    """A step of so many batches: files are moved and the place is kept; behind the third one call fails."""
    log = lines.begun(YEARS)
    log.add("step.started", {"step": "sort#1", "kind": "tool", "plan_step": 1, "attempt": 1}, who="agent")
    for batch in range(count):
        log.add("tool.started", {"tool": "move_files", "effect": "read", "call": f"c{batch}"}, who="agent")
        log.add(
            "tool.ended", {"tool": "move_files", "outcome": "error" if batch == 3 else "ok", "ms": 40, "call": f"c{batch}"}, who="agent"
        )
        log.add("checkpoint.saved", {}, who="agent")
    return next(each for each in fold(log.lines).sections if each.number == 1)


def test_batches_that_are_alike_are_one_gap_and_what_stands_out_among_them_is_drawn() -> None:
    section = batches(40)
    drawn = overview.stretched(section, 0, long=True).items
    gaps = [each for each in drawn if isinstance(each, overview.Gap)]
    (gap,) = gaps
    assert [row.state for row in drawn if not isinstance(row, overview.Gap)].count("failed") == 1
    assert gap.told == "35 alike: Move files" and not gap.quiet
    assert sum(each.rows if isinstance(each, overview.Gap) else 1 for each in drawn) == len(section.items)
    assert drawn[-1] == section.items[-1]  # what came last stands there as itself
    assert not any(isinstance(each, overview.Gap) for each in overview.stretched(section, 0).items)  # a short run is drawn whole


def test_what_is_new_is_not_swallowed_by_a_gap_that_began_before() -> None:
    section = batches(40)
    new = section.items[40].first
    drawn = overview.stretched(section, 0, long=True, new=new).items
    gaps = [each for each in drawn if isinstance(each, overview.Gap)]
    assert len(gaps) == 2 and gaps[0].last < new and new in [each.first for each in drawn]


def test_of_what_is_alike_the_last_that_a_story_shows_is_drawn() -> None:
    section = batches(40)
    drawn = overview.stretched(section, 0, long=True).items
    (gap,) = (number for number, each in enumerate(drawn) if isinstance(each, overview.Gap))
    assert [row.quiet for row in drawn[gap + 1 :]] == [False, True], "the last batch, and where it was kept"


def test_a_gap_ends_where_what_is_drawn_after_it_begins() -> None:
    section = batches(40)
    goes_on = replace(section, items=(replace(section.items[0], last=section.last), *section.items[1:]))
    drawn = overview.stretched(goes_on, section.items[-3].first)
    assert drawn.before and drawn.before.last == drawn.items[0].first - 1


def test_what_is_looked_for_is_never_in_a_gap() -> None:
    section = batches(40)
    row = section.items[60]
    drawn = overview.stretched(section, 0, long=True, hits=(row.last,)).items
    assert row in drawn and sum(isinstance(each, overview.Gap) for each in drawn) == 2


def test_what_stands_out_may_be_the_first_of_all() -> None:
    section = batches(40)
    drawn = overview.stretched(section, 0, long=True, hits=(section.items[0].last,)).items
    assert drawn[0] == section.items[0] and drawn[-1] == section.items[-1]
    assert sum(each.rows if isinstance(each, overview.Gap) else 1 for each in drawn) == len(section.items)


def left(client: Client, run: Run, seq: int) -> None:
    """The page was left with the log drawn up to here."""
    assert client.post(reverse("runs:glances", args=(run.pk,)), {"seq": seq}).status_code == 204


def test_who_comes_back_to_a_long_run_sees_what_is_new_to_them_and_nobody_else_does(cast: Cast, sign_in: SignIn, run: Run) -> None:
    riley, sam = sign_in(cast.riley), sign_in(cast.sam)
    assert "Since you last looked" not in page(riley, run)
    left(riley, run, 300)
    html = page(riley, run)
    assert f"Since you last looked, {run.seq - 300} events ago" in words(html) and 'class="mm__new"' in html
    assert "1 milestone" in re.search(r'class="note since">.*?</div>', html, re.DOTALL)[0]
    assert html.count("New to you</b>") == 1  # of the two finished steps the second has news, and it is folded
    assert '<a href="?at=301">Show <span class="num">#301' in html or 'href="?at=301"' in html
    assert "Since you last looked" not in page(sam, run)
    assert "Since you last looked" not in page(riley, run, "?at=20")  # it is of now


def test_where_the_news_begin_is_marked_and_a_page_that_was_behind_takes_nothing_back(cast: Cast, sign_in: SignIn, run: Run) -> None:
    riley = sign_in(cast.riley)
    left(riley, run, run.seq - 5)
    left(riley, run, 12)
    html = page(riley, run)
    assert "New to you from here, 5 events" in words(html) and html.count('id="new"') == 1 and 'href="#new"' in html
    left(riley, run, run.seq + 1000)
    assert "New to you" not in page(riley, run)
    assert Glance.objects.get().seq == run.seq
    for odd in ("", "x", "-3", "0"):
        left(riley, run, odd)


def test_news_that_begin_among_rows_that_are_not_drawn_are_led_to_at_their_event(cast: Cast, sign_in: SignIn) -> None:
    log = lines.begun(YEARS)
    log.add("step.started", {"step": "sort#1", "kind": "tool", "plan_step": 1, "attempt": 1}, who="agent")
    for batch in range(500):
        log.add("milestone.reached", {}, who="agent", title=f"Batch {batch}")
    run, riley = play(cast, log), sign_in(cast.riley)
    for seen, drawn in ((run.seq - overview.NEWEST, True), (run.seq - overview.NEWEST - 50, False)):
        Glance.objects.all().delete()
        left(riley, run, seen)
        html = page(riley, run)
        assert ('id="new"' in html, 'href="#new"' in html, f'href="?at={seen + 1}">Show' in html) == (drawn, drawn, not drawn)


def test_where_the_news_begin_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    story, asked, first_new = fold(sorting().lines), [], overview.first_new
    monkeypatch.setattr(overview, "first_new", lambda *given: asked.append(given) or first_new(*given))
    assert overview.news(story, 100).events == story.seq - 100
    assert len(asked) == 1


def test_what_is_looked_for_is_marked_in_the_rows_and_never_in_a_tag(cast: Cast, sign_in: SignIn, run: Run) -> None:
    riley = sign_in(cast.riley)
    (hit,) = set(re.findall(r'at=(\d+)"><span class="num">', page(riley, run, "?q=kestrel")))
    assert "<mark>" not in page(riley, run, f"?q=span&at={hit}")  # nobody says it; it stands in many a tag
    html = page(riley, run, f"?q=kestrel&at={hit}")
    assert html.count("<mark>Kestrel</mark> Print moved") == 2  # in its row, and beside in the list of what was found
    assert "<mark>" not in page(riley, run, f"?at={hit}")


def test_what_is_looked_for_stays_marked_in_what_is_pushed(cast: Cast, sign_in: SignIn, run: Run) -> None:
    html = page(sign_in(cast.riley), run, "?q=kestrel+moved")
    [address] = re.findall(r'ws-connect="([^"]+)"', html)
    socket = RunPage()
    socket.scope = {"query_string": unescape(address).partition("?")[2].replace(f"after={run.seq}", "after=0").encode()}
    pushed, seq = socket.push(run.pk, rules.person(cast.riley.pk), socket.cursor())
    assert seq == run.seq and html.count("found</mark>") == pushed.count("found</mark>") == 1
    assert "q=kestrel%20moved&amp;at=" in pushed, "and what is folded opens with it"


def test_what_is_looked_for_is_pushed_to_nobody_who_may_not_read_events(cast: Cast, run: Run) -> None:
    role = cast.riley.memberships.get(workspace=cast.workspace).role
    role.capabilities = [each for each in role.capabilities if each != "runs.events"]
    role.save()
    pushed, _ = looking.push(run.pk, rules.person(cast.riley.pk), 0, q="kestrel")
    assert "Sort 2023" in pushed and "found</mark>" not in pushed


def test_a_long_run_is_read_in_as_many_queries_as_a_short_one(
    cast: Cast, sign_in: SignIn, run: Run, django_assert_max_num_queries: Callable
) -> None:
    riley = sign_in(cast.riley)
    page(riley, run)
    with django_assert_max_num_queries(26):
        page(riley, run, "?q=kestrel&at=300")


def test_the_steps_under_the_map_leave_out_what_all_of_them_begin_with():
    def texts(*given: str) -> list[Text]:
        return [Text(each) for each in given]

    assert overview.apart(texts("Sort 2023", "Sort 2024")) == texts("2023", "2024")
    for those in (texts("Sort", "Sort 2024"), texts("Sort 2023"), texts("Sort ⟦card⟧ 1", "Sort 2"), [None, *texts("Sort 1")], []):
        assert overview.apart(those) == those
