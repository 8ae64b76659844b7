"""Tools of agents outside: declared in a JSON file beside the agent, never by the agent itself, and run by it, not by Handrail.

    {"tools": [{"name": "issue_voucher", "version": 1, "title": "Issue a voucher", "effect": "write", "card": "payment",
                "schema": {"type": "object", "properties": {…}, "required": […]}, …}]}

`HANDRAIL_OUTSIDE_TOOLS` names the files, and they are read at start. Deny by default: a keyword of JSON Schema that is not understood
here is refused, because what is not checked would not be exact.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NoReturn, Optional

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, create_model

from runs.engine.tools import TOOLS, Arguments, Call, Declined, Limit, Tool

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
Words = Annotated[str, StringConstraints(min_length=1, max_length=120)]
MAX_FILE, MAX_DEPTH = 256 * 1024, 6
STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)
# keyword of JSON Schema → of pydantic's Field
KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "string": {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"},
    "integer": {"minimum": "ge", "maximum": "le"},
    "number": {"minimum": "ge", "maximum": "le"},
    "boolean": {},
    "array": {"minItems": "min_length", "maxItems": "max_length"},
    "object": {},
}
ALWAYS = {"type", "title", "description", "default"}
MORE = {"string": {"enum"}, "array": {"items"}, "object": {"properties", "required", "additionalProperties"}}
PLAIN: Mapping[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool}


class BadDeclaration(ValueError):
    """This declaration of a tool can't be taken as it is."""


class LimitIn(BaseModel):
    model_config = STRICT

    currency: str
    each: str = ""
    a_day: str = ""


class Declared(BaseModel):
    """One tool, as its file declares it. `recipients` and the lists of `touches` name arguments that hold a text or a list of texts."""

    model_config = STRICT

    name: Name
    version: Annotated[int, Field(ge=1, le=10_000)]  # raise it with every change; what was approved for another one does not run
    title: Words
    effect: Literal["read", "write", "send"]
    parameters: dict[str, Any] = Field(alias="schema")
    card: Literal["generic", "email", "record", "payment", "sql", "http", "command"] = "generic"
    label: Literal["public", "internal", "personal", "secret"] = "personal"
    subject: str = ""  # one line for people: “Issue a voucher of {amount} to {customer}”
    recipients: tuple[str, ...] = Field((), strict=False)
    touches: dict[str, Annotated[tuple[str, ...], Field(strict=False)]] = {}  # kind of thing in a run's scope → arguments that name it
    target: str = ""
    credential: str = ""
    limit: LimitIn | None = None
    dialect: str = ""
    report_within: Annotated[int, Field(ge=1, le=7 * 24 * 3600)] = 60  # seconds from redeeming; then its outcome is unknown
    reads_private: bool
    reads_untrusted: bool
    sends_out: bool


class File(BaseModel):
    model_config = STRICT
    tools: tuple[Declared, ...] = Field(strict=False)


def load(files: Sequence[str | Path]) -> None:
    """Declare the tools of these files. BadDeclaration names the file and what is wrong in it."""
    for file in files:
        path = Path(file)
        try:
            text = path.read_bytes()
        except OSError as error:
            raise BadDeclaration(f"{path} can’t be read: {error.strerror}.") from None
        try:
            declare(text)
        except BadDeclaration as error:
            raise BadDeclaration(f"{path}: {error}") from None


def declare(text: bytes) -> list[Tool]:
    """The tools of one file, known from now on. BadDeclaration if one is not understood or another tool has its name."""
    try:
        if len(text) > MAX_FILE:
            raise BadDeclaration(f"It has {len(text)} bytes; at most {MAX_FILE} are read.")
        declared = File.model_validate(orjson.loads(text)).tools
    except orjson.JSONDecodeError as error:
        raise BadDeclaration(f"It is not JSON: {error}.") from None
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False, include_input=False)]
        raise BadDeclaration("; ".join(wrong)[:2000]) from None
    made = [_tool(one) for one in declared]
    for tool in made:
        if TOOLS.get(tool.name, tool).executor != "agent":
            raise BadDeclaration(f"Handrail has a tool called {tool.name} of its own.")
    if len({tool.name for tool in made}) < len(made):
        raise BadDeclaration("Two of its tools have the same name.")
    TOOLS.update({tool.name: tool for tool in made})
    return made


def _tool(one: Declared) -> Tool:
    try:
        arguments = _model(one.name, one.parameters)
    except BadDeclaration as error:
        raise BadDeclaration(f"{one.name}: {error}") from None
    named = (*one.recipients, *(name for names in one.touches.values() for name in names), *re.findall(r"{(\w*)}", one.subject))
    if missing := [name for name in named if name not in arguments.model_fields]:
        raise BadDeclaration(f"{one.name}: it has no argument called “{missing[0]}”.")
    return Tool(
        name=one.name,
        function=_not_here,
        effect=one.effect,
        title=one.title,
        arguments=arguments,
        schema_version=one.version,
        card=one.card,
        label=one.label,
        subject=(lambda given: _said(one.subject, given)) if one.subject else None,
        recipients=lambda given: _texts(given, one.recipients),
        touches=lambda given: {kind: _texts(given, names) for kind, names in one.touches.items()},
        target=one.target,
        credential=one.credential,
        limit=Limit(one.limit.currency, one.limit.each, one.limit.a_day) if one.limit else None,
        dialect=one.dialect,
        deadline=float(one.report_within),
        reads_private=one.reads_private,
        reads_untrusted=one.reads_untrusted,
        sends_out=one.sends_out or one.effect == "send",
        executor="agent",
    )


def _not_here(call: Call, **_: Any) -> NoReturn:
    raise Declined("This tool is run by an agent outside, and by nobody else.")


def _said(template: str, given: Arguments) -> str:
    """The subject, on one line of at most 300 characters."""
    text = re.sub(r"{(\w+)}", lambda found: ", ".join(_texts(given, [found[1]])) or str(given.get(found[1], "")), template)
    return " ".join(text.split())[:300]


def _texts(given: Arguments, names: Sequence[str]) -> list[str]:
    """The texts that these arguments hold; of a number, how it is written."""
    found: list[str] = []
    for name in names:
        value = given.get(name)
        found += [str(each) for each in (value if isinstance(value, list) else [value]) if each is not None]
    return found


# JSON Schema → the arguments ---------------------------------------------------------------------------------------------------------


class _Model(BaseModel):
    """The arguments of a tool outside. Strict: what is checked is what the agent sent, to the byte."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)


def _model(name: str, schema: Any, depth: int = 0) -> type[BaseModel]:
    """A model of an object's schema. An argument that may be left out has a default, so that the action says what then holds."""
    kind, _ = _kind(schema, name, depth)
    if kind != "object" or schema.get("additionalProperties", False) is not False:
        raise BadDeclaration(f"{name}: its schema is an object that takes no other properties.")
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list) or set(map(str, required)) - properties.keys():
        raise BadDeclaration(f"{name}: `required` names properties that are there.")
    fields: dict[str, Any] = {}
    for key, given in properties.items():
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,59}", key) or hasattr(BaseModel, key):
            raise BadDeclaration(f"{name}: an argument can’t be called “{key[:60]}”.")
        if key not in required and "default" not in (given if isinstance(given, dict) else {}):
            raise BadDeclaration(f"{name}.{key}: what may be left out needs a default.")
        default = ... if key in required else given["default"]
        fields[key] = (_type(f"{name}.{key}", given, depth + 1), Field(default, title=given.get("title"), validate_default=True))
    made = create_model(f"{name}_arguments", __base__=_Model, **fields)
    if all(key not in required for key in properties):
        _check_defaults(name, made)
    return made


def _check_defaults(name: str, made: type[BaseModel]) -> None:
    try:
        made()
    except ValidationError as error:
        raise BadDeclaration(f"{name}: a default does not fit: {error.errors()[0]['msg']}") from None


def _type(name: str, schema: Any, depth: int) -> Any:
    kind, may_be_null = _kind(schema, name, depth)
    more = {ours: schema[theirs] for theirs, ours in KEYWORDS[kind].items() if theirs in schema}
    if kind == "object":
        made: Any = _model(name.replace(".", "_"), schema, depth)
    elif kind == "array":
        made = list[_type(f"{name}.items", schema.get("items"), depth + 1)]  # type: ignore[misc]  it is a type, made just now
    elif "enum" in schema:
        made = _enum(name, schema["enum"])
    else:
        made = PLAIN[kind]
    try:
        made = Annotated[made, Field(**more)] if more else made
        create_model("tried", value=(made, ...))
    except Exception as error:  # whatever pydantic says of a pattern or a bound
        raise BadDeclaration(f"{name}: {type(error).__name__} in its bounds.") from None
    return Optional[made] if may_be_null else made  # noqa: UP045  made at run time


def _enum(name: str, values: Any) -> Any:
    if not isinstance(values, list) or not values or not all(isinstance(each, str) for each in values):
        raise BadDeclaration(f"{name}: an enum is a list of texts.")
    return Literal[tuple(values)]


def _kind(schema: Any, name: str, depth: int) -> tuple[str, bool]:
    """The type of a schema, and whether it may be null as well."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        raise BadDeclaration(f"{name}: its schema is an object, at most {MAX_DEPTH} deep.")
    given = schema.get("type")
    may_be_null = isinstance(given, list) and len(given) == 2 and given[1] == "null"
    kind = given[0] if may_be_null else given
    if not isinstance(kind, str) or kind not in KEYWORDS:
        raise BadDeclaration(f"{name}: its type is one of {', '.join(KEYWORDS)}, or a list of one of them and null.")
    if odd := sorted(schema.keys() - ALWAYS - KEYWORDS[kind].keys() - MORE.get(kind, set())):
        raise BadDeclaration(f"{name}: “{odd[0][:40]}” is not understood here.")
    return kind, may_be_null
