"""What the cards of all kinds share: how one argument becomes a part of a card, and what is signed beside the arguments. Pure."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from email.utils import parseaddr
from typing import Any

from approvals.canonical import ABSENT, Attachment, CanonicalAction, pointer
from approvals.cards.parts import Address, Attached, Field, Line, Setting, Warn

LONG = 160
IN_WORDS = re.compile(r"(?!(?:the|this|our|your) )(?:[a-z]+(?: [a-z]+)+|[A-Z]{2,}(?: [a-z]+)*)")


def take(setting: Setting, left: dict[str, Any], names: Sequence[str], *, title: str, bold: bool = False) -> Field | None:
    name = next((each for each in names if each in left), None)
    return replace(field_of(setting, name, left.pop(name)), title=title, bold=bold) if name else None


def rest(setting: Setting, left: Mapping[str, Any]) -> Iterable[Field]:
    """In the order of the tool’s schema; what it does not know comes last."""
    known = [name for name in setting.properties or () if name in left]
    for name in dict.fromkeys((*known, *left)):
        yield field_of(setting, name, left[name])


def field_of(setting: Setting, name: str, value: Any) -> Field:
    """One argument, by the title that the tool’s schema gives it. What the schema does not know is marked."""
    path = pointer("arguments", name)
    schema = setting.properties.get(name) if setting.properties is not None else None
    warns = list(warns_at(setting, path))
    if schema is None and setting.properties is not None:
        strong, text = "Not in the tool’s schema.", "It has no title or description. It is sent as it is."
        warns.append(Warn("unknown_argument", "warn", path, strong, text))
    title = str((schema or {}).get("title") or "")
    told = setting.looked.facts.get(title, "") if setting.looked and title else ""
    return Field(path, title, name, value, shape(value), warns=tuple(warns), known=schema is not None, mono=schema is None, told=told)


def shape(value: Any) -> str:
    """How a JSON value is drawn: empty, flag, number, text, long, list (of short texts and numbers), or json."""
    if value is None or value == "" or value == [] or value == {}:
        return "empty"
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "long" if "\n" in value or len(value) > LONG else "text"
    if isinstance(value, list) and all(isinstance(each, str | int | float) and not isinstance(each, bool) for each in value):
        return "list" if all(len(str(each)) <= LONG and "\n" not in str(each) and each != "" for each in value) else "json"
    return "json"


def empty_word(value: Any) -> str:
    """What an empty value is called. Text without a character, no items, no value at all: three different things."""
    if value is None:
        return "No value"
    return {"": "Empty"}.get(value, "") if isinstance(value, str) else "Nothing in it"


def attachments(action: CanonicalAction, setting: Setting) -> tuple[Attached, ...]:
    return tuple(attached(i, each, setting) for i, each in enumerate(action.attachments))


def attached(index: int, file: Attachment, setting: Setting) -> Attached:
    path = pointer("attachments", index)
    label, preview = setting.files.get(index, ("", None))
    return Attached(index, path, file.name, file.media_type, file.size, file.commitment, label, preview, warns_at(setting, path))


def warns_at(setting: Setting, *paths: str) -> tuple[Warn, ...]:
    """The warnings about what stands at these places or inside of it."""
    return tuple(warn for warn in setting.warns if any(warn.at == path or warn.at.startswith(path + "/") for path in paths))


def how(action: CanonicalAction) -> tuple[Line, ...]:
    """What is signed as well, beside the arguments."""
    return (
        Line("/tool", "Tool", f"{action.tool}, schema {action.tool_schema}", ("/tool_schema",)),
        Line("/credential", "Credential", action.credential or "None", is_secret=bool(action.credential)),
        Line("/nonce", "Nonce", action.nonce),
    )


def sum_of(*parts: tuple[int, str]) -> str:
    """“2 recipients, 1 attachment”; what there is none of is left out."""
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in parts if n)


def address_in(text: str) -> str:
    """The address in “Name <address>”; the text itself if it cannot be read so."""
    return parseaddr(text)[1] or text


def pretty(value: Any) -> str:
    """A JSON value over several lines, in the action's own spelling: nothing is escaped that need not be."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def reaching(action: CanonicalAction, setting: Setting, fields: list[Field]) -> list[Field]:
    """All fields, and one more if the action reaches somebody whom no field names."""
    named = {at for each in fields for at in each.covers}
    others = [(pointer("recipients", i), to) for i, to in enumerate(action.recipients) if pointer("recipients", i) not in named]
    if not others:
        return fields
    addresses = tuple(address(to, at, setting) for at, to in others)
    covers = tuple(at for at, _ in others)
    return [*fields, Field("/recipients", "Also reaches", "recipients", None, "addresses", addresses, covers=covers)]


def address(text: str, path: str, setting: Setting, recipients: Sequence[str] = ()) -> Address:
    bare = address_in(text)
    inside = is_inside(bare.rpartition("@")[2].lower(), setting.inside)  # what cannot be read as an address is not inside
    places = [path, *(pointer("recipients", i) for i, to in enumerate(recipients) if address_in(to) == bare)]
    outside = bool(text) and not inside and ("@" in bare or not setting.masked)  # of a hidden address nothing is told
    return Address(text, path, outside, setting.sent.get(bare.lower()), warns_at(setting, *places))


def is_inside(domain: str, own: Sequence[str]) -> bool:
    return any(domain == each.lower() or domain.endswith("." + each.lower()) for each in own)


def outside(target: str) -> str:
    """“the help desk”: with an article if it is called in words, and not by a name or an address."""
    return f"the {target}" if IN_WORDS.fullmatch(target) else target


def running(action: CanonicalAction) -> Line:
    at = f" at {outside(action.target)}" if action.target else ""
    if action.executor == "agent":
        return Line("/executor", "Run", f"By the agent{at}; Handrail cannot see the call.", ("/target",))
    return Line("/executor", "Run", f"On approval, only once, by Handrail{at}.", ("/target",))


def run_and_how(action: CanonicalAction) -> dict[str, tuple[Line, ...]]:
    """Handrail runs it as it runs everything: that is folded. That an agent does, unseen, stands in the open."""
    if action.executor == "agent":
        return {"lines": (running(action),), "folded": how(action)}
    return {"lines": (), "folded": (running(action), *how(action))}


def apart(setting: Setting, name: str, given: list[Any] | Mapping[str, Any]) -> list[Field]:
    """Each value of one argument by itself, without a title. The first stands for the whole argument as well, with its warnings."""
    whole = pointer("arguments", name)
    fields: list[Field] = []
    for place, value in given.items() if isinstance(given, Mapping) else enumerate(given):
        path = pointer("arguments", name, place)
        warns = warns_at(setting, path)
        if not fields:
            warns += tuple(warn for warn in field_of(setting, name, given).warns if warn.at == whole)
        fields.append(Field(path, "", "", value, shape(value), warns=warns, mono=True, covers=() if fields else (whole,)))
    return fields


def said(value: Any, *, joined: bool = False) -> str:
    """A value in words, as one of two that are compared. `joined`: texts of a list by commas, not as JSON."""
    if value is ABSENT:
        return "Not there"
    match shape(value):
        case "empty":
            return empty_word(value)
        case "flag":
            return "Yes" if value else "No"
        case "list" if joined and all(isinstance(each, str) for each in value):
            return ", ".join(value)
    return value if isinstance(value, str) else pretty(value)
