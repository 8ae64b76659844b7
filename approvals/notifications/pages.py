"""What the pages of notifications show. Reads only."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID
from zoneinfo import available_timezones

from django.conf import settings as django_settings
from django.db.models import Count

from access import rules
from access.models import User
from access.rows import only
from access.rules import Actor
from approvals.notifications import chasing, delegation, preferences, quiet, wording
from approvals.notifications.models import Delegation, Delivery, Message, Webhook
from approvals.notifications.preferences import Wishes
from config import clock

WORDS = {
    "waits": ("A request is yours to decide", ""),
    "soon": ("One of them runs out soon", "Only you, if you claimed it"),
    "escalated": ("Nobody answered, and one comes to you", ""),
    "delegated": ("Somebody names you to decide for them", ""),
    "answered": ("The agent answered your question", ""),
    "unknown": ("An outcome is unknown, and you may say what happened", ""),
    "alarm": ("What would run is not what was approved", "Goes through quiet hours, if you let something through"),
    "glass": ("Somebody took rights by break-glass", "Goes through quiet hours, if you let something through"),
    "confirm": ("A change of permissions waits for a second admin", ""),
    "asks": ("A run asks something that you may answer", ""),
    "budget": ("A run has used up a limit that you may raise", ""),
    "stuck": ("A run is stuck, and you may choose how it goes on", ""),
    "handed": ("Somebody hands a stuck run to you", ""),
    "ended": ("Your run is done, failed or was cancelled", ""),
}
ASKS = {
    **dict.fromkeys(("unknown", "alarm", "stuck", "handed"), "runs.recover"),
    **dict.fromkeys(("asks", "budget"), "runs.steer"),
    "glass": "audit.view",
    "confirm": "access.manage",
}  # the rest is for who decides, and the last for everybody
STATES = {"sent": ("done", "Sent"), "dropped": ("cancelled", "Not needed any more"), "dead": ("failed", "Not delivered")}
DAY = 240  # units of the picture of a day: ten an hour


@dataclass(frozen=True)
class Row:
    kind: str
    title: str
    sub: str
    mail: bool
    webhook: bool


@dataclass(frozen=True)
class Told:
    """A message that was sent, or not. `state` colours it."""

    state: str
    word: str
    channel: str
    at: datetime
    what: str
    trouble: str
    times: int = 1  # of the same


def settings(actor: Actor, typed: Wishes | None = None) -> dict[str, Any]:
    """The person's own page. `typed`: what was chosen and could not be kept."""
    wishes = typed or preferences.of(actor.user_id)
    hook = only(Webhook.objects.filter(pk=actor.user_id))
    decides = actor.somewhere("approvals.decide")
    return {
        "rows": list(_rows(actor, wishes)),
        "wishes": wishes,
        "zones": zones(),
        "times": _times(wishes),
        "day": list(_quiet_parts(wishes)),
        "off": _away_next(wishes),
        "lets_through": wishes.lets_through,
        "email": User.objects.filter(pk=actor.user_id).values_list("email", flat=True).first(),
        "has_mail": django_settings.HANDRAIL_MAIL,
        "hook": hook,
        "overlap_until": hook.old_until if hook and hook.old_until and hook.old_until > clock.now() else None,
        "example": wording.example(wishes.quiet.zone),
        "now": wording.when(clock.now(), wishes.quiet.zone),
        "decides": bool(decides),
        "candidates": delegation.candidates(actor, decides[0]) if decides else [],
        "given": [_away(each, wishes) for each in delegation.of(actor)] if decides else [],
        "taken": [_away(each, wishes) for each in delegation.to(actor)] if decides else [],
        "history": _by_what(_folded(_history(actor))),
        "recovers": bool(actor.somewhere("runs.recover")),
        "manages": bool(actor.somewhere("access.manage")),
    }


def chain(workspace_id: UUID) -> dict[str, Any]:
    """What happens when nobody answers in this workspace."""
    before = chasing.remind_before(workspace_id)
    return {
        "remind_minutes": _minutes(before),
        "remind": _spell(before),
        "steps": [(step, _spell(step.after)) for step in chasing.steps(workspace_id)],
        "people": rules.some_holders(workspace_id, "approvals.decide"),
    }


def _rows(actor: Actor, wishes: Wishes) -> Iterable[Row]:
    for kind, (title, sub) in WORDS.items():
        needs = ASKS.get(kind, "approvals.decide" if kind != "ended" else "runs.view")
        if actor.somewhere(needs):
            chosen = wishes.channels.get(kind, ())
            yield Row(kind, title, sub, "mail" in chosen, "webhook" in chosen)


def _times(wishes: Wishes) -> list[str]:
    """The times of day that are offered: every half hour, and what was chosen, whatever it is."""
    chosen = {each.strftime("%H:%M") for each in (wishes.quiet.start, wishes.quiet.end) if each is not None}
    return sorted(chosen | {f"{hour:02}:{minute:02}" for hour in range(24) for minute in (0, 30)})


def _away_next(wishes: Wishes) -> dict[str, str]:
    """The days that the form of being away begins with: a week from tomorrow, by the person's own clock."""
    tomorrow = clock.now().astimezone(quiet.zone(wishes.quiet.zone)).date() + timedelta(days=1)
    return {"from": tomorrow.isoformat(), "until": (tomorrow + timedelta(days=6)).isoformat()}


def _quiet_parts(wishes: Wishes) -> Iterable[tuple[int, int]]:
    """(x, width) of the quiet parts of a day, in the picture's units."""
    start, end = wishes.quiet.start, wishes.quiet.end
    if start is None or end is None:
        return
    a, b = (round((t.hour + t.minute / 60) * DAY / 24) for t in (start, end))
    yield from [(a, b - a)] if a < b else [(0, b), (a, DAY - a)]


def _away(each: Delegation, wishes: Wishes) -> dict[str, Any]:
    here = quiet.zone(wishes.quiet.zone)
    last = (each.ends_at - timedelta(seconds=1)).astimezone(here)
    first = each.starts_at.astimezone(here)
    runs = each.starts_at <= clock.now()
    return {"row": each, "runs": runs, "first": f"{first.day} {first:%b %Y}", "last": f"{last.day} {last:%b %Y}"}


def _folded(told: Iterable[Told]) -> Iterable[Told]:
    """Of messages that say the same, the newest, and how many they were."""
    alike: dict[tuple[str, ...], list[Told]] = {}
    for each in told:
        alike.setdefault((each.state, each.word, each.channel, each.what, each.trouble), []).append(each)
    for first, *rest in alike.values():
        yield replace(first, times=1 + len(rest))


def _by_what(told: Iterable[Told]) -> list[tuple[str, list[Told]]]:
    """What was told, and what became of each message that told it; the newest first."""
    kinds: dict[str, list[Told]] = {}
    for each in told:
        kinds.setdefault(each.what, []).append(each)
    return list(kinds.items())


def _history(actor: Actor) -> Iterable[Told]:
    sent = list(Message.objects.filter(user_id=actor.user_id).order_by("-created_at")[:10])
    kinds: dict[UUID, list[str]] = {}
    counted = Delivery.objects.filter(message__in=sent).values_list("message_id", "notice__kind").annotate(n=Count("pk"))
    for message_id, kind, _ in counted:
        kinds.setdefault(message_id, []).append(WORDS[kind][0])
    for each in sent:
        waits = "To be tried again" if each.trouble else "On its way"
        state, word = STATES.get(each.state, ("waiting", waits))
        words = ["A test"] if each.test else sorted(kinds.get(each.pk, []))
        more = f" and {len(words) - 1} more" if len(words) > 1 else ""
        channel = "E-mail" if each.channel == "mail" else "Webhook"
        yield Told(state, word, channel, each.settled_at or each.created_at, (words or ["–"])[0] + more, each.trouble)


def _minutes(span: timedelta) -> int:
    return int(span.total_seconds() // 60)


def _spell(span: timedelta) -> str:
    minutes = _minutes(span)
    hours, rest = divmod(minutes, 60)
    return " ".join(part for part in (f"{hours} h" if hours else "", f"{rest} min" if rest or not hours else "") if part)


@lru_cache(maxsize=1)
def zones() -> list[str]:
    return ["UTC", *sorted(name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "SystemV/", "US/")))]
