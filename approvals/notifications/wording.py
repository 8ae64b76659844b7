"""What a message says. Names of ours, times, a run's reference and links: never a word, an amount or an address of the action itself."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.urls import reverse

from access import second_admin
from access.characters import has_hidden, whole
from access.models import AskedChange
from approvals.inbox import RISKS
from approvals.models import Grant
from approvals.notifications import quiet
from approvals.notifications.models import Notice
from config import clock
from runs.engine.tools import TOOLS
from runs.lifecycle import State

SILENT = "Its agent went silent. Start it again: it goes on from what was done. Or cancel the run."
UNCLEAR = "Its agent went silent, and what became of something that it took to run is not known. Say that first; then start it again."
OF_RUNS = ("ended", "stuck", "handed", "asks", "budget")  # their titles name the run
BLANKS = re.compile(r"\s+")
ENDED = {"succeeded": "is done", "failed": "failed", "cancelled": "was cancelled"}


@dataclass(frozen=True)
class Item:
    """One thing in a message: what it is, what belongs to it, and where it is decided."""

    kind: str
    title: str
    text: str
    link: str


def item(notice: Notice, zone: str) -> Item:
    """A notice in words, its times on the reader's clock."""
    return Item(notice.kind, _title(notice), " ".join(part for part in _parts(notice, zone) if part), _link(notice))


def subject(items: Sequence[Item]) -> str:
    """One line that says what it is about."""
    if len(items) == 1:
        return items[0].title
    asking = sum(each.kind not in ("ended",) for each in items)
    return f"{len(items)} things wait for you" if asking == len(items) else f"{len(items)} things to know"


def example(zone: str) -> Item:
    """What the settings page shows, and what a test says."""
    until = when(clock.now() + timedelta(minutes=45), zone)
    return Item(
        "waits", "Send the reply waits for you", f"Run RN-7Q4K. Until {until}. Medium risk. Sends data out.", address("approvals:inbox")
    )


def address(name: str, *args: object) -> str:
    """The whole address of a page. To open it changes nothing, and asks who you are."""
    return settings.HANDRAIL_URL + reverse(name, args=args)


def when(at: datetime, zone: str) -> str:
    """“15:15”, or with the day if that is another one than today."""
    local, today = at.astimezone(quiet.zone(zone)), clock.now().astimezone(quiet.zone(zone))
    return f"{local:%H:%M}" if local.date() == today.date() else f"{local.day} {local:%b %H:%M}"


def one_line(text: str) -> str:
    """A name as it can stand in a header: one line, nothing that can't be seen, not long."""
    line = BLANKS.sub(" ", text).strip()
    line = line[: whole(line, 80)]
    return "".join(char for char in line if not has_hidden(char)) or "somebody"


def _title(notice: Notice) -> str:
    tool = TOOLS.get(notice.action.tool) if notice.action else None
    what = one_line(tool.title if tool else "An action")
    giver = one_line(notice.delegation.giver.name) if notice.delegation else ""
    ref = notice.run.ref if notice.run else ""
    return {
        "waits": f"{what}: waits for you",
        "soon": f"{what}: runs out soon",
        "escalated": f"{what}: came to you",
        "delegated": f"{what}: handed to you" if notice.action else f"You decide for {giver}",
        "unknown": f"{what}: outcome unknown",
        "answered": "The agent answered your question",
        "stuck": f"Run {ref} is stuck",
        "handed": f"Run {ref} was handed to you",
        "asks": f"Run {ref} asks you something",
        "budget": f"Run {ref} has used up a limit",
        "ended": f"Run {ref} {ENDED.get(notice.run.state if notice.run else '', 'has ended')}",
        "alarm": f"Alarm: {what} is not what was approved",
        "confirm": "A change of permissions waits for you",
        "glass": "Break-glass: somebody took rights that they lack",
    }[notice.kind]


def _parts(notice: Notice, zone: str) -> list[str]:
    action = notice.action
    run = f"Run {notice.run.ref}." if notice.run and notice.kind not in OF_RUNS else ""
    until = f"Until {when(notice.until, zone)}." if notice.until else ""
    risk = f"{RISKS.get(action.risk, 'High')} risk." if action else ""
    group = action.policy.group if action and notice.kind in ("waits", "soon", "escalated") else None
    asked = f"Asked of {one_line(group.name)}." if group else ""
    out = "Sends data out." if action and action.effect == "send" else ""
    why = {
        "escalated": "Nobody answered.",
        "delegated": "They are away, and named you." if notice.action is None else "Who it went to is away, and named you.",
        "unknown": "Whether it happened is not known. A person must say.",
        "alarm": "Nothing was run.",
        "glass": "Each step is marked in the access log. Once it is over, an admin reviews it.",
        "confirm": "Another admin asked for it, and can’t confirm it. Nothing changes until somebody does.",
        "stuck": _silent(notice) if _is_silent(notice) else "It can’t go on by itself. Somebody must choose how it does.",
        "handed": "It is stuck, and yours to look after.",
        "asks": "It waits for the answer.",
        "budget": "Nothing new begins until somebody raises it.",
    }.get(notice.kind, "")
    return [run, why, asked, until, risk, out]


def _is_silent(notice: Notice) -> bool:
    return notice.run is not None and notice.run.state == State.STALLED


def _silent(notice: Notice) -> str:
    """What to do about an agent that went silent: a run goes on from what was done only where that is known."""
    return UNCLEAR if Grant.objects.filter(action__run_id=notice.run_id, outcome="unknown").exists() else SILENT


def _link(notice: Notice) -> str:
    if notice.kind in ("stuck", "handed"):
        return address("runs:recovery")
    if notice.kind == "glass":
        return address("access:break_glass")
    if notice.kind == "confirm":
        return _of_change(notice)
    if notice.kind in OF_RUNS and notice.run_id:
        return address("runs:run", notice.run_id)
    if notice.kind == "unknown":
        return address("approvals:outcome", notice.action_id)
    return address("approvals:action", notice.action_id) if notice.action_id else address("notifications:settings")


def _of_change(notice: Notice) -> str:
    """The page of a change: those of roles have one of their own."""
    change = second_admin.find(notice.change) if notice.change else None
    if change is None:
        return address("access:permissions")
    return address("access:asked" if isinstance(change, AskedChange) else "access:change", change.pk)
