"""Who was written to before. Only what Handrail itself sent counts; in memory are hashes of addresses, and the names of their hosts."""

from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import parseaddr
from hashlib import sha256
from uuid import UUID

from approvals import canonical
from approvals.models import Grant
from artifacts import vault
from artifacts.models import Payload

LOOKED_AT = 500  # the newest messages of a workspace; older ones do not count


@dataclass(frozen=True)
class _Message:
    """Whom one message went to."""

    addresses: frozenset[bytes]
    domains: frozenset[str]


_known: dict[UUID, _Message] = {}


def written_to(workspace_id: UUID, addresses: Iterable[str]) -> dict[str, int]:
    """How many of the newest messages went to each address, by address in lower case. Two queries at most."""
    wanted = {bare(each): _hash(bare(each)) for each in addresses if bare(each)}
    if not wanted:
        return {}
    messages = _sent(workspace_id)
    return {address: sum(key in message.addresses for message in messages) for address, key in wanted.items()}


def domains(workspace_id: UUID) -> frozenset[str]:
    """The hosts of everybody whom the newest messages went to. Two queries at most."""
    return frozenset().union(*(message.domains for message in _sent(workspace_id)))


def bare(text: str) -> str:
    """The address in “Name <address>”, in lower case; empty if there is none."""
    return parseaddr(text)[1].lower()


def _sent(workspace_id: UUID) -> list[_Message]:
    """The newest messages. Another thread may empty the memory at any moment, so what is needed now is taken out first."""
    rows = Grant.objects.filter(action__workspace=workspace_id, action__effect="send", outcome="executed").order_by("-executed_at")
    found, remembered = list(rows.values_list("action__canonical", flat=True)[:LOOKED_AT]), _known.copy()
    missing = [pk for pk in found if pk not in remembered]
    read = {kept.pk: _recipients(kept) for kept in Payload.objects.select_related("key").filter(pk__in=missing)}
    if len(_known) > 20 * LOOKED_AT:
        _known.clear()
    _known.update(read)
    everything = remembered | read
    return [everything[pk] for pk in found if pk in everything]


def _recipients(payload: Payload) -> _Message:
    try:
        to = [bare(each) for each in canonical.parse(vault.opened(payload) or b"").recipients]
    except canonical.NotCanonical:
        to = []
    return _Message(frozenset(_hash(each) for each in to), frozenset(each.rpartition("@")[2] for each in to if "@" in each))


def _hash(address: str) -> bytes:
    return sha256(address.encode("utf-8", "replace")).digest()
