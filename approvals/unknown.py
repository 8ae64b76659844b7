"""What is known of an action whose answer was lost: what was tried, what looking it up gave, who may say what happened.

It only reads, and only renditions, so that the page, a reply and a push can share it. `execution.resolve` is what a person's word does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.db.models import Q

from access import naming
from access.errors import Refusal
from access.rules import Actor
from approvals import exact, execution
from approvals.course import tool_title
from approvals.models import Grant, ProposedAction
from artifacts import vault
from artifacts.rendition import Hidden, Text, segments
from config import clock
from runs import lifecycle
from runs.engine import effects
from runs.engine.tools import TOOLS, Tool
from runs.lifecycle import State
from runs.models import Event, JournalEntry
from runs.story.wire import moment, spoken
from runs.story.work import TROUBLE
from runs.vocabulary import LOOK_UP

SHOWN = ("to", "cc", "bcc", "subject")  # of a message, what tells it from others
FACTS, SHORT = 4, 120
NOTABLE = 50  # ms
_OTHERS = ("tool.started", "tool.ended", "run.resumed")


@dataclass(frozen=True)
class Typed:
    """What came with a refused form, so that it stands there again."""

    outcome: str = ""
    note: str = ""
    reference: str = ""
    error: str = ""
    at: str = ""  # the field that the error is about
    refusal: Refusal | None = None


@dataclass(frozen=True)
class Tried:
    """One thing that was done or came of it.

    `word` says what: approved allowed covered redeemed called silent refused lost unknown said found done failed. `text` is a rendition.
    """

    word: str
    seq: int
    at: datetime
    names: tuple[str, ...] = ()
    worker: str = ""
    outcome: str = ""  # of what a person said
    text: str = ""
    reference: str = ""
    took: float | None = None  # seconds
    left: bool = False  # of a call: the request surely was on its way


@dataclass(frozen=True)
class Look:
    """One look-up. `answer`: found, absent, nothing, now (it is being made) or next (`at` is when)."""

    answer: str
    at: datetime | None
    seq: int = 0
    why: str = ""  # a rendition
    firm: bool = False
    until: datetime | None = None  # of several in a row that gave the same: when the last was
    times: int = 1


@dataclass(frozen=True)
class Unknown:
    """All of an unknown outcome that its page shows, for one person."""

    action: ProposedAction
    grant: Grant | None
    subject: str
    run_title: str
    tool_title: str
    target: str
    since: datetime | None  # when the outcome became unknown; None if it never was
    reason: str
    tried: tuple[Tried, ...]
    looks: tuple[Look, ...]
    asks: str  # what a look-up asks; empty if the tool has none
    firm_from: datetime | None
    looking: bool
    repeats: bool  # what a look-up surely does not find is done once more
    may: bool
    why_not: str
    who: tuple[str, ...]  # who else may say
    approvers: tuple[str, ...]
    said: Tried | None  # what a person said last
    facts: tuple[tuple[str, str], ...]
    arguments: int
    recipients: int
    recipient: str  # the first one's name, if it is shown
    nonce: str  # of a message; what tells it from all others
    page: str  # the address of a page of the outside on which a person can look; empty if the tool names none
    has_key: bool  # what was asked for is found outside by the key of its grant
    typed: Typed = Typed()

    @property
    def open(self) -> bool:
        """Nobody knows yet."""
        return self.grant is not None and self.grant.outcome == "unknown"

    @property
    def state(self) -> tuple[str, str]:
        """The state's key, which colours it, and its word."""
        outcome = self.grant.outcome if self.grant else "none"
        words = {"executed": ("executed", "It happened"), "failed": ("failed", "It did not happen"), "none": ("redeemed", "")}
        return words.get(outcome, ("unknown", ""))

    @property
    def outside(self) -> bool:
        """An agent outside ran it, or did not; Handrail cannot see the call."""
        return self.action.executor == "agent"

    @property
    def cancelling(self) -> bool:
        return self.action.run.state in lifecycle.UNDOING

    @property
    def ended(self) -> bool:
        return lifecycle.ended(self.action.run.state)

    @property
    def looks_told(self) -> tuple[Look, ...]:
        """Those that gave the same one after the other are one."""
        rows: list[Look] = []
        for look in self.looks:
            last = rows[-1] if rows else None
            if last and look.seq and (last.answer, last.why, last.firm) == (look.answer, look.why, look.firm):
                rows[-1] = replace(last, until=look.at, times=last.times + 1)
            else:
                rows.append(look)
        return tuple(rows)

    @property
    def coming(self) -> bool:
        """Whether it is looked up again by itself."""
        return any(look.answer in ("now", "next") for look in self.looks)

    @property
    def done(self) -> str:
        return "sent" if self.action.effect == "send" else "done"

    @property
    def called(self) -> Tried | None:
        return next((each for each in reversed(self.tried) if each.word == "called"), None)

    @property
    def found(self) -> Tried | None:
        return next((each for each in reversed(self.tried) if each.word == "found"), None)

    @property
    def approved(self) -> Tried | None:
        return next((each for each in self.tried if each.word in ("approved", "allowed", "covered")), None)

    @property
    def redecided(self) -> str:
        """What proposing it anew takes."""
        policy = self.action.policy
        if policy.outcome == "automatic":
            return "its policy allows it without a person"
        if policy.group is not None:
            return f"{policy.needs} of {policy.group.name} decide{'s' if policy.needs == 1 else ''} again"
        return "a reviewer decides again" if policy.needs == 1 else f"{policy.needs} people decide again"


def read(action: ProposedAction, actor: Actor, *, typed: Typed | None = None) -> Unknown:
    """Where an action with a lost answer stands, for this person. `action` comes with `presenting.RELATED`. Opens no vault."""
    tool, grant = TOOLS.get(action.tool), getattr(action, "grant", None)
    events = _events(action)
    looks = [_look(event) for event in events if _is_look(event)]
    tried = tuple(_tried([event for event in events if not _is_look(event)], _names(events)))
    lost = next((each for each in tried if each.word == "unknown"), None)
    texts = vault.shown([action.subject_id, action.run.title_id])
    subject, run_title = (texts[pk].text for pk in (action.subject_id, action.run.title_id))
    firm_from = effects.firm_from(tool, grant.redeemed_at) if tool and grant and grant.redeemed_at else None
    why_not = execution.may_resolve(action, actor)
    shown = exact.masked(action)
    arguments = shown.get("arguments") or {}
    nonce = str(shown.get("nonce", "")) if action.card == "email" else ""
    seen = Unknown(
        action=action,
        grant=grant,
        subject=subject,
        run_title=run_title,
        tool_title=tool_title(action),
        target=tool.target if tool and tool.target else "outside",
        since=lost.at if lost else None,
        reason=lost.text if lost else "",
        tried=tried,
        looks=tuple(replace(look, firm=_is_firm(look, tool, firm_from)) for look in looks),
        asks=_asks(tool),
        firm_from=firm_from,
        looking=False,
        repeats=_repeats(action, tool),
        may=not why_not,
        why_not=why_not,
        who=tuple(user.name for user in execution.who_may_resolve(action) if str(user.pk) != actor.id),
        approvers=tuple(dict.fromkeys(name for each in tried if each.word == "approved" for name in each.names)),
        said=next((each for each in reversed(tried) if each.word == "said"), None),
        facts=tuple(_facts(action, arguments)),
        arguments=len(arguments),
        recipients=len(shown.get("recipients") or ()),
        recipient=_name(arguments.get("to")),
        nonce=nonce,
        page=_page(tool),
        has_key=grant is not None and not (nonce and tool and not tool.honours_key),  # a mail server knows a message by its own id
        typed=typed or Typed(),
    )
    return _with_next(seen)


# the log ----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Told:
    seq: int
    type: str
    at: datetime
    who: Mapping[str, str]
    data: Mapping[str, Any]
    texts: Mapping[str, str]  # role → rendition


def _events(action: ProposedAction) -> list[_Told]:
    """What stands in the log about an action since it was proposed, and about the step that ran it."""
    wanted = (Q(type__startswith="action.") | Q(type__in=_OTHERS)) & Q(seq__gte=action.proposed_seq)
    rows = Event.objects.filter(wanted, run_month=action.run.month, run_id=action.run_id).order_by("seq")
    steps = set(JournalEntry.objects.filter(run_id=action.run_id, action_id=action.pk, kind="perform").values_list("step", flat=True))
    call = f"{LOOK_UP}{action.grant.pk}" if hasattr(action, "grant") else ""
    found = []
    for seq, kind, body, payloads in rows.values_list("seq", "type", "body", "payloads"):
        event = orjson.loads(body)
        if _is_about(kind, event, action, steps, call):
            found.append((seq, kind, event, payloads))
    shown = vault.shown(UUID(pk) for *_, payloads in found for role, pk in payloads.items() if role in ("note", "reference", "detail"))
    return [_told(seq, kind, event, payloads, shown) for seq, kind, event, payloads in found]


def _is_about(kind: str, event: Mapping[str, Any], action: ProposedAction, steps: set[str], call: str) -> bool:
    data = event["data"]
    if kind.startswith("action."):
        return data.get("action") == str(action.pk)
    if kind == "run.resumed":
        return data.get("reason") == "lease_expired"
    if str(data.get("call", "")).startswith(LOOK_UP):  # a look-up is Handrail's own, whatever else it names
        return bool(call) and data["call"] == call and event["actor"]["kind"] == "system"
    return data.get("step") in steps


def _told(seq: int, kind: str, event: Mapping[str, Any], payloads: Mapping[str, str], shown: Mapping[UUID, vault.Shown]) -> _Told:
    texts = {role: shown[UUID(pk)] for role, pk in payloads.items() if UUID(pk) in shown}
    words = {role: text.text for role, text in texts.items()}
    return _Told(seq, kind, moment(event["at"]) or clock.now(), event["actor"], event["data"], words)


def _is_look(event: _Told) -> bool:
    return event.type == "tool.ended" and str(event.data.get("call", "")).startswith(LOOK_UP)


def _look(event: _Told) -> Look:
    answer = "nothing" if event.data["outcome"] == "unknown" else "absent" if event.data.get("error") == "not_found" else "found"
    # of a look-up that failed the log has the outside's own words; what it tells is nothing, whatever they say
    why = "" if event.data.get("error") else event.texts.get("detail", "")
    return Look(answer, event.at, event.seq, why)


def _names(events: Sequence[_Told]) -> dict[str, str]:
    ids = {event.who["id"] for event in events if event.who["kind"] == "human"}
    ids |= {event.data["owner"] for event in events if event.type == "action.covered"}
    return naming.people(ids)


def _tried(events: Sequence[_Told], names: Mapping[str, str]) -> Iterator[Tried]:
    """The rows, in order. What says nothing new about whether it happened is left to the log."""
    votes: list[_Told] = []
    under_way = False
    for at, event in enumerate(events):
        data, base = event.data, (event.seq, event.at)
        match event.type:
            case "action.decided" if data["verdict"] == "approved":
                votes.append(event)
            case "action.covered":
                yield Tried("covered", *base, (names.get(data["owner"], "Somebody"),))
            case "action.granted" if data.get("automatic"):
                yield Tried("allowed", *base)
            case "action.granted" if votes:
                last = votes[-1]
                yield Tried("approved", last.seq, last.at, tuple(names.get(vote.who["id"], "Somebody") for vote in votes))
            case "action.redeemed":
                under_way = True
                yield Tried("redeemed", *base, worker=data["worker"])
            case "tool.started":
                yield Tried("called", *base, left=_left(events[at + 1 :]))
            case "tool.ended" if data["outcome"] != "ok":
                word = "silent" if data["outcome"] == "unknown" else "refused"
                yield Tried(word, *base, text=_trouble(event), took=data["ms"] / 1000 if data.get("ms", 0) >= NOTABLE else None)
            case "run.resumed" if under_way:
                yield Tried("lost", *base, worker=data["worker"])
            case "action.unknown":
                under_way = False
                yield Tried("unknown", *base, text=data["reason"])
            case "action.resolved":
                who = (names.get(event.who["id"], "Somebody"),)
                said = {"text": event.texts.get("note", ""), "reference": event.texts.get("reference", "")}
                yield Tried("said", *base, who, outcome=data["outcome"], **said)
            case "action.executed":
                under_way = False
                yield Tried("found" if data.get("found") else "done" if data.get("ok", True) else "failed", *base)


def _left(after: Iterable[_Told]) -> bool:
    """Whether a call was seen to end without an answer: then its request was on its way."""
    ended = next((event for event in after if event.type in ("tool.started", "tool.ended")), None)
    return ended is not None and ended.type == "tool.ended" and ended.data["outcome"] == "unknown"


def _trouble(event: _Told) -> str:
    return event.texts.get("detail") or TROUBLE.get(event.data.get("error", ""), "")


# what comes next --------------------------------------------------------------------------------------------------------------------


def _with_next(seen: Unknown) -> Unknown:
    """The look-up that is being made, or the next one that is made by itself."""
    run = seen.action.run
    if not seen.open:
        return seen
    if run.workflow and run.state in (State.QUEUED, State.RUNNING):
        return replace(seen, looking=True, looks=(*seen.looks, Look("now", None)))
    if run.wake_at is None or not seen.asks:
        return seen
    coming = Look(
        "next" if run.wake_at > clock.now() else "now", run.wake_at, firm=seen.firm_from is not None and run.wake_at >= seen.firm_from
    )
    return replace(seen, looks=(*seen.looks, coming))


def _is_firm(look: Look, tool: Tool | None, firm_from: datetime | None) -> bool:
    """Whether what a look-up said settles it: found always does; not found only when nothing can still be on its way."""
    late = firm_from is not None and look.at is not None and look.at >= firm_from
    return look.answer == "found" or (look.answer == "absent" and (late or bool(tool and tool.honours_key)))


def _repeats(action: ProposedAction, tool: Tool | None) -> bool:
    """The engine's own rule for the attempt that looking again would be."""
    if tool is None or tool.lookup is None or action.run.state == State.CANCELLING:
        return False
    entry = JournalEntry.objects.filter(run_id=action.run_id, action_id=action.pk, kind="perform").order_by("-position").first()
    return entry is not None and effects.may_repeat(tool, entry.attempts + 1)


def _asks(tool: Tool | None) -> str:
    if tool is None or tool.lookup is None:
        return ""
    said = (tool.lookup.__doc__ or "").strip().splitlines()
    return said[0].rstrip(".") if said else f"The {tool.target or 'outside'}, by its key"


def _page(tool: Tool | None) -> str:
    """Where a person can look; nothing where the tool can't tell."""
    try:
        address = str(tool.where() or "").strip() if tool and tool.where else ""
    except Exception:  # the address is from the tool's own code, and the page is needed without it too
        return ""
    return address if address.lower().startswith(("https://", "http://")) else ""


# the action ---------------------------------------------------------------------------------------------------------------------------


def _facts(action: ProposedAction, arguments: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """The few arguments that tell it from others, as renditions."""
    named = [(name, _line(arguments[name])) for name in SHOWN if name in arguments]
    if action.card != "email":
        named = [(name, _line(value)) for name, value in arguments.items() if isinstance(value, str | int | float)]
    return [(spoken(name), text) for name, text in named if text and len(text) <= SHORT][:FACTS]


def _name(to: Any) -> str:
    """What stands before the address."""
    first = to[0] if isinstance(to, list) and to else to
    parts = segments(first) if isinstance(first, str) else []
    name = parts[0].text.strip(' <"') if len(parts) > 1 and isinstance(parts[0], Text) and isinstance(parts[1], Hidden) else ""
    return name if len(name) <= SHORT else ""


def _line(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
