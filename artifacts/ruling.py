"""Which rules of redaction hold in a workspace, and their version. A rendition keeps the version it was made under; when there is a later
one it is made anew (`artifacts.rerendering`).
"""

from collections.abc import Callable
from uuid import UUID

from artifacts.redaction import DEFAULT, Policy

BUILT_IN = 4  # raised by one whenever what detectors or the pipeline hide changes
_EACH = 1_000_000  # versions of a workspace's own policy within one of ours

# who keeps workspaces' own policies registers here: the version (from 1) and the policy, or None for one that has none
kept: list[Callable[[UUID], tuple[int, Policy] | None]] = []


def built_in(version: int) -> int:
    """Which rules of Handrail's own a version is of."""
    return version // _EACH


def rules(workspace_id: UUID) -> tuple[int, Policy]:
    """The version, which only grows, and the policy to redact with."""
    for of in kept:
        found = of(workspace_id)
        if found is not None:
            return BUILT_IN * _EACH + found[0], found[1]
    return BUILT_IN * _EACH, DEFAULT
