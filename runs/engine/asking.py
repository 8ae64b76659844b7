"""Asking people something, and waiting for the answer: the run spends nothing meanwhile, and a replay gets the same answer."""

from datetime import date
from uuid import UUID, uuid5

from artifacts import vault
from artifacts.models import Payload
from runs import questions
from runs.engine.outcomes import Waits
from runs.engine.values import read_back
from runs.engine.walk import Walk
from runs.log import Text
from runs.models import Run
from runs.vocabulary import QuestionAsked, RunWaiting


def ask(walk: Walk, question: str) -> str:
    """The answer of whoever may steer the run, in their own words."""
    step = walk.journal.next_step("ask")
    entry = walk.journal.find(step)
    if entry is not None and entry.state == "done":
        return str(read_back(entry))
    asked = uuid5(walk.id, step)
    if entry is None:
        with walk.hold() as run:
            entry = walk.journal.begin(run, step, kind="ask", given=question)
            run.append(QuestionAsked(question=asked), actor=walk.agent, texts={"question": Text(question)})
    answered = answer_to(walk.id, walk.month, asked)
    if answered is None:
        raise Waits(RunWaiting(on="answer", question=asked))
    seq, payload = answered
    said = (vault.opened(payload) or b"").decode()
    with walk.hold() as run:
        walk.journal.end(run, entry, said, label=payload.label, seq=seq)
        walk.completed(run, step, None, 0)
    return said


def answer_to(run_id: UUID, month: date, question: UUID) -> tuple[int, Payload] | None:
    """The event that answers a question of a run, with what it says; None while nobody has."""
    told = questions.told(run_id, month, "question.answered", question)
    return (told[0], Payload.objects.select_related("key").get(pk=told[1]["answer"])) if told else None


def answered(run: Run, question: UUID) -> bool:
    return answer_to(run.pk, run.month, question) is not None
