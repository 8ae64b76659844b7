"""What stands in the log around an action: what the run had read before, where it is in its plan, and what became of the action.

Two queries for one action, however long the run. Texts are renditions.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.db.models import Q

from access import characters
from approvals import sourcing, wordwise
from approvals.evidence import Evidence
from approvals.models import ProposedAction
from artifacts import vault
from artifacts.gist import cut, gist, record
from artifacts.models import Label
from artifacts.rendition import UNREADABLE, plain
from artifacts.revealing import REVEALABLE
from artifacts.vault import Shown
from runs.engine import orders
from runs.engine.tools import TOOLS, Tool
from runs.lifecycle import TERMINAL, State
from runs.models import Event, Run
from runs.vocabulary import LOOK_UP

EVIDENCE = 8
HEADER = re.compile(r"[A-Z][A-Za-z-]{1,30}: |[ \t]")  # or the continuation of one
QUOTE = 180  # characters
TITLE = 80  # characters of what a tool says that was found
STANDING = 4  # values of the reason that are said to stand in one record
_BEFORE = ("tool.started", "tool.ended", "artifact.created", "model.called", "question.asked")
_PLAN = ("plan.set", "step.started", "step.completed")
_TOLD_IN = ("content", "result")  # where what an artifact or an answer says is kept
_NOT_ALLOWED = {"action.expired": "expired", "action.withdrawn": "withdrawn", "action.recalled": "recalled"}


@dataclass(frozen=True)
class Leg:
    """One of the three legs of taint: what shows it, and the events that do."""

    title: str
    text: str
    seqs: tuple[int, ...] = ()


@dataclass(frozen=True)
class PlanStep:
    text: str
    state: str
    current: bool = False


@dataclass(frozen=True)
class Stage:
    """One thing that happened to the action after it was proposed. `by` is a person's id, or empty."""

    seq: int
    at: datetime
    state: str
    word: str
    by: str = ""
    why: str = ""  # of a withdrawal: agent, cancelled, ended or revised


@dataclass(frozen=True)
class Background:
    evidence: tuple[Evidence, ...]
    more_evidence: int
    legs: tuple[Leg, ...]
    plan: tuple[PlanStep, ...]
    stages: tuple[Stage, ...]
    next_step: str = ""  # the plan's step after the one that waits
    recipients: int = 0
    place: str = ""  # changes when the plan or where the run is in it does


@dataclass(frozen=True)
class _Told:
    seq: int
    type: str
    at: datetime
    actor: Mapping[str, str]
    data: Mapping[str, Any]
    payloads: Mapping[str, str]
    caused_by: int = 0


@dataclass
class _Sorted:
    before: list[_Told] = field(default_factory=list)
    plan: _Told | None = None
    steps: int = 0
    is_open: bool = False  # whether that step goes on; what becomes of an action afterwards changes nothing about it
    asked: dict[str, int] = field(default_factory=dict)  # action → the step in which it was proposed
    came_to: dict[int, str] = field(default_factory=dict)  # step → what became of what was asked in it, where that is no yes
    recipients: int = 0
    after: list[_Told] = field(default_factory=list)


def around(action: ProposedAction) -> Background:
    """The background of an action. `action.run` is read for its state."""
    told = _sort(_events(action), action)
    evidence = _evidence(told.before, is_called_here=bool(action.run.workflow))
    texts = vault.shown(_wanted(told, evidence[-EVIDENCE:], action))
    reason = texts.get(action.reason_id) if action.reason_id else None
    shown = tuple(_with_text(each, event, texts, reason.text if reason else "") for each, event in evidence[-EVIDENCE:])
    state = State(action.run.state)
    plan = _plan(told, texts, state)
    return Background(
        evidence=shown,
        more_evidence=max(len(evidence) - EVIDENCE, 0),
        legs=_legs(action, told.before),
        plan=plan,
        stages=tuple(_stages(told.after)),
        next_step=plan[told.steps].text if 0 < told.steps < len(plan) else "",
        recipients=told.recipients,
        place=f"{told.plan.seq}.{told.steps}.{state.value}.{','.join(step.state for step in plan)}" if told.plan else "",
    )


def _events(action: ProposedAction) -> Iterable[_Told]:
    wanted = (
        Q(type__in=_BEFORE, seq__lt=action.proposed_seq)
        | Q(type__in=_PLAN)
        | Q(type__startswith="action.", seq__gte=action.proposed_seq)
        | Q(type="block.raised", seq__gte=action.proposed_seq)
    )
    rows = Event.objects.filter(wanted, run_month=action.run.month, run_id=action.run_id).order_by("seq")
    for seq, type_, text, payloads in rows.values_list("seq", "type", "body", "payloads"):
        body = orjson.loads(text)
        yield _Told(seq, type_, datetime.fromisoformat(body["at"]), body["actor"], body["data"], payloads, body.get("caused_by", 0))


def _sort(events: Iterable[_Told], action: ProposedAction) -> _Sorted:
    found = _Sorted()
    for event in events:
        if event.type == "plan.set":
            found.plan, found.steps, found.is_open = event, 0, False
        elif event.type in _PLAN:
            _goes_on(found, event)
        elif event.type in _BEFORE:
            found.before.append(event)
        else:
            _come_to(found, event)
        if event.type not in (*_PLAN, *_BEFORE) and event.data.get("action") == str(action.pk):
            found.after.append(event)
            found.recipients = event.data.get("recipients", 0) if event.type == "action.proposed" else found.recipients
    return found


def _goes_on(found: _Sorted, event: _Told) -> None:
    """A step of the plan begins or is completed; what does not say which is about the open one."""
    step = event.data.get("plan_step") or 0
    if event.type == "step.started":
        if step and step >= found.steps:
            found.steps, found.is_open = step, True
    elif step in (0, found.steps):
        found.is_open = False


def _come_to(found: _Sorted, event: _Told) -> None:
    """Note of the open step that what was asked in it was not allowed, until something else is asked in it."""
    action = str(event.data.get("action", ""))
    if event.type == "action.proposed":
        found.asked[action] = found.steps
        found.came_to.pop(found.steps, None)
        return
    state = "rejected" if event.data.get("verdict") == "rejected" else _NOT_ALLOWED.get(event.type, "")
    if state and found.is_open and found.asked.get(action) == found.steps:
        found.came_to[found.steps] = state


# what the run had read --------------------------------------------------------------------------------------------------------------


def _legs(action: ProposedAction, before: list[_Told]) -> tuple[Leg, ...]:
    """All three legs, or none: two of them are no reason for alarm. The same reckoning as the policy's, with the events that show it."""
    tool = TOOLS.get(action.tool)
    if action.executor == "agent":
        unseen = "Handrail cannot see what an agent outside reads"
        legs = Leg("May have read private data", unseen), Leg("May have read outside text", unseen), Leg("Sends data out", "")
        return legs if tool is not None and tool.sends_out else ()
    used = [(TOOLS[event.data["tool"]], event.seq) for event in before if event.type == "tool.started" and event.data["tool"] in TOOLS]
    used += [(tool, action.proposed_seq)] if tool else []
    private = _leg("Read private data", [(t, seq) for t, seq in used if t.reads_private])
    outside = _leg("Read outside text", [(t, seq) for t, seq in used if t.reads_untrusted])
    if tool is None or not tool.sends_out:
        return ()
    if action.is_tainted and (action.run.lineage is not None or action.run.parent_id is not None):  # what its family has read, it has
        private, outside = private or _family("Read private data", action.run), outside or _family("Read outside text", action.run)
    if not private or not outside:
        return ()
    return private, outside, Leg("Sends data out", "")


def _family(title: str, run: Run) -> Leg:
    return Leg(title, f"In {run.forked_from.ref}, from which it was forked" if run.forked_from else "In another run of its family")


def _leg(title: str, used: list[tuple[Tool, int]]) -> Leg | None:
    if not used:
        return None
    titles = dict.fromkeys(tool.gives or tool.title for tool, _ in used)
    return Leg(title, ", ".join(titles), tuple(seq for _, seq in used)[:3])


def _evidence(before: list[_Told], *, is_called_here: bool) -> list[tuple[Evidence, _Told]]:
    """What the run got, in order: each read and each draft, with the artifact that was made of it; of the same thing, the last.

    `is_called_here`: whether Handrail called the tools itself. What an agent outside tells of them is never worded as a finding.
    """
    found: dict[str, tuple[Evidence, _Told]] = {}
    source: tuple[str, Evidence] | None = None
    questions = {event.seq for event in before if event.type == "question.asked"}
    for event in before:
        if event.type == "artifact.created":
            key, evidence = source or (event.data["name"], Evidence(event.seq, event.data["name"]))
            found.pop(key, None)
            before = found.get(event.data["name"])
            found[event.data["name"]] = _kept(evidence, event, before[1] if before else None), event
            source = None
        elif _gave_something(event):
            evidence = (
                _written(event, answers=event.caused_by in questions) if event.type == "model.called" else _answer(event, is_called_here)
            )
            source = f"{event.type} {event.data.get('tool') or event.data['prompt']}", evidence
            found[source[0]] = evidence, event
    return sorted(found.values(), key=lambda pair: pair[1].seq)


def _gave_something(event: _Told) -> bool:
    if event.type == "tool.ended":  # what became of an earlier action is no evidence for a later one
        return event.data["outcome"] == "ok" and not str(event.data.get("call", "")).startswith(LOOK_UP)
    return event.type == "model.called" and not event.data.get("error")


def _kept(evidence: Evidence, event: _Told, before: _Told | None) -> Evidence:
    name, version = event.data["name"], event.data["version"]
    return replace(
        evidence,
        seq=event.seq,
        earlier=before.payloads.get("content", "") if before else "",
        before=before.data["version"] if before else 0,
        artifact=event.data["artifact"],
        name=", ".join([*([name] if name != evidence.title else []), *([f"version {version}"] if version > 1 else [])]),
        outside=evidence.outside or event.data.get("outside", False),
        label=event.data["label"],
    )


def _answer(event: _Told, is_called_here: bool) -> Evidence:
    tool = TOOLS.get(event.data["tool"])
    title = (tool.gives or tool.title) if tool else event.data["tool"]
    return Evidence(
        event.seq,
        title,
        tool=event.data["tool"] if is_called_here else "",
        outside=bool(tool and tool.reads_untrusted),
        private=bool(tool and tool.reads_private),
    )


def _written(event: _Told, *, answers: bool) -> Evidence:
    """What a model wrote; an artifact made of it has a name of its own."""
    model = "a script" if event.data.get("scripted") else event.data["model"]
    kind, title = ("answer", "The answer to a question") if answers else ("draft", "The draft")
    return Evidence(event.seq, title, kind, text=f"By {model}", name=f"{event.data['prompt']} {event.data['prompt_version']}")


def _wanted(told: _Sorted, evidence: list[tuple[Evidence, _Told]], action: ProposedAction) -> list[UUID]:
    plan = told.plan.payloads.values() if told.plan else ()
    kept = (event.payloads[role] for _, event in evidence for role in _TOLD_IN if role in event.payloads)
    before = (each.earlier for each, _ in evidence if each.earlier)
    return [*(UUID(pk) for pk in (*plan, *kept, *before)), *([action.reason_id] if action.reason_id else [])]


def _with_text(evidence: Evidence, event: _Told, texts: Mapping[UUID, Shown], reason: str) -> Evidence:
    shown = next((texts.get(UUID(event.payloads[role])) for role in _TOLD_IN if role in event.payloads), None)
    if shown is None or shown.erased_at:
        return evidence
    if evidence.artifact and shown.label != Label.SECRET:
        count = sum(count for kind, count in shown.hidden.items() if kind in REVEALABLE)
        is_file = UNREADABLE in shown.hidden
        evidence = replace(evidence, hidden=count, is_file=is_file, media_type=shown.media_type, size=shown.size)
    if evidence.earlier and shown.media_type.startswith("text/"):
        return _changed(evidence, shown, texts.get(UUID(evidence.earlier)))
    if not evidence.outside and shown.media_type in _RECORDS:
        title, text = _finding(evidence.tool, shown.text)
        return replace(evidence, title=title, called=evidence.title, text=text) if text else _recorded(evidence, shown, reason)
    if not evidence.outside or not shown.media_type.startswith(("text/", "message/")):
        return evidence
    return replace(evidence, quote=_excerpt(shown), orders=orders.found(shown.text))


def _finding(name: str, rendition: str) -> tuple[str, str]:
    """What a tool says that its result says, read from the rendition; nothing if it has no words for it, or that can't be read."""
    tool = TOOLS.get(name)
    if tool is None or tool.finds is None:
        return "", ""
    try:
        title, text = tool.finds(orjson.loads(rendition))
    except Exception:  # the words are a tool's own, and what was redacted in the result may be anything by now
        return "", ""
    title = _printable(plain(title))
    return title[: characters.whole(title, TITLE)], gist(_printable(text), QUOTE)


def _printable(text: str) -> str:
    """Without what JSON may spell and no page should draw."""
    return "".join(character if character.isprintable() else " " for character in text)


_RECORDS = ("application/json", "text/csv")


def _recorded(evidence: Evidence, shown: Shown, reason: str) -> Evidence:
    """Of a record what it is of; and what the reason takes from it, or else how much it holds."""
    stands = tuple(sourcing.standing(reason, shown.text))[:STANDING]
    if shown.media_type == "text/csv":
        rows = max(len(shown.text.splitlines()) - 1, 0)
        return replace(evidence, text=evidence.text or f"{rows} row{'' if rows == 1 else 's'}", stands=stands)
    return replace(evidence, text=evidence.text or record(shown.text, QUOTE, counted=not stands), stands=stands)


def _changed(evidence: Evidence, shown: Shown, before: Shown | None) -> Evidence:
    """Of a draft that was written anew, what went and what is new in it, as far as there is room: half for each, or what is left."""
    if before is None or before.erased_at:
        return evidence
    sides = wordwise.words(before.text, shown.text)
    went, came = ([part for part in side if part[0] in ("del", "ins") and any(map(str.isalnum, part[1]))] for side in sides)
    lengths = [sum(len(text) for _, text in side) for side in (went, came)]
    most = [max(QUOTE // 2, QUOTE - other) for other in reversed(lengths)]
    told = (*_fitting(went, most[0]), *_fitting(came, most[1]))
    return replace(evidence, changed=told, changes_left=len(went) + len(came) - len(told), hides=bool(before.hidden and shown.hidden))


def _fitting(parts: list[wordwise.Part], most: int) -> list[wordwise.Part]:
    """The first of them that `most` characters hold; of the very first its beginning, if it alone is longer."""
    if parts and len(parts[0][1]) > most:
        return [(parts[0][0], cut(parts[0][1], most))]
    return [part for at, part in enumerate(parts) if sum(len(text) for _, text in parts[: at + 1]) <= most]


def _excerpt(shown: Shown) -> str:
    """What a text says, in a sentence or two; of a message, what comes after its headers."""
    text = shown.text.replace("\r\n", "\n")
    head, _, body = text.partition("\n\n")
    if body.strip() and all(HEADER.match(line) for line in head.splitlines()):
        text = body
    return gist(text, QUOTE)


# where the run is -------------------------------------------------------------------------------------------------------------------


def _plan(told: _Sorted, texts: Mapping[UUID, Shown], state: State) -> tuple[PlanStep, ...]:
    if told.plan is None:
        return ()
    payloads = told.plan.payloads
    names = [texts.get(UUID(payloads[role])) if (role := f"step_{i}") in payloads else None for i in range(1, told.plan.data["steps"] + 1)]
    return tuple(
        PlanStep(
            shown.text if shown else "–", told.came_to.get(i) or _step_state(i, told, state), i == told.steps and state not in TERMINAL
        )
        for i, shown in enumerate(names, 1)
    )


def _step_state(step: int, told: _Sorted, state: State) -> str:
    """As the run's page says it: a step that was completed stays done, whatever becomes of the run."""
    over = not told.is_open and state in TERMINAL
    if step < told.steps or (step == told.steps and (over or state is State.SUCCEEDED)):
        return "done"
    if step > told.steps:
        return "not_reached" if state in TERMINAL else "planned"
    return state.value


# what became of it ------------------------------------------------------------------------------------------------------------------

_STAGES: Mapping[str, tuple[str, str]] = {
    "action.granted": ("done", "Granted, good for one use"),
    "action.delivered": ("done", "The answer reached the run"),
    "action.redeemed": ("done", "Redeemed, its one use"),
    "action.executed": ("done", "Executed"),
    "action.verified": ("done", "What ran is what was approved"),
    "action.unknown": ("waiting", "Outcome unknown"),
    "action.resolved": ("done", "Said to have happened"),
    "action.withdrawn": ("cancelled", "Withdrawn"),
    "action.expired": ("cancelled", "Expired"),
    "action.superseded": ("cancelled", "Replaced by a newer action"),
    "action.recalled": ("undone", "Approval recalled"),
}

_BLOCKED: Mapping[str, tuple[str, str]] = {
    "digest_mismatch": ("failed", "Stopped: what would run is not what was approved"),
    "frozen": ("waiting", "Held up by a freeze"),
}

_SAID: Mapping[str, tuple[str, str]] = {
    "did_not_happen": ("failed", "Said not to have happened"),
    "look_again": ("waiting", "Had to be looked up again"),
}


def _stages(after: list[_Told]) -> Iterable[Stage]:
    for event in after:
        by = event.actor["id"] if event.actor["kind"] == "human" else ""
        if event.type == "action.decided":
            approved = event.data["verdict"] == "approved"
            yield Stage(event.seq, event.at, "done" if approved else "cancelled", "Approved" if approved else "Rejected", by)
        elif event.type == "action.executed" and not event.data.get("ok", True):
            yield Stage(event.seq, event.at, "failed", "Failed: it did not happen", by)
        elif event.type == "action.resolved" and event.data["outcome"] in _SAID:
            yield Stage(event.seq, event.at, *_SAID[event.data["outcome"]], by)
        elif event.type == "block.raised" and event.data["reason"] in _BLOCKED:
            yield Stage(event.seq, event.at, *_BLOCKED[event.data["reason"]], by)
        elif event.type in _STAGES:
            why = event.data.get("reason", "") if event.type == "action.withdrawn" else ""
            yield Stage(event.seq, event.at, *_STAGES[event.type], by, why)
