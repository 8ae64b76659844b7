"""What was asked about an action and what the agent answered, as people see it. Made of renditions only, like all of the course."""

import re
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from access import naming
from access.rules import Actor
from approvals import asking
from approvals.asking import Said
from approvals.models import ProposedAction
from artifacts import vault

EVENT = re.compile(r"(?<![\w&#/])#(\d{1,9})\b")


@dataclass(frozen=True)
class Exchange:
    """One question and its answer. `closed`: the action was settled before the agent answered."""

    id: UUID
    seq: int
    at: datetime
    name: str
    me: bool
    question: str
    answer: str = ""
    answer_seq: int = 0
    answered_at: datetime | None = None
    cites: tuple[int, ...] = ()
    closed: bool = False

    @property
    def named(self) -> tuple[int, ...]:
        """The events that the answer names: those that the agent cites, and those that stand in its text."""
        written = (int(seq) for seq in EVENT.findall(self.answer))
        return tuple(dict.fromkeys((*self.cites, *(seq for seq in written if 0 < seq < self.answer_seq))))

    @property
    def is_open(self) -> bool:
        return not self.answer_seq and not self.closed


def exchanges(action: ProposedAction, actor: Actor, *, waits: bool) -> tuple[Exchange, ...]:
    """All that was asked about this action, oldest first. Opens no vault."""
    told = asking.thread(action)
    if not told:
        return ()
    texts = vault.shown(pk for said in told for pk in (said.payload, said.answer_payload) if pk)
    names = naming.people({said.by for said in told})
    return tuple(_exchange(said, texts, names, actor, waits) for said in told)


def _exchange(said: Said, texts: dict[UUID, vault.Shown], names: dict[str, str], actor: Actor, waits: bool) -> Exchange:
    def words(pk: UUID | None) -> str:
        return "" if pk is None else texts[pk].text

    return Exchange(
        said.id,
        said.seq,
        said.at,
        names.get(said.by, "Somebody"),
        said.by == actor.id,
        words(said.payload),
        words(said.answer_payload),
        said.answer_seq,
        said.answered_at,
        said.cites,
        closed=said.is_open and not waits,
    )
