"""The sentence of the moment: what the run is doing, or waits for, or came to."""

from collections.abc import Iterable, Sequence

from runs.story.draft import WAITS, Draft, Waiting
from runs.story.outline import title_of
from runs.story.shapes import Action, Code, Effect, Moment, Now, One, Part, Rich, Text, Tool

NAMED = 4  # effects that the sentence of the end names
IDLE = "The agent is idle and spends nothing."


def now_of(draft: Draft) -> Now:
    """What the run does or waits for, as far as the draft goes."""
    tell = {
        "queued": _queued,
        "running": _running,
        "waiting": _waiting,
        "paused": _paused,
        "parked": _parked,
        "stalled": _stalled,
        "cancelling": _cancelling,
        "compensating": _compensating,
        "succeeded": _succeeded,
        "failed": _failed,
        "cancelled": _cancelled,
    }
    return tell[draft.state](draft) if draft.seq else Now("queued", ("Nothing is recorded yet.",))


def _queued(draft: Draft) -> Now:
    if draft.here.kind == "start" and not draft.plan_seq:
        return Now("queued", ("Waiting for a worker to take it up.",), (("It starts by itself as soon as one is free.",),), draft.since)
    return Now("queued", ("About to go on.",), (("A worker takes it up from the last completed step.",),), draft.since)


def _running(draft: Draft) -> Now:
    number, title = draft.here.number, title_of(draft, draft.here.number)
    doing: tuple[Rich, ...] = (*_asks(draft), *(((*draft.doing, "."),) if draft.doing else ()))
    if title:
        between = "After step" if draft.here.ended else "Step"
        return Now("running", (f"{between} {number} of {len(draft.plan)}: ", title), doing, draft.since)
    if not draft.plan_seq and not doing and not draft.actions:
        return Now("running", ("Just started.",), (("Nothing is planned or done so far.",),), draft.since)
    return Now("running", ("The agent is working.",), doing, draft.since)


def _asks(draft: Draft) -> tuple[Rich, ...]:
    """What an agent outside needs of people while it works on: the run does not wait, and may ask for several things at once."""
    return _needed(action for action in draft.actions.values() if action.executor == "agent")


def _needed(actions: Iterable[Action]) -> tuple[Rich, ...]:
    """What people have to do about these actions."""
    asked: list[Rich] = []
    for action in actions:
        about = action.subject or Tool(action.tool)
        if action.state == "proposed" and action.needs:
            asked.append(("A reviewer has to decide: ", about, "."))
        elif action.state == "unknown":
            asked.append(("A person has to say what became of it: ", about, "."))
    return tuple(asked[:4])


def _waiting(draft: Draft) -> Now:
    was = draft.waiting or Waiting("", draft.since, 0)  # type: ignore[arg-type]  a run that waits has been told since when
    what, lines = _waits_for(draft, was)
    return Now("waiting", what, lines, was.since, was.until, was.on, was.action)


def _waits_for(draft: Draft, was: Waiting) -> tuple[Rich, tuple[Rich, ...]]:
    if was.on == "decision":
        return _decision(draft, was)
    until: tuple[Rich, ...] = (("Until ", Moment(was.until), "."),) if was.until else ()
    if was.on == "outcome" and was.until:
        return ("Finding out what became of an action whose answer was lost.",), (
            ("It is looked up again by itself. Nothing is repeated.",),
        )
    if was.on == "outcome":
        return ("Waiting for a person to say what happened.",), (("The outside can’t tell. Nothing is repeated before somebody knows.",),)
    if was.on == "retry":
        return ("Waiting to try again.",), (("The last try failed. It goes on by itself.",), *until)
    if was.on == "unfreezing":
        return ("Frozen. It waits, and nothing of it is granted or done.",), (("It goes on by itself once it is unfrozen.",), *until)
    if was.on == "webhook" and was.source:
        return ("Waiting for a webhook from ", Code(was.source), "."), ((IDLE,), *until)
    if was.on == "budget" and draft.spent:
        return ("Waiting for a bigger budget.",), (draft.spent, (IDLE,))
    if was.on == "timer" and was.action:
        return ("Approved, and can still be recalled.",), (("It goes on by itself, if nobody recalls it.",), *until)
    return (f"Waiting for {WAITS.get(was.on, was.on or 'something')}.",), ((IDLE,), *until)


def _decision(draft: Draft, was: Waiting) -> tuple[Rich, tuple[Rich, ...]]:
    action = draft.actions.get(was.action)
    needs = max(was.needs, 1)
    who = "a reviewer" if needs == 1 else f"{needs} reviewers"
    about: tuple[Rich, ...] = ((action.subject or Tool(action.tool), "."),) if action else ()
    until = was.until or (action.until if action else None)
    if action and action.executor == "agent":  # it may do something else meanwhile, and ask for several things at once
        return (f"Waiting for {who} to decide.",), _asks(draft)
    expires: Rich = (" At ", Moment(until), " the request expires.") if until else ()
    what: Rich = ("approve ", One(action.tool)) if action else ("decide",)
    return (f"Waiting for {who} to ", *what, "."), (*about, (IDLE, *expires))


def _paused(draft: Draft) -> Now:
    open_ = [action for action in draft.actions.values() if action.state == "proposed" and action.needs and action.until]
    lines: tuple[Rich, ...] = tuple(
        (action.subject or Tool(action.tool), " can still be decided on. At ", Moment(action.until), " the request expires.")
        for action in open_[:NAMED]
        if action.until
    )
    return Now("paused", (*draft.why, "."), ((IDLE,), *(lines or (("Deadlines of approvals go on.",),))), draft.since)


def _parked(draft: Draft) -> Now:
    lines: tuple[Rich, ...] = (_detail(draft.why_text), ("A person must choose how it goes on. Nothing is repeated by itself.",))
    return Now("parked", ("Stuck: ", *draft.why, "."), tuple(line for line in lines if line), draft.since)


def _stalled(draft: Draft) -> Now:
    lost = _needed(action for action in draft.actions.values() if action.state == "unknown")
    if lost:
        again: Rich = ("Look there before anybody starts the agent again.",)
        return Now("stalled", lost[0], (*lost[1:], ("Its agent went silent. ", *draft.why), again), draft.since)
    lines: tuple[Rich, ...] = (draft.why, ("Start it again: it goes on from what was done. Nothing is done twice.",))
    return Now("stalled", ("Its agent went silent.",), tuple(line for line in lines if line), draft.since)


def _cancelling(draft: Draft) -> Now:
    open_ = [action.subject or Tool(action.tool) for action in draft.actions.values() if action.state in ("redeemed", "unknown")]
    what: Rich = tuple(part for at, about in enumerate(open_[:NAMED]) for part in ("; " if at else "Still under way outside: ", about))
    lines: tuple[Rich, ...] = (
        (*(what or ("Something is still under way outside",)), ". It ends as soon as its outcome is known. Nothing new is sent."),
    )
    return Now("cancelling", ("Cancelling.",), lines, draft.since)


def _compensating(draft: Draft) -> Now:
    asked = _needed(draft.actions.values())  # an undo passes the gate like any other action
    return Now("compensating", ("Undoing what was done outside.",), asked or (("The last effect first.",),), draft.since)


def _succeeded(draft: Draft) -> Now:
    refused = _not_done(draft)
    what, why = refused or (_detail(draft.report) or ("Done.",), ())
    return Now("succeeded", what, (*((why,) if why else ()), _done_outside(draft)), draft.since, refused=refused is not None)


def _done_outside(draft: Draft) -> Rich:
    """What was done, and to whom: in the effects' own words."""
    there = [effect for effect in draft.effects.values() if effect.state == "done"]
    done = [effect for effect in there if not effect.earlier]
    if not done:
        return ("Nothing more was done outside: all of it was there already.",) if there else ("Nothing was done outside.",)
    return _listed("Done outside: ", done)


def _listed(word: str, effects: Sequence[Effect]) -> Rich:
    """The effects by name, as a sentence; empty if there are none."""
    if not effects:
        return ()
    parts: list[Part] = [word]
    for index, effect in enumerate(effects[:NAMED]):
        parts += ["; " if index else "", effect.subject or Tool(effect.tool)]
    more = len(effects) - NAMED
    return tuple(part for part in (*parts, f"; and {more} more." if more > 0 else ".") if part != "")


def _not_done(draft: Draft) -> tuple[Rich, Rich] | None:
    """What the run came to if the last thing it asked for was not allowed: in a sentence, and the reason in the decider's words."""
    last = next(reversed(draft.actions.values()), None)
    if last is None or last.state not in ("rejected", "expired"):
        return None
    word = "Not sent" if last.effect == "send" else "Not done"
    if last.state == "expired":
        return (f"{word}: nobody decided in time.",), ()
    who, reason = draft.rejections[last.id]
    return (f"{word}: ", who, " rejected “", last.subject or Tool(last.tool), "”."), _quoted(reason)


def _quoted(reason: Text | None) -> Rich:
    return ("“", reason, "”") if reason else ()


def _failed(draft: Draft) -> Now:
    lines: tuple[Rich, ...] = (_detail(draft.why_text), *(_put_back(draft) if draft.undoing else ()))
    return Now("failed", ("Failed: ", *draft.why, "."), tuple(line for line in lines if line), draft.since)


def _put_back(draft: Draft) -> tuple[Rich, ...]:
    """What was undone of what it did outside, and what stays."""
    there = [effect for effect in draft.effects.values() if not effect.earlier]
    undone = [effect for effect in there if effect.state == "undone"]
    return _listed("Undone: ", undone), _listed("Done outside, and stays: ", [effect for effect in there if effect.state != "undone"])


def _cancelled(draft: Draft) -> Now:
    return Now("cancelled", ("Cancelled.",), (draft.why,) if draft.why else (), draft.since)


def _detail(text: Text | None) -> Rich:
    """Somebody's words as a sentence among others."""
    if text is None:
        return ()
    return (text,) if text.text.rstrip().endswith((".", "!", "?")) else (text, ".")
