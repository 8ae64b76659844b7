"""What a run asks people. Whoever may steer it answers, once, and it goes on."""

from dataclasses import dataclass
from datetime import date
from typing import ClassVar
from uuid import UUID

from access import audit, characters
from access.errors import BadInput, Forbidden, Refusal
from access.rules import Actor
from artifacts import vault
from runs import log
from runs.errors import RunEnded
from runs.lifecycle import State
from runs.log import Text
from runs.models import Event, Run
from runs.vocabulary import QuestionAnswered, RunQueued

MAX_ANSWER = 4000


class PeopleAnswer(Forbidden):
    """Only people answer what a run asks."""


class NotAsked(Refusal):
    """The run does not wait for an answer to this."""

    what_next: ClassVar[str] = "Nothing was changed. Somebody may have answered already: look at the run."


@dataclass(frozen=True)
class Open:
    """What a run asks now. `text` is a rendition."""

    id: UUID
    seq: int
    text: str


def asked(run: Run) -> Open | None:
    """What the run waits for an answer to; None if it does not."""
    given = run.waiting.get("question") if run.state == State.WAITING else None
    if given is None:
        return None
    found = told(run.pk, run.month, "question.asked", given)
    if found is None:
        return None
    seq, payloads = found
    pk = UUID(payloads["question"])
    return Open(UUID(given), seq, vault.shown([pk])[pk].text)


def told(run_id: UUID, month: date, type_: str, question: UUID | str) -> tuple[int, dict[str, str]] | None:
    """The event of this type about a question of a run: its number, and its payloads by role. None if there is none."""
    about = Event.objects.filter(run_month=month, run_id=run_id, type=type_, body__contains=f'"question":"{question}"')
    return about.order_by("-seq").values_list("seq", "payloads").first()


def answer(run: Run, question: UUID, text: str, *, by: Actor) -> int:
    """Answer what a run asks; gives the event that says so. NotAsked if it does not wait for that any more."""
    if by.kind != "human":
        raise PeopleAnswer
    if not characters.seen_length(text):
        raise BadInput("An answer has words in it. Nothing was changed.")
    if len(text) > MAX_ANSWER:
        raise BadInput(f"The answer has {len(text)} characters; at most {MAX_ANSWER} are kept.")
    with log.holding(run.pk) as held:
        if held.row.ended_at is not None:
            raise RunEnded(f"The run ended as {held.row.state}.", state=held.row.state, seq=held.row.seq)
        open_ = asked(held.row)
        if open_ is None or open_.id != question:
            raise NotAsked(state=held.row.state, seq=held.row.seq)
        seq = held.append(
            QuestionAnswered(question=question), actor=by, texts={"answer": Text(text.strip(), "personal")}, caused_by=open_.seq
        )
        held.move(State.QUEUED, RunQueued(reason="answer"))
        audit.record(by, "question_answered", workspace_id=held.row.workspace_id, subject=("run", held.row.pk), seq=seq)
    return seq
