"""Tools: what a workflow may do to the world, declared once.

    @tool(effect="send", title="Send the reply", card="email", lookup=find_by_message_id, deadline=5)
    def send_email(call: Call, to: list[str], subject: str, body: str) -> dict: ...

The arguments after `call` become a pydantic model. An effect that is `write` or `send` always passes the gate.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from artifacts.redaction import beginning
from runs.engine.retry import Retry

MAX_SAID = 4000  # characters of what a tool says when it did not do its work
Effect = Literal["read", "write", "send"]
Arguments = Mapping[str, Any]


class ToolError(Exception):
    """A tool did not do its work. `kind` is a Trouble of the vocabulary; `happened` is False only if the outside surely did nothing."""

    kind: str = "error"
    happened: bool | None = None
    retryable: bool = True

    @property
    def said(self) -> str:
        """Its own words, which may quote the outside, as far as they are kept; if there are none, those of its kind."""
        return beginning(str(self).strip(), MAX_SAID) or type(self).__doc__ or ""


class Unavailable(ToolError):
    """The outside could not be reached, and nothing was asked of it."""

    kind, happened = "unavailable", False


class TimedOut(ToolError):
    """No answer in time. It may have happened."""

    kind = "timeout"


class AnswerLost(ToolError):
    """The connection ended before the answer came. It may have happened."""

    kind = "unavailable"


class Declined(ToolError):
    """The outside understood and refused; it did nothing."""

    kind, happened, retryable = "refused", False, False


class NotThere(ToolError):
    """The outside does not have it; it did nothing."""

    kind, happened, retryable = "not_found", False, False


class OddAnswer(ToolError):
    """The outside answered something that does not fit what was agreed."""

    kind, retryable = "invalid", False


class Fenced(ToolError):
    """This worker may no longer act for the run; the call was broken off before it could do anything."""

    kind, happened, retryable = "limit", False, False


@dataclass(frozen=True)
class File:
    """An attachment with its bytes."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True)
class Call:
    """What a tool is given beside its arguments."""

    run_id: UUID
    step: str
    key: str  # the idempotency key; of an effect, the id of its grant
    deadline: float  # seconds that are left for the whole call
    last_check: Callable[[], None]  # call it right before the last irreversible byte: raises Fenced if this worker may not go on
    attachments: Sequence[File] = ()


@dataclass(frozen=True)
class Found:
    """The look-up found the effect. `result` is what the tool would have returned."""

    result: Any


@dataclass(frozen=True)
class Absent:
    """The outside surely does not have it, now."""


@dataclass(frozen=True)
class Unsure:
    """The look-up tells nothing."""

    why: str = ""


Lookup = Callable[[Call, Arguments], Found | Absent | Unsure]


@dataclass(frozen=True)
class Looked:
    """What was found out for the people who decide, right before it was proposed: shown beside the action, and no part of it."""

    facts: Mapping[str, str] = field(default_factory=dict)  # title → words, as “Dry run” → “Passed, 4 ms”
    record: Mapping[str, Any] | None = None  # of a record change: the fields of the record as they are
    version: int | str | None = None  # and their version
    paid: str = ""  # of a payment: what was paid, as a decimal number in the action’s currency
    left: str = ""  # and the most of it that can still go back
    trouble: str = ""  # why nothing could be found out
    at: str = ""  # when; the engine fills it in


@dataclass(frozen=True)
class Limit:
    """The most that a payment tool may move, as decimal numbers in one currency. What goes beyond can’t be approved."""

    currency: str
    each: str = ""
    a_day: str = ""


Look = Callable[[Call, Arguments], Looked]


@dataclass(frozen=True)
class Tool:
    """A tool as its code declares it by `@tool`. Its function gets the call and its arguments by name, and gives what JSON can hold; it
    raises a ToolError of the kind that says whether it may have happened. Times are in seconds.
    """

    name: str
    function: Callable[..., Any]
    effect: Effect
    title: str
    arguments: type[BaseModel]
    schema_version: int = 1
    upcast: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = field(default_factory=dict)  # from a version to the next
    card: str = "generic"
    label: str = "internal"  # of its arguments and results
    subject: Callable[[Arguments], str] | None = None  # one line for people: “E-mail a reply to …”
    several: Callable[[Sequence[Arguments]], str] | None = None  # of many at once, after their number: “notes for the help desk”
    gives: str = ""  # of one that reads: what people call what it gave, “The ticket”; else its title
    finds: Callable[[Mapping[str, Any]], tuple[str, str]] | None = None  # and what its result says: in a few words, and in a sentence
    done: Callable[[Arguments], str] | None = None  # one line for the ledger of effects
    prepare: Callable[[dict[str, Any], str], dict[str, Any]] | None = None  # completes arguments at proposal; given the nonce
    fixed: Sequence[str] = ()  # arguments that `prepare` fills in; who edits an action can't change them
    recipients: Callable[[Arguments], Sequence[str]] = lambda arguments: ()
    touches: Callable[[Arguments], Mapping[str, Sequence[str]]] = lambda arguments: {}
    target: str = ""  # where it goes: “help desk”
    credential: str = ""  # as whom: the name of a credential, never itself
    compensate: str | None = None  # the name of the tool that undoes it
    undo: Callable[[Arguments, Any], dict[str, Any]] | None = None  # its arguments, of what was done and what that gave; else the latter
    look: Look | None = None  # what to find out for who decides; it changes nothing outside
    limit: Limit | None = None  # of a payment
    dialect: str = ""  # of an SQL tool: sqlite, postgres, mysql …
    lookup: Lookup | None = None  # the first line of its docstring says on pages what it asks: “Whether the server has it, by its key.”
    where: Callable[[], str] | None = None  # the address of a page of the outside on which a person can look for it
    honours_key: bool = False  # the outside does what comes under one key once
    deadline: float = 30.0  # for one call
    quarantine: float = 0.0  # after the deadline, how long something sent may still arrive
    retry: Retry = Retry()
    reads_private: bool = False  # these three are the legs of the taint: all in one run can let data out
    reads_untrusted: bool = False
    sends_out: bool = False
    executor: Literal["handrail", "agent"] = "handrail"  # who runs it; see `outside`

    def checked(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The arguments as JSON values, by name. InvalidArguments if they do not fit."""
        names = list(self.arguments.model_fields)
        if len(args) > len(names):
            raise InvalidArguments(f"{self.name} takes {len(names)} arguments.")
        given = dict(zip(names, args, strict=False)) | kwargs
        try:
            return self.arguments.model_validate(given).model_dump(mode="json")
        except ValidationError as error:
            wrong = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False, include_input=False)]
            raise InvalidArguments(f"{self.name}: {'; '.join(wrong)}") from None

    def takes(self, version: int) -> bool:
        """Whether arguments of this version of its schema can be used: they are of its own, or `upcast` leads from there to it."""
        return version <= self.schema_version and all(step in self.upcast for step in range(version, self.schema_version))

    def brought_up(self, arguments: Arguments, version: int) -> Arguments:
        """Arguments of an earlier version as they are in its own, by `upcast` from one version to the next."""
        for step in range(version, self.schema_version):
            arguments = self.upcast[step](dict(arguments))
        return arguments

    @property
    def can_undo(self) -> bool:
        """Whether what it does can be undone here."""
        return self.compensate in TOOLS

    def describe(self, arguments: Arguments) -> str:
        return self.subject(arguments) if self.subject else self.title

    def __call__(self, call: Call, arguments: Arguments) -> Any:
        return self.function(call, **self.arguments.model_validate(arguments).__dict__)


class InvalidArguments(ToolError):
    """The arguments do not fit the tool's schema."""

    kind, happened, retryable = "invalid", False, False


TOOLS: dict[str, Tool] = {}


def tool(*, effect: Effect, title: str, **options: Any) -> Callable[[Callable[..., Any]], Tool]:
    """Declare a function as a tool. Options are the fields of `Tool`. What sends also sends out, unless it says that it does not."""
    options.setdefault("sends_out", effect == "send")

    def declare(function: Callable[..., Any]) -> Tool:
        name = options.pop("name", function.__name__)
        declared = Tool(name=name, function=function, effect=effect, title=title, arguments=_model(name, function), **options)
        if TOOLS.setdefault(name, declared) is not declared and TOOLS[name].function.__module__ != function.__module__:
            raise ValueError(f"Two tools are called {name}.")
        TOOLS[name] = declared
        return declared

    return declare


def _model(name: str, function: Callable[..., Any]) -> type[BaseModel]:
    parameters = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    fields: dict[str, Any] = {p.name: (p.annotation, ... if p.default is p.empty else p.default) for p in parameters}
    return create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
