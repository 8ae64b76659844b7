"""Done when 1 of the vault: what is secret or private goes in everywhere, and comes out nowhere but where a rule says so.

The rule: what the house hides from everybody (`KINDS`, and what its key makes known) is in no output at all, whatever its label. E-mail
addresses and telephone numbers are in none if they were given under the label personal; under public and internal they may be seen.
`MAY` is all that there is of exceptions; each of them is asserted to be needed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.approvals.noticing import Clock, mail_server, tick, web_server
from tests.canaries import outputs
from tests.canaries.garden import Canary, batches
from tests.canaries.values import BY_KEY, DRESSES, KINDS, PERSONAL
from tests.canaries.world import Output, World, planted
from tests.test_who_may import no_connection_left, people, things  # noqa: F401  fixtures

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long, pytest.mark.any_database]


@dataclass(frozen=True)
class May:
    """Who sees what in full, where, and why."""

    where: str
    who: str
    place: str
    why: str


MAY = [
    May(
        r"(GET|POST) /(inbox|actions/)|websocket /ws/pages/inbox",
        "riley|sam",
        "arguments of the",
        "who decides on an action reads its arguments in full, on its card, where it is edited, and beside those that are alike",
    ),
    May(
        r"(GET|POST) (/api/v1/)?runs/[^/]+/steps",
        "agent",
        "step result",
        "an agent that holds the lease of its run goes on from its own results",
    ),
]


def test_what_is_secret_or_private_goes_in_everywhere_and_comes_out_nowhere(cast, things, settings, monkeypatch) -> None:  # noqa: F811
    settings.HANDRAIL_PRIVATE_WEBHOOKS = True
    with mail_server(settings) as mailbox, web_server() as hook:
        world = planted(cast, hook=hook.url)
        _told(world, Clock(monkeypatch), mailbox, hook)
    outputs.forms(world, things)
    outputs.pages(world, things)
    outputs.streams(world, things)
    outputs.long_polls(world)
    outputs.commands(world)
    assert len({canary.kind for canary in world.garden.planted}) >= 40 <= len(KINDS) + len(PERSONAL) + len(BY_KEY)
    assert {canary.dress for canary in world.garden.planted} == set(DRESSES)
    broken = [out.where for out in world.outputs if "→ 50" in out.where]
    assert not broken
    used: set[May] = set()
    shown, leaks = set(), {}
    for out in _once(world.outputs):
        for canary in world.garden.seen_in(out.body):
            if _may_be_seen(canary):
                shown.add(canary.place)
            elif canary.place not in out.typed:
                may = next((may for may in MAY if _covers(may, out, canary)), None)
                used |= {may} if may else set()
                leaks.setdefault(f"{out.where} to {out.who}", []).extend([] if may else [canary])
    told = [f"{where}: {each}" for where, canaries in leaks.items() if canaries for each in batches(canaries)]
    assert not told, f"{len(told)} leaks\n" + "\n".join(told[:60])
    assert used == set(MAY), "an exception that nothing needs"
    assert len(shown) > 15, "the search finds what may be seen"


def _may_be_seen(canary: Canary) -> bool:
    return canary.kind in PERSONAL and not re.search(r"personal|secret", canary.place)


def _covers(may: May, out: Output, canary: Canary) -> bool:
    return bool(re.match(may.where, out.where) and re.fullmatch(may.who, out.who) and canary.place.startswith(may.place))


def _once(every: list[Output]) -> Iterator[Output]:
    """Without those that say the same as another to somebody else."""
    seen: set[tuple[str, bytes]] = set()
    for out in every:
        if (out.who, out.body) not in seen:
            seen.add((out.who, out.body))
            yield out


def _told(world: World, time: Clock, mailbox, hook) -> None:
    """Everything that anybody is told by mail and webhook of what happened so far, and what is reminded of and escalated later."""
    for step in ({"seconds": 0}, {"seconds": 10}, {"hours": 3}, {"hours": 2}):
        time.on(**step)
        tick()
    time.by *= 0
    assert mailbox.mails and hook.posts
    world.outputs += [Output(f"mail to {mail['To']}", "mail", mail.as_bytes()) for mail in mailbox.mails]
    world.outputs += [Output("webhook", "webhook", f"{heads}".encode() + body) for heads, body in hook.posts]
