"""Deciding on several actions that are alike: each was looked at, and each gets a decision of its own over its own digest.

What can't go with the others is taken out by itself, with why; the same is asked again of each when it is decided.
"""

import json
import logging
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from access import characters, rules
from access.errors import BadInput, DatabaseTrouble, Refusal
from access.rules import Actor
from approvals import alike, decisions, exact, forms, gate, inbox, looks, presenting, warned
from approvals.alike import Facts
from approvals.canonical import CanonicalAction
from approvals.cards import payment, record
from approvals.cards.drawing import address_in, is_inside
from approvals.decisions import Verdict, Yes
from approvals.errors import AlreadyDecided, NotAllOpened, Unreadable
from approvals.models import Decision, ProposedAction
from config import clock
from runs import log
from runs.engine.tools import TOOLS

MOST = 20  # actions at once: what a person can look at before the first of them runs out
LOOKED_THROUGH = 60
SAID = 2  # arguments that a row of the list names
FEWEST_COMMON = 3  # words that all have in common: fewer are not worth a place of their own
ORIGIN = re.compile(r"https?://[^/?#@]+(?=/)")
SHORT, LONG = 60, 100  # characters of a changed field, and of an argument, in a row of the list
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Said:
    """What is different about one action, for its row: an argument before and after, or after alone."""

    title: str
    before: str
    after: str

    @property
    def speaks(self) -> bool:
        """Whether it is read without its title: a sentence, not a number or a name."""
        return not self.before and self.after.count(" ") > 1


@dataclass(frozen=True)
class Item:
    """One action of a batch. `why` it is not decided with the others; empty if it is."""

    action: ProposedAction
    subject: str
    says: tuple[Said, ...]
    opened: bool
    why: str = ""
    short: str = ""  # the words of its subject that the others do not all have

    @property
    def key(self) -> str:
        """What is decided, as the form names it."""
        return f"{self.action.pk}:{self.action.digest}"


@dataclass(frozen=True)
class Batch:
    """Actions that may be decided together, those that may not, and how many more are alike than fit."""

    like: ProposedAction
    items: tuple[Item, ...]
    out: tuple[Item, ...]
    by_hand: tuple[Item, ...] = ()
    more: int = 0
    several: str = ""  # what many of them are called, after their number

    @property
    def common(self) -> tuple[str, str]:
        """What all are called, before and after what is each one's own."""
        return common_words([item.subject for item in self.items])

    @property
    def first_out(self) -> ProposedAction | None:
        """The one whose time runs out before that of the others."""
        return min((item.action for item in self.items), key=lambda action: action.expires_at, default=None)

    @property
    def missing(self) -> int:
        return sum(not item.opened for item in self.items)

    @property
    def by_hand_count(self) -> int:
        return len(self.by_hand)

    @property
    def opened(self) -> int:
        return len(self.items) - self.missing


@dataclass(frozen=True)
class Result:
    """What became of one action: decided (`again`: it was, before), or not, and why."""

    action: ProposedAction
    subject: str
    decision: Decision | None = None
    again: bool = False
    why: str = ""


def batch(like: ProposedAction, actor: Actor, out: Collection[UUID] = ()) -> Batch:
    """What waits for this person and is like this action, the first MOST of it. `out`: what they took out by hand."""
    rows = inbox.mine(actor).filter(workspace=like.workspace_id, tool=like.tool).select_related(*presenting.RELATED)
    waiting = list(rows.order_by("-risk", "expires_at", "pk")[:LOOKED_THROUGH])
    read = _Read(waiting, actor)
    alone = alike.why_alone(read.facts(), read.facts_of(like))
    together = [action for action in waiting if action.pk not in alone]
    taken = [action for action in together if action.pk in out]
    left = [action for action in together if action.pk not in out]
    seen = looks.of(actor, [action.pk for action in waiting])
    called = common_words([read.subject(action) for action in left[:MOST]])
    return Batch(
        like=like,
        items=_shortened(tuple(_items(left[:MOST], read, seen, {})), called),
        out=_shortened(tuple(_items([action for action in waiting if action.pk in alone], read, seen, alone)), called),
        by_hand=_shortened(tuple(_items(taken, read, seen, {})), called),
        more=max(len(left) - MOST, 0),
        several=read.several(left[:MOST]),
    )


def decide(like: ProposedAction, *, reviewer: Actor, verdict: Verdict, digests: Mapping[UUID, str], reason: str = "") -> list[Result]:
    """Decide on each of these exact actions, each for itself: one that is refused leaves the others as they are.

    NotAllOpened, and nothing is decided, unless this person looked at every one of them. The same again gives the same.
    """
    if not digests or len(digests) > MOST:
        raise BadInput(f"Between 1 and {MOST} actions are decided at once. Nothing was decided.")
    found = rules.visible(reviewer, ProposedAction, "approvals.decide").select_related(*presenting.RELATED)
    actions = list(found.filter(pk__in=digests, workspace=like.workspace_id, tool=like.tool).order_by("-risk", "expires_at", "pk"))
    seen = looks.of(reviewer, list(digests))
    if missing := sum((pk, digest) not in seen for pk, digest in digests.items()):
        raise NotAllOpened(
            f"{missing} of {len(digests)} {'was' if missing == 1 else 'were'} not opened as {'it is' if missing == 1 else 'they are'} now."
        )
    read = _Read(actions, reviewer)
    alone = alike.why_alone(read.facts(), read.facts_of(like))
    told = {"bulk": len(digests)}
    results = []
    for action in actions:
        digest = digests[action.pk]
        looked = told | {"looked_at": log.stamp(seen[action.pk, digest])}
        results.append(_one(action, reviewer, verdict, digest, reason, alone.get(action.pk, ""), looked, read.subject(action)))
    return results


def _one(
    action: ProposedAction, reviewer: Actor, verdict: Verdict, digest: str, reason: str, why: str, looked: dict[str, Any], subject: str
) -> Result:
    try:
        if why and action.state == "waiting":
            return Result(action, subject, why=why)
        seen = forms.seen(presenting.sums(action, reviewer), seconds=None, opened=(), acks=()) | looked
        decided = decisions.decide(action, reviewer=reviewer, verdict=verdict, digest=digest, reason=reason, seen=seen)
        return Result(decided.action, subject, decided.decision, decided.again)
    except AlreadyDecided as error:
        by = error.extra.get("by")
        return Result(action, subject, why=f"{by} {error.extra['verdict']} it before." if by else error.detail)
    except Refusal as error:
        return Result(action, subject, why=error.detail)
    except DatabaseTrouble as error:  # one run that can't be locked now must not keep the others open
        logger.warning("not decided", extra={"action": str(action.pk), "error": type(error).__name__})
        return Result(action, subject, why="It could not be recorded just now.")


@dataclass
class _Read:
    """Some actions, each opened once: two queries for one."""

    actions: list[ProposedAction]
    actor: Actor
    opened: dict[UUID, CanonicalAction | str] = field(default_factory=dict)
    called: dict[UUID, str] = field(default_factory=dict)

    def facts(self) -> list[Facts]:
        return [self.facts_of(action) for action in self.actions]

    def facts_of(self, action: ProposedAction) -> Facts:
        what = self.what(action)
        tool = TOOLS.get(action.tool)
        warns = warned.read(action.warnings)
        now = clock.now()
        held = action.claimed_by is not None and action.claimed_until is not None and action.claimed_until > now
        return Facts(
            id=action.pk,
            schema=action.tool_schema,
            policy=action.policy_id,
            policy_words=f"“{action.policy.name}”, version {action.policy.version}",
            needs=action.policy.needs,
            risk=action.risk,
            risk_word=inbox.RISKS.get(action.risk, "High"),
            warning=warns[0].strong if warns else "It has a warning." if action.warnings else "",
            locked=action.locked,
            holder=action.claimed_by.name if held and action.claimed_by and str(action.claimed_by_id) != self.actor.id else "",
            tainted=tool is not None and tool.sends_out and gate.taint_of(action.run, tool).lethal,
            outside=_outside(what, action.workspace.mail_domains) if not isinstance(what, str) else (),
            broken=what if isinstance(what, str) else "" if tool else "Its tool is not here any more.",
            editor=action.editor.name if action.editor else "",
            **(_money(what) if action.card == "payment" and not isinstance(what, str) else {}),
        )

    def what(self, action: ProposedAction) -> CanonicalAction | str:
        """The exact action; why it can't be read."""
        if action.pk not in self.opened:
            try:
                self.opened[action.pk] = exact.whole(action)
            except Unreadable as error:
                self.opened[action.pk] = error.detail
        return self.opened[action.pk]

    def subject(self, action: ProposedAction) -> str:
        """What it is called: in full for who may read it so, else its rendition."""
        if action.pk not in self.called:
            self.called[action.pk] = presenting.words(action, isinstance(decisions.may_read(action, self.actor), Yes))[0]
        return self.called[action.pk]

    def says(self, action: ProposedAction) -> tuple[Said, ...]:
        what = self.what(action)
        if isinstance(what, str):
            return ()
        # where all are the same, it says what that is
        common, origins = self._common(), self._origins()
        more = tuple(_different(what, common | dict.fromkeys(self._told(origins)), origins))
        found = (more or tuple(_different(what, common, origins)))[:SAID]
        return found or tuple(each for each in _different(what, {}, {}) if each.after)[:1]

    def several(self, actions: Iterable[ProposedAction]) -> str:
        """What the tool calls many such actions; empty if it has no word for them."""
        given = [what.arguments for what in map(self.what, actions) if not isinstance(what, str)]
        tool = TOOLS.get(self.actions[0].tool) if given else None
        return tool.several(given) if tool and tool.several else ""

    def _common(self) -> dict[str, Any]:
        """The arguments that are the same in all of them."""
        given = self._given()
        return {name: value for name, value in given[0].items() if all(each.get(name) == value for each in given)} if given else {}

    def _origins(self) -> dict[str, str]:
        """Of the arguments that are addresses at one host in all of them: `https://host`. What differs is what comes after it."""
        given = self._given()
        found = {name: {_origin(each.get(name)) for each in given} for name in (given[0] if given else ())}
        return {name: next(iter(origins)) for name, origins in found.items() if len(origins) == 1 and all(origins)}

    def _told(self, addresses: Mapping[str, str]) -> list[str]:
        """Of the arguments that are addresses, those that differ only as what the actions are called does: each has its own."""
        those = self.actions if addresses else ()
        read = [(self.subject(action), what.arguments) for action in those if not isinstance(what := self.what(action), str)]
        pairs = {name: {(subject, given[name]) for subject, given in read} for name in addresses}
        return [name for name, both in pairs.items() if len(both) == len({one for one, _ in both}) == len({other for _, other in both})]

    def _given(self) -> list[dict[str, Any]]:
        return [what.arguments for what in map(self.what, self.actions) if not isinstance(what, str)]


def common_words(subjects: Sequence[str]) -> tuple[str, str]:
    """The words that all begin with, and those that all end with. Two empty texts where these are few, or leave one without a word."""
    if len(subjects) < 2:
        return "", ""
    if len(set(subjects)) == 1:
        return subjects[0], ""
    words = [subject.split(" ") for subject in subjects]
    start = len(os.path.commonprefix(words))
    ends = len(os.path.commonprefix([list(reversed(each[start:])) for each in words]))
    if start + ends < FEWEST_COMMON or any(len(each) == start + ends for each in words):
        return "", ""
    return " ".join(words[0][:start]), " ".join(words[0][len(words[0]) - ends :])


def _shortened(items: tuple[Item, ...], called: tuple[str, str]) -> tuple[Item, ...]:
    """Each without the words that those decided together are all called; whole, if it does not have them."""
    return tuple(replace(item, short=_own(item.subject, *called)) for item in items)


def _own(subject: str, before: str, after: str) -> str:
    if not subject.startswith(before) or not subject.endswith(after):
        return subject
    return subject[len(before) : len(subject) - len(after)].strip()


def _items(actions: Iterable[ProposedAction], read: _Read, seen: Collection[tuple[UUID, str]], why: Mapping[UUID, str]) -> Iterable[Item]:
    for action in actions:
        opened = (action.pk, action.digest) in seen
        yield Item(action, read.subject(action), read.says(action), opened, why.get(action.pk, ""))


def _outside(what: CanonicalAction, inside: Iterable[str]) -> tuple[str, ...]:
    own = tuple(inside)
    return tuple(to for to in what.recipients if not is_inside(address_in(to).rpartition("@")[2].lower(), own))


def _money(what: CanonicalAction) -> dict[str, Any]:
    amount, words = payment.amount_of(what)
    return {"money": (amount, str(payment.currency_of(what))) if amount is not None else None, "money_words": words}


def _origin(value: Any) -> str:
    found = ORIGIN.match(value) if isinstance(value, str) else None
    return found[0] if found else ""


def _different(what: CanonicalAction, common: Mapping[str, Any], origins: Mapping[str, str]) -> Iterable[Said]:
    """Fields of a record that change, before and after; of anything else the arguments in which the actions differ."""
    before, after = what.arguments.get("before"), what.arguments.get("after")
    if isinstance(before, dict) and isinstance(after, dict):
        changed = {name: value for name, value in after.items() if before.get(name) != value}
        yield from (Said(record.spoken(name) or name, _short(before.get(name)), _short(value)) for name, value in changed.items())
        return
    titles = _titles(what.tool)
    given = {name: value for name, value in what.arguments.items() if name not in common}
    after = {name: value.removeprefix(origins[name]) if name in origins else value for name, value in given.items()}
    yield from (Said(titles.get(name, name), "", _short(value, LONG)) for name, value in after.items())


def _titles(name: str) -> dict[str, str]:
    tool = TOOLS.get(name)
    properties = tool.arguments.model_json_schema().get("properties", {}) if tool else {}
    return {key: str(each.get("title") or key) for key, each in properties.items()}


def _short(value: Any, most: int = SHORT) -> str:
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()  # one text in an object is read without its braces
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else text[: characters.whole(text, most - 1)] + "…"
