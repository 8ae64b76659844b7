"""The page of stuck runs: each with what happened, what was already done outside, and what can be chosen. A fixed number of queries."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from runs import recovered, recovery, trails
from runs.engine import compensation, gates, ledger, resuming
from runs.engine.gates import LooseEnd
from runs.engine.ledger import Told
from runs.engine.reads import HOPELESS, STOPPED
from runs.engine.tools import TOOLS
from runs.lifecycle import TERMINAL, State
from runs.models import Event, ReceivedWebhook, Run
from runs.recovery import Choice, Parking
from runs.story.course import PARKED
from runs.trails import Mark, step_title

TOLD_BY_DETAIL = ("retries_exhausted", "error")  # reasons whose detail says the same, and more
ASKED = Q(state=State.WAITING, waiting__on="outcome", waiting__until__isnull=True)  # somebody must say what happened
PAGE = 20
HANDED = "deadletter.resolved"
RAISED = re.compile(r"The workflow’s code failed \((\w+)\)\.")  # all that is told of it
STATUS = re.compile(r" ?\((HTTP \d{3})\)", re.ASCII)  # with which the outside refused
QUOTING = ("retries_exhausted", "undo_failed")  # reasons whose detail quotes what a tool said
TOLD = tuple({"run.parked", HANDED, *trails.FAILURES, *ledger.TOLD})
NAMED = ("action.proposed", "action.redeemed")  # they say of which tool a step is that does what was approved
WORDS: Mapping[str, str] = {
    "retry": "Try again",
    "compensate": "Undo everything",
    "hand_over": "Hand to a person",
    "give_up": "Give up",
}


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
    do: str  # on the button: where it begins is said beside it, and may be chosen
    off: bool = False  # not before what is not known is known


@dataclass(frozen=True)
class Quoted:
    """What is told in our words, then in those of a tool, then in ours again: renditions."""

    before: str
    words: str = ""
    after: str = ""


@dataclass(frozen=True)
class Case:
    """One stuck run."""

    run: Run
    where: Parking
    why: str  # "" where the detail says it
    detail: str  # a rendition
    trail: tuple[Mark, ...]
    effects: tuple[Done, ...]
    unclear: tuple[LooseEnd, ...]  # what has no known outcome
    options: tuple[Option, ...]
    people: tuple[User, ...]
    sees_events: bool
    may_fork: bool
    after: str = ""  # what it had completed last, if no step of its own failed
    broke: str = ""  # the step in which the workflow's own code failed
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
    def offered(self) -> list[Choice]:
        """What can be chosen now."""
        return [option.choice for option in self.options if not option.off]

    @property
    def proposed(self) -> Choice:
        """What is chosen before anybody chose: not what would fail again by what the run itself tells."""
        hopeless = (self.again or self.quoted.after in HOPELESS) and self.run.handed_to is None
        return "hand_over" if hopeless and "hand_over" in self.offered else self.offered[0]

    @property
    def may_give_up(self) -> bool:
        return "give_up" in self.offered

    @property
    def raised(self) -> str:
        """What the workflow's own code raised, a name of its language."""
        found = RAISED.fullmatch(self.detail) if self.where.reason == "error" else None
        return found[1] if found else ""

    @property
    def raw(self) -> str:
        """What of it only somebody who knows the code or the outside can read."""
        return self.raised or ", ".join(dict.fromkeys(STATUS.findall(self.detail)))

    @property
    def said(self) -> str:
        """What happened without that: a rendition."""
        return STATUS.sub("", self.detail)

    @property
    def quoted(self) -> Quoted:
        """The same with the words of a tool apart: they may be anybody's, and read like ours."""
        if self.where.reason not in QUOTING or self.where.step.rpartition("/")[2].startswith("model."):  # of a model all words are ours
            return Quoted(self.said)
        known = [tool for tool in TOOLS.values() if self.said.startswith(f"{tool.title}: ")]
        tool = max(known, key=lambda each: len(each.title), default=None)
        title = tool.title if tool else self.said.partition(": ")[0]
        words = self.said[len(title) + 2 :].strip()
        if not words:
            return Quoted(self.said)
        # of a read we say ourselves why it is not tried once more; of anything else no end is ours
        after = next((each for each in STOPPED.values() if tool and tool.effect == "read" and words.endswith(f" {each}")), "")
        return Quoted(f"{title}:", words.removesuffix(after).strip(), after)

    @property
    def all_undone(self) -> str:
        """What can become of all that was done outside, where one sentence says it of each."""
        if any(done.state != "done" for done in self.effects) or len({done.can_undo for done in self.effects}) != 1:
            return ""
        can, many = self.effects[0].can_undo, len(self.effects) > 1
        return f"{'All of it can' if many and can else 'None of it can' if many else 'Can' if can else 'Can’t'} be undone."

    @property
    def approved_then(self) -> str:
        """What becomes of something that is approved, by what is chosen."""
        last = {"compensate": "undone", "give_up": "given up"}
        ends = " or ".join(last[choice] for choice in self.offered if choice in last)
        again = "can go out if this is tried again" if "retry" in self.offered else ""
        told = ", ".join(words for words in (again, f"is withdrawn if this is {ends}" if ends else "") if words)
        return f"{told[:1].upper()}{told[1:]}." if told else ""

    @property
    def stuck_for(self) -> str:
        seconds = int((clock.now() - self.run.state_since).total_seconds())
        return f"Stuck for {spell(seconds)}" if seconds >= 60 else "Stuck just now"

    @property
    def safe(self) -> bool:
        """Whether it can be tried again without looking closer."""
        return not self.unclear and "retry" in self.offered


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


def board(actor: Actor, also: object = None) -> Board:
    """What this person may recover, the longest stuck first, and the run `also` however many are stuck for longer."""
    mine = rules.visible(actor, Run, "runs.recover").select_related("agent", "owner", "title", "handed_to")
    parked = mine.filter(state=State.PARKED).order_by("state_since")
    unclear = mine.filter(_unclear()).order_by("state_since")
    outcomes = list(unclear[:PAGE])
    lost = gates.current().loose_ends([run.pk for run in outcomes])
    letters = rules.visible(actor, ReceivedWebhook, "runs.recover").filter(state="dead").select_related("source").order_by("received_at")
    silent = mine.filter(~_unclear(), state=State.STALLED).order_by("state_since")
    runs = list(parked[:PAGE])
    total = parked.count() if len(runs) == PAGE else len(runs)
    if also is not None and all(run.pk != also for run in runs):
        runs += parked.filter(pk=also)
    return Board(
        cases=tuple(_cases(runs, actor)),
        total=total,  # so that it is what is shown, whatever got stuck meanwhile
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
    known = {run_id: trails.actions(lines) for run_id, lines in told.items()}
    told = {run_id: [line for line in lines if line[1]["type"] in TOLD] for run_id, lines in told.items()}
    named = (pk for each in known.values() for pk in each.subjects.values())
    texts = vault.shown(UUID(pk) for pk in (*named, *(pk for lines in told.values() for _, _, said in lines for pk in said.values())))
    ends = gates.current().loose_ends([run.pk for run in runs])
    places = {(run.workspace_id, run.team_id) for run in runs}
    sees = {place: rules.can(actor, "runs.events", *place) for place in places}
    holders = {place: tuple(recovery.people(*place)) for place in places}
    parents = set(Run.objects.filter(parent__in=runs, state=State.SUCCEEDED).values_list("parent_id", flat=True))
    kin = {run.pk: len(compensation.undoable(run)) for run in runs if run.pk in parents}
    cases = [
        _case(run, told[run.pk], texts, known[run.pk], ends.get(run.pk, []), holders[run.workspace_id, run.team_id], kin.get(run.pk))
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
            trail=trails.led(case.trail, case.where, journals[case.run.pk], known[case.run.pk]),
            **_broken(case, trails.broke_in(case.where, journals[case.run.pk])),
        )
        for case in cases
    ]


def _after(case: Case, journal: Sequence[resuming.Row]) -> str:
    done = [] if case.where.step else resuming.steps(journal)
    return step_title(done[-1]) if done else ""


def _broken(case: Case, step: str) -> dict[str, Any]:
    """What to say of a case whose workflow's own code failed, and in which step."""
    again = f"{WORDS['retry']} from “{step}”"
    return {
        "broke": step,
        "options": tuple(replace(each, word=again) if step and each.choice == "retry" else each for each in case.options),
    }


def _earlier(case: Case, journal: Sequence[resuming.Row]) -> tuple[tuple[str, str], ...]:
    """Where else than at the step that failed it can be tried again."""
    if case.where.reason == "undo_failed" or "retry" not in case.offered:
        return ()
    return tuple((step, step_title(step)) for step in reversed(resuming.steps(journal)))


def _case(
    run: Run,
    lines: Sequence[Told],
    texts: Mapping[UUID, Shown],
    known: trails.Actions,
    ends: Sequence[LooseEnd],
    people: tuple[User, ...],
    can_undo: int | None,
) -> Case:
    """`can_undo`: how much can be undone, if its child runs did some of that."""
    seq, body, payloads = next(line for line in reversed(lines) if line[1]["type"] == "run.parked")
    where, detail = recovery.parked_at(seq, body), _text(texts, payloads.get("detail"))
    effects, unclear = _effects(lines, texts), sum(end.state != "approved" for end in ends)
    can_undo = sum(done.can_undo and done.state != "undone" for done in effects) if can_undo is None else can_undo
    title = step_title(where.step, known.redeemed_before(seq)) if where.step else ""
    now = recovery.possible(run, where, can_undo, unclear)
    options = tuple(
        _option(choice, title, where, effects, can_undo, unclear, choice in now) for choice in recovery.possible(run, where, can_undo, 0)
    )
    handed = next(((body, payloads) for at, body, payloads in reversed(lines) if at > seq and body["type"] == HANDED), None)
    people = tuple(person for person in people if person.pk != run.handed_to_id)
    if not people and len(now) > 1:  # nobody else could look after it
        options = tuple(option for option in options if option.choice != "hand_over")
    return Case(
        run=run,
        again=_again(lines, texts),
        handed_by=handed[0]["actor"]["id"] if handed and run.handed_to_id else "",
        handed_why=_text(texts, handed[1].get("note")) if handed and run.handed_to_id else "",
        where=where,
        why="" if detail and where.reason in TOLD_BY_DETAIL else _sentence(PARKED.get(where.reason, where.reason)),
        detail=detail,
        trail=trails.failures(lines, seq, known, partial(_text, texts)),
        effects=effects,
        unclear=tuple(end for end in ends if end.state != "approved"),
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


def _option(choice: Choice, title: str, where: Parking, effects: Sequence[Done], can_undo: int, unclear: int, possible: bool) -> Option:
    stay = sum(done.state != "undone" for done in effects)
    left = "Nothing was done outside." if not stay else f"{_things(stay)} done outside {'stays' if stay == 1 else 'stay'}."
    kept = f"Keeps the {stay} that {'is' if stay == 1 else 'are'} done." if stay else "Keeps what was completed."
    says = {
        "retry": "Undoes what is left, under the same keys."
        if where.reason == "undo_failed"
        else f"{kept} First looks up {'the one that is' if unclear == 1 else f'the {unclear} that are'} not known."
        if unclear
        else kept,
        "compensate": f"Undoes {_things(can_undo)}, the last first, and ends as Failed.",
        "hand_over": "It stays stuck, and is theirs to look after.",
        "give_up": f"Ends for good. {left}",
    }
    word = f"{WORDS[choice]} from “{title}”" if choice == "retry" and title else WORDS[choice]
    said = says[choice] if possible else "Not while an outcome is unknown."
    return Option(choice, word, said, WORDS[choice], off=not possible)


def _things(number: int) -> str:
    return f"{number} {'thing' if number == 1 else 'things'}"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _effects(lines: Sequence[Told], texts: Mapping[UUID, Shown]) -> tuple[Done, ...]:
    return tuple(Done(e.seq, _text(texts, e.subject) or _title(e.tool), e.state, e.can_undo) for e in ledger.fold(lines))


def _title(tool: str) -> str:
    return TOOLS[tool].title if tool in TOOLS else tool


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
