"""The warnings that inspection left on an action, in words. A closed list: a code that is not in it is named as it is."""

from collections.abc import Iterable, Mapping
from typing import Any

from approvals.cards import Warn

_ORDER = {"lock": 0, "warn": 1, "info": 2}


def read(stored: Iterable[Mapping[str, Any]]) -> list[Warn]:
    """The stored warnings as cards draw them, the gravest first."""
    return sorted((_warn(each) for each in stored), key=lambda warn: _ORDER.get(warn.severity, 1))


def _warn(stored: Mapping[str, Any]) -> Warn:
    code = str(stored.get("code", ""))
    return Warn(code, str(stored.get("severity", "warn")), str(stored.get("path", "")), code.replace("_", " ").capitalize() + ".")
