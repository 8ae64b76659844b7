"""A draft as the page is laid out: the plan strip, and the sections of the timeline with what is still only planned."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

from runs.lifecycle import TERMINAL
from runs.story.draft import Draft, Stretch
from runs.story.shapes import Effect, Item, Plan, PlanStep, Section, Text

PENDING = {
    "proposed": "waiting",
    "approved": "granted",
    "granted": "granted",
    "delivered": "granted",
    "redeemed": "running",
    "unknown": "unknown",
}


def sections_of(draft: Draft) -> tuple[Section, ...]:
    """Sections in the order in which they were opened, and the steps of the plan that were never begun: last, or before the end."""
    firsts = sorted(draft.rows)
    told = tuple(_section(draft, stretch, firsts) for stretch in draft.stretches)
    ending = len(told) - 1 if draft.ended_at is not None and told[-1].kind == "end" else len(told)
    return told[:ending] + tuple(_planned(draft)) + told[ending:]


def _section(draft: Draft, stretch: Stretch, firsts: list[int]) -> Section:
    return Section(
        key=stretch.key,
        kind=stretch.kind,
        number=stretch.number,
        title=title_of(draft, stretch.number),
        state=state_of(draft, stretch),
        began=stretch.began,
        ended=stretch.ended,
        items=tuple(_apart(draft.rows[row], firsts) for row in stretch.rows),
        opened=stretch.opened,
        changed=stretch.changed,
        anew=bool(stretch.number) and next(each for each in reversed(draft.stretches) if each.number == stretch.number) is not stretch,
    )


def _apart(item: Item, firsts: list[int]) -> Item:
    """The row with the range of events that it is drawn with: until the next one begins, though it may have been told more of later."""
    at = bisect_right(firsts, item.first)
    return replace(item, ends=min(item.last, firsts[at] - 1) if at < len(firsts) else item.last)


def _planned(draft: Draft) -> Iterator[Section]:
    begun = {stretch.number for stretch in draft.stretches}
    if len(begun) == 1 and draft.ended_at is not None:
        return  # nobody told where it was in its plan, so nothing is known about a step
    for number, title in enumerate(draft.plan, 1):
        if number not in begun and number not in draft.taken_over:
            yield Section(f"s{number}", "step", number, title, _unbegun(draft), changed=draft.plan_seq)


def title_of(draft: Draft, number: int) -> Text | None:
    return draft.plan[number - 1] if 0 < number <= len(draft.plan) else None


def state_of(draft: Draft, stretch: Stretch) -> str:
    """The state of a step: its own, or that of the run while it is the open one."""
    if stretch.kind != "step" or stretch.ended is not None or stretch is not draft.here:
        return stretch.state
    return draft.state


def plan_of(draft: Draft) -> Plan | None:
    """The plan with how far each step is; None if none was recorded."""
    if not draft.plan_seq:
        return None
    latest = {stretch.number: stretch for stretch in draft.stretches if stretch.kind == "step"}
    told = bool(latest) or draft.ended_at is None
    steps = []
    for number, title in enumerate(draft.plan, 1):
        stretch = latest.get(number)
        if stretch is None and number in draft.taken_over:
            steps.append(PlanStep(number, title, "done", "start"))
            continue
        state = state_of(draft, stretch) if stretch else _unbegun(draft) if told else ""
        steps.append(PlanStep(number, title, state, stretch.key if stretch else f"s{number}" if told else ""))
    return Plan(draft.plan_version, draft.plan_seq, tuple(steps), draft.taken_over)


def effects_of(draft: Draft) -> tuple[Effect, ...]:
    """What was done outside, then what waits to be done or is under way."""
    if draft.ended_at is not None:
        return tuple(draft.effects.values())
    done = {effect.action for effect in draft.effects.values()}
    return tuple(draft.effects.values()) + tuple(
        Effect(action.seq, action.tool, "", action.subject, PENDING[action.state], False, action=action.id, effect=action.effect)
        for action in draft.actions.values()
        if action.state in PENDING and action.effect in ("write", "send") and action.id not in done
    )


def _unbegun(draft: Draft) -> str:
    return "not_reached" if draft.state in TERMINAL else "planned"
