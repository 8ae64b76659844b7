"""An entry of the audit trail in words: who, what, which label, the reason given, and where."""

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.urls import NoReverseMatch, reverse

from access import naming, permissions, reasons, rules
from access.audit import VERBS, Verb
from access.errors import Refusal
from access.ids import as_uuid
from access.models import AuditEntry
from access.naming import Named

UNKNOWN = Verb("", "")
NOBODY = "Somebody not signed in"
HOW = {
    "password": "password",
    "password+totp": "password and a code",
    "password+recovery": "password and a recovery code",
    "password+passkey": "password and a passkey",
    "totp": "a code",
    "recovery": "a recovery code",
    "passkey": "passkey",
    "sso": "single sign-on",
    "demo": "a click, in the demo",
}
# the page that tells more, where an entry names nothing that has one of its own: group or subject → (words, name of the URL)
PAGES = {
    "policy": ("Policies", "approvals:policies"),
    "group": ("Groups", "approvals:groups"),
    "freeze": ("Freezes", "approvals:freezes"),
    "keys": ("Agents", "access:agents"),
    "rights": ("Roles", "access:permissions"),
    "breakglass": ("Break-glass", "access:break_glass"),
}
WHAT = {"workspace": "the workspace", "agent": "an agent", "tool": "a tool"}
_reasons: dict[str, str] = {}  # the closed words of why something was revealed; the room that asks registers them


def register_reasons(words: Mapping[str, str]) -> None:
    _reasons.update(words)


@dataclass(frozen=True)
class Told:
    """An entry as people read it. `refused`: it did not happen. `glass`: under a right that was taken by break-glass."""

    entry: AuditEntry
    at: datetime
    who: str
    what: str
    refused: bool
    times: int
    label: str
    reason: str
    given: bool  # whether the reason is somebody's; else it is why it was refused
    where: str
    url: str
    glass: bool


def told(entries: Sequence[AuditEntry]) -> list[Told]:
    """Each entry of a workspace in words. As many queries as there are kinds of things in them, and one for the reasons, however many
    entries there are. What is of another workspace, though somebody asked for it, is named by nothing but the id that they gave."""
    if not entries or entries[0].workspace_id is None:
        names = {}
    else:
        names = naming.of(entries[0].workspace_id, (pair for entry in entries for pair in _named_in(entry)))
    kept = reasons.shown(as_uuid(_kept(entry)) for entry in entries)
    said = refusals()
    return [_told(entry, names, kept, said) for entry in entries]


def _named_in(entry: AuditEntry) -> Iterable[tuple[str, str]]:
    yield entry.actor_kind, entry.actor_id
    yield entry.subject_kind, entry.subject_id
    for key, kind in (("run", "run"), ("to", "user"), ("agent", "agent"), ("asked_by", "user")):
        if isinstance(entry.data.get(key), str):
            yield kind, entry.data[key]


def _kept(entry: AuditEntry) -> str:
    """The payload of the reason that somebody wrote."""
    return str(entry.data.get("details") or entry.data.get("why") or "")


def _told(entry: AuditEntry, names: Mapping[tuple[str, str], Named], kept: Mapping[UUID, str], said: Mapping[str, str]) -> Told:
    verb, data = VERBS.get(entry.verb, UNKNOWN), entry.data
    subject = names.get((entry.subject_kind, entry.subject_id))
    reason, given = (said.get(str(data.get("why", "")), ""), False) if verb.refused else (_reason(entry, subject, kept), True)
    where, url = _where(entry, verb, subject, names)
    return Told(
        entry=entry,
        at=entry.at,
        who=_who(entry, names),
        what=_what(entry, verb, subject, names),
        refused=verb.refused,
        times=data.get("times", 1),
        label=str(data.get("label", "")),
        reason=reason,
        given=given,
        where=where,
        url=url,
        glass=bool(data.get("glass")),
    )


def _who(entry: AuditEntry, names: Mapping[tuple[str, str], Named]) -> str:
    if entry.actor_kind in ("nobody", "system"):
        return NOBODY if entry.actor_kind == "nobody" else "Handrail"
    known = names.get((entry.actor_kind, entry.actor_id))
    return known.name if known else f"{entry.actor_kind.capitalize()} {entry.actor_id[:8]}, gone"


class _Words(string.Formatter):
    """What an entry's data does not have is a dash, never an error."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        value = kwargs.get(str(key))
        return "–" if value in (None, "") else ", ".join(map(str, value)) if isinstance(value, list) else value


def _what(entry: AuditEntry, verb: Verb, subject: Named | None, names: Mapping[tuple[str, str], Named]) -> str:
    data = dict(entry.data)
    if "right" in data:
        data["right"] = _lower(rules.CAPABILITIES.get(data["right"], "")) or _asked(entry)
    if "how" in data:
        data["how"] = HOW.get(data["how"], data["how"])
    data["hidden"] = _values(data.get("hidden"))
    if data.get("what") in WHAT:
        thing = data.get("tool") or (names.get(("agent", data.get("agent") or "")) or Named("")).name
        data["what"] = f"{data['what']} {thing}" if thing else WHAT[data["what"]]
    for key, kind in (("to", "user"), ("agent", "agent")):
        if known := names.get((kind, str(data.get(key)))):
            data[key] = known.name
    data["subject"] = subject.name if subject else entry.subject_id[:8] if verb is not UNKNOWN else ""
    words = _Words().vformat(verb.words, (), data) if verb.words else entry.verb.replace("_", " ").capitalize()
    return words + _difference(data, names) if entry.subject_kind == "role" else words


def _values(hidden: object) -> str:
    count = sum(hidden.values()) if isinstance(hidden, dict) else hidden
    return "hidden values" if not isinstance(count, int) else f"{count} hidden value{'' if count == 1 else 's'}"


def _difference(data: Mapping[str, Any], names: Mapping[tuple[str, str], Named]) -> str:
    """What a change of a role gives and takes, and who asked the second admin for it; it begins with a colon, or is empty."""
    more, less = (", ".join(f"“{permissions.right(each).title}”" for each in data.get(key) or ()) for key in ("added", "removed"))
    asked = names.get(("user", str(data.get("asked_by"))))
    parts = [f"now {more}" if more else "", f"no longer {less}" if less else "", f"as {asked.name} asked" if asked else ""]
    return f": {'; '.join(filter(None, parts))}" if any(parts) else ""


def _asked(entry: AuditEntry) -> str:
    """What was asked for, where no right of the list was missing."""
    if entry.data.get("why") == "many":
        return "very many different things"
    kind = entry.subject_kind.replace("_", " ")
    return f"open this {kind}" if kind else str(entry.data.get("at", "")).rpartition(":")[2].replace("_", " ") or "this"


def _lower(words: str) -> str:
    return words[:1].lower() + words[1:]


def _reason(entry: AuditEntry, subject: Named | None, kept: Mapping[UUID, str]) -> str:
    written = kept.get(as_uuid(_kept(entry)) or UUID(int=0), "")
    chosen = _reasons.get(str(entry.data.get("reason", "")), "")
    return ": ".join(filter(None, (chosen, written))) or (subject.why if subject else "")


def refusals() -> dict[str, str]:
    """What each refusal says, by its kind: the first line of its class, as everywhere."""
    found, left = {}, [Refusal]
    while left:
        each = left.pop()
        left += each.__subclasses__()
        kind, title = each.says()
        found[kind] = title
    return found | {"forbidden": "Doesn’t have the right", "not-found": "Nothing there that they may see", "many": "Counted together"}


def _where(entry: AuditEntry, verb: Verb, subject: Named | None, names: Mapping[tuple[str, str], Named]) -> tuple[str, str]:
    if subject and subject.url:
        return subject.where, subject.url
    if run := names.get(("run", str(entry.data.get("run", "")))):
        return run.where, run.url
    if entry.subject_kind == "change" and (asked := as_uuid(entry.subject_id)):
        return "Change", reverse("access:asked", args=[asked])
    words, name = PAGES.get(entry.subject_kind) or PAGES.get(verb.group) or ("", "")
    try:
        return (words, reverse(name)) if name else ("", "")
    except NoReverseMatch:
        return "", ""
