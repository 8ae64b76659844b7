"""What approvals refuse, and what to do then. The docstring is the title of the problem."""

from typing import ClassVar

from access.errors import BadInput, Forbidden, Refusal


class AlreadyDecided(Refusal):
    """This was decided already."""

    what_next: ClassVar[str] = "Your decision was not recorded; the first one stands."


class DigestChanged(Refusal):
    """The action changed after it was drawn for you."""

    what_next: ClassVar[str] = "Nothing was decided. Read what changed, and decide on the action as it is now."


class ActionClosed(Refusal):
    """This action is no longer waiting."""

    what_next: ClassVar[str] = "Nothing was decided."


class SelfApproval(Forbidden):
    """Nobody decides on their own action."""

    what_next: ClassVar[str] = "Nothing was decided. Another reviewer must look at it."


class ApproveLocked(Refusal):
    """A warning locks approving this."""

    what_next: ClassVar[str] = "Nothing was decided. Reject it with the reason, so that the agent can propose it again without."


class ReasonNeeded(BadInput):
    """A rejection needs a reason."""

    what_next: ClassVar[str] = "Nothing was decided. Write at least one sentence; the agent reads it."


class AlreadyClaimed(Refusal):
    """Somebody else has claimed this."""


class NotUnknown(Refusal):
    """This action's outcome is not unknown."""

    what_next: ClassVar[str] = "Nothing was recorded. Read what stands in the log."


class NotYours(Forbidden):
    """You took part in this action, so you can't say what became of it."""
