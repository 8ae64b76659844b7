"""What Handrail says when it refuses. Every app's errors derive from `Refusal`; the docstring is the title, `what_next` tells the way on.

`config/api.py` turns a Refusal into an RFC 9457 problem, pages into an inline message.
"""

from contextvars import ContextVar
from typing import Any, ClassVar
from uuid import UUID

from django import db
from django.db import InterfaceError, OperationalError

from access import hiding

DatabaseTrouble = db.Error  # whatever a database says, or the way to it: DatabaseError and InterfaceError are both of it
AWAY = (OperationalError, InterfaceError)  # the database is away, or was locked for too long; it says nothing about what was asked
RETRY_AFTER = "5"  # seconds
# the refusals of the request that is being answered, for access/refusals.py to write down, wherever they are turned into an answer
heard: ContextVar[list["Refusal"] | None] = ContextVar("refusals_heard", default=None)


class Refusal(Exception):
    """Refused."""

    status: ClassVar[int] = 409
    what_next: ClassVar[str] = ""
    # what was asked for, where and with which right, if `access.rules` refused; for the audit trail, never part of an answer
    subject: tuple[str, str] | None = None
    workspace: UUID | None = None
    needed: str = ""

    def __init__(self, detail: str = "", **extra: Any) -> None:
        # it quotes what somebody sent, and goes to pages, answers, logs and into other errors
        self.detail = hiding.hidden(detail) if detail else self.title
        self.extra = hiding.hidden(extra) if extra else extra
        super().__init__(self.detail)
        if (told := heard.get()) is not None:
            told.append(self)

    @property
    def title(self) -> str:
        return self.says()[1]

    @classmethod
    def says(cls) -> tuple[str, str]:
        """The kind and the title of every refusal of this class."""
        kind = "".join(f"-{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(cls.__name__))
        return kind, (cls.__doc__ or "Refused.").strip().splitlines()[0]

    @property
    def more(self) -> str:
        """What it says beyond its title."""
        return "" if self.detail == self.title else self.detail

    @property
    def rest(self) -> str:
        """What stands under the title: the detail and what to do next."""
        return " ".join(part for part in (self.more, self.what_next) if part)

    @property
    def said(self) -> str:
        """All of it in a line: title, detail, what to do next."""
        return f"{self.title} {self.rest}".rstrip()

    @property
    def kind(self) -> str:
        """The problem's type, as a slug: `AlreadyDecided` → `already-decided`."""
        return self.says()[0]


class NotSignedIn(Refusal):
    """Nobody is signed in."""

    status = 401
    what_next = "Sign in, or send an agent key as `Authorization: Bearer hr_…`."


class Forbidden(Refusal):
    """You may see this, but not do that."""

    status = 403


class NotFound(Refusal):
    """There is nothing here that you may see."""

    status = 404
    what_next = "Check the address. If it is right, ask an admin of the workspace for access."


class DatabaseAway(Refusal):
    """The database does not answer at the moment."""

    status = 503
    what_next = "What you asked for may not be done. Try again in a few seconds: a decision, or a request with the same ids, counts once."


class BadInput(Refusal):
    """The input is not valid."""

    status = 422
