"""Answering what a reviewer asks about a proposed action, while it waits.

The answer comes from a model with what the workflow gives it, and nothing else: it reads no more than was read already, uses no tool, and
cannot change the action. It is told in the log, once, and leaves no step behind, so that a replay does not depend on who asked what.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from access.rules import Actor
from runs.engine import budget, calls, gates, models
from runs.engine.gates import Question
from runs.engine.lease import Claim
from runs.engine.models import Tried
from runs.engine.walk import hold
from runs.log import ENGINE, Held, Text
from runs.vocabulary import QuestionAnswered

logger = logging.getLogger(__name__)
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
        made = _asked(lease, question, answers)
        with hold(lease) as run:
            told = [_tell_call(run, agent, question, tried) for tried in made]
            values = made[-1].values if made else None
            _tell(run, agent, question, answers, values if _says_something(values) else None, told[-1] if told else None)


def _asked(lease: Claim, question: Question, answers: Answers | None) -> list[Tried]:
    """The calls that were made; none if there is no model to ask."""
    made: list[Tried] = []
    if answers is None:
        return made
    try:
        for tried in models.tries(lease, answers.prompt, {"question": question.text, **answers.known}):
            made += [tried] if tried.called else []
    except Exception as error:  # whatever a model's code raises is no answer, and must not park a run that waits for people
        logger.exception("no answer", extra={"run": str(lease.run_id), "error": type(error).__name__})
    return made


def _says_something(values: Mapping[str, Any] | None) -> bool:
    return values is not None and isinstance(values.get("answer"), str) and bool(values["answer"].strip())


def _tell_call(run: Held, agent: Actor, question: Question, tried: Tried) -> int:
    seq = calls.tell(run, agent, tried, caused_by=question.seq)
    budget.use(run, tokens=tried.tokens, cost_micro=tried.cost_micro)
    if tried.switched:
        run.append(tried.switched, actor=ENGINE)
    return seq


def _tell(
    run: Held, agent: Actor, question: Question, answers: Answers | None, values: Mapping[str, Any] | None, caused_by: int | None
) -> None:
    text = values["answer"] if values else FAILED if answers else SILENT
    named = values.get("cites", ()) if values else ()
    cites = tuple(dict.fromkeys(seq for seq in named if isinstance(seq, int) and 0 < seq <= run.row.seq))
    data = QuestionAnswered(question=question.id, cites=cites)
    run.append(data, actor=agent, texts={"answer": Text(text, "personal")}, caused_by=caused_by or question.seq)
