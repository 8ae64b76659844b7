"""What counts as a reason: as `access.reasons` has it, and longer where a decision is explained."""

from access import reasons
from access.reasons import MIN_REASON

__all__ = ["MAX_REASON", "MIN_REASON", "trouble"]
MAX_REASON = 4000  # characters


def trouble(reason: str, most: int = MAX_REASON) -> str:
    """What is wrong with a reason, as a sentence; empty if nothing is."""
    return reasons.trouble(reason, most)
