"""What an inspection is given and what it gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from runs.engine.tools import Limit, Looked

NOTE, WARN, LOCK = "note", "warn", "lock"
SEVERITIES = (LOCK, WARN, NOTE)


@dataclass(frozen=True)
class Facts:
    """What is known here. `known_addresses` None: nobody knows, so first times are not told. `contents`: attachments by commitment.

    `known_domains`: of everybody ever written to, for finding names that pass for theirs; those of `known_addresses` count as well.
    `kind` is the card's, and `dialect` the language of its SQL. `looked` is what its tool found out, if it looks anything up; `limit`
    that of a payment, `paid_today` what the tool moved since midnight in the limit's currency, `paid_before` how often to this account.
    """

    internal_domains: frozenset[str] = frozenset()
    known_addresses: frozenset[str] | None = None
    contents: Mapping[str, bytes] = field(default_factory=dict)
    executed_same: int = 0
    rejected_same: int = 0
    known_domains: frozenset[str] = frozenset()
    kind: str = ""
    dialect: str = ""
    looked: Looked | None = None
    limit: Limit | None = None
    paid_today: Decimal = Decimal()
    paid_before: int = 0


@dataclass(frozen=True)
class Warning:
    """One thing to know before deciding."""

    code: str
    severity: str
    path: str
    params: Mapping[str, str | int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As it is stored. A NUL, which PostgreSQL keeps in no text, has its sign in its place."""
        params = {name: _storable(value) if isinstance(value, str) else value for name, value in self.params.items()}
        return {"code": self.code, "severity": self.severity, "path": _storable(self.path), "params": params}


def _storable(text: str) -> str:
    return text.replace("\0", "\N{SYMBOL FOR NULL}")
