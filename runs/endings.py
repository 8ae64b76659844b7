"""How a run ends that an agent outside worked on. The agent claims it, and cites the log for its claim; Handrail vouches only for that.

Runs of a workflow end by themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from access.errors import Forbidden
from access.rules import Actor
from runs import log, steps
from runs.engine import gates
from runs.errors import InvalidEvent, RunEnded
from runs.lifecycle import State
from runs.log import Held, Text
from runs.models import Run
from runs.vocabulary import ReportPublished, RunFailed, RunSucceeded

Outcome = Literal["succeeded", "failed"]


class EndsByItself(Forbidden):
    """This run ends by itself."""

    what_next: ClassVar[str] = "Handrail runs its workflow. To stop it, send the signal “cancel”."


@dataclass(frozen=True)
class Report:
    """What the agent says was done, and the events that show it."""

    title: str
    body: str = ""
    cites: Sequence[int] = ()


def end(
    run: Run, outcome: Outcome, *, by: Actor, report: Report | None = None, detail: str = "", token: int | None = None
) -> dict[str, Any]:
    """End the run, and give its ending: state and seq. The same outcome again gives the ending that stands; RunEnded if another does.

    Success needs a report that cites what shows it, and NotAtWork refuses it while people have paused the run; a failure may say in
    `detail` what went wrong. InFlight while something that was sent out has no known outcome.
    """
    if run.workflow:
        raise EndsByItself
    with log.holding(run.pk) as held:
        if held.row.ended_at is None:
            steps.fence(held, token)
            steps.heard(held)
            if held.row.state == State.PAUSED and outcome == "succeeded":
                raise steps.NotAtWork("People have paused the run.", state=held.row.state)
            _check(held, outcome, report)
            _end(held, outcome, by, report, detail)
        elif held.row.state != outcome:
            raise RunEnded(f"The run ended as {held.row.state}.", state=held.row.state, seq=held.row.seq)
        return {"state": held.row.state, "seq": held.row.seq, "at": held.row.ended_at}


def _check(held: Held, outcome: Outcome, report: Report | None) -> None:
    if outcome == "succeeded" and not (report and report.cites):
        raise InvalidEvent("To have succeeded is a claim: give a report that cites the events which show it.")
    wrong = [seq for seq in report.cites if not 1 <= seq <= held.row.seq] if report else []
    if wrong:
        raise InvalidEvent(f"#{wrong[0]} can't be cited: the log is at #{held.row.seq}.", head=held.row.seq)


def _end(held: Held, outcome: Outcome, by: Actor, report: Report | None, detail: str) -> None:
    seq = _publish(held, report, by) if report else None
    gates.current().withdraw_open(held, reason="ended")
    steps.goes_on(held)
    if outcome == "succeeded":
        held.move(State.SUCCEEDED, RunSucceeded(report=seq), actor=by)
    else:
        held.move(State.FAILED, RunFailed(reason="agent"), actor=by, texts={"detail": Text(detail)} if detail else {})


def _publish(held: Held, report: Report, by: Actor) -> int:
    texts = {"title": Text(report.title)} | ({"body": Text(report.body)} if report.body else {})
    return held.append(ReportPublished(cites=tuple(report.cites)), actor=by, texts=texts)
