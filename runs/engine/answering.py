"""Answering what a reviewer asks about a proposed action, while it waits.

The answer comes from a model with what the workflow gives it, and nothing else: it reads no more than was read already, uses no tool, and
cannot change the action. It is told in the log, once, and leaves no step behind, so that a replay does not depend on who asked what.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

from access.rules import Actor
from runs.engine import effects, gates, models
from runs.engine.gates import Question
from runs.engine.lease import Claim
from runs.engine.models import Completion
from runs.engine.walk import hold
from runs.log import Held, Text
from runs.vocabulary import QuestionAnswered

logger = logging.getLogger(__name__)
DEADLINE = 60.0  # seconds for one answer
SILENT = "I answer no questions in this workflow. Decide by what is on the page, or reject with your question as the reason."
FAILED = "I could not answer: my model gave no answer. Ask again, or decide by what is on the page."


@dataclass(frozen=True)
class Answers:
    """How questions about an action are answered: the prompt, and what it is given beside the question.

    The model gives {"answer": text, "cites": [sequence numbers of events that say so]}.
    """

    prompt: str
    known: Mapping[str, Any] = field(default_factory=dict)


def answer_open(lease: Claim, agent: Actor, action_id: UUID, answers: Answers | None) -> None:
    """Answer each question about this action that is open."""
    for question in gates.current().questions(action_id):
        begun = time.monotonic()
        completion = _asked(lease, question, answers)
        with hold(lease) as run:
            caused_by = _tell_call(run, agent, question, answers, completion, begun) if answers and completion else None
            _tell(run, agent, question, answers, completion, caused_by)


def _asked(lease: Claim, question: Question, answers: Answers | None) -> Completion | None:
    """What the model gives; None if there is no model to ask, or it gave nothing that can be read."""
    if answers is None:
        return None
    try:
        with lease.calling(DEADLINE):
            given = models.ask(answers.prompt, {"question": question.text, **answers.known})
    except Exception as error:  # whatever a model's code raises is no answer, and must not park a run that waits for people
        logger.exception("no answer", extra={"run": str(lease.run_id), "error": type(error).__name__})
        return None
    return given if isinstance(given.values.get("answer"), str) and given.values["answer"].strip() else None


def _tell_call(run: Held, agent: Actor, question: Question, answers: Answers, completion: Completion, begun: float) -> int:
    data = completion.told(answers.prompt, ms=effects.ms_since(begun))
    given = Text(orjson.dumps({"question": question.text}), "personal", "application/json")
    got = Text(orjson.dumps(dict(completion.values)), "personal", "application/json")
    return run.append(data, actor=agent, texts={"input": given, "output": got}, caused_by=question.seq)


def _tell(
    run: Held, agent: Actor, question: Question, answers: Answers | None, completion: Completion | None, caused_by: int | None
) -> None:
    text = completion.values["answer"] if completion else FAILED if answers else SILENT
    named = completion.values.get("cites", ()) if completion else ()
    cites = tuple(dict.fromkeys(seq for seq in named if isinstance(seq, int) and 0 < seq <= run.row.seq))
    data = QuestionAnswered(question=question.id, cites=cites)
    run.append(data, actor=agent, texts={"answer": Text(text, "personal")}, caused_by=caused_by or question.seq)
