"""The course of an action: all of it that changes while somebody looks. Made of renditions only, so that page, reply and push share it."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property
from typing import Literal
from uuid import UUID

from access import naming, wording
from access.errors import Refusal
from access.models import User
from access.rules import Actor
from approvals import background, decisions, delivery, editing, standing_grants, stops, threads, warned
from approvals.background import Background, Stage
from approvals.cards import Warn, sum_of
from approvals.decisions import No, Yes
from approvals.figures import number, ordinal
from approvals.models import Decision, Grant, ProposedAction
from approvals.notifications import standing
from approvals.threads import Thread
from artifacts import vault
from config import clock
from runs.engine import ledger
from runs.engine.tools import TOOLS, Tool
from runs.story.titles import DONE, NOTHING, UNITS

Mode = Literal["rest", "armed", "reject", "edit"]


@dataclass(frozen=True)
class Typed:
    """What came with a refused form, so that it stands there again."""

    mode: Mode = "rest"
    reason: str = ""
    acks: tuple[str, ...] = ()
    error: str = ""
    refusal: Refusal | None = None


@dataclass(frozen=True)
class Outcome:
    """Why this can no longer be decided: a note in the place of the bar. `parts` are sentences; a tuple is a rendition."""

    state: str
    strong: str
    text: str = ""
    more: str = ""
    quote: str = ""
    seq: int = 0
    newer: UUID | None = None


@dataclass(frozen=True)
class Vote:
    reviewer: str
    name: str
    me: bool
    verdict: str
    digest: str
    at: datetime
    seq: int
    reason: str
    counts: bool = True  # an approval: its giver may decide still, and has been in the group ever since


@dataclass(frozen=True)
class Earlier:
    """An earlier decision in the same run, on another action."""

    name: str
    verdict: str
    proposed_seq: int
    seq: int
    reason: str


@dataclass(frozen=True)
class Bar:
    """The decision bar of somebody who may decide now."""

    mode: Mode
    lead: str
    what: str
    facts: str
    ask: str
    ask_after: str
    approve: str
    confirm: str
    locked: tuple[Warn, ...]
    acks: tuple[Warn, ...]
    typed: Typed
    editable: bool = False
    nth: int = 0  # of several approvals, the how manieth this one would be; 0 if one is enough
    broken: str = ""  # why there is nothing to approve: the bytes are gone, or not those of the digest


@dataclass(frozen=True)
class Course:
    """All of an action that changes while somebody looks at it."""

    action: ProposedAction
    subject: str
    run_title: str
    state: str
    state_word: str
    waits: bool
    claimed_by: str
    claimed_by_me: bool
    votes: tuple[Vote, ...]
    needs: int
    missing: int
    others: int  # who may decide, has not yet, and is not this person
    who: str
    who_more: tuple[str, ...]
    group: str
    may: bool
    why_not: str
    outcome: Outcome | None
    bar: Bar | None
    next: tuple[tuple[str, str, datetime | None], ...]  # after what, what happens; without an answer at this time
    undo: tuple[str, str, str] | None
    stages: tuple[tuple[Stage, str], ...]
    background: Background
    earlier: tuple[Earlier, ...]
    exchanges: Thread = Thread()
    grant_key: str = ""
    frozen: stops.Freezing | None = None
    recall: stops.Recalling | None = None

    @property
    def why_never_alike(self) -> str:
        """Why its like is never approved beforehand; empty if it may be."""
        return standing_grants.why_never(self.action)

    @cached_property
    def key(self) -> str:
        """Changes exactly when a viewer must be shown something new.

        Its beginning says whether the action waits. The rest stands for what was read, not for where the log stands: whoever reads while
        the action goes on may have read an older half.
        """
        drawn = [getattr(self, field.name) for field in fields(self) if field.name not in ("action", "bar")]
        seen = hashlib.blake2b(repr(drawn).encode(), digest_size=12).hexdigest()
        return f"{self.action.state}:{self.waits}:{self.action.round}:{seen}"


def course(action: ProposedAction, actor: Actor, *, typed: Typed | None = None) -> Course:
    """Where an action stands, for this person. Opens no vault."""
    around = background.around(action)
    people = decisions.who_may(action)
    may = decisions.may_decide(action, actor)
    votes = tuple(_votes(action, actor, people))
    waits = action.state == "waiting" and action.expires_at > clock.now()
    voted = any(vote.me for vote in votes)
    texts = vault.shown([action.subject_id, action.run.title_id])
    subject, run_title = (texts[pk].text for pk in (action.subject_id, action.run.title_id))
    held = action.claimed_by is not None and action.claimed_until is not None and action.claimed_until > clock.now() and waits
    state, word = _state(action, waits, votes)
    asked = threads.exchanges(action, actor, waits=waits)
    if asked.is_open:
        word = "Waiting for the agent’s answer"
    names = naming.people(stage.by for stage in around.stages if stage.by)
    return Course(
        action=action,
        subject=subject,
        run_title=run_title,
        state=state,
        state_word=word,
        waits=waits,
        claimed_by=action.claimed_by.name if held and action.claimed_by else "",
        claimed_by_me=held and str(action.claimed_by_id) == actor.id,
        votes=votes,
        needs=action.policy.needs,
        missing=max(action.policy.needs - _given(votes), 0),
        others=len({str(user.pk) for user in people} - {actor.id, *(vote.reviewer for vote in votes)}),
        who=_who(action, people),
        who_more=tuple(_who_more(action, actor, people, may, votes)),
        group=action.policy.group.name if action.policy.group else "",
        may=isinstance(may, Yes),
        why_not="" if isinstance(may, Yes) else may.why,
        outcome=None if waits else _outcome(action, actor, votes, around, names, isinstance(may, Yes)),
        bar=_bar(action, votes, around, typed or Typed())
        if waits and isinstance(may, Yes) and (not voted or _is_enough(action, votes))
        else None,
        next=tuple(_next(action, votes, around)) if waits else (),
        undo=_undo(action),
        stages=tuple((stage, names.get(stage.by, "")) for stage in around.stages),
        background=around,
        earlier=tuple(_earlier(action)),
        exchanges=asked,
        grant_key=str(_grant(action).pk) if _grant(action) else "",
        frozen=stops.freezing(action, actor),
        recall=stops.recalling(action, isinstance(may, Yes)),
    )


# state, votes, people -------------------------------------------------------------------------------------------------------------


def _state(action: ProposedAction, waits: bool, votes: Sequence[Vote]) -> tuple[str, str]:
    """The state key that colours it, and its word."""
    not_done = "not sent" if action.effect == "send" else "not run"
    if waits:
        whom = action.policy.group.name if action.policy.group else "a reviewer"
        return "waiting", f"Waiting for {whom}" if action.policy.needs == 1 else f"{_given(votes)} of {action.policy.needs} approved"
    if action.state in ("waiting", "expired"):
        return "expired", f"Expired, {not_done}"
    if action.state == "approved":
        return _approved_state(action, not_done)
    return action.state, ""


def _approved_state(action: ProposedAction, not_done: str) -> tuple[str, str]:
    grant = _grant(action)
    if grant is None:
        return "approved", ""
    if grant.outcome == "executed":
        return "executed", "Sent" if action.effect == "send" else "Done"
    if grant.outcome == "failed":
        return "failed", f"Failed, {not_done}"
    if grant.outcome == "unknown":
        return "unknown", ""
    if grant.redeemed_at is not None and action.executor == "agent":
        return "redeemed", "The agent has it"
    if grant.redeemed_at is not None:
        return "redeemed", "Being sent" if action.effect == "send" else "Being run"
    if grant.voided_at is None and grant.expires_at <= clock.now() and action.executor == "agent":
        return "expired", f"Agent gone, {not_done}"
    if grant.voided_at is not None or grant.expires_at <= clock.now():
        return "expired", f"Approval lapsed, {not_done}"
    return "approved", f"Approved, {not_done} yet"


def _grant(action: ProposedAction) -> Grant | None:
    return getattr(action, "grant", None)


def _votes(action: ProposedAction, actor: Actor, people: Sequence[User]) -> Iterable[Vote]:
    """What was decided in this round. `people`: who may decide on it now."""
    given = Decision.objects.filter(action=action, round=action.round).select_related("reviewer").order_by("decided_at")
    fields = ("reviewer_id", "reviewer__name", "verdict", "digest", "decided_at", "seq", *vault.saying("reason"), "group_version")
    rows = list(given.values_list(*fields))
    approved = [(row[0], row[-1]) for row in rows if row[2] == "approved"] if action.state == "waiting" else []
    counted = decisions.counted(action, approved, people)
    lost = {pk for pk, _ in approved} - counted
    for reviewer, name, verdict, digest, at, seq, *reason, _ in rows:
        yield Vote(str(reviewer), name, str(reviewer) == actor.id, verdict, digest, at, seq, vault.said(*reason), reviewer not in lost)


def _given(votes: Iterable[Vote]) -> int:
    """How many approvals count."""
    return sum(vote.verdict == "approved" and vote.counts for vote in votes)


def _is_enough(action: ProposedAction, votes: Iterable[Vote]) -> bool:
    """Whether enough approve. If it waits all the same, somebody got back the right to decide, and the repeat of an approval lets it go."""
    return _given(votes) >= action.policy.needs


def _earlier(action: ProposedAction) -> Iterable[Earlier]:
    rows = Decision.objects.filter(action__run=action.run_id, seq__lt=action.proposed_seq).exclude(action=action).order_by("-seq")
    for found in rows.values_list("reviewer__name", "verdict", "action__proposed_seq", "seq", *vault.saying("reason"))[:4]:
        yield Earlier(*found[:4], reason=vault.said(*found[4:]))


def _who(action: ProposedAction, people: Sequence[User]) -> str:
    needs, group = action.policy.needs, action.policy.group
    count = len(people)
    if group is not None:
        return _who_of(group.name, needs, count)
    if not people:
        return "Nobody here may decide on this."
    if needs > 1:
        return f"{number(needs)} of {count} reviewers."
    return "One reviewer." if count == 1 else f"One of {count} reviewers."


def _who_of(group: str, needs: int, count: int) -> str:
    if count < needs:
        there = "nobody" if not count else "only one person" if count == 1 else f"only {count} people"
        return f"{number(needs)} of {group}, where {there} may decide on this: it can’t be approved as it is."
    return f"{number(needs)} of {count} in {group}." if count > 1 else f"The one person in {group}."


def _who_more(action: ProposedAction, actor: Actor, people: Sequence[User], may: Yes | No, votes: Sequence[Vote]) -> Iterable[str]:
    voted = {vote.reviewer for vote in votes}
    others = [user.name for user in people if str(user.pk) not in (actor.id, *voted)]
    if isinstance(may, No):
        yield may.why
    elif actor.id in voted:
        yield "You have."
    else:
        yield "You can." if not others else f"You can, and so can {wording.listed(others, most=wording.MOST)}."
    if others and (isinstance(may, No) or actor.id in voted):
        yield f"{wording.listed(others, most=wording.MOST)} can."
    if str(action.run.owner_id) != actor.id:
        yield f"{action.run.owner.name} owns the run, and so can’t."
    if action.state == "waiting":
        yield from _too_few(action, people, votes)
        yield from standing.sentences(action, people, actor)


def _too_few(action: ProposedAction, people: Sequence[User], votes: Sequence[Vote]) -> Iterable[str]:
    """Who said it once can't say it again: of those who may decide there may be too few left."""
    needs, voted = action.policy.needs, {vote.reviewer for vote in votes}
    left = sum(str(user.pk) not in voted for user in people)
    if len(people) >= needs and left < needs - _given(votes):
        yield "Too few are left who could approve it, so it can’t be approved as it is. It can be edited, or proposed anew."


# what happens next, what happened -------------------------------------------------------------------------------------------------


def _next(action: ProposedAction, votes: Sequence[Vote], around: Background) -> Iterable[tuple[str, str, datetime | None]]:
    missing = action.policy.needs - _given(votes) - 1
    done = "sent" if action.effect == "send" else "run"
    told, nothing = DONE.get(action.card, f"This is {done}"), NOTHING.get(action.card, f"Nothing is {done}")
    then = f"{told[:1].lower()}{told[1:]}, once."
    if missing > 0:
        yield "Approve", f"Waits for {missing} more, then {then}", None
    elif action.run.state == "paused" and action.executor != "agent":
        yield "Approve", f"The run is paused. Once somebody resumes it, {then}", None
    elif action.executor == "agent":
        yield "Approve", "The agent may run exactly this, once. Handrail cannot see the call.", None
    elif ledger.is_undo(action.step):
        yield "Approve", f"{told}, once. Undoing goes on with what is left.", None
    elif around.next_step and around.next_step != tool_title(action):
        yield "Approve", f"The run goes on with “{around.next_step}”, and {then}", None
    else:
        yield "Approve", f"{told}, once.", None
    if ledger.is_undo(action.step):
        yield "Reject", f"{nothing}. What it would undo stays as it is, and the run is stuck until an operator chooses.", None
    else:
        yield "Reject", f"{nothing}. The agent gets your reason.", None
    yield "No answer", f"{nothing}.", action.expires_at


def _undo(action: ProposedAction) -> tuple[str, str, str] | None:
    """Icon, strong words and the rest of the note on undoing; None for what changes nothing."""
    if action.effect == "read":
        return None
    tool: Tool | None = TOOLS.get(action.tool)
    if tool is not None and tool.compensate:
        undo = TOOLS.get(tool.compensate)
        return "undo", "Can be undone.", f"By “{undo.title if undo else tool.compensate}”."
    why = "An e-mail can’t be called back." if action.card == "email" else "There is no tool that takes it back."
    return "warn", "Can’t be undone.", why


def _outcome(
    action: ProposedAction, actor: Actor, votes: Sequence[Vote], around: Background, names: Mapping[str, str], may: bool
) -> Outcome:
    done = "sent" if action.effect == "send" else "run"
    last = votes[-1] if votes else None
    if action.state in ("waiting", "expired"):
        strong = f"Nobody decided in time, so nothing was {done}."
        return Outcome("expired", strong, "Asking again takes a new proposal, with a new digest and a new deadline.")
    if action.state == "superseded":
        editor = action.superseded_by.editor if action.superseded_by else None
        who = "The agent" if editor is None else "You" if str(editor.pk) == actor.id else editor.name
        strong = f"{who} {'changed' if editor is None else 'edited'} this."
        return Outcome("superseded", strong, f"It can no longer be approved. Nothing was {done}.", newer=action.superseded_by_id)
    if action.state == "withdrawn" and (said := stops.withdrawn(action, around.stages, actor, names, done)):
        return Outcome("withdrawn", *said, quote=stops.closed_why(action), seq=action.settled_seq)
    if action.closed_why_id is not None:
        return _taken_back(action, actor, around, names, done)
    if action.state == "rejected" and last is not None:
        strong = "You rejected this." if last.me else f"{last.name} rejected this."
        return Outcome("rejected", strong, f"Nothing was {done}. {delivery.after_no(action)}", quote=last.reason, seq=last.seq)
    if action.state == "approved":
        return _approved(action, last, done)
    return Outcome(action.state, "This was refused.", f"Nothing was {done}.", seq=action.settled_seq)


def _taken_back(action: ProposedAction, actor: Actor, around: Background, names: Mapping[str, str], done: str) -> Outcome:
    """Recalled by a person, or withdrawn by its agent; with the reason."""
    quote = stops.closed_why(action)
    if action.state == "withdrawn":
        strong = f"The agent withdrew this, so nothing was {done}."
        return Outcome("withdrawn", strong, "It can propose it again, with a new digest.", quote=quote, seq=action.settled_seq)
    by = next((stage.by for stage in reversed(around.stages) if stage.seq == action.settled_seq), "")
    who = "You" if by == actor.id else names.get(by, "Somebody")
    text = f"Nothing was {done}, and nothing will be. {delivery.after_no(action)}"
    return Outcome("recalled", f"{who} recalled the approval.", text, quote=quote, seq=action.settled_seq)


def _approved(action: ProposedAction, last: Vote | None, done: str) -> Outcome:
    if last is None:
        return Outcome("approved", standing_grants.allowed_by(action), delivery.words(action, done), seq=action.settled_seq)
    strong = "You approved exactly this." if last.me else f"{last.name} approved this."
    state = "done" if _grant(action) is None or _approved_state(action, "")[0] in ("approved", "executed", "redeemed") else "waiting"
    return Outcome(state, strong, delivery.words(action, done), seq=last.seq)


# the decision bar ------------------------------------------------------------------------------------------------------------------


def _bar(action: ProposedAction, votes: Sequence[Vote], around: Background, typed: Typed) -> Bar:
    given, needs = _given(votes), action.policy.needs
    last = given + 1 >= needs
    warns = warned.read(action.warnings)
    mail = action.card == "email"
    facts = sum_of((around.recipients, "recipient"), (len(action.attachments), "attachment"))
    verb = "send" if action.effect == "send" else "run"
    title = tool_title(action)
    done = DONE.get(action.card, f"“{title}” is {'sent' if verb == 'send' else 'run'}")
    if given >= needs and any(vote.me for vote in votes):
        lead, what = "Enough approve by now.", f"{done} as soon as one of you says it once more."
    elif not last:
        lead, what = f"Your approval is the {ordinal(given + 1)} of {needs}.", "Nothing runs before the last one."
    elif needs > 1:
        lead, what = f"Your approval is the {ordinal(given + 1)}.", f"{done} as soon as you approve."
    else:
        lead, what = "You approve", f"this one {UNITS[action.card]}" if action.card in UNITS else f"this one call of “{title}”"
    people = sum_of((around.recipients, "recipient"))
    files = sum_of((len(action.attachments), "attachment"))
    aim = "send 1 e-mail" if mail else f"{verb} “{title}” once"
    aim += (f" to {people}" if people else "") + (f" with {files}" if files else "")
    if action.executor == "agent":
        verb, aim = f"let it {verb}", f"let the agent {aim}"
    return Bar(
        mode=typed.mode,
        lead=lead,
        what=what,
        facts=facts if last and needs == 1 else "",
        ask="Approve",
        ask_after=f"and {aim}?" if last else f"as the {ordinal(given + 1)} of {needs}?",
        approve="Approve exactly this" if needs == 1 else f"Approve as {ordinal(given + 1)}" if given < needs else "Approve",
        confirm=f"Approve and {verb}" if last else f"Approve as {ordinal(given + 1)}",
        locked=tuple(warn for warn in warns if warn.severity == "lock"),
        acks=tuple({warn.code: warn for warn in warns if warn.ack}.values()),
        typed=typed,
        editable=editing.may_edit(action),
        nth=given + 1 if needs > 1 else 0,
    )


def tool_title(action: ProposedAction) -> str:
    tool = TOOLS.get(action.tool)
    return tool.title if tool else action.tool
