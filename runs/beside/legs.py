"""The rows of one run, for comparing it with another: what each is about, what it says, and fingerprints of that."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from uuid import UUID

import orjson

from artifacts import vault
from artifacts.models import Payload
from runs import reading
from runs.models import Event, Run
from runs.presenting import View
from runs.story import raw
from runs.story.course import changed_input
from runs.story.people import amount
from runs.story.shapes import Piece, Rich, Text
from runs.story.wire import Line, object_of, read

MOST = 400  # rows of one run
ICONS: Mapping[str, str] = {
    "run": "flag",
    "run.forked": "person",
    "action.decided": "person",
    "plan": "list",
    "tool": "tool",
    "model": "ask",
    "artifact": "file",
    "milestone": "flag",
    "note": "person",
    "report": "flag",
    "action": "send",
    "effect": "out",
    "signal": "person",
    "question": "ask",
    "block": "warn",
    "step": "fail",
    "child": "fork",
    "budget": "warn",
    "deadletter": "person",
    "webhook": "link",
}
# of these a row is made; what else is in the log is told by them, or is how a worker came and went
TOLD = {
    "run.forked",
    "plan.set",
    "tool.ended",
    "model.called",
    "model.switched",
    "artifact.created",
    "milestone.reached",
    "note.posted",
    "report.published",
    "action.proposed",
    "action.decided",
    "action.expired",
    "action.withdrawn",
    "effect.done",
    "effect.undone",
    "signal.received",
    "question.answered",
    "block.raised",
    "step.failed",
    "child.ended",
    "budget.exceeded",
    "deadletter.resolved",
    "webhook.received",
    "run.parked",
    "run.succeeded",
    "run.failed",
    "run.cancelled",
}
# what differs in any two runs, and says nothing about what they did
INCIDENTAL = {
    *("action", "artifact", "decision", "grant", "digest", "policy", "until", "ms", "key", "signal", "question", "run", "ref", "parent"),
    *(
        "seq",
        "cites",
        "letter",
        "by",
        "to",
        "report",
        "tokens_in",
        "tokens_out",
        "cost_micro",
        "canonical",
        "step",
        "delivery",
        "taken",
        "can_undo",
    ),
}
UNCOMPARED = ("looked", "sent", "arguments")  # texts that say how something came about, and not what it was
TEXTS = ("content", "title", "subject", "note", "answer", "reason", "detail", "input", "body")  # the one that says most comes first


@dataclass(frozen=True)
class Leg:
    """One row of one run. `about`: what it is matched by; `told`: what is compared; `lines`: what is said under its title."""

    seq: int
    about: tuple[str, ...]
    icon: str
    title: Rich
    text: Text | None
    shade: str
    part: str  # the step of the plan that it belongs to, as a rendition
    key: str  # of an effect: under which the outside knows it
    told: Any
    more: str = ""
    marks: Mapping[str, str] = field(default_factory=dict)  # what it says, by name, as fingerprints of the bytes
    shown: Mapping[str, Text] = field(default_factory=dict)  # and what of that is shown
    pieces: tuple[Piece, ...] = ()


@dataclass
class Side:
    """One of both runs. `after`: the event up to which it is one with the other; 0 if they are not related."""

    view: View
    lines: reading.Lines
    after: int = 0
    told_again: frozenset[int] = frozenset()  # events of a fork that only repeat its parent's

    @property
    def run(self) -> Run:
        return self.view.run

    @cached_property
    def own(self) -> list[Line]:
        """What it did itself, after that."""
        return [read(line) for line in self.lines if line["seq"] > self.after and line["seq"] not in self.told_again]


def legs(side: Side, part: str = "") -> list[Leg]:
    """The rows of a run, of very many the first. `part`: the step of the plan in which they begin."""
    found: list[Leg] = []
    counts: Counter[tuple[str, ...]] = Counter()
    titles, part, tools = dict(_plan_titles(side)), part or part_at(side), dict[str, str]()
    for line in side.own:
        tools |= raw.tools_of(line)
        if line.type == "step.started" and line.count("plan_step"):
            part = titles.get(line.count("plan_step"), part)
        if line.type not in TOLD or _is_aside(line) or len(found) >= MOST:
            continue
        about = _about(line)
        counts[about] += 1
        found.append(_leg(line, (*about, str(counts[about])), part, tools))
    return _with_marks(side.run, found)


def part_at(side: Side) -> str:
    """The step of the plan that was open where they part."""
    begun = [read(line) for line in side.lines if line["seq"] <= side.after and line["body"]["type"] == "step.started"]
    numbers = [line.count("plan_step") for line in begun if line.count("plan_step")]
    return dict(_plan_titles(side)).get(numbers[-1], "") if numbers else ""


def _plan_titles(side: Side) -> Iterator[tuple[int, str]]:
    plan = side.view.story.plan
    yield from ((step.number, step.title.text) for step in plan.steps) if plan else ()


def _is_aside(line: Line) -> bool:
    """A look-up is Handrail's own; what a tool gave that does something outside is told by its effect."""
    own = line.type == "tool.ended" and (line.word("call") or line.word("step").startswith("perform"))
    automatic = line.type == "action.proposed" and not line.count("needs")
    return bool(own) or automatic


def _about(line: Line) -> tuple[str, ...]:
    kind = line.type.partition(".")[0]
    if line.type in ("run.forked", "signal.received"):
        return ("people",)
    if line.type in ("run.succeeded", "run.failed", "run.cancelled"):
        return ("ending",)
    return (kind, line.word("step") or line.word("name") or line.word("tool") or line.word("prompt") or line.type.partition(".")[2])


def _leg(line: Line, about: tuple[str, ...], part: str, tools: Mapping[str, str]) -> Leg:
    title, text = _title(line, next((line.texts[role] for role in TEXTS if role in line.texts), None), tools)
    icon, shown = ICONS.get(line.type) or ICONS.get(line.type.partition(".")[0], "flag"), dict(line.texts)
    if "canonical" in shown:
        shown |= _shown_arguments(shown.pop("canonical"))
    return Leg(line.seq, about, icon, title, text, _shade(line), part, line.word("key"), _compared(line), _more(line), shown=shown)


def _title(line: Line, text: Text | None, tools: Mapping[str, str]) -> tuple[Rich, Text | None]:
    """What a row says, and the text below that, if there is more."""
    match line.type:
        case "run.forked":
            return (line.who, " changed the input" if line.text("input") else " forked it"), _told_fork(line) or line.text("note")
        case "signal.received" | "deadletter.resolved":
            return (line.who, ": ", *raw.told(line, tools)), text
        case "action.decided":
            return (line.who, " approved exactly this" if line.word("verdict") == "approved" else " rejected it"), line.text("reason")
        case "artifact.created":
            return (f"{line.word('name')}, version {line.count('version')}",), text
        case "action.proposed" if text:
            return ("Proposed: ", text), None
        case "effect.done" if text:
            return (text,), None
        case "milestone.reached" | "report.published" if text:
            return (text,), line.text("detail") or line.text("body")
        case "model.called":
            return raw.told(line, tools), None
    return raw.told(line, tools), text


def _told_fork(line: Line) -> Text | None:
    """What the fork was told, in the words of whoever forked it, if it is one thing."""
    changes = list(changed_input(line.text("input")))
    words = [part for change in changes for part in change if isinstance(part, Text)]
    return words[-1] if len(changes) == 1 else Text("; ".join(part.text for part in words), words[0].label) if words else None


def _shown_arguments(canonical: Text) -> dict[str, Text]:
    arguments = object_of(canonical).get("arguments", {})
    return {name: Text(value) for name, value in arguments.items() if isinstance(value, str)} if isinstance(arguments, dict) else {}


CITING = ("reason", "detail")  # what an agent says of its own run
NUMBER = re.compile(rb"#(\d{1,9})")


def _with_marks(run: Run, legs: list[Leg]) -> list[Leg]:
    """With fingerprints of what each says. Two queries, however many there are."""
    told = Event.objects.filter(run_month=run.month, run_id=run.pk, seq__in=[leg.seq for leg in legs]).values_list("seq", "payloads")
    ids = {seq: {role: pk for role, pk in payloads.items() if role not in UNCOMPARED} for seq, payloads in told}
    kept = Payload.objects.select_related("key").in_bulk({pk for payloads in ids.values() for pk in payloads.values()})
    return [_marked(leg, {role: kept[UUID(pk)] for role, pk in ids.get(leg.seq, {}).items()}) for leg in legs]


def _marked(leg: Leg, payloads: Mapping[str, Payload]) -> Leg:
    marks: dict[str, str] = {}
    for role, payload in payloads.items():
        content = vault.opened(payload) or b""
        if role in CITING:  # the same thing stands at another event in each log
            content = NUMBER.sub(lambda cited: b"#" if int(cited[1]) < leg.seq else cited[0], content)
        marks |= _arguments(content) if role == "canonical" else {role: hashlib.sha256(content).hexdigest()}
    return replace(leg, marks=marks)


def _arguments(canonical: bytes) -> dict[str, str]:
    """An exact action argument by argument; what is made of its own identity, such as a Message-ID, is left out."""
    action = orjson.loads(canonical or b"{}")
    nonce = action.get("nonce", "")
    values = dict(action.get("arguments", {}))
    values["attachments"] = [[file["name"], file["size"]] for file in action.get("attachments", [])]
    return {name: hashlib.sha256(orjson.dumps(value).replace(nonce.encode(), b"")).hexdigest() for name, value in values.items()}


def _shade(line: Line) -> str:
    match line.type:
        case "effect.done" | "run.succeeded":
            return "done"
        case "effect.undone":
            return "undone"
        case "step.failed" | "run.parked" | "run.failed" | "budget.exceeded":
            return "failed"
        case "action.proposed" | "block.raised":
            return "waiting"
        case "action.decided":
            return "done" if line.word("verdict") == "approved" else "cancelled"
    return "failed" if line.type == "tool.ended" and line.word("outcome") == "error" else ""


def _more(line: Line) -> str:
    match line.type:
        case "model.called":
            tokens = line.count("tokens_in") + line.count("tokens_out")
            cost = amount("cost_micro", line.count("cost_micro")) if line.count("cost_micro") else ""
            said = [line.word("model"), f"{tokens:,} tokens" if tokens else "", cost]
            return f"{', '.join(part for part in said if part)}." if not line.flag("scripted") else ""
        case "run.forked" if line.text("input") and (why := line.text("note")):
            return f"Why: {why.text}"
        case "action.proposed":
            files, needs = line.count("attachments"), line.count("needs")
            told = f"{files} attachment{'' if files == 1 else 's'}. " if files else ""
            return f"{told}{needs} reviewer{'' if needs == 1 else 's'} asked."
    return ""


def _compared(line: Line) -> Any:
    """What of an event says what was done."""
    return line.type, {name: value for name, value in line.data.items() if name not in INCIDENTAL}
