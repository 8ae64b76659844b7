"""The way to the outside. Approvals registers itself at start-up; with no gate registered every effect is refused.

The engine asks, a gate answers with one of the words below. Every method that takes `held` writes in the caller's transaction.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Protocol
from uuid import UUID

from django.db.models import QuerySet

from access.ids import as_uuid
from access.rules import Actor
from artifacts.models import Payload
from runs.engine.tools import File, Looked, Tool
from runs.log import Held


@dataclass(frozen=True)
class Attached:
    """A file on its way into a proposal."""

    name: str
    media_type: str
    payload: Payload


@dataclass(frozen=True)
class Proposal:
    """What the engine wants to do, exactly."""

    tool: Tool
    arguments: Mapping[str, Any]
    step: str
    nonce: str
    attachments: Sequence[Attached] = ()
    reason: str = ""
    looked: Looked | None = None


@dataclass(frozen=True)
class Answer:
    approved: ClassVar[bool] = False
    action_id: UUID
    tool: str
    seq: int  # the event that says so


@dataclass(frozen=True)
class Waiting(Answer):
    until: datetime
    needs: int


@dataclass(frozen=True)
class Approved(Answer):
    approved: ClassVar[bool] = True


@dataclass(frozen=True)
class Recallable(Answer):
    """Approved, but whoever may decide can take that back until then: so it is no answer yet."""

    until: datetime


@dataclass(frozen=True)
class Rejected(Answer):
    reason: str


@dataclass(frozen=True)
class Expired(Answer):
    pass


@dataclass(frozen=True)
class Withdrawn(Answer):
    pass


@dataclass(frozen=True)
class Revised(Answer):
    """A person asked for another plan: what was proposed is withdrawn, or was not even put up (`action_id` is None then)."""

    action_id: UUID | None  # type: ignore[assignment]
    note: str


@dataclass(frozen=True)
class Refused:
    """Not even a person may allow this now. No action was made."""

    approved: ClassVar[bool] = False
    reason: str  # unregistered | never | out_of_scope | frozen
    detail: str


@dataclass(frozen=True)
class Frozen:
    """Nothing of this tool is granted or redeemed for this run now. `until`: the freeze ends then by itself."""

    tool: str
    reason: Payload
    until: datetime | None


@dataclass(frozen=True)
class Redemption:
    """A grant that was taken, and what it allows to run. `fresh` is False if an earlier worker took it and its outcome is not known."""

    action_id: UUID
    grant_id: UUID
    digest: str
    tool: str
    arguments: Mapping[str, Any]
    attachments: Sequence[File]
    redeemed_at: datetime
    fresh: bool
    key: UUID | None = None  # another run of the lineage did the same before: the key under which the outside knows it

    @property
    def known_as(self) -> str:
        """The idempotency key of the call."""
        return str(self.key or self.grant_id)


@dataclass(frozen=True)
class Spent:
    """This action's grant is settled: `outcome` is executed or failed, `result` what the tool returned."""

    outcome: str
    result: Any
    seq: int


@dataclass(frozen=True)
class NotGranted:
    """Nothing to redeem: expired, voided, or for another digest. `lapsed`: it was approved, and nobody used that in time."""

    why: str
    lapsed: bool = False


@dataclass(frozen=True)
class Question:
    """What a reviewer asked about an action that waits."""

    id: UUID
    seq: int  # the event that says so
    text: str


@dataclass(frozen=True)
class Group:
    """Some of those who may decide: of an action about which they are asked, nobody else may. `approved`: who did already, of `needs`."""

    name: str
    people: frozenset[UUID]
    approved: frozenset[UUID] = frozenset()
    needs: int = 1


@dataclass(frozen=True)
class LooseEnd:
    """An action that was allowed and is not settled. `text` is a rendition; `state` is approved (not begun), begun or unknown."""

    action_id: UUID
    text: str
    effect: str
    state: str


class Gate(Protocol):
    """What the engine asks of whoever lets actions through. `approvals/gate.py` says of each what it does."""

    def proposed(self, action_id: UUID) -> Proposal: ...
    def propose(self, held: Held, proposal: Proposal) -> Answer | Refused | Frozen: ...
    def answer(self, action_id: UUID) -> Answer: ...
    def groups(self, action_ids: Iterable[UUID]) -> Mapping[UUID, Group]: ...
    def questions(self, action_id: UUID) -> list[Question]: ...
    def deliver(self, held: Held, action_id: UUID) -> None: ...
    def frozen(self, held: Held, tool: str) -> Frozen | None: ...
    def withdraw(self, held: Held, action_id: UUID, *, by: Actor, reason: str) -> Answer: ...
    def withdrawn(self, run_id: UUID) -> int: ...
    def withdraw_waiting(self, held: Held, *, by: Actor, note: Payload | None) -> int: ...
    def tell_agent_outside(self, held: Held) -> None: ...
    def redeem(self, held: Held, action_id: UUID, *, token: int, worker: str) -> Redemption | Spent | NotGranted | Frozen: ...
    def executed(self, held: Held, redemption: Redemption, *, result: Any, label: str, found: bool) -> int: ...
    def failed(self, held: Held, redemption: Redemption, *, detail: str) -> int: ...
    def unknown(self, held: Held, redemption: Redemption, *, reason: str) -> int: ...
    def ask_what_became(self, held: Held, action_id: UUID) -> int: ...
    def in_flight(self, run_id: UUID) -> list[UUID]: ...
    def loose_ends(self, run_ids: Sequence[UUID]) -> Mapping[UUID, list[LooseEnd]]: ...
    def unknown_in(self) -> QuerySet[Any]: ...
    def withdraw_open(self, held: Held, *, reason: str) -> int: ...


_gate: Gate | None = None


def register(gate: Gate) -> None:
    global _gate
    _gate = gate


def current() -> Gate:
    """The registered gate. NoGate if there is none: no effect without one."""
    if _gate is None:
        raise NoGate
    return _gate


def group_of(action_id: object) -> Group | None:
    """Who alone decides on an action; None where all who may decide do, or it is no action."""
    pk = as_uuid(str(action_id))
    return current().groups([pk]).get(pk) if pk else None


def groups_of(action_ids: Iterable[object]) -> Mapping[str, Group]:
    """The same of many, by their ids as text."""
    wanted = [pk for each in action_ids if (pk := as_uuid(str(each)))]
    return {str(pk): group for pk, group in current().groups(wanted).items()} if wanted else {}


class NoGate(RuntimeError):
    """No gate is registered, so nothing may leave."""
