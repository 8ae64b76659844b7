"""Erasing for good: which payloads, what else holds the same text, whether something needs it still, and who did it and why.

The log keeps its numbering and its hashes: an erased payload leaves its commitment, and a run of which everything was erased verifies.
Copies count: the same text stands in a journal, in an action's arguments, in a fork. They are looked for in all runs of the family
(parents, children, forks), and go along; if one of them is needed, nothing goes.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar
from uuid import UUID

import orjson
from django.db import transaction
from django.db.models import Q

from access import audit, rules
from access.errors import BadInput, Forbidden, Refusal
from access.models import User
from access.rows import only
from access.rules import Actor
from artifacts import vault
from artifacts.models import Artifact, Payload
from runs import uploads
from runs.models import AgentStep, Event, JournalEntry, ReceivedWebhook, Run, Signal

REASONS: Mapping[str, str] = {
    "asked": "The person it is about asked for it",
    "exposed": "It holds private data or a secret that should not be here",
    "mistake": "It was kept by mistake",
    "no_longer": "It is no longer needed",
    "other": "Another reason, in words",
}
MAX_WORDS = 500
LOOKED_FOR = 12  # bytes: what is shorter is not looked for inside of other texts, or half of everything would hold it
_AT_ONCE = 200  # payloads opened at a time

# what other rooms hold of some runs, and why something of theirs is needed still; each adds its own at start-up
holders: list[Callable[[Collection[UUID]], Iterable[UUID]]] = []
needs: list[Callable[[Collection[UUID]], Iterable[str]]] = []
# what other rooms keep of the thing that an event began: its words, and the payloads; nothing, if it began nothing of theirs
parts: list[Callable[[Run, int], tuple[str, Collection[UUID]]]] = []


class StillNeeded(Refusal):
    """This is needed still, so nothing was erased."""


class NotSaidWhy(BadInput):
    """Erasing takes a reason."""

    what_next: ClassVar[str] = "Nothing was erased. Choose a reason; “another reason” takes words of yours."


class OtherThanShown(Refusal):
    """What would be erased is not what was shown."""

    what_next: ClassVar[str] = "Nothing was erased. Look at what it is now, and say so again."


class NothingToErase(Refusal):
    """All of this has been erased already."""

    status = 410


@dataclass(frozen=True)
class Plan:
    """What erasing would take: `chosen`, the `copies` that go along, and why it can't be done now (`held`; empty: it can)."""

    run: Run
    chosen: tuple[UUID, ...]
    copies: tuple[UUID, ...]
    held: tuple[str, ...]

    @property
    def all(self) -> tuple[UUID, ...]:
        return self.chosen + self.copies

    @property
    def digest(self) -> str:
        """Names exactly these payloads: what is confirmed is what was shown."""
        return hashlib.sha256(b"".join(sorted(pk.bytes for pk in self.all))).hexdigest()


def plan(run: Run, payloads: Iterable[UUID]) -> Plan:
    """Look, and change nothing. `payloads` are of this run. NothingToErase if they are erased already."""
    chosen = tuple(Payload.objects.filter(pk__in=set(payloads), erased_at=None).order_by("pk").values_list("pk", flat=True))
    if not chosen:
        raise NothingToErase
    runs = family(run)
    held = tuple(why for need in (_not_ended, *needs) for why in need([each.pk for each in runs]))
    return Plan(run, chosen, () if held else tuple(_copies(runs, chosen)), held)


def erase(run: Run, payloads: Iterable[UUID], *, by: Actor, reason: str, words: str = "", shown: str = "") -> Plan:
    """Erase them and their copies. `shown`: the digest of the plan that was confirmed; OtherThanShown if it is another by now.

    `by` is a person with the right to; StillNeeded, NotSaidWhy or NothingToErase erase nothing.
    """
    if by.user_id is None or not rules.can(by, "payloads.erase", run.workspace_id):
        raise Forbidden(f"This needs the right “{rules.CAPABILITIES['payloads.erase']}”.", capability="payloads.erase")
    words = words.strip()
    if reason not in REASONS or (reason == "other" and not words) or len(words) > MAX_WORDS:
        raise NotSaidWhy(f"At most {MAX_WORDS} characters." if len(words) > MAX_WORDS else "")
    chosen = list(payloads)
    with transaction.atomic():
        # their rows are locked first: no run of the family ends, or begins to need something, while it is looked at
        list(Run.objects.select_for_update().filter(pk__in=[each.pk for each in family(run)]).order_by("pk").values_list("pk"))
        found = plan(run, chosen)
        if found.held:
            raise StillNeeded(" ".join(found.held), held=list(found.held))
        if shown and shown != found.digest:
            raise OtherThanShown
        why = vault.keep(run.workspace_id, words, label="internal").pk if words else None
        for pk in vault.erase_all(found.all, by=User.objects.get(pk=by.user_id), why=reason):
            told = {"run": str(run.pk), "reason": reason, "copy": pk in found.copies} | ({"words": str(why)} if why else {})
            audit.record(by, "payload_erased", workspace_id=run.workspace_id, subject=("payload", pk), **told)
    return found


# what there is to erase ---------------------------------------------------------------------------------------------------------------


def of_artifact(run: Run, name: str, version: int | None = None) -> list[UUID]:
    """The payloads of an artifact's versions, or of one."""
    made = Artifact.objects.filter(run_id=run.pk, name=name)
    return list((made.filter(version=version) if version else made).values_list("payload_id", flat=True))


def of_event(run: Run, seq: int, role: str = "") -> list[UUID]:
    """The payloads that an event names, or the one in this role."""
    told = only(Event.objects.filter(run_month=run.month, run_id=run.pk, seq=seq).values_list("payloads", flat=True)) or {}
    return [UUID(pk) for named, pk in told.items() if role in ("", named)]


def roles_of(run: Run, seq: int) -> list[str] | None:
    """The names under which an event has texts; None if there is no such event."""
    told = only(Event.objects.filter(run_month=run.month, run_id=run.pk, seq=seq).values_list("payloads", flat=True))
    return None if told is None else list(told)


def parts_of(run: Run, seq: int) -> dict[str, Collection[UUID]]:
    """What other rooms keep of the thing that this event began, by its words."""
    return {words: found for part in parts for words, found in [part(run, seq)] if found}


def of_runs(runs: Collection[UUID]) -> set[UUID]:
    """Every payload that these runs hold, in whatever row."""
    found: set[UUID | None] = set()
    for row in Run.objects.filter(pk__in=runs).values_list("title", "summary", "input"):
        found.update(row)
    for told in Event.objects.filter(run_id__in=runs).values_list("payloads", flat=True).iterator(chunk_size=2000):
        found.update(UUID(pk) for pk in told.values())
    for row in JournalEntry.objects.filter(run_id__in=runs).values_list("result", "edits"):
        found.update(row)
    found.update(AgentStep.objects.filter(run_id__in=runs).values_list("result", flat=True))
    found.update(Signal.objects.filter(run_id__in=runs).values_list("note", flat=True))
    found.update(ReceivedWebhook.objects.filter(run_id__in=runs).values_list("body", flat=True))
    found.update(Artifact.objects.filter(run_id__in=runs).values_list("payload_id", flat=True))
    for holder in holders:
        found.update(holder(runs))
    return {pk for pk in found if pk is not None}


def family(run: Run) -> list[Run]:
    """A run with its parents, its children and all that were forked from one another: they hold each other's texts."""
    known, fresh = {run.pk}, [run]
    found = [run]
    while fresh:
        roots = {each.root_id or each.pk for each in fresh}
        lines = {each.lineage or each.pk for each in fresh}
        near = Q(pk__in=roots | lines) | Q(root__in=roots) | Q(lineage__in=lines)
        fresh = [
            each for each in Run.objects.filter(near).only("id", "ref", "state", "root", "lineage", "month", "created_at", "workspace")
        ]
        fresh = [each for each in fresh if each.pk not in known]
        known.update(each.pk for each in fresh)
        found += fresh
    return found


# whether it can go --------------------------------------------------------------------------------------------------------------------


def _not_ended(runs: Collection[UUID]) -> Iterator[str]:
    open_ones = Run.objects.filter(pk__in=runs, ended_at=None).order_by("created_at").values_list("ref", flat=True)
    if refs := list(open_ones[:4]):
        named = ", ".join(refs[:3]) + (" and others" if len(refs) > 3 else "")
        yield f"{named} {'have' if len(refs) > 1 else 'has'} not ended. Cancel {'them' if len(refs) > 1 else 'it'}, or wait for the end."


def _copies(runs: Sequence[Run], chosen: Collection[UUID]) -> Iterator[UUID]:
    """The other payloads in which the same text stands: as it is, within another, or escaped in JSON, or in base64."""
    needles = [each for each in _opened(chosen) if each[1]]
    least = min((len(text) for _, text in needles), default=0)
    if not least:
        return
    pool = of_runs([each.pk for each in runs]) | set(_uploaded(runs))
    looked_for = [_Needle.of(text) for _, text in needles]
    for pk, content in _opened(pool - set(chosen), least=least):
        if any(needle.is_in(content) for needle in looked_for):
            yield pk


def _uploaded(runs: Sequence[Run]) -> Iterator[UUID]:
    """Messages that were uploaded to start one of these runs: no row names them."""
    for run in runs:
        near = (run.created_at - timedelta(minutes=uploads.MINUTES), run.created_at)
        kept = Payload.objects.filter(workspace_id=run.workspace_id, media_type=uploads.MEDIA_TYPE, created_at__range=near)
        yield from kept.values_list("pk", flat=True)


def _opened(ids: Collection[UUID], least: int = 0) -> Iterator[tuple[UUID, bytes]]:
    """Those that are there and have so many bytes, with their bytes. What does not open is nobody's copy that could be read."""
    todo = sorted(ids)
    for at in range(0, len(todo), _AT_ONCE):
        some = Payload.objects.select_related("key").filter(pk__in=todo[at : at + _AT_ONCE], erased_at=None, size__gte=least)
        for payload in some.order_by("pk"):
            content = vault.opened(payload)
            if content is not None:
                yield payload.pk, content


@dataclass(frozen=True)
class _Needle:
    """A text, and the forms in which it may stand inside of another."""

    whole: bytes
    forms: tuple[bytes, ...]

    @classmethod
    def of(cls, content: bytes) -> "_Needle":
        text = content.strip()
        if len(text) < LOOKED_FOR:
            return cls(content, ())
        forms = [text, base64.b64encode(content)]
        try:
            words = text.decode()
        except UnicodeDecodeError:
            return cls(content, tuple(forms))
        escaped = orjson.dumps(words)[1:-1]
        twice = orjson.dumps(escaped.decode())[1:-1]  # JSON in a string of JSON
        return cls(content, (*forms, escaped, twice, json.dumps(words).encode()[1:-1]))

    def is_in(self, content: bytes) -> bool:
        return content == self.whole or any(form in content for form in self.forms)
