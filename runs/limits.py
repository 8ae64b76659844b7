"""The limits of a run as people write them: euros, minutes, tokens and steps."""

from collections.abc import Mapping

FIELDS = {"cost_micro": "cost", "working_ms": "minutes", "tokens": "tokens", "steps": "steps"}  # limit → its field in a form


def shown(limits: Mapping[str, int]) -> dict[str, str]:
    """Limits by field; empty where there is none."""
    cost, working = limits.get("cost_micro"), limits.get("working_ms")
    return {
        "cost": f"{cost / 1_000_000:.2f}" if cost else "",
        "minutes": str(max(working // 60_000, 1)) if working else "",
        "tokens": str(limits.get("tokens", "")),
        "steps": str(limits.get("steps", "")),
    }
