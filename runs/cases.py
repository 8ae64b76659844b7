"""The page of stuck runs: each with what happened, what was already done outside, and what can be chosen. A fixed number of queries."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from django.db.models import Q

from access import naming, rules
from access.models import AuditEntry, User
from access.rules import Actor
from access.templatetags.handrail import spell
from artifacts import vault
from artifacts.vault import Shown
from config import clock
from runs import recovery
from runs.engine import compensation, gates, ledger, resuming
from runs.engine.ledger import Told
from runs.engine.reads import HOPELESS
from runs.engine.tools import TOOLS
from runs.lifecycle import State
from runs.models import Event, ReceivedWebhook, Run
from runs.recovery import Choice, Parking
from runs.story import titles
from runs.story.course import PARKED
from runs.story.shapes import Step
from runs.story.wire import moment
from runs.story.work import TROUBLE

UNCLEAR = Q(state=State.WAITING, waiting__on="outcome", waiting__until__isnull=True)  # somebody must say what happened
PAGE = 20
TRAIL = 3
LATELY = timedelta(hours=24)
RECENT = 10
FAILURES = ("step.failed", "effect.undo_failed", "action.unknown", "action.executed")
TOLD = tuple({"run.parked", *FAILURES, *ledger.TOLD})
WORDS: Mapping[str, str] = {
    "retry": "Try again",
    "compensate": "Undo everything",
    "hand_over": "Hand to a person",
    "give_up": "Give up",
}
CHOSE: Mapping[str, tuple[str, str]] = {  # choice → its colour, and its word once it was made
    "retry": ("done", "Retried"),
    "compensate": ("undone", "Undoing"),
    "hand_over": ("paused", "Handed over"),
    "give_up": ("cancelled", "Given up"),
}


@dataclass(frozen=True)
class Mark:
    """One line of what led here: the same failure, one or more times. `seq` and `at` are of the last, `first` of the first."""

    seq: int
    words: str
    at: datetime
    first: int
    times: int = 1


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
    steps: tuple[tuple[str, str], ...] = ()  # earlier steps from which it can be tried again: name and title, the latest first

    @property
    def key(self) -> str:
        """This time that this run got stuck."""
        return f"{self.run.pk}@{self.where.seq}"

    @property
    def proposed(self) -> str:
        """What is chosen before anybody chose: not what would fail again by what the run itself tells."""
        hopeless = self.detail.rstrip().endswith(HOPELESS)
        return "hand_over" if hopeless else self.options[0].choice

    @property
    def stuck_for(self) -> str:
        return f"Stuck for {spell((clock.now() - self.run.state_since).total_seconds())}"

    @property
    def safe(self) -> bool:
        """Whether it can be tried again without looking closer."""
        return not self.unclear and any(option.choice == "retry" for option in self.options)


@dataclass(frozen=True)
class Recovered:
    """What somebody chose lately."""

    run: Run
    shade: str
    word: str
    by: str
    at: datetime
    to: str

    @property
    def now(self) -> str:
        """Where the run is by now, where that is not what its state is called anyway."""
        return "Stuck again" if self.run.state == State.PARKED else ""


@dataclass(frozen=True)
class Board:
    """All of the page."""

    cases: tuple[Case, ...]
    total: int
    silent: tuple[Run, ...]  # their agents went silent
    stalled: int  # how many did
    outcomes: tuple[Run, ...]  # they wait for somebody to say what happened
    unclear: int  # how many do
    letters: tuple[ReceivedWebhook, ...]  # webhooks that led nowhere
    dead: int  # how many
    recovered: tuple[Recovered, ...]
    news: int = 0  # cases that a page which is open does not show yet


def waiting_count(actor: Actor) -> int:
    """How many things this person may help on: runs that are stuck or silent, or whose outcome somebody must say, and webhooks."""
    if not actor.somewhere("runs.recover"):
        return 0
    runs = rules.visible(actor, Run, "runs.recover").filter(Q(state__in=(State.PARKED, State.STALLED)) | UNCLEAR).count()
    return runs + rules.visible(actor, ReceivedWebhook, "runs.recover").filter(state="dead").count()


def board(actor: Actor) -> Board:
    """What this person may recover, the longest stuck first."""
    mine = rules.visible(actor, Run, "runs.recover").select_related("agent", "owner", "title", "handed_to")
    parked = mine.filter(state=State.PARKED).order_by("state_since")
    unclear = mine.filter(UNCLEAR).order_by("state_since")
    letters = rules.visible(actor, ReceivedWebhook, "runs.recover").filter(state="dead").select_related("source").order_by("received_at")
    silent = mine.filter(state=State.STALLED).order_by("state_since")
    runs = list(parked[:PAGE])
    return Board(
        cases=tuple(_cases(runs, actor)),
        total=parked.count(),
        silent=tuple(silent[:PAGE]),
        stalled=silent.count(),
        outcomes=tuple(unclear[:PAGE]),
        unclear=unclear.count(),
        letters=tuple(letters[:PAGE]),
        dead=letters.count(),
        recovered=tuple(_recovered(actor)),
    )


def _cases(runs: Sequence[Run], actor: Actor) -> list[Case]:
    theirs = Event.objects.filter(run_month__in={run.month for run in runs}, run_id__in=[run.pk for run in runs], type__in=TOLD)
    events = theirs.order_by("seq").values_list("run_id", "seq", "body", "payloads")
    told: dict[UUID, list[Told]] = defaultdict(list)
    for run_id, seq, body, payloads in events:
        told[run_id].append((seq, orjson.loads(body), payloads))
    texts = vault.shown(UUID(pk) for lines in told.values() for _, _, payloads in lines for pk in payloads.values())
    open_ends = gates.current().open_outcomes([run.pk for run in runs])
    places = {(run.workspace_id, run.team_id) for run in runs}
    sees = {place: rules.can(actor, "runs.events", *place) for place in places}
    holders = {place: tuple(recovery.people(*place)) for place in places}
    parents = set(Run.objects.filter(parent__in=runs, state=State.SUCCEEDED).values_list("parent_id", flat=True))
    kin = {run.pk: len(compensation.undoable(run)) for run in runs if run.pk in parents}
    cases = [
        _case(run, told[run.pk], texts, open_ends.get(run.pk, 0), holders[run.workspace_id, run.team_id], kin.get(run.pk))
        for run in runs
        if told[run.pk]
    ]
    fork = {place: rules.can(actor, "runs.start", *place) for place in places}
    journals = resuming.rows([case.run.pk for case in cases])
    return [
        replace(
            case,
            sees_events=sees[case.run.workspace_id, case.run.team_id],
            may_fork=bool(case.run.workflow) and fork[case.run.workspace_id, case.run.team_id],
            after=_after(case, journals[case.run.pk]),
            steps=_earlier(case, journals[case.run.pk]),
        )
        for case in cases
    ]


def _after(case: Case, journal: Sequence[resuming.Row]) -> str:
    done = [] if case.where.step else resuming.steps(journal)
    return step_title(done[-1]) if done else ""


def _earlier(case: Case, journal: Sequence[resuming.Row]) -> tuple[tuple[str, str], ...]:
    """Where else than at the step that failed it can be tried again."""
    if case.where.reason == "undo_failed" or not any(option.choice == "retry" for option in case.options):
        return ()
    return tuple((step, step_title(step)) for step in reversed(resuming.steps(journal)))


def _case(
    run: Run, lines: Sequence[Told], texts: Mapping[UUID, Shown], unclear: int, people: tuple[User, ...], can_undo: int | None
) -> Case:
    """`can_undo`: how much can be undone, if its child runs did some of that."""
    seq, body, payloads = next(line for line in reversed(lines) if line[1]["type"] == "run.parked")
    where, detail = recovery.parked_at(seq, body), _text(texts, payloads.get("detail"))
    effects = _effects(lines, texts)
    can_undo = sum(done.can_undo and done.state != "undone" for done in effects) if can_undo is None else can_undo
    options = tuple(_option(choice, run, where, effects, can_undo) for choice in recovery.possible(run, where, can_undo, unclear))
    return Case(
        run=run,
        where=where,
        why="" if detail and where.reason == "retries_exhausted" else _sentence(PARKED.get(where.reason, where.reason)),
        detail=detail,
        trail=tuple(_trail(lines, seq)),
        effects=effects,
        unclear=unclear,
        options=options,
        people=people,
        sees_events=False,
        may_fork=False,
    )


def _option(choice: Choice, run: Run, where: Parking, effects: Sequence[Done], can_undo: int) -> Option:
    stay = sum(done.state != "undone" for done in effects)
    left = "Nothing was done outside." if not stay else f"{_things(stay)} done outside {'stays' if stay == 1 else 'stay'}."
    again = (
        "Undoes what is left, under the same keys." if where.reason == "undo_failed" else "Keeps what was completed. Uses the same keys."
    )
    says = {
        "retry": again,
        "compensate": f"Undoes {_things(can_undo)}, the last first, and ends as Failed.",
        "hand_over": "It stays stuck, and is theirs to look after.",
        "give_up": f"Ends for good. {left}",
    }
    word = WORDS[choice]
    if choice == "retry" and where.step:
        word = f"Try again from “{step_title(where.step)}”"
    return Option(choice, word, says[choice])


def step_title(step: str) -> str:
    """A step in people's words, at the head of what it says."""
    title = titles.of_step(Step(step))
    return "Do what was approved" if title == titles.APPROVED else title


def _things(number: int) -> str:
    return f"{number} {'thing' if number == 1 else 'things'}"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _effects(lines: Sequence[Told], texts: Mapping[UUID, Shown]) -> tuple[Done, ...]:
    return tuple(Done(e.seq, _text(texts, e.subject) or _title(e.tool), e.state, e.can_undo) for e in ledger.fold(lines))


def _title(tool: str) -> str:
    return TOOLS[tool].title if tool in TOOLS else tool


def _trail(lines: Sequence[Told], parked: int) -> list[Mark]:
    """The last failures before it got stuck, in words; attempts that failed in the same way are one line."""
    marks: list[Mark] = []
    for seq, body, _ in lines:
        if seq >= parked or body["type"] not in FAILURES or body["data"].get("ok", False):
            continue
        words, at = _failure(body), moment(body["at"]) or clock.now()
        if marks and marks[-1].words == words:
            marks[-1] = replace(marks[-1], seq=seq, at=at, times=marks[-1].times + 1)
        else:
            marks.append(Mark(seq, words, at, first=seq))
    return marks[-TRAIL:]


def _failure(body: Any) -> str:
    data = body["data"]
    match body["type"]:
        case "step.failed":
            return f"“{step_title(data['step'])}” failed: {TROUBLE.get(data['error'], data['error'])}"
        case "effect.undo_failed":
            return f"Could not be undone: {TROUBLE.get(data['reason'], data['reason'])}"
        case "action.unknown":
            return "The answer of the outside was lost"
        case _:
            return "The outside did not do it"


def _text(texts: Mapping[UUID, Shown], pk: str | None) -> str:
    shown = texts.get(UUID(pk)) if pk else None
    return shown.text if shown else ""


def _recovered(actor: Actor) -> list[Recovered]:
    entries = AuditEntry.objects.filter(workspace_id__in=actor.somewhere("runs.recover"), verb="recovered", at__gt=clock.now() - LATELY)
    entries = entries.exclude(data__choice="hand_over")  # it is stuck still, and says on its card who looks after it
    latest = list(entries.order_by("-at")[:RECENT])
    runs = rules.visible(actor, Run, "runs.view").select_related("title").in_bulk([entry.subject_id for entry in latest])
    ids = {entry.actor_id for entry in latest} | {entry.data.get("to", "") for entry in latest}
    names = naming.people(ids)
    found = [(entry, runs.get(UUID(entry.subject_id))) for entry in latest]
    newest = {run.pk: (entry, run) for entry, run in reversed(found) if run is not None}  # of one run what was chosen last
    return [_as_recovered(entry, run, names) for entry, run in sorted(newest.values(), key=lambda each: each[0].at, reverse=True)]


def _as_recovered(entry: AuditEntry, run: Run, names: Mapping[str, str]) -> Recovered:
    shade, word = CHOSE.get(entry.data["choice"], ("", entry.data["choice"]))
    return Recovered(run, shade, word, names.get(entry.actor_id, "Somebody"), entry.at, names.get(entry.data.get("to", ""), ""))
