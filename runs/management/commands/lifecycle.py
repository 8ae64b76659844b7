"""Print the states of a run and the ways between them, as docs/architecture.md has them."""

from django.core.management.base import BaseCommand

from runs.lifecycle import PAGE_WORDS, TERMINAL, TRANSITIONS, State

MEANS = {
    State.QUEUED: "ready; a worker may claim it",
    State.RUNNING: "a worker holds its lease",
    State.WAITING: "for a person, an answer, a budget, a webhook, a time or a child run; it spends nothing",
    State.PAUSED: "a person stopped it for now",
    State.PARKED: "it can’t go on by itself; somebody must choose",
    State.STALLED: "its agent went silent",
    State.CANCELLING: "cancelled, and something outside has no known outcome yet",
    State.COMPENSATING: "what was done outside is being undone",
    State.SUCCEEDED: "ended well",
    State.FAILED: "ended badly",
    State.CANCELLED: "ended because somebody said so",
}


class Command(BaseCommand):
    help = "Prints the states of a run, as a table and as a picture (Mermaid), from runs/lifecycle.py."

    def handle(self, *args: object, **options: object) -> None:
        self.stdout.write(drawn())


def drawn() -> str:
    """The table and the picture, in Markdown."""
    return "\n".join([*_table(), "", "```mermaid", *_picture(), "```"])


def _table() -> list[str]:
    head = ["| state | page says | means | from here to |", "|---|---|---|---|"]
    return head + [
        f"| {s} | {PAGE_WORDS[s]} | {MEANS[s]} | {', '.join(sorted(TRANSITIONS[s])) or 'nowhere: it is an ending'} |" for s in State
    ]


def _picture() -> list[str]:
    ways = [f"    {before} --> {after}" for before in State for after in State if after in TRANSITIONS[before]]
    return ["stateDiagram-v2", "    [*] --> queued", *ways, *(f"    {end} --> [*]" for end in State if end in TERMINAL)]
