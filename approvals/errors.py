"""What approvals refuse, and what to do then. The docstring is the title of the problem."""

from typing import ClassVar

from access.errors import BadInput, Forbidden, Refusal


class AlreadyDecided(Refusal):
    """This was decided already."""

    what_next: ClassVar[str] = "Your decision was not recorded; the first one stands."


class DigestChanged(Refusal):
    """The action changed after it was drawn for you."""

    what_next: ClassVar[str] = "Nothing was decided. Read what changed, and decide on the action as it is now."


class OthersApproved(Refusal):
    """Somebody else approved after this was drawn for you."""

    what_next: ClassVar[str] = "Nothing was recorded for you. Read what your approval does now, and approve again if you still want to."


class ActionClosed(Refusal):
    """This action is no longer waiting."""

    what_next: ClassVar[str] = "Nothing was decided."


class Frozen(Refusal):
    """This is frozen."""

    what_next: ClassVar[str] = "Nothing was approved, granted or run. It waits as it is: it can be rejected, and approved once unfrozen."


class FreezeRefused(BadInput):
    """This can't be frozen like that."""

    what_next: ClassVar[str] = "Nothing was changed: what was frozen is, and what was not is not. Mend what is said here and send it again."


class AlreadyLifted(Refusal):
    """This freeze has ended already."""

    what_next: ClassVar[str] = "Nothing was changed. If it must be frozen again, freeze it anew."


class TooLateToRecall(Refusal):
    """The approval can't be taken back any more."""

    what_next: ClassVar[str] = "Nothing was recalled. What became of the action stands in its log; to stop what follows, cancel the run."


class WithdrawnBefore(Refusal):
    """This was withdrawn already."""

    what_next: ClassVar[str] = "Nothing was changed. Nothing of it will run."


class SelfApproval(Forbidden):
    """Nobody decides on their own action."""

    what_next: ClassVar[str] = "Nothing was decided. Another reviewer must look at it."


class NotInGroup(Forbidden):
    """Only a group decides on this, and you are not in it."""

    what_next: ClassVar[str] = "Nothing was decided. Somebody of the group must look at it."


class GroupRefused(BadInput):
    """This can't be a group, or not like this."""

    what_next: ClassVar[str] = "Nothing was saved. Mend what is said here."


class GroupTooSmall(BadInput):
    """Too few people may decide for this group."""

    what_next: ClassVar[str] = "Nothing was saved. Put more people in, or ask fewer."


class GroupChanged(Refusal):
    """The group changed after it was drawn for you."""

    what_next: ClassVar[str] = "Nothing was saved. Look at the group as it is now, and change that."


class ApproveLocked(Refusal):
    """A warning locks approving this."""

    what_next: ClassVar[str] = "Nothing was decided. Reject it with the reason, so that the agent can propose it again without."


class WarningNotTicked(BadInput):
    """A warning asks to be ticked first."""

    what_next: ClassVar[str] = "Nothing was decided. Look at what the named warnings say; then send their codes as `acks`, or reject it."


class Unreadable(Refusal):
    """The stored bytes of this action are not what would have to be approved."""

    what_next: ClassVar[str] = "Nothing was decided. It can be rejected; the agent can propose it again."


class ReasonNeeded(BadInput):
    """A reason is needed."""

    what_next: ClassVar[str] = "Nothing was decided or taken back. Write at least one sentence; the agent reads it."


class EditRefused(BadInput):
    """This edit can't be put up for decision."""

    what_next: ClassVar[str] = "Nothing was changed; the action waits as it was. Mend what is said here, or reject the action."


class NothingChanged(BadInput):
    """Your version is the same as what was proposed."""

    what_next: ClassVar[str] = "Nothing was changed. Change at least one argument, or decide on it as it is."


class QuestionOpen(Refusal):
    """Another question is open."""

    what_next: ClassVar[str] = "Yours was not asked. Wait for the answer, then ask; deciding goes on meanwhile."


class QuestionRefused(BadInput):
    """This is no question that can be asked."""

    what_next: ClassVar[str] = "Nothing was asked. Write at least one sentence; the agent and everyone on the run read it."


class NotAllOpened(Refusal):
    """Not every one of these was opened."""

    what_next: ClassVar[str] = "Nothing was decided. Open each one that is marked, then decide on them together."


class StaleLook(Refusal):
    """What was drawn for you is not what waits now."""

    what_next: ClassVar[str] = "Nothing was decided, and it does not count as opened. Open it again."


class AlreadyClaimed(Refusal):
    """Somebody else has claimed this."""


class NotUnknown(Refusal):
    """This action's outcome is not unknown."""

    what_next: ClassVar[str] = "Nothing was recorded. Read what stands in the log."


class BeingLookedUp(Refusal):
    """This is being looked up right now."""

    what_next: ClassVar[str] = "Nothing was recorded. What the look-up gives stands here in a moment; say then what it could not tell."


class NoteNeeded(BadInput):
    """Saying what happened needs what you saw."""

    what_next: ClassVar[str] = "Nothing was recorded. Write at least one sentence; it goes into the log under your name."


class ReferenceNeeded(BadInput):
    """“It happened” needs a reference."""

    what_next: ClassVar[str] = "Nothing was recorded. Name the reference under which the outside has it."


class NotYours(Forbidden):
    """You took part in this action, so you can't say what became of it."""

    what_next: ClassVar[str] = "Nothing was recorded. Somebody else who may must say it."


class NotOutside(Refusal):
    """This is not for an agent outside."""

    what_next: ClassVar[str] = "Nothing was done. Handrail itself runs this, and tells in the log what it does."


class ToolRefused(Forbidden):
    """This tool may not be used like this."""

    what_next: ClassVar[str] = (
        "Nothing was proposed, and the run's log says so. Go on without it; an admin declares tools, sets their rules and the run's scope."
    )


class SchemaChanged(Refusal):
    """The tool has another version here."""

    what_next: ClassVar[str] = "Nothing was proposed. Send arguments of the version that is named here, with its number."


class ArgumentsRefused(BadInput):
    """These arguments do not fit the tool."""

    what_next: ClassVar[str] = "Nothing was proposed. Mend what is said here; values are taken as they are sent, and never converted."


class ProposalReused(Refusal):
    """This idempotency key was used for another action."""

    what_next: ClassVar[str] = "Nothing was proposed. Give each action a key of its own."


class NotRunning(Refusal):
    """The run begins nothing new now."""

    what_next: ClassVar[str] = "Nothing was done. Ask the run how it stands: GET /api/v1/runs/{id}."


class DigestMismatch(Refusal):
    """This is not what was approved."""

    what_next: ClassVar[str] = "Nothing was redeemed, and the run's log says so. Run exactly what the action's `exact` says, or nothing."


class NothingGranted(Refusal):
    """There is nothing to redeem."""

    what_next: ClassVar[str] = (
        "Do not run it. If it was superseded, follow `superseded_by`; otherwise propose it anew if it is still wanted."
    )


class HeldByAnother(Refusal):
    """Somebody else holds the one use of this."""

    what_next: ClassVar[str] = "Do not run it: whoever redeemed it does, and reports. What is known of it: GET /api/v1/actions/{id}."


class OutcomeKnown(Refusal):
    """What became of this stands already."""

    what_next: ClassVar[str] = "Nothing was recorded. What stands is named here; do not run it again."


class NoSuchQuestion(BadInput):
    """Nobody asked this about the action."""

    what_next: ClassVar[str] = "Nothing was answered. The open questions: `questions` of GET /api/v1/actions/{id}."


class AlreadyAnswered(Refusal):
    """This question was answered already."""

    what_next: ClassVar[str] = "Nothing was recorded; the first answer stands."


class TryFirst(Refusal):
    """This draft was not tried yet, as it is now."""

    what_next: ClassVar[str] = "Nothing was saved. Try it, read what would have differed, and save it then."
