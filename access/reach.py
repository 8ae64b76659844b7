"""How much there is of what a right opens: rooms to the left say how many runs, actions and artifacts a workspace has.

They register at start-up, for this room knows none of them. Used to say what a change of a role would open to how many people.
"""

from collections.abc import Callable
from uuid import UUID

Count = Callable[[UUID], int]  # of a workspace
_counts: dict[str, tuple[Count, str, str]] = {}


def register(what: str, count: Count, one: str, many: str) -> None:
    _counts[what] = count, one, many


def said(workspace_id: UUID, wanted: set[str]) -> dict[str, str]:
    """“61 runs”, by what it is; without its number where nobody counts it. One query each."""
    return {what: _said(workspace_id, what) for what in wanted}


def _said(workspace_id: UUID, what: str) -> str:
    if what not in _counts:
        return what
    count, one, many = _counts[what]
    found = count(workspace_id)
    return f"{found:,} {one if found == 1 else many}"
