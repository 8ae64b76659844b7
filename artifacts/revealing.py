"""Where a payload stands that somebody wants to see, and whether they may see it. `reveal.py` is what then shows and records it.

The other rooms tell what this one can't know: `places` finds what stands at an event or on a card, `judges` says which open action gives
somebody the right. They register themselves at start-up; a place that nobody registered does not exist.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal
from uuid import UUID

from django.urls import reverse

from access import rules
from access.errors import Forbidden, NotFound, NotSignedIn
from access.rules import Actor
from artifacts.detectors import PATH, SECRET
from artifacts.models import Artifact, Label, Payload
from artifacts.rendition import PROMPT, UNREADABLE, WORDS, is_cut

NEVER = frozenset({SECRET, PATH, PROMPT})  # hidden from everybody, also in what is revealed
REVEALABLE = frozenset(WORDS) - NEVER
FOR_A_TIME, WHILE_OPEN = timedelta(minutes=10), timedelta(hours=1)  # the latter: of a page that nobody closes
INTERNAL, PERSONAL = "reveal.internal", "reveal.personal"
Frame = Literal["paper", "file", "evidence", "log"]


@dataclass(frozen=True)
class Place:
    """Where a payload stands. `key` names the place in addresses, `back` is its page, `name` what people call what stands there."""

    key: str
    payload: Payload
    run_id: UUID
    back: str
    name: str
    frame: Frame = "paper"
    artifact_id: UUID | None = None
    seq: int = 0  # of the event that holds it, if that is known
    judged: UUID | Literal[False] | None = None  # the open action that gives who asked the right; False: none does; None: ask `judges`

    @property
    def dom(self) -> str:
        """The id of the element in which it is shown."""
        return Place.dom_of(self.key)

    @staticmethod
    def dom_of(key: str) -> str:
        return "rv-" + hashlib.sha256(key.encode()).hexdigest()[:12]

    @property
    def hidden(self) -> dict[str, int]:
        """What is hidden and could be shown: kind → how many."""
        return {kind: count for kind, count in self.payload.findings.items() if kind not in NEVER}

    @property
    def count(self) -> int:
        return sum(self.hidden.values())

    @property
    def is_cut(self) -> bool:
        """There is more of it than a rendition shows."""
        return is_cut(self.payload.rendition or "")

    @property
    def is_file(self) -> bool:
        """Nothing in it is text: all of it is one hidden place."""
        return UNREADABLE in self.payload.findings


@dataclass(frozen=True)
class May:
    """May see it. `action`: the open action that gives the right; none: a capability does."""

    capability: str
    needs_reason: bool
    lasts: timedelta
    action: UUID | None = None

    @property
    def right(self) -> str:
        return rules.CAPABILITIES[self.capability]

    @property
    def minutes(self) -> int:
        return int(self.lasts.total_seconds() // 60)


@dataclass(frozen=True)
class MayNot:
    """May not see it. `why` is a whole sentence; `word`: erased, secret, nothing, agent or right."""

    word: str
    why: str


Finder = Callable[[Actor, Sequence[str]], Place]
Judge = Callable[[Actor, Place], UUID | None]
places: dict[str, Finder] = {}
judges: list[Judge] = []


def place(actor: Actor, key: str) -> Place:
    """What stands at the place of this key, for who may see that something does. NotFound, Forbidden or NotSignedIn."""
    if not actor.is_known:
        raise NotSignedIn
    if actor.kind != "human":
        raise Forbidden("Only people reveal what is hidden.")
    kind, *parts = key[:160].split(":")
    finder = places.get(kind)
    if finder is None:
        raise NotFound
    return finder(actor, parts)


def may(actor: Actor, at: Place) -> May | MayNot:
    """Whether this person may see now what is hidden there."""
    payload = at.payload
    if payload.erased_at is not None:
        return MayNot("erased", "It was erased for good. There is nothing left to reveal.")
    if payload.label == Label.SECRET or PROMPT in payload.findings and len(payload.findings) == 1:
        return MayNot("secret", "Secrets and prompts are shown to nobody. There is no right to reveal them.")
    if not at.count and not at.is_cut:
        return MayNot("nothing", "Nothing is hidden here that could be revealed.")
    if actor.kind != "human" or not actor.session:
        return MayNot("agent", "Only people who signed in to these pages reveal what is hidden.")
    found = _by_label(actor, at)
    if isinstance(found, May) and not found.action and not at.count:
        return MayNot("nothing", "Nothing is hidden here that could be revealed; there is only more of it than fits.")
    return found


def _by_label(actor: Actor, at: Place) -> May | MayNot:
    personal = at.payload.label == Label.PERSONAL
    lasts = FOR_A_TIME if personal else WHILE_OPEN
    held = PERSONAL if personal else INTERNAL
    if not personal and rules.can_of_run(actor, held, at.payload.workspace_id, at.run_id):
        return May(held, False, lasts)
    action = at.judged
    if action is None:
        action = next((found for judge in judges if (found := judge(actor, at))), None)
    if action:
        return May("approvals.decide", personal, lasts, action)
    if personal and rules.can_of_run(actor, held, at.payload.workspace_id, at.run_id):
        return May(held, True, lasts)
    whom = "Who decides on an open action may reveal what belongs to it"
    return MayNot("right", f"{whom}, and who holds “{rules.CAPABILITIES[held]}”.")


def of_artifact(actor: Actor, parts: Sequence[str]) -> Place:
    """`artifact:ID`."""
    related = ("payload", "payload__key", "payload__erased_by")
    found = rules.get(actor, Artifact, ":".join(parts), "artifacts.view", related=related)
    return at_artifact(found)


def at_artifact(artifact: Artifact) -> Place:
    """The place of an artifact on its own page."""
    back = reverse("artifacts:artifact", args=(artifact.pk,))
    return Place(f"artifact:{artifact.pk}", artifact.payload, artifact.run_id, back, artifact.name, artifact_id=artifact.pk)
