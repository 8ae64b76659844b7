"""The warnings that inspection left on an action, as cards draw them; the words are inspection's."""

from collections.abc import Iterable, Mapping
from typing import Any

from approvals import inspection
from approvals.cards import Warn

_ORDER = {severity: place for place, severity in enumerate(inspection.SEVERITIES)}


def read(stored: Iterable[Mapping[str, Any]]) -> list[Warn]:
    """The stored warnings as cards draw them, the gravest first."""
    return sorted((_warn(each) for each in stored), key=lambda warn: _ORDER.get(warn.severity, 1))


def _warn(stored: Mapping[str, Any]) -> Warn:
    code = str(stored.get("code", ""))
    said = inspection.words(code, stored.get("params", {}))
    return Warn(code, str(stored.get("severity", "warn")), str(stored.get("path", "")), said.strong, said.text, said.tag, said.ack)
