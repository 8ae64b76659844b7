"""What a page that shows a run is sent while the run goes on: of the same fragments those that may differ for who has read so far."""

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from access import rules
from access.rules import Actor
from runs import presenting, reading
from runs.models import Run
from runs.presenting import View
from runs.story import overview
from runs.story.shapes import Story


def push(run_id: UUID | str, actor: Actor, after: int, mark: Callable[[View, reading.Lines], None] | None = None) -> tuple[str, int]:
    """(HTML, seq): what makes a page that was drawn at event `after` the page at `seq`; nothing if that is the same.

    Raises a Refusal if the actor may no longer see the run. HTML has one root a fragment, each with `hx-swap-oob`. `mark`: marks in it
    what somebody looks for.
    """
    run = rules.get(actor, Run, run_id, "runs.view", related=presenting.RELATED)
    if run.seq <= after:
        return "", run.seq
    seen = presenting.view(run, actor, told := reading.told_lately(run))
    if mark is not None:
        mark(seen, told.lines)
    names = [name for name in presenting.FRAGMENTS if name != "timeline" and (name != "cancel" or seen.can("runs.steer"))]
    parts = [out_of_band(f"run-{name}", presenting.draw(name, seen)) for name in names]
    return "\n".join([*parts, *_timeline(seen, after)]), run.seq


def push_head(run_id: UUID | str, actor: Actor, after: int) -> tuple[str, int]:
    """(HTML, seq) for the page of the raw log: only how far the log goes. The page fetches the rows that its filters let through."""
    run = rules.get(actor, Run, run_id, "runs.events")
    if run.seq <= after:
        return "", run.seq
    ended = " data-live-end" if run.ended_at is not None else ""
    head = f'<span id="event-head" data-seq="{run.seq}" data-head="{run.seq}"{ended} hidden></span>'
    return out_of_band("event-head", head), run.seq


# fetches the list of runs as it is filtered; only on its first page, which has a place for it
RUNS_MOVED = (
    '<span id="runs-moved" hx-swap-oob="true" hx-get="/runs" hx-include="#runs-filter" hx-trigger="load" hx-target="#runs-results"'
    ' hx-select="#runs-results" hx-swap="morph" hidden></span>'
)
# what a page's socket sends, by the `view` of its address
PUSHES: Mapping[str, Callable[[UUID | str, Actor, int], tuple[str, int]]] = {"": push, "events": push_head}


def _timeline(seen: View, after: int) -> Iterable[str]:
    """The sections that changed; the whole timeline when a section came, went or moved."""
    sections = seen.story.sections
    if not seen.live or _rearranged(seen.story, after):
        yield out_of_band("run-timeline", presenting.draw("timeline", seen))
        return
    for section in sections:
        if section.changed > after:
            yield out_of_band(section.key, presenting.render("runs/_section.html", seen, section=section))
    yield out_of_band("run-live", presenting.render("runs/_live.html", seen))


def _rearranged(story: Story, after: int) -> bool:
    """Whether the page at `after` had other sections, or in another order.

    A step that was planned, and not taken over, was there before.
    """
    plan_seq, taken_over = (story.plan.seq, story.plan.taken_over) if story.plan else (0, frozenset())
    begun = [section for section in story.sections if section.opened > after]
    planned = [section.number for section in story.sections if section.kind == "step" and not section.opened]
    known = all(section.key == f"s{section.number}" and 0 < plan_seq <= after and section.number not in taken_over for section in begun)
    folds = after < overview.LONG <= story.seq  # from here on a finished step is one row
    return folds or plan_seq > after or not known or any(number < section.number for number in planned for section in begun)


def out_of_band(name: str, html: str) -> str:
    """A fragment as htmx takes it from a push: its root says that it replaces what has its id."""
    return html.replace(f'id="{name}"', f'id="{name}" hx-swap-oob="morph"', 1)
