"""Seven questions about a run, answered from its log alone, each with the events that say so.

`answers(lines)` is pure; `runs.reading.answers(run)` reads the log for it. The same answers stand on the page and in the
API, so that a pipeline can gate on them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from access import wording
from runs.lifecycle import ENDINGS
from runs.story.shapes import At, Part, Rich
from runs.story.wire import Line, read
from runs.vocabulary import LOOK_UP

PASS, FAIL, NOT_YET, NOT_ASKED = "pass", "fail", "not_yet", "not_asked"
ACTS = ("step.started", "tool.started", "model.called", "action.proposed", "action.redeemed")
STOPS = ("run.failed", "run.parked", "deadletter.entered")


@dataclass(frozen=True)
class Answer:
    """One question's answer. `state`: pass, fail, not_yet (it may still come), not_asked (it does not apply and never will)."""

    key: str
    question: str
    state: str
    why: Rich
    seqs: tuple[int, ...] = ()


@dataclass
class Log:
    """The events of a run, sorted by what the questions ask for."""

    lines: list[Line]
    loose: tuple[str, ...] = ()  # artifacts that are there and that no event names
    by_type: dict[str, list[Line]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for line in self.lines:
            self.by_type.setdefault(line.type, []).append(line)

    def of(self, *types: str) -> list[Line]:
        found = [line for each in types for line in self.by_type.get(each, ())]
        return sorted(found, key=lambda line: line.seq) if len(types) > 1 else found

    def first(self, *types: str) -> Line | None:
        return next(iter(self.of(*types)), None)

    @property
    def head(self) -> int:
        return self.lines[-1].seq if self.lines else 0

    @property
    def ended(self) -> Line | None:
        return self.first(*ENDINGS)


def answers(lines: Iterable[Mapping[str, Any]], upto: int | None = None, loose: Iterable[str] = ()) -> tuple[Answer, ...]:
    """The seven answers from parsed wire lines, from event 1, in order. `loose`: names of artifacts of the run that no event made."""
    log = Log([read(line) for line in lines if upto is None or line["seq"] <= upto], tuple(loose))
    return tuple(
        Answer(key, question, state, why, tuple(part.seq for part in why if isinstance(part, At)))
        for key, question, ask in QUESTIONS
        for state, why in [ask(log)]
    )


def summary(given: Iterable[Answer]) -> str:
    """“4 pass, 1 fails, 2 not yet”; what does not apply is not counted."""
    states = [answer.state for answer in given]
    passed, failed, open_ = states.count(PASS), states.count(FAIL), states.count(NOT_YET)
    parts = (
        f"{passed} pass" if passed != 1 else "1 passes",
        f"{failed} fail" if failed > 1 else "1 fails" if failed else "",
        f"{open_} not yet" if open_ else "",
    )
    return ", ".join(part for part in parts if part)


def as_json(answer: Answer) -> dict[str, Any]:
    """An answer for the API and the command line."""
    why = "".join(f"#{part.seq}" if isinstance(part, At) else str(part) for part in answer.why)
    return {"key": answer.key, "question": answer.question, "answer": answer.state, "why": why, "events": list(answer.seqs)}


Told = tuple[str, Rich]


def _owner(log: Log) -> Told:
    created = log.first("run.created")
    if created is None:
        return NOT_YET, ("Nothing is recorded yet",)
    missing = [word for word in ("owner", "agent", "agent_version") if not created.word(word)]
    if missing or not created.text("scope"):
        return FAIL, (At(created.seq), f" records no {(missing or ['scope'])[0].replace('_', ' ')}")
    own = {created.word("owner")} | ({created.who.id} if created.who.kind == "human" else set())
    if selfish := next((line for line in log.of("action.decided") if line.who.id in own), None):
        return FAIL, (At(selfish.seq), " was decided by the run’s own owner or starter")
    if loose := _ungranted(log):
        return FAIL, (At(loose.seq), " ran without a grant for what it did")
    stopped = [line for line in log.of("block.raised") if line.word("reason") in ("out_of_scope", "unregistered", "never")]
    if stopped:
        return PASS, ("Recorded at ", At(created.seq), "; what went beyond was refused at ", *_listed(stopped))
    return PASS, ("Recorded at ", At(created.seq), "; nothing went beyond")


def _ungranted(log: Log) -> Line | None:
    """The first action that was redeemed or executed with another digest than was granted before, or with none granted."""
    granted: dict[str, str] = {}
    for line in log.of("action.granted", "action.redeemed", "action.executed"):
        if line.type == "action.granted":
            granted[line.word("action")] = line.word("digest")
        elif granted.get(line.word("action")) != line.word("digest"):
            return line
    return None


def _planned(log: Log) -> Told:
    plan, act = log.first("plan.set"), log.first(*ACTS)
    if plan is None and act is None:
        return (NOT_ASKED, ("It ended before it planned or acted",)) if log.ended else (NOT_YET, ("No plan yet, and nothing done",))
    if plan is None:
        return FAIL, ("It acted at ", *_at(act), " without a plan")
    if act is None:
        return PASS, ("Plan ", At(plan.seq), "; it has not acted yet")
    if plan.seq < act.seq:
        return PASS, ("Plan ", At(plan.seq), " came before ", At(act.seq))
    return FAIL, ("It acted at ", At(act.seq), " before its plan ", At(plan.seq))


def _at(line: Line | None) -> Rich:
    return (At(line.seq),) if line else ()


def _artifacts(log: Log) -> Told:
    made = log.of("artifact.created")
    if log.loose:
        return FAIL, (f"{', '.join(log.loose[:3])}: no event made it",)
    claims = log.of("milestone.reached", "report.published", "question.answered")
    if wrong := next((line for line in claims if any(not 0 < seq < line.seq for seq in line.seqs("cites"))), None):
        return FAIL, (At(wrong.seq), " cites an event that was not recorded before it")
    again = _repeated(made)
    if again:
        return FAIL, (At(again.seq), " claims an artifact that another event had made")
    if not made:
        return (NOT_ASKED, ("It made none",)) if log.ended else (NOT_YET, ("None yet",))
    return PASS, (f"{len(made)} of {len(made)}: ", *_listed(made))


def _repeated(made: list[Line]) -> Line | None:
    seen: set[str] = set()
    for line in made:
        if line.word("artifact") in seen:
            return line
        seen.add(line.word("artifact"))
    return None


def _failures(log: Log) -> Told:
    failed = _failed(log)
    if not failed:
        return (PASS, ("Nothing has failed",)) if log.ended else (NOT_YET, ("Nothing has failed so far",))
    bare = [line for line in failed if not _covered(log, line)]
    if not bare:
        kept = log.of("checkpoint.saved")
        return PASS, (f"{_counted(failed)}, ", *(("the last checkpoint is ", At(kept[-1].seq)) if kept else ("nothing was lost",)))
    if log.ended or log.lines[-1].type in ("run.parked", "run.stalled"):
        return FAIL, (At(bare[0].seq), " failed, and what was done before it is in no checkpoint")
    return NOT_YET, (At(bare[0].seq), " failed; no checkpoint after it so far")


def _failed(log: Log) -> list[Line]:
    """What failed, attempt by attempt, as the timeline counts it; a call without an answer is one too.

    A tool that failed within a step is told again as the step's failure, and counts once; so does a run that stops for it. A look-up is
    none: it is Handrail's own. A worker that was lost is one.
    """
    steps = {line.word("step") for line in log.of("step.failed")}
    ended = [line for line in log.of("tool.ended") if not line.word("call").startswith(LOOK_UP)]
    tools = [line for line in ended if line.word("outcome") in ("error", "unknown") and line.word("step") not in steps]
    models = [line for line in log.of("model.called") if line.word("error") and line.word("step") not in steps]
    lost = [line for line in log.of("run.resumed") if line.word("reason") == "lease_expired"]
    attempts = [*log.of("step.failed"), *tools, *models, *lost]
    stops = [line for line in log.of(*STOPS) if not _told_before(log, line, attempts)]
    return sorted([*attempts, *stops], key=lambda line: line.seq)


def _told_before(log: Log, stop: Line, attempts: list[Line]) -> bool:
    """Whether the run stopped for what had failed before: its last attempt, or what it was stuck with until it was given up."""
    if stop.type == "run.parked":
        return stop.word("reason") == "retries_exhausted" and any(line.seq < stop.seq for line in attempts)
    return stop.word("reason") in ("given_up", "retries_exhausted") and any(line.seq < stop.seq for line in log.of("run.parked"))


def _counted(failed: list[Line]) -> str:
    """“4 failed and 1 got no answer”."""
    unheard = sum(line.word("outcome") == "unknown" for line in failed)
    workers = sum(line.type == "run.resumed" for line in failed)
    told = {"failed": len(failed) - unheard - workers, "got no answer": unheard}
    parts = [f"{number} {words}" for words, number in told.items() if number]
    parts += [f"{workers} {'worker was' if workers == 1 else 'workers were'} lost"] if workers else []
    return wording.listed(parts)


def _covered(log: Log, failure: Line) -> bool:
    """A failure is covered if a checkpoint follows it, or if all that was completed before it is in a checkpoint."""
    kept = [line.seq for line in log.of("checkpoint.saved")]
    work = [line.seq for line in log.of("step.completed", "effect.done") if line.seq < failure.seq]
    work += [line.seq for line in log.of("tool.ended") if line.word("outcome") == "ok" and line.seq < failure.seq]
    if kept and kept[-1] > failure.seq:
        return True
    return not work or any(max(work) < seq < failure.seq for seq in kept)


def _signals(log: Log) -> Told:
    sent = log.of("signal.received")
    if not sent:
        return (NOT_ASKED, ("Nobody sent one",)) if log.ended else (NOT_YET, ("Nobody has sent one",))
    settled = {line.word("signal"): line for line in log.of("signal.applied", "signal.refused", "run.cancelled")}
    loose = [line for line in sent if line.word("signal") not in settled]
    if loose:
        state = FAIL if log.ended else NOT_YET
        return state, (At(loose[0].seq), " led to nothing" if log.ended else " is not taken up yet")
    parts: list[Part] = []
    for line in sent:
        end = settled[line.word("signal")]
        parts += [", " if parts else "", At(line.seq), " was refused at " if end.type == "signal.refused" else " led to ", At(end.seq)]
    return PASS, tuple(part for part in parts if part != "")


def _cancelled(log: Log) -> Told:
    asked, endings = log.first("run.cancel_requested"), log.of(*ENDINGS)
    if asked is None:
        return (NOT_ASKED, ("Nobody cancelled",)) if endings else (NOT_YET, ("Nobody has cancelled",))
    if not endings:
        return NOT_YET, ("Asked for at ", At(asked.seq), ", not ended yet")
    if len(endings) > 1 or endings[0].seq != log.head:
        return FAIL, ("Asked for at ", At(asked.seq), ", but the log goes on after ", At(endings[0].seq))
    word = endings[0].type.removeprefix("run.")
    return PASS, (At(asked.seq), f" ended as {word}, once, at ", At(endings[0].seq))


def _report(log: Log) -> Told:
    reports = log.of("report.published")
    if not reports:
        ended = log.ended
        if ended is None:
            return NOT_YET, ("No report yet",)
        return (FAIL, ("It ended without one",)) if ended.type == "run.succeeded" else (NOT_ASKED, ("It ended before its report",))
    last = reports[-1]
    cites = last.seqs("cites")
    if not cites:
        return FAIL, (At(last.seq), " cites nothing")
    if any(not 0 < seq < last.seq for seq in cites):
        return FAIL, (At(last.seq), " cites an event that was not recorded before it")
    return PASS, (At(last.seq), " cites ", *_links(cites))


def _listed(lines: list[Line]) -> Iterator[Part]:
    return _links(tuple(line.seq for line in lines))


def _links(seqs: tuple[int, ...]) -> Iterator[Part]:
    """#1, #2, #3 and 4 more."""
    for index, seq in enumerate(seqs[:4]):
        if index:
            yield " and " if index == len(seqs) - 1 else ", "
        yield At(seq)
    if len(seqs) > 4:
        yield f" and {len(seqs) - 4} more"


QUESTIONS: tuple[tuple[str, str, Callable[[Log], Told]], ...] = (
    ("owner", "Right owner, permissions and scope", _owner),
    ("plan", "Planned before it acted", _planned),
    ("artifacts", "Every artifact comes from a recorded event", _artifacts),
    ("failures", "Every failure left a checkpoint", _failures),
    ("signals", "Signals changed the run", _signals),
    ("cancel", "Cancelling ended in one final state", _cancelled),
    ("report", "The final report cites evidence", _report),
)
