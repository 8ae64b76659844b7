"""What a payment tool paid before, and to whom: only what Handrail itself executed counts. In memory are hashes of accounts and amounts."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from uuid import UUID

from django.db.models import Q

from approvals import canonical, money
from approvals.canonical import CanonicalAction
from approvals.cards import Paid, payment
from approvals.models import Grant
from artifacts import vault
from artifacts.models import Payload
from config import clock

LOOKED_AT = 500  # the newest payments of a tool; older ones do not count
SHOWN = 20


@dataclass(frozen=True)
class _Payment:
    """One payment, as far as it is kept in memory."""

    account: bytes
    amount: Decimal
    currency: str


@dataclass(frozen=True)
class History:
    """`earlier`: to the same account, the newest first. `today`: what was granted or moved since midnight, or may still be, by currency."""

    earlier: tuple[Paid, ...]
    today: dict[str, Decimal]


_known: dict[UUID, _Payment | None] = {}


def of(workspace_id: UUID, what: CanonicalAction, *, but: UUID | None = None) -> History:
    """What this action's tool paid before it. `but`: the action itself, if it was put up already. Two queries at most."""
    rows = _rows(workspace_id, what.tool, but)
    _learn(row[0] for row in rows)
    account, midnight = _hash(what.tool, payment.account_of(what)), clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    earlier: list[Paid] = []
    today: dict[str, Decimal] = {}
    for canonical_id, granted_at, redeemed_at, executed_at, run_id, ref in rows:
        paid = _known.get(canonical_id)
        if paid is None:
            continue
        if granted_at >= midnight or redeemed_at is None or redeemed_at >= midnight:
            today[paid.currency] = today.get(paid.currency, Decimal()) + paid.amount
        if executed_at and paid.account == account and payment.account_of(what):
            earlier.append(Paid(executed_at, money.spell(paid.amount, paid.currency), run_id, ref))
    return History(tuple(earlier[:SHOWN]), today)


def _rows(workspace_id: UUID, tool: str, but: UUID | None) -> list[tuple[UUID, datetime, datetime | None, datetime | None, UUID, str]]:
    """Grants that paid, or still may: one that is void, lapsed or came to nothing moves no money."""
    lives = Q(outcome="executed") | Q(outcome="unknown") | Q(redeemed_at__isnull=False, outcome="none")
    lives |= Q(redeemed_at=None, voided_at=None, expires_at__gt=clock.now())
    rows = Grant.objects.filter(lives, action__workspace=workspace_id, action__tool=tool).exclude(action=but).order_by("-granted_at")
    fields = ("action__canonical", "granted_at", "redeemed_at", "executed_at", "action__run_id", "action__run__ref")
    return list(rows.values_list(*fields)[:LOOKED_AT])


def _learn(ids: Iterable[UUID]) -> None:
    if len(_known) > 20 * LOOKED_AT:
        _known.clear()
    missing = [pk for pk in ids if pk not in _known]
    for kept in Payload.objects.select_related("key").filter(pk__in=missing) if missing else ():
        _known[kept.pk] = _read(kept)


def _read(kept: Payload) -> _Payment | None:
    try:
        what = canonical.parse(vault.open_bytes(kept))
    except (vault.Erased, canonical.NotCanonical):
        return None
    amount = next((money.read(what.arguments[name]) for name in payment.AMOUNT if name in what.arguments), None)
    if amount is None:
        return None
    return _Payment(_hash(what.tool, payment.account_of(what)), amount, str(payment.currency_of(what)))


def _hash(tool: str, account: str) -> bytes:
    return sha256(f"{tool}\0{account}".encode("utf-8", "replace")).digest()
