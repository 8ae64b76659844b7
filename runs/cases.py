"""The page of stuck runs: each with what happened, what was already done outside, and what can be chosen. A fixed number of queries."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.db.models import Q

from access import naming, rules
from access.ids import as_uuid
from access.models import AuditEntry, User
from access.rules import Actor
from access.templatetags.handrail import spell
from artifacts import vault
from artifacts.vault import Shown
from config import clock
from runs import recovered, recovery
from runs.engine import compensation, gates, ledger, resuming
from runs.engine.gates import LooseEnd
from runs.engine.ledger import Told
from runs.engine.reads import HOPELESS
from runs.engine.tools import TOOLS
from runs.lifecycle import TERMINAL, State
from runs.models import Event, ReceivedWebhook, Run
from runs.recovery import Choice, Parking
from runs.story import titles
from runs.story.course import PARKED
from runs.story.shapes import Step
from runs.story.wire import moment
from runs.story.work import TROUBLE

TOLD_BY_DETAIL = ("retries_exhausted", "error")  # reasons whose detail says the same, and more
ASKED = Q(state=State.WAITING, waiting__on="outcome", waiting__until__isnull=True)  # somebody must say what happened
PAGE = 20
TRAIL, DONE = 3, 2  # failures, and completed steps before them, that are told
STEPS = ("step", "model", "perform")  # kinds of journal entries that are told as done
FAILURES = ("step.failed", "effect.undo_failed", "action.unknown", "action.executed")
HANDED = "deadletter.resolved"
TOLD = tuple({"run.parked", HANDED, *FAILURES, *ledger.TOLD})
NAMED = ("action.proposed", "action.redeemed")  # they say of which tool a step is that does what was approved
WORDS: Mapping[str, str] = {
    "retry": "Try again",
    "compensate": "Undo everything",
    "hand_over": "Hand to a person",
    "give_up": "Give up",
}


@dataclass(frozen=True)
class Mark:
    """One line of what led here: the same failure, one or more times, or what was done before. `seq` and `at` are of the last, `first` of
    the first."""

    seq: int
    words: str
    at: datetime
    first: int
    times: int = 1
    state: str = "failed"  # or done


@dataclass(frozen=True)
class Done:
    """One thing that was done outside. `text` is a rendition."""

    seq: int
    text: str
    state: str  # done undone failed
    can_undo: bool


@dataclass(frozen=True)
class Option:
    """One choice, and what it would do."""

    choice: Choice
    word: str
    says: str


@dataclass(frozen=True)
class Case:
    """One stuck run."""

    run: Run
    where: Parking
    why: str  # "" where the detail says it
    detail: str  # a rendition
    trail: tuple[Mark, ...]
    effects: tuple[Done, ...]
    unclear: int  # how many things have no known outcome
    options: tuple[Option, ...]
    people: tuple[User, ...]
    sees_events: bool
    may_fork: bool
    after: str = ""  # what it had completed last, if no step of its own failed
    again: int = 0  # how often it had got stuck in the same way before
    handed_by: str = ""  # who handed it to who looks after it: an id first, then a name
    handed_why: str = ""  # in their words, a rendition
    approved: tuple[LooseEnd, ...] = ()  # what somebody allowed, and of which nothing has left yet
    steps: tuple[tuple[str, str], ...] = ()  # earlier steps from which it can be tried again: name and title, the latest first

    @property
    def key(self) -> str:
        """This time that this run got stuck."""
        return f"{self.run.pk}@{self.where.seq}"

    @property
    def proposed(self) -> str:
        """What is chosen before anybody chose: not what would fail again by what the run itself tells."""
        hopeless = (self.again or self.detail.rstrip().endswith(HOPELESS)) and self.run.handed_to is None
        offered = [option.choice for option in self.options]
        return "hand_over" if hopeless and "hand_over" in offered else offered[0]

    @property
    def may_give_up(self) -> bool:
        return any(option.choice == "give_up" for option in self.options)

    @property
    def approved_then(self) -> str:
        """What becomes of something that is approved, by what is chosen."""
        last = {"compensate": "undone", "give_up": "given up"}
        ends = " or ".join(last[option.choice] for option in self.options if option.choice in last)
        again = "can go out if this is tried again" if any(option.choice == "retry" for option in self.options) else ""
        told = ", ".join(words for words in (again, f"is withdrawn if this is {ends}" if ends else "") if words)
        return f"{told[:1].upper()}{told[1:]}." if told else ""

    @property
    def stuck_for(self) -> str:
        return f"Stuck for {spell(int((clock.now() - self.run.state_since).total_seconds()))}"

    @property
    def safe(self) -> bool:
        """Whether it can be tried again without looking closer."""
        return not self.unclear and any(option.choice == "retry" for option in self.options)


@dataclass(frozen=True)
class Gone:
    """A run that is no longer stuck where an open page says so, and what was chosen meanwhile."""

    run: Run
    chosen: recovered.Recovered | None  # None: it was cancelled, or that is long ago


@dataclass(frozen=True)
class Board:
    """All of the page."""

    cases: tuple[Case, ...]
    total: int
    silent: tuple[Run, ...]  # their agents went silent
    stalled: int  # how many did
    outcomes: tuple[tuple[Run, list[LooseEnd]], ...]  # somebody must say of these what happened, and of what in each
    unclear: int  # how many do
    letters: tuple[ReceivedWebhook, ...]  # webhooks that led nowhere
    dead: int  # how many
    recovered: tuple[recovered.Recovered, ...]
    news: int = 0  # cases that a page which is open does not show yet
    gone: tuple["Gone", ...] = ()  # cases that such a page shows, and that are none any more


def waiting_count(actor: Actor) -> int:
    """How many things this person may help on: runs that are stuck or silent, or whose outcome somebody must say, and webhooks."""
    if not actor.somewhere("runs.recover"):
        return 0
    runs = rules.visible(actor, Run, "runs.recover").filter(Q(state__in=(State.PARKED, State.STALLED)) | _unclear()).count()
    return runs + rules.visible(actor, ReceivedWebhook, "runs.recover").filter(state="dead").count()


def _unclear() -> Q:
    """Runs in which somebody must say what happened. An agent outside need not wait for that, and may have gone silent."""
    live = ~Q(state__in=(State.PARKED, *TERMINAL))
    return ASKED | Q(live, workflow="", pk__in=gates.current().unknown_in())


def board(actor: Actor) -> Board:
    """What this person may recover, the longest stuck first."""
    mine = rules.visible(actor, Run, "runs.recover").select_related("agent", "owner", "title", "handed_to")
    parked = mine.filter(state=State.PARKED).order_by("state_since")
    unclear = mine.filter(_unclear()).order_by("state_since")
    outcomes = list(unclear[:PAGE])
    lost = gates.current().loose_ends([run.pk for run in outcomes])
    letters = rules.visible(actor, ReceivedWebhook, "runs.recover").filter(state="dead").select_related("source").order_by("received_at")
    silent = mine.filter(~_unclear(), state=State.STALLED).order_by("state_since")
    runs = list(parked[:PAGE])
    return Board(
        cases=tuple(_cases(runs, actor)),
        total=parked.count() if len(runs) == PAGE else len(runs),  # so that it is what is shown, whatever got stuck meanwhile
        silent=tuple(silent[:PAGE]),
        stalled=silent.count(),
        outcomes=tuple((run, _asked_of(actor, run, lost.get(run.pk, []))) for run in outcomes),
        unclear=unclear.count(),
        letters=tuple(letters[:PAGE]),
        dead=letters.count(),
        recovered=tuple(recovered.lately(actor)),
    )


def since(board: Board, shown: Sequence[str], actor: Actor) -> Board:
    """The same for a page that is open and shows these cases: what is new to it, and what it shows still."""
    now = {case.key for case in board.cases}
    left = [as_uuid(key.partition("@")[0]) for key in shown[: PAGE + 1] if key and key not in now]
    runs = rules.visible(actor, Run, "runs.recover").filter(pk__in=[pk for pk in left if pk]) if left else []
    chosen = {each.run.pk: each for each in board.recovered}
    gone = tuple(Gone(run, chosen.get(run.pk)) for run in runs)
    return replace(board, news=sum(key not in shown for key in now), gone=gone)


def _asked_of(actor: Actor, run: Run, ends: Sequence[LooseEnd]) -> list[LooseEnd]:
    """What of a run they can read up on, and say what became of it."""
    sees = rules.can(actor, "approvals.view", run.workspace_id, run.team_id)
    return [end for end in ends if end.state == "unknown" and sees]


def _cases(runs: Sequence[Run], actor: Actor) -> list[Case]:
    types = (*TOLD, *NAMED)
    theirs = Event.objects.filter(run_month__in={run.month for run in runs}, run_id__in=[run.pk for run in runs], type__in=types)
    events = theirs.order_by("seq").values_list("run_id", "seq", "body", "payloads")
    told: dict[UUID, list[Told]] = defaultdict(list)
    for run_id, seq, body, payloads in events:
        told[run_id].append((seq, orjson.loads(body), payloads))
    tools = {run_id: _tools(lines) for run_id, lines in told.items()}
    told = {run_id: [line for line in lines if line[1]["type"] in TOLD] for run_id, lines in told.items()}
    texts = vault.shown(UUID(pk) for lines in told.values() for _, _, payloads in lines for pk in payloads.values())
    ends = gates.current().loose_ends([run.pk for run in runs])
    places = {(run.workspace_id, run.team_id) for run in runs}
    sees = {place: rules.can(actor, "runs.events", *place) for place in places}
    holders = {place: tuple(recovery.people(*place)) for place in places}
    parents = set(Run.objects.filter(parent__in=runs, state=State.SUCCEEDED).values_list("parent_id", flat=True))
    kin = {run.pk: len(compensation.undoable(run)) for run in runs if run.pk in parents}
    cases = [
        _case(run, told[run.pk], texts, tools[run.pk], ends.get(run.pk, []), holders[run.workspace_id, run.team_id], kin.get(run.pk))
        for run in runs
        if told.get(run.pk)
    ]
    fork = {place: rules.can(actor, "runs.start", *place) for place in places}
    journals = resuming.rows([case.run.pk for case in cases])
    names = naming.people(case.handed_by for case in cases if case.handed_by)
    return [
        replace(
            case,
            sees_events=sees[case.run.workspace_id, case.run.team_id],
            may_fork=bool(case.run.workflow) and fork[case.run.workspace_id, case.run.team_id],
            handed_by=names.get(case.handed_by, ""),
            after=_after(case, journals[case.run.pk]),
            steps=_earlier(case, journals[case.run.pk]),
            trail=_led(case, journals[case.run.pk], tools[case.run.pk]),
        )
        for case in cases
    ]


def _tools(lines: Sequence[Told]) -> dict[int | str, str]:
    """The tool of each action by its id, and by the event at which it was redeemed."""
    found: dict[int | str, str] = {}
    for seq, body, _ in lines:
        data = body["data"]
        if body["type"] == "action.proposed":
            found[data["action"]] = data["tool"]
        elif body["type"] == "action.redeemed":
            found[seq] = found.get(data["action"], "")
    return found


def _redeemed(tools: Mapping[int | str, str], before: int) -> str:
    """The tool of what was redeemed last before an event: the one that its step is about, where that does what was approved."""
    return next((tool for seq, tool in reversed(tools.items()) if isinstance(seq, int) and seq < before), "")


def _led(case: Case, journal: Sequence[resuming.Row], tools: Mapping[int | str, str]) -> tuple[Mark, ...]:
    """What led here: the last completed steps, then what failed; where no failure is told, that it stopped."""
    done = [each for each in journal if each.kind in STEPS and each.state == "done" and each.seq and each.ended_at][-DONE:]
    before = [
        Mark(each.seq, f"“{step_title(each.step, tools.get(str(each.action_id), ''))}” done", each.ended_at, each.seq, state="done")
        for each in done
        if each.ended_at
    ]
    after = case.trail or (Mark(case.where.seq, "Stopped here", moment(case.where.at) or clock.now(), case.where.seq),)
    return tuple(sorted((*before, *after), key=lambda mark: mark.seq))


def _after(case: Case, journal: Sequence[resuming.Row]) -> str:
    done = [] if case.where.step else resuming.steps(journal)
    return step_title(done[-1]) if done else ""


def _earlier(case: Case, journal: Sequence[resuming.Row]) -> tuple[tuple[str, str], ...]:
    """Where else than at the step that failed it can be tried again."""
    if case.where.reason == "undo_failed" or not any(option.choice == "retry" for option in case.options):
        return ()
    return tuple((step, step_title(step)) for step in reversed(resuming.steps(journal)))


def _case(
    run: Run,
    lines: Sequence[Told],
    texts: Mapping[UUID, Shown],
    tools: Mapping[int | str, str],
    ends: Sequence[LooseEnd],
    people: tuple[User, ...],
    can_undo: int | None,
) -> Case:
    """`can_undo`: how much can be undone, if its child runs did some of that."""
    seq, body, payloads = next(line for line in reversed(lines) if line[1]["type"] == "run.parked")
    where, detail = recovery.parked_at(seq, body), _text(texts, payloads.get("detail"))
    effects, unclear = _effects(lines, texts), sum(end.state != "approved" for end in ends)
    can_undo = sum(done.can_undo and done.state != "undone" for done in effects) if can_undo is None else can_undo
    title = step_title(where.step, _redeemed(tools, seq)) if where.step else ""
    options = tuple(_option(choice, title, where, effects, can_undo) for choice in recovery.possible(run, where, can_undo, unclear))
    handed = next(((body, payloads) for at, body, payloads in reversed(lines) if at > seq and body["type"] == HANDED), None)
    people = tuple(person for person in people if person.pk != run.handed_to_id)
    if not people and len(options) > 1:  # nobody else could look after it
        options = tuple(option for option in options if option.choice != "hand_over")
    return Case(
        run=run,
        again=_again(lines, texts),
        handed_by=handed[0]["actor"]["id"] if handed and run.handed_to_id else "",
        handed_why=_text(texts, handed[1].get("note")) if handed and run.handed_to_id else "",
        where=where,
        why="" if detail and where.reason in TOLD_BY_DETAIL else _sentence(PARKED.get(where.reason, where.reason)),
        detail=detail,
        trail=tuple(_trail(lines, seq, tools)),
        effects=effects,
        unclear=unclear,
        options=options,
        people=people,
        approved=tuple(end for end in ends if end.state == "approved"),
        sees_events=False,
        may_fork=False,
    )


def _again(lines: Sequence[Told], texts: Mapping[UUID, Shown]) -> int:
    """How often it had got stuck before as it did last: for the same reason, at the same step, with the same words."""
    stuck = [
        (body["data"]["reason"], body["data"].get("step"), _text(texts, payloads.get("detail")))
        for _, body, payloads in lines
        if body["type"] == "run.parked"
    ]
    return stuck[:-1].count(stuck[-1])


def _option(choice: Choice, title: str, where: Parking, effects: Sequence[Done], can_undo: int) -> Option:
    stay = sum(done.state != "undone" for done in effects)
    left = "Nothing was done outside." if not stay else f"{_things(stay)} done outside {'stays' if stay == 1 else 'stay'}."
    again = "Undoes what is left, under the same keys." if where.reason == "undo_failed" else "Keeps what was completed."
    says = {
        "retry": again,
        "compensate": f"Undoes {_things(can_undo)}, the last first, and ends as Failed.",
        "hand_over": "It stays stuck, and is theirs to look after.",
        "give_up": f"Ends for good. {left}",
    }
    word = WORDS[choice]
    if choice == "retry" and title:
        word = f"Try again from “{title}”"
    return Option(choice, word, says[choice])


def step_title(step: str, approved: str = "") -> str:
    """A step in people's words. `approved`: the tool of what was approved, which a step that does it may not say itself."""
    kind = step.rpartition("/")[2].partition("#")[0]
    title = titles.of_step(Step(step, approved if kind == "perform" else ""))
    return "The approved action" if title == titles.APPROVED else title


def _things(number: int) -> str:
    return f"{number} {'thing' if number == 1 else 'things'}"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _effects(lines: Sequence[Told], texts: Mapping[UUID, Shown]) -> tuple[Done, ...]:
    return tuple(Done(e.seq, _text(texts, e.subject) or _title(e.tool), e.state, e.can_undo) for e in ledger.fold(lines))


def _title(tool: str) -> str:
    return TOOLS[tool].title if tool in TOOLS else tool


def _trail(lines: Sequence[Told], parked: int, tools: Mapping[int | str, str]) -> list[Mark]:
    """The last failures before it got stuck, in words; attempts that failed in the same way are one line."""
    marks: list[Mark] = []
    for seq, body, _ in lines:
        if seq >= parked or body["type"] not in FAILURES or body["data"].get("ok", False):
            continue
        words, at = _failure(body, _redeemed(tools, seq)), moment(body["at"]) or clock.now()
        if marks and marks[-1].words == words:
            marks[-1] = replace(marks[-1], seq=seq, at=at, times=marks[-1].times + 1)
        else:
            marks.append(Mark(seq, words, at, first=seq))
    return marks[-TRAIL:]


def _failure(body: Any, approved: str) -> str:
    data = body["data"]
    match body["type"]:
        case "step.failed":
            return f"“{step_title(data['step'], approved)}” failed: {TROUBLE.get(data['error'], data['error'])}"
        case "effect.undo_failed":
            return f"Could not be undone: {TROUBLE.get(data['reason'], data['reason'])}"
        case "action.unknown":
            return "The answer of the outside was lost"
        case _:
            return "The outside did not do it"


def _text(texts: Mapping[UUID, Shown], pk: str | None) -> str:
    shown = texts.get(UUID(pk)) if pk else None
    return shown.text if shown else ""


def chosen(run: Run) -> str:
    """Who chose last how a run goes on, and what, in a sentence; empty if that is long ago."""
    entries = AuditEntry.objects.filter(
        workspace_id=run.workspace_id, verb="recovered", at__gt=clock.now() - recovered.LATELY, subject_id=str(run.pk)
    )
    if (last := entries.order_by("-at").first()) is None:
        return ""
    who = naming.people({last.actor_id}).get(last.actor_id, "Somebody")
    return f"{who} has already chosen how {run.ref} goes on: {WORDS.get(last.data['choice'], last.data['choice'])}."
