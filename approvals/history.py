"""What a payment tool paid before, and to whom: only what Handrail itself executed counts. In memory are hashes of accounts and amounts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db.models import Q

from approvals import canonical, money
from approvals.canonical import CanonicalAction
from approvals.cards import Paid, payment
from approvals.models import Grant, Policy
from artifacts import vault
from artifacts.models import Payload
from config import clock

LOOKED_AT = 500  # the newest payments of a tool, among which those to the same account are looked for; the day counts all of its own
SHOWN = 20
KEPT = 50_000  # payments in memory


@dataclass(frozen=True)
class _Payment:
    """One payment, as far as it is kept in memory."""

    account: bytes
    amount: Decimal
    currency: str


@dataclass(frozen=True)
class History:
    """`earlier`: to the same account, the newest first, and `times` how many there are.

    `today`: what was granted or moved since midnight, or may still be, by currency.
    """

    earlier: tuple[Paid, ...]
    times: int
    today: dict[str, Decimal]


@dataclass(frozen=True)
class Day:
    """What one rule has let go since midnight: how often, and how much by currency, as far as amounts can be read."""

    times: int
    sums: dict[str, Decimal]


_known: dict[UUID, _Payment | None] = {}


def of(
    workspace_id: UUID, what: CanonicalAction, *, until: datetime | None = None, but: UUID | None = None, team: UUID | None = None
) -> History:
    """What this action's tool paid before it. `team`: of its run; then what runs of another team paid is counted, and not named.

    `but`: the action itself, if it was put up already. Two queries for 500 payments.

    `until`: as it was then, on the day of then, so that it stays the same whenever it is looked at; only what came to nothing later is
    left out. Without it, as it is now.
    """
    at = until or clock.now()
    account, midnight = _hash(what.tool, payment.account_of(what)), at.replace(hour=0, minute=0, second=0, microsecond=0)
    rows = _rows(workspace_id, what.tool, but, midnight, until)
    known = _learn([row[0] for row in rows])
    earlier: list[tuple[Paid, bool]] = []
    today: dict[str, Decimal] = {}
    for canonical_id, granted_at, redeemed_at, executed_at, run_id, ref, of_team in rows:
        paid = known.get(canonical_id)
        if paid is None:
            continue
        if granted_at >= midnight or redeemed_at is None or redeemed_at >= midnight:
            today[paid.currency] = today.get(paid.currency, Decimal()) + paid.amount
        if executed_at and executed_at <= at and paid.account == account and payment.account_of(what):
            earlier.append((Paid(executed_at, money.spell(paid.amount, paid.currency), run_id, ref), team in (None, of_team)))
    return History(tuple([each for each, shown in earlier if shown][:SHOWN]), len(earlier), today)


def granted_under(rule: Policy, *, but: UUID | None = None) -> Day:
    """What was granted or moved today under any version of this rule, or may still be. Its amounts are read only if it limits them.

    Today is the rule's: since midnight where it says that its days begin.
    """
    began = midnight(clock.now(), rule.day_zone)
    under = Grant.objects.filter(_lives(clock.now()), _of_the_day(began), action__workspace=rule.workspace_id, action__policy__key=rule.key)
    ids = list(under.exclude(action=but).values_list("action__canonical", flat=True))
    sums: dict[str, Decimal] = {}
    known = _learn(ids) if rule.a_day_amount else {}
    for pk in ids:
        if (paid := known.get(pk)) is not None:
            sums[paid.currency] = sums.get(paid.currency, Decimal()) + abs(paid.amount)
    return Day(len(ids), sums)


def midnight(at: datetime, zone: str) -> datetime:
    """The last one before `at`, in that zone; UTC's if there is no such zone here."""
    try:
        here = ZoneInfo(zone)
    except (ValueError, ZoneInfoNotFoundError, OSError):
        here = ZoneInfo("UTC")
    return at.astimezone(here).replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)


_Row = tuple[UUID, datetime, datetime | None, datetime | None, UUID, str, UUID | None]


def _rows(workspace_id: UUID, tool: str, but: UUID | None, midnight: datetime, until: datetime | None) -> list[_Row]:
    """Grants that paid, or still may: one that is void, lapsed or came to nothing moves no money. All of the day, and the newest."""
    lives = _lives(until or clock.now())
    if until is not None:  # not for now: another machine's clock may be a little ahead of this one's, and what it granted counts
        lives = (lives | Q(redeemed_at=None, voided_at__gt=until, expires_at__gt=until)) & Q(granted_at__lte=until)
    live = Grant.objects.filter(lives, action__workspace=workspace_id, action__tool=tool).exclude(action=but).order_by("-granted_at")
    rows = live.filter(_of_the_day(midnight) | Q(pk__in=live.values("pk")[:LOOKED_AT]))
    fields = ("action__canonical", "granted_at", "redeemed_at", "executed_at", "action__run_id", "action__run__ref", "action__run__team")
    return list(rows.values_list(*fields))


def _lives(at: datetime) -> Q:
    return (
        Q(outcome="executed")
        | Q(outcome="unknown")
        | Q(redeemed_at__isnull=False, outcome="none")
        | Q(redeemed_at=None, voided_at=None, expires_at__gt=at)
    )


def _of_the_day(midnight: datetime) -> Q:
    return Q(granted_at__gte=midnight) | Q(redeemed_at=None) | Q(redeemed_at__gte=midnight)


def _learn(ids: Sequence[UUID]) -> dict[UUID, _Payment | None]:
    """The payments behind these payloads. Another thread may empty the memory at any moment, so what is needed now is taken out first."""
    remembered = _known.copy()
    missing = [pk for pk in ids if pk not in remembered]
    read = {}
    for at in range(0, len(missing), LOOKED_AT):  # a database takes only so many values in one question
        kept = Payload.objects.select_related("key").filter(pk__in=missing[at : at + LOOKED_AT])
        read |= {each.pk: _read(each) for each in kept}
    if len(_known) > KEPT:
        _known.clear()
    _known.update(read)
    return remembered | read


def _read(kept: Payload) -> _Payment | None:
    try:
        what = canonical.parse(vault.opened(kept) or b"")
    except canonical.NotCanonical:
        return None
    amount = next((money.read(what.arguments[name]) for name in payment.AMOUNT if name in what.arguments), None)
    if amount is None:
        return None
    return _Payment(_hash(what.tool, payment.account_of(what)), amount, str(payment.currency_of(what)))


def _hash(tool: str, account: str) -> bytes:
    return sha256(f"{tool}\0{account}".encode("utf-8", "replace")).digest()
