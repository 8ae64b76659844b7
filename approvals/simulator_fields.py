"""The arguments of a tool as fields, where all that it needs are texts, whole numbers and lists of texts. Others are typed as JSON."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runs.engine.tools import Tool

OURS = "arg-"  # before the names of fields, so that no argument takes the name of another field of the form
EMPTY: Mapping[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}
_WHOLE = re.compile(r"-?[0-9]{1,15}", re.ASCII)


@dataclass(frozen=True)
class Field:
    """One argument. `kind`: text, whole or list."""

    name: str
    title: str
    kind: str
    value: str = ""


def blank(tool: Tool) -> list[Field]:
    """What the tool needs, to be filled in. None of it, if one of it is more than a text, a number or a list of texts."""
    schema = tool.arguments.model_json_schema()
    found = [_field(name, schema["properties"][name]) for name in schema.get("required", ())]
    return [each for each in found if each is not None] if all(found) else []


def filled(tool: Tool, sent: Mapping[str, str]) -> list[Field]:
    """The same as it was sent; nothing if it was not sent as fields."""
    if not any(name.startswith(OURS) for name in sent):
        return []
    return [Field(each.name, each.title, each.kind, sent.get(OURS + each.name, "")) for each in blank(tool)]


def arguments(fields: list[Field]) -> dict[str, Any]:
    """What was typed, as arguments. What fits no number stays a text, and the tool says so."""
    return {each.name: _read(each) for each in fields}


def as_json(tool: Tool) -> str:
    """What the tool needs, to be filled in as JSON."""
    schema = tool.arguments.model_json_schema()
    needed = {name: EMPTY.get(schema["properties"][name].get("type", ""), "") for name in schema.get("required", ())}
    return json.dumps(needed, indent=2, ensure_ascii=False)


def _field(name: str, schema: Mapping[str, Any]) -> Field | None:
    kind = {"string": "text", "integer": "whole", "array": "list"}.get(schema.get("type", ""), "")
    if not kind or (kind == "list" and schema.get("items", {}).get("type") != "string"):
        return None
    return Field(name, schema.get("title") or name.replace("_", " ").capitalize(), kind)


def _read(field: Field) -> Any:
    typed = field.value.strip()
    if field.kind == "list":
        return [each.strip() for each in re.split(r"[,\n]", typed) if each.strip()]
    return int(typed) if field.kind == "whole" and _WHOLE.fullmatch(typed) else field.value.replace("\r\n", "\n")
