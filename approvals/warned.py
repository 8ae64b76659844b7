"""The warnings that inspection left on an action, as cards draw them; the words are inspection's."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from approvals import inspection
from approvals.cards import Warn

# drawn as tags beside the address, by what is known now and not when the action was proposed
AS_TAGS = frozenset({"external_recipient", "first_time_recipient"})
_ORDER = {severity: place for place, severity in enumerate(inspection.SEVERITIES)}


def read(stored: Iterable[Mapping[str, Any]]) -> list[Warn]:
    """The stored warnings as cards draw them, the gravest first."""
    return sorted((_warn(each) for each in stored if each.get("code") not in AS_TAGS), key=lambda warn: _ORDER.get(warn.severity, 1))


def unticked(stored: Iterable[Mapping[str, Any]], acks: Collection[str]) -> list[Warn]:
    """The warnings that ask for a tick and are not among the ticked codes."""
    return [warn for warn in read(stored) if warn.ack and warn.code not in acks]


def _warn(stored: Mapping[str, Any]) -> Warn:
    code = str(stored.get("code", ""))
    params = stored.get("params", {})
    said = inspection.words(code, params)
    odd_at = params["at"] if isinstance(params.get("at"), int) and "instead" in params else -1
    return Warn(code, str(stored.get("severity", "warn")), str(stored.get("path", "")), said.strong, said.text, said.tag, said.ack, odd_at)
