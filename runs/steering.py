"""What the card “Steer this run” offers: the signals that a person may send now, and what each does; and what is said of a sent one."""

from dataclasses import dataclass
from hashlib import sha256

from runs.engine import workflow
from runs.lifecycle import State
from runs.models import Run, Signal

READING = (State.QUEUED, State.RUNNING, State.WAITING, State.PAUSED)
WORDS = {"context": "Add context", "revise": "Revise", "pause": "Pause", "resume": "Resume"}
HINTS = {
    "context": "Recorded in your name. The agent reads it when it asks next.",
    "revise": "The agent must change its plan, and open requests for approval are withdrawn.",
    "pause": "Nothing new begins. What is under way outside finishes. Deadlines of approvals go on.",
    "resume": "It goes on from its last completed step.",
}
DONE = {
    ("cancel", "applied"): "Cancelled. Nothing more is done or sent.",
    ("cancel", "delivered"): "Cancelling. Nothing new is begun; it ends once what is under way is known and what can be undone is undone.",
    ("pause", "applied"): "Paused. Nothing new begins until somebody resumes it.",
    ("resume", "applied"): "Resumed. It goes on from its last completed step.",
    ("context", "accepted"): "Recorded. The agent reads it when it asks next; if the run ends first, you see that here.",
    ("context", "applied"): "The agent has read it.",
    ("revise", "applied"): "The agent has read it and plans anew.",
    ("revise", "accepted"): "Recorded. The agent plans anew; what waited for approval is withdrawn.",
}
REFUSED = {
    "not_yet": "Handrail can’t do that yet. Nothing was changed.",
    "not_in_this_state": "The run is in no state for that. Nothing was changed.",
    "had_already_ended": "The run had already ended. Nothing was changed.",
    "not_supported": "This run’s workflow takes no such signal. Nothing was changed.",
    "never_read": "The run ended before the agent came to read it.",
    "too_many": "The agent has not read the notes before this one. Nothing was changed; wait until it has, or pause the run.",
}


@dataclass(frozen=True)
class Choice:
    """One signal of the card. `why_not`: why it can't be sent now; empty if it can."""

    kind: str
    word: str
    hint: str
    why_not: str
    chosen: bool


def choices(run: Run) -> list[Choice]:
    """The signals of the card, in its order; the first that can be sent is chosen."""
    why = {kind: _why_not(run, kind) for kind in WORDS}
    first = "resume" if run.state == State.PAUSED else next((kind for kind in WORDS if not why[kind]), "")
    return [Choice(kind, word, HINTS[kind], why[kind], kind == first) for kind, word in WORDS.items()] if first else []


def _why_not(run: Run, kind: str) -> str:
    if kind == "resume":
        return "" if run.state == State.PAUSED else "It is not paused."
    if kind == "pause":
        return "It is paused." if run.state == State.PAUSED else "" if run.state in READING else "It can’t be paused now."
    if run.state not in READING:
        return "It reads nothing now."
    if not run.workflow:
        return ""  # its agent is told with its next word that there is something to read
    return "" if kind in workflow.reads(run.workflow, run.workflow_version) else "Its workflow takes no such signal."


def key(given: str, kind: str, note: str) -> str:
    """The idempotency key of a signal from the page: the same again is the same, and other words are another signal."""
    return given if kind == "cancel" else f"{given}-{sha256(f'{kind}/{note}'.encode()).hexdigest()[:24]}"


def told(sent: Signal) -> tuple[bool, str]:
    """Whether it was taken, and what is said to who sent it."""
    if sent.status == "refused":
        return False, REFUSED.get(sent.reason, "Refused. Nothing was changed.")
    return True, DONE[sent.kind, sent.status]
