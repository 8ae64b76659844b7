"""What the channel refuses, and what to do then. The docstring is the title of the problem."""

from typing import ClassVar

from access.errors import BadInput, Forbidden, Refusal


class UnknownEventType(BadInput):
    """This event type does not exist."""

    what_next: ClassVar[str] = "Use one of the listed types. Token streams and free-form logs are not events."


class InvalidEvent(BadInput):
    """This event's data is not valid."""

    what_next: ClassVar[str] = "Nothing was written. Correct the named fields and send it again with the same id."


class NotYourEvent(Forbidden):
    """This event is not yours to write."""


class EventReused(Refusal):
    """This id was used for another event."""

    what_next: ClassVar[str] = "Nothing was written. Give each event an id of its own, and send it again only with what it said."


class IllegalTransition(Refusal):
    """A run cannot go from this state to that one."""


class RunEnded(Refusal):
    """The run has ended; its last event is its ending."""

    what_next: ClassVar[str] = "Nothing was written. Start a new run, or fork this one."


class StaleToken(Refusal):
    """Another worker has taken over this run."""

    what_next: ClassVar[str] = "Nothing was written. Stop working on this run."


class InFlight(Refusal):
    """Something this run sent out has no known outcome yet."""


class CursorAhead(BadInput):
    """This cursor is past the head of the log."""

    status: ClassVar[int] = 416
    what_next: ClassVar[str] = "Read again from the head that is named here, or from an earlier cursor."


class BadCursor(BadInput):
    """This cursor is no sequence number."""


class Withdrawn(Forbidden):
    """You may no longer see this."""


class MethodNotAllowed(Refusal):
    """This address does not know that method."""

    status: ClassVar[int] = 405


class SignalReused(Refusal):
    """This idempotency key was used for another signal."""


class StartReused(Refusal):
    """This idempotency key was used to start another run."""


class NoReference(Refusal):
    """No free reference was found for this run."""

    status: ClassVar[int] = 503
    what_next: ClassVar[str] = "Nothing was started. Sending it again with the same key is safe."


class UnknownWorkflow(BadInput):
    """No such workflow is loaded."""


class MessageRefused(BadInput):
    """This message can't be taken in as it is."""

    what_next: ClassVar[str] = "Nothing was started. Mend the message, or choose another one."


class IntakeFailed(Refusal):
    """This message could not be taken in."""

    status: ClassVar[int] = 502
    what_next: ClassVar[str] = "Nothing was started. Sending the same message again is safe."
