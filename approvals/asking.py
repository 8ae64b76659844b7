"""Asking the agent about an action that waits. The question and its answer are events of the run; deciding goes on meanwhile.

A question is open until the agent answered it or the action was settled. There is no row of it: the log says all there is.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from access import audit
from access.ids import uuid7
from access.rules import Actor
from approvals import decisions
from approvals.errors import QuestionOpen, QuestionRefused
from approvals.models import ProposedAction
from artifacts import vault
from artifacts.models import Payload
from runs import log
from runs.engine.gates import Question
from runs.log import Text
from runs.models import Event, Run
from runs.vocabulary import QuestionAsked

MIN_QUESTION, MAX_QUESTION = 3, 2000
ERASED = "(The question was erased.)"
TYPES = ("question.asked", "question.answered")


@dataclass(frozen=True)
class Asked:
    """A question that stands. `again`: the same was asked already and is open, and this was a repeat of it."""

    question: UUID
    seq: int
    again: bool


@dataclass(frozen=True)
class Said:
    """A question and, once there is one, its answer, as the log has them. `payload` ids lead to the texts."""

    id: UUID
    seq: int
    at: datetime
    by: str  # a person's id
    payload: UUID
    action: UUID
    answer_seq: int = 0
    answered_at: datetime | None = None
    answer_payload: UUID | None = None
    cites: tuple[int, ...] = ()

    @property
    def is_open(self) -> bool:
        return not self.answer_seq


def ask(action: ProposedAction, *, by: Actor, question: str, digest: str) -> Asked:
    """Put a question to the agent that proposed this action. One at a time: QuestionOpen while another waits for its answer."""
    question = question.strip()
    if not MIN_QUESTION <= len(question) <= MAX_QUESTION:
        raise QuestionRefused(f"The question has {len(question)} characters; it needs {MIN_QUESTION} to {MAX_QUESTION}.")
    with log.holding(action.run_id) as run:
        action = decisions.locked(action.pk)
        decisions.check_open(action, by, digest)
        waiting = next((said for said in thread(action) if said.is_open), None)
        if waiting is not None:
            return _again(waiting, by, question)
        pk = uuid7()
        data = QuestionAsked(question=pk, action=action.pk)
        seq = run.append(data, actor=by, texts={"question": Text(question, "personal")}, caused_by=action.proposed_seq)
        decisions.wake(run, action, "answer")
        about = {"question": str(pk), "seq": seq}
        audit.record(by, "agent_asked", workspace_id=action.workspace_id, subject=("action", action.pk), **about)
    return Asked(pk, seq, again=False)


def open_questions(action: ProposedAction) -> list[Question]:
    """What the agent has not answered yet, oldest first, in full. Nothing once the action no longer waits."""
    waiting = [said for said in thread(action) if said.is_open] if action.state == "waiting" else []
    kept = Payload.objects.select_related("key").in_bulk([said.payload for said in waiting])
    return [Question(said.id, said.seq, _text(kept[said.payload])) for said in waiting]


def _text(kept: Payload) -> str:
    """What was asked. One that was erased waits for its answer all the same."""
    asked = vault.opened(kept)
    return ERASED if asked is None else asked.decode()


def thread(action: ProposedAction) -> tuple[Said, ...]:
    """All that was asked about this action, oldest first."""
    return threads(action.run, {action.pk: action.proposed_seq})


def threads(run: Run, actions: Mapping[UUID, int]) -> tuple[Said, ...]:
    """All that was asked about some actions of a run, oldest first. `actions`: where each was proposed. One query."""
    rows = Event.objects.filter(run_month=run.month, run_id=run.pk, type__in=TYPES, seq__gt=min(actions.values()))
    return _folded({str(pk) for pk in actions}, rows.order_by("seq").values_list("seq", "type", "body", "payloads"))


def _folded(actions: Collection[str], rows: Iterable[Sequence[Any]]) -> tuple[Said, ...]:
    known: dict[str, Said] = {}
    for seq, kind, text, payloads in rows:
        body = orjson.loads(text)
        data, at = body["data"], datetime.fromisoformat(body["at"])
        if kind == "question.asked" and data.get("action") in actions:
            about = UUID(data["action"])
            known[data["question"]] = Said(UUID(data["question"]), seq, at, body["actor"]["id"], UUID(payloads["question"]), about)
        elif kind == "question.answered" and data["question"] in known:
            told = {"answer_seq": seq, "answered_at": at, "answer_payload": UUID(payloads["answer"]), "cites": tuple(data.get("cites", ()))}
            known[data["question"]] = replace(known[data["question"]], **told)
    return tuple(known.values())


def _again(waiting: Said, by: Actor, question: str) -> Asked:
    """The first of two that ask the same: a double click, a replayed form."""
    text = _text(Payload.objects.select_related("key").get(pk=waiting.payload))
    if waiting.by == by.id and text == question:
        return Asked(waiting.id, waiting.seq, again=True)
    raise QuestionOpen(f"#{waiting.seq:,} is not answered yet.", seq=waiting.seq)
