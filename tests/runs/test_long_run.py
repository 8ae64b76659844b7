"""A run too long to be drawn whole: where in it one is, what is said in it, and how it stood at any of its events."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html import unescape

import orjson
import pytest
from django.test import Client
from django.urls import reverse

from access import rules
from access.models import User
from runs import looking, rawlog
from runs.consumers import RunPage
from runs.engine import undoing
from runs.models import Glance, Run
from runs.story import deeds, overview, rows
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
    newest, middle = rows.stretched(section, 0), rows.stretched(section, 250)
    assert newest.before and not newest.after and len(newest.items) == rows.NEWEST
    assert middle.before and middle.after and middle.here == 250
    assert middle.before.rows + len(middle.items) + middle.after.rows == len(section.items)
    assert middle.before.told == f"{middle.before.rows - 1} milestones"


def batches(count: int) -> rows.Section:
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
    drawn = rows.stretched(section, 0, long=True).items
    gaps = [each for each in drawn if isinstance(each, rows.Gap)]
    (gap,) = gaps
    assert [row.state for row in drawn if not isinstance(row, rows.Gap)].count("failed") == 1
    assert gap.told == "35 alike: Move files" and not gap.quiet
    assert sum(each.rows if isinstance(each, rows.Gap) else 1 for each in drawn) == len(section.items)
    assert drawn[-1] == section.items[-1]  # what came last stands there as itself
    assert not any(isinstance(each, rows.Gap) for each in rows.stretched(section, 0).items)  # a short run is drawn whole


def test_what_is_new_is_not_swallowed_by_a_gap_that_began_before() -> None:
    section = batches(40)
    new = section.items[40].first
    drawn = rows.stretched(section, 0, long=True, new=new).items
    gaps = [each for each in drawn if isinstance(each, rows.Gap)]
    assert len(gaps) == 2 and gaps[0].last < new and new in [each.first for each in drawn]


def test_of_what_is_alike_the_last_that_a_story_shows_is_drawn() -> None:
    section = batches(40)
    drawn = rows.stretched(section, 0, long=True).items
    (gap,) = (number for number, each in enumerate(drawn) if isinstance(each, rows.Gap))
    assert [row.quiet for row in drawn[gap + 1 :]] == [False, True], "the last batch, and where it was kept"


def test_a_gap_ends_where_what_is_drawn_after_it_begins() -> None:
    section = batches(40)
    goes_on = replace(section, items=(replace(section.items[0], last=section.last), *section.items[1:]))
    drawn = rows.stretched(goes_on, section.items[-3].first)
    assert drawn.before and drawn.before.last == drawn.items[0].first - 1


def test_what_is_looked_for_is_never_in_a_gap() -> None:
    section = batches(40)
    row = section.items[60]
    drawn = rows.stretched(section, 0, long=True, hits=(row.last,)).items
    assert row in drawn and sum(isinstance(each, rows.Gap) for each in drawn) == 2


def moves(count: int) -> lines.Log:
    """A step of so many moves that nobody is asked about; at the 10th of them a person is, and something fails once."""
    log = lines.begun(("Sorting 2023", "Sorting 2024"))
    log.add("step.started", {"step": "sort#1", "kind": "agent", "plan_step": 1, "attempt": 1, "told": True}, who="agent")
    for move in range(count):
        pk, asked = f"01900000-0000-7000-8000-{move:012d}", move == 9
        proposed = {"action": pk, "tool": "move_files", "effect": "write", "executor": "agent", "digest": f"{move:064x}"}
        proposed |= {"tool_schema": 1, "policy": pk, "policy_version": 1, "until": log.until(900)}
        canonical = orjson.dumps({"tool": "move_files", "arguments": {"files": 10, "batch": move, "to": "Kestrel"}}).decode()
        texts = {"subject": f"Moved 10 files to {'Kestrel' if asked else 'Alder'}", "canonical": canonical}
        log.add("action.proposed", proposed | {"needs": int(asked)}, who="agent", **texts)
        if asked:
            decided = {"action": pk, "digest": f"{move:064x}", "decision": pk, "verdict": "approved", "round": 1}
            log.add("action.decided", decided, who="riley")
            told = {"tool": "lock", "call": "c"}
            log.add("tool.started", told, who="agent")
            log.add("tool.ended", told | {"outcome": "error", "error": "error"}, who="agent")
            log.add("tool.ended", told | {"outcome": "ok"}, who="agent")
        log.add(
            "effect.done", {"action": pk, "key": f"k{move}", "tool": "move_files", "can_undo": False}, who="agent", subject=texts["subject"]
        )
    return log


def test_what_was_done_many_times_is_one_gap_with_its_sum_and_what_a_person_decided_stands_out() -> None:
    section = next(each for each in fold(moves(40).lines).sections if each.number == 1)
    here = next(item.first for item in section.items if item.kind == "decision")
    drawn = rows.stretched(section, here, long=True)
    first, last = (each for each in drawn.items if isinstance(each, rows.Gap))
    assert first.told == "90 files, 9 alike: Move files" and last.told.startswith("300 files, 30 alike")
    assert drawn.here == here and not drawn.before and not drawn.after
    shown = [each for each in drawn.items if not isinstance(each, rows.Gap) and not each.quiet]
    assert [each.kind for each in shown] == ["proposal", "decision", "tool", "effect"]
    assert rows.came_to(section.items, of_step=True) == "400 files, 1 decision, 1 failure"
    assert rows.came_to(section.items).endswith("1 failure retried and fine")


def test_around_a_place_only_what_a_story_shows_is_counted() -> None:
    log = moves(3)
    for batch in range(500):
        log.add("checkpoint.saved", {}, who="agent")
        log.add("note.posted", {}, who="agent", note=f"Note {batch}")
    section = next(each for each in fold(log.lines).sections if each.number == 1)
    drawn = rows.stretched(section, section.items[600].first, long=True)
    assert drawn.before and drawn.after and sum(not each.quiet for each in drawn.items) == 2 * rows.WIDER + 1
    assert drawn.before.rows + len(drawn.items) + drawn.after.rows == len(section.items)


def test_what_stands_out_may_be_the_first_of_all() -> None:
    section = batches(40)
    drawn = rows.stretched(section, 0, long=True, hits=(section.items[0].last,)).items
    assert drawn[0] == section.items[0] and drawn[-1] == section.items[-1]
    assert sum(each.rows if isinstance(each, rows.Gap) else 1 for each in drawn) == len(section.items)


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
    assert "Since you last looked" in page(riley, run, "?at=20")  # whoever looks back has not seen it either


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
    for seen, drawn in ((run.seq - rows.NEWEST, True), (run.seq - rows.NEWEST - 50, False)):
        Glance.objects.all().delete()
        left(riley, run, seen)
        html = page(riley, run)
        assert ('id="new"' in html, 'href="#new"' in html, f'href="?at={seen + 1}">Show' in html) == (drawn, drawn, not drawn)


def test_where_the_news_begin_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    story, asked, first_new = fold(sorting().lines), [], rows.first_new
    monkeypatch.setattr(rows, "first_new", lambda *given: asked.append(given) or first_new(*given))
    assert rows.news(story, 100).events == story.seq - 100
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


def test_a_long_run_says_what_it_works_at_and_calls_its_steps_by_what_tells_them_apart(cast: Cast, sign_in: SignIn, run: Run) -> None:
    riley = sign_in(cast.riley)
    html = page(riley, run)
    assert re.search(r'<span class="st pill" data-s="running">.*?Sort 2025</span>', html, re.DOTALL)
    assert re.findall(r'id="s\d-t">([^<]+)<', html) == ["2023", "2024", "2025"]
    then = re.search(r'id="then".*?</section>', page(riley, run, "?at=300"), re.DOTALL)
    assert then and "Sort 2024" in then[0] and "step 2 of 3" in then[0] and "Doing" not in then[0]
    hidden = Text("Sort ⟦card⟧", hidden={"card": 1})
    step = rows.Section("s1", "step", 1, hidden)
    assert overview.word_of(step) == "" and overview.word_of(replace(step, title=Text("x" * 99))) == ""


def test_a_move_that_nobody_was_asked_about_is_found_once_where_it_was_done(cast: Cast, sign_in: SignIn) -> None:
    run = play(cast, moves(220))
    riley = sign_in(cast.riley)
    html = page(riley, run, "?q=files+to")
    assert "221 found" in words(html)  # of the one that somebody decided on, what was asked for as well
    html = page(riley, run)
    assert "Failed. Fine at attempt 2" in words(html) and "1 failed" not in html


def test_what_is_new_says_what_it_cost(cast: Cast, sign_in: SignIn) -> None:
    log = sorting()
    log.add("model.called", {"model": "m", "prompt": "p", "prompt_version": "1", "cost_micro": 70_000}, who="agent")
    run, riley = play(cast, log), sign_in(cast.riley)
    left(riley, run, run.seq - 1)
    assert "€0.07 spent" in page(riley, run)


def test_an_attempt_that_failed_without_a_reason_says_nothing_more_than_that(cast: Cast, sign_in: SignIn) -> None:
    log = lines.begun(YEARS)
    told = {"tool": "lock", "call": "c"}
    for outcome in ("error", "ok"):
        log.add("tool.started", told, who="agent")
        log.add("tool.ended", told | {"outcome": outcome}, who="agent")
    html = words(page(sign_in(cast.riley), play(cast, log)))
    assert "2 attempts, 1 failed" in html and "1 failed, last" not in html and "reason was given" not in html


def test_that_a_step_began_and_is_done_its_heading_says_in_a_long_run() -> None:
    log = lines.begun(YEARS)
    log.add("step.started", {"step": "sort#1", "kind": "agent", "plan_step": 1, "attempt": 1, "told": True}, who="agent")
    log.add("note.posted", {}, who="agent", note="It goes well.")
    log.add("step.completed", {"step": "sort#1", "plan_step": 1, "ms": 950, "told": True}, who="agent")
    section = next(each for each in fold(log.lines).sections if each.number == 1)
    shown = [[row.kind for row in rows.stretched(section, 0, long=long).items if not row.quiet] for long in (False, True)]
    assert shown == [["tool", "note"], ["note"]]


def test_the_working_time_at_a_place_is_counted_as_the_meter_counts_it() -> None:
    log = lines.begun(YEARS)
    log.add("step.started", {"step": "sort#1", "kind": "agent", "plan_step": 1, "attempt": 1, "told": True}, who="agent")
    log.add("tool.started", {"tool": "read", "call": "c"}, who="agent")
    log.add("tool.ended", {"tool": "read", "call": "c", "outcome": "ok", "ms": 180_000}, who="agent")
    log.add("step.completed", {"step": "sort#1", "plan_step": 1, "ms": 7000, "told": True}, who="agent")
    at = len(log.lines)
    told = [looking.Then(fold(log.lines, at), log.lines, at, steps_count=steps).spent for steps in (True, False)]
    assert told == ["7 s", "3 min"]  # whoever runs its own agent may say of a tool what it will


def test_what_was_undone_is_not_among_what_stood_at_a_place_nor_among_its_things() -> None:
    log = lines.begun(YEARS)
    for number in range(3):
        action = f"{number:032d}"
        lines.propose(log, action, "put_away", "write", needs=0, subject="Put files away")
        canonical = orjson.dumps({"arguments": {"files": 10}}).decode()
        log.lines[-1]["texts"]["canonical"] = lines.words(canonical, "internal", "application/json")
        log.add("effect.done", {"tool": "put_away", "key": f"k{number}", "can_undo": True, "action": action}, subject="Put files away")
    told = [(len(log.lines), "3 times, 30 files")]
    log.add("effect.undone", {"key": "k0"})
    told.append((len(log.lines), "2 times, 20 files, 1 undone"))
    log.add("effect.undo_failed", {"key": "k1", "reason": "refused"})
    told.append((len(log.lines), "2 times, 20 files, 1 undone"))
    assert [(at, looking.Then(fold(log.lines, at), log.lines, at).done) for at, _ in told] == told


def test_what_a_fork_found_done_is_counted_apart_from_what_it_did() -> None:
    log = lines.begun(YEARS)
    log.add("run.forked", {"parent": lines.NOTE, "ref": "RN-AAAA", "seq": 9, "step": "x#1", "taken": 1, "plan_steps": [1]}, who="riley")
    action = f"{1:032d}"
    lines.propose(log, action, "put_away", "write", needs=0, subject="Put files away")
    log.add("effect.done", {"tool": "put_away", "key": "its", "can_undo": True, "action": action}, subject="Put files away")
    story = fold(log.lines)
    assert [effect.earlier for effect in story.effects] == [True]
    assert looking.Then(story, log.lines, len(log.lines)).done == "1 there already"
    told = rows.came_to([item for section in story.sections for item in section.items])
    assert told.startswith("1 there already") and "done outside" not in told


def test_that_the_agent_says_what_was_done_is_told_once_for_a_step_and_with_a_row_that_is_alone() -> None:
    log = lines.begun(YEARS)
    for number, times in ((1, 2), (2, 1)):
        log.add("step.started", {"step": f"sort#{number}", "kind": "tool", "plan_step": number, "attempt": 1}, who="agent")
        for at in range(times):
            data = {"tool": "put_away", "key": f"k{number}{at}", "can_undo": True}
            log.add("effect.done", data, who="agent", subject=f"Put box {at} away")
        log.add("step.completed", {"step": f"sort#{number}", "plan_step": number, "ms": 950}, who="agent")
    drawn = [rows.stretched(section, 0) for section in fold(log.lines).sections if section.kind == "step" and section.opened]
    assert [part.agent_says for part in drawn] == [True, False]
    assert [sum(deeds.AGENT_SAYS in item.lines for item in part.items) for part in drawn] == [0, 1]


def test_a_gap_that_says_how_many_things_were_done_does_not_count_rows_of_several_kinds_as_alike() -> None:
    log = lines.begun(("Sort",))
    log.add("step.started", {"step": "sort#1", "kind": "tool", "plan_step": 1, "attempt": 1}, who="agent")
    for number in range(8):
        action = f"{number:032d}"
        log.add("tool.started", {"tool": "read_scan", "effect": "read", "call": f"c{number}"}, who="agent")
        log.add("tool.ended", {"tool": "read_scan", "outcome": "ok", "ms": 40, "call": f"c{number}"}, who="agent")
        lines.propose(log, action, "put_away", "write", needs=0, subject="Put files away")
        canonical = orjson.dumps({"arguments": {"files": 10}}).decode()
        log.lines[-1]["texts"]["canonical"] = lines.words(canonical, "internal", "application/json")
        log.add("effect.done", {"tool": "put_away", "key": f"k{number}", "can_undo": True, "action": action}, subject="Put files away")
    [step] = [section for section in fold(log.lines).sections if section.kind == "step"]
    told = [item.told for item in rows.stretched(step, 0, long=True).items if isinstance(item, rows.Gap)]
    assert told and all(each.endswith(" files") for each in told), told


def test_events_are_numbered_with_their_thousands_apart_wherever_they_are_named(cast: Cast, sign_in: SignIn) -> None:
    log = sorting()
    while len(log.lines) < 1010:
        log.add("tool.started", {"tool": "move_files", "effect": "read"}, who="agent")
        log.add("tool.ended", {"tool": "move_files", "outcome": "ok", "ms": 40}, who="agent")
    long, riley = play(cast, log), sign_in(cast.riley)
    pages = [(riley, "", "1,009"), (riley, "?at=1005", "1,005"), (riley, "/events", "1,009"), (riley, "/events/1005", "1,005")]
    for who, path, number in [*pages, (sign_in(cast.ada), "/events/1005/erasure", "texts of #1,005")]:
        told = words(who.get(f"/runs/{long.pk}{path}").content.decode())
        assert number in told and not re.findall(r"#\d{4,}", told), path


def test_what_is_said_of_an_event_elsewhere_has_its_thousands_apart_too(cast: Cast) -> None:
    long = play(cast, sorting())
    assert rawlog._where(long, f"event:{long.pk}:2352:note")[0] == "#2,352 note"
    with pytest.raises(undoing.CannotBeUndone, match="#2,352 of"):
        undoing.look(long, 2352)


def test_the_line_that_follows_a_long_run_has_its_cursor_as_the_stream_takes_it(cast: Cast, sign_in: SignIn) -> None:
    long = play(cast, sorting())
    Run.objects.filter(pk=long.pk).update(seq=2352, state="running", ended_at=None)
    told = words(sign_in(cast.riley).get(f"/runs/{long.pk}/events").content.decode())
    assert "Last-Event-ID: 2352" in told and "Carry on from #2,352" in told


def test_gaps_name_what_is_alike_only_if_it_is_all_of_one_kind() -> None:
    assert rows._names(Counter({"Read scan": 40, "Move files": 24})) == "64 alike"


def test_the_bars_of_a_map_are_not_all_one_height_for_one_rush() -> None:
    log = lines.begun(YEARS)
    for number in range(900):
        log.add("note.posted", {}, who="agent", note="x", after=0 if 300 < number < 340 else 1 + number % 90 / 10)
    drawn = overview.overview(fold(log.lines), log.lines).bars
    heights = {round(float(top)) for top in re.findall(r" ([\d.]+)V", drawn)}
    assert len(heights) > 8 and max(heights) - min(heights) >= overview.MOST - overview.LEAST - 1
