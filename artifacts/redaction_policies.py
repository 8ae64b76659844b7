"""Redaction policies: what is hidden beside what detectors find. The only writer of them, and where the pipeline asks for them.

A policy hides what a path names in the JSON texts of some events and tools, or shows again what an earlier policy hides; what a detector
finds stays hidden, whatever a policy says. It holds for what is kept from now on; what was kept before is rendered anew by a job
(`artifacts.rerendering`), which hides more and never less.
"""

import re
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from access import audit, reasons
from access.errors import BadInput, Refusal
from access.models import Workspace
from access.rules import Actor
from artifacts.detectors import KINDS
from artifacts.json_paths import Rule, compiled
from artifacts.models import Payload, RedactionPolicy
from artifacts.redaction import DEFAULT, Policy, Rendition, redact
from artifacts.revealing import NEVER
from config import clock

MAX_POLICIES = 100  # in force in one workspace
REMEMBERED = 5.0  # seconds in which another process may not know of a new one yet
_GLOB = re.compile(r"[A-Za-z0-9_.*?:@/+-]{1,60}")


class PolicyRefused(BadInput):
    """This policy can't be kept."""

    what_next = "Nothing was changed. Mend what is said here."


class RedactionChanged(Refusal):
    """The policies changed meanwhile."""

    what_next = "Nothing was changed. Look at what is in force now, and save again."


@dataclass(frozen=True)
class About:
    """What a text belongs to: the type of its event and the tool, where there are such."""

    event: str = ""
    tool: str = ""

    def __str__(self) -> str:
        return f"{self.event} {self.tool}" if self.event or self.tool else ""


_NOTHING = About()
_about: ContextVar[About] = ContextVar("redaction_about", default=_NOTHING)


def about(event: str = "", tool: str = "") -> AbstractContextManager[None]:
    """What is sealed in here belongs to this."""
    return _Within(About(event, tool))


class _Within:
    def __init__(self, of: About) -> None:
        self._of = of

    def __enter__(self) -> None:
        self._before = _about.set(self._of)

    def __exit__(self, *error: object) -> None:
        _about.reset(self._before)


def now_about() -> About:
    return _about.get()


def kept(workspace_id: UUID) -> tuple[int, Policy] | None:
    """For `artifacts.ruling`: the version of a workspace's own policies, and what is in force. None if it never had any."""
    read_at, found = _known.get(workspace_id, (0.0, None))
    if read_at and time.monotonic() - read_at < REMEMBERED:
        return found
    rows = list(RedactionPolicy.objects.filter(workspace_id=workspace_id).order_by("number"))
    found = (_version(rows), replace(DEFAULT, rules=_rules(rows))) if rows else None
    if len(_known) > 1000:
        _known.clear()
    _known[workspace_id] = time.monotonic(), found
    return found


_known: dict[UUID, tuple[float, tuple[int, Policy] | None]] = {}


def never(payload: Payload) -> tuple[Rule, ...]:
    """What policies hide in it from everybody, also from who reveals: what any of them, since it was kept, hid as a secret, a prompt or
    a path. What showed it again counts if it did so before and does so still."""
    since = payload.created_at - timedelta(seconds=REMEMBERED)
    rows = RedactionPolicy.objects.filter(workspace_id=payload.workspace_id).order_by("number")
    hiding = Q(kind__in=NEVER) & (Q(withdrawn_at=None) | Q(withdrawn_at__gt=since))
    found = [_rule(row) for row in rows.filter(hiding | Q(withdrawn_at=None, made_at__lte=since))]
    if not any(rule.kind in NEVER for rule in found):
        return ()
    return tuple(rule if rule.kind in NEVER else replace(rule, kind="") for rule in found)


def _rules(rows: Iterable[RedactionPolicy]) -> tuple[Rule, ...]:
    return tuple(_rule(row) for row in rows if row.withdrawn_in is None)


def _rule(row: RedactionPolicy) -> Rule:
    return Rule(row.path, row.kind, row.event, row.tool)


def _version(rows: Iterable[RedactionPolicy]) -> int:
    return max((max(row.number, row.withdrawn_in or 0) for row in rows), default=0)


# changing ------------------------------------------------------------------------------------------------------------------------------


def version(workspace_id: UUID) -> int:
    """How often the policies of a workspace changed."""
    return _version(RedactionPolicy.objects.filter(workspace_id=workspace_id))


def make(workspace_id: UUID, *, by: Actor, event: str, tool: str, path: str, kind: str, why: str | UUID, base: int) -> RedactionPolicy:
    """A policy in force from now on. `base`: the version that its maker looked at. PolicyRefused, PathRefused, RedactionChanged.

    Whether a second admin is needed: see redaction_changes.py.
    """
    fields = checked(event, tool, path, kind)
    with transaction.atomic():
        number = _next(workspace_id, base)
        if RedactionPolicy.objects.filter(workspace_id=workspace_id, withdrawn_in=None).count() >= MAX_POLICIES:
            raise PolicyRefused(f"There are {MAX_POLICIES} already. Withdraw one that is no longer needed.")
        said = reasons.keep(workspace_id, why)
        made = RedactionPolicy.objects.create(workspace_id=workspace_id, number=number, why=said, made_by_id=by.user_id, **fields)
        told = {"number": number, "why": str(said)}
        audit.record(by, "redaction_policy_made", workspace_id=workspace_id, subject=("redaction_policy", made.pk), **told)
        transaction.on_commit(lambda: _known.pop(workspace_id, None))
    return made


def withdraw(row: RedactionPolicy, *, by: Actor, why: str | UUID, base: int) -> None:
    """It holds no longer for what is kept from now on. What it hid stays hidden."""
    with transaction.atomic():
        number = _next(row.workspace_id, base)
        said = reasons.keep(row.workspace_id, why)
        gone = {"withdrawn_in": number, "withdrawn_by_id": by.user_id, "withdrawn_at": clock.now(), "withdrawn_why": said}
        if RedactionPolicy.objects.filter(pk=row.pk, withdrawn_in=None).update(**gone) != 1:
            raise RedactionChanged("It was withdrawn already.")
        told = {"number": number, "why": str(said)}
        audit.record(by, "redaction_policy_withdrawn", workspace_id=row.workspace_id, subject=("redaction_policy", row.pk), **told)
        transaction.on_commit(lambda: _known.pop(row.workspace_id, None))


def checked(event: str, tool: str, path: str, kind: str) -> dict[str, str]:
    """The fields of a policy that can be kept."""
    event, tool, path = event.strip() or "*", tool.strip() or "*", path.strip()
    for name, glob in (("event type", event), ("tool", tool)):
        if not _GLOB.fullmatch(glob):
            raise PolicyRefused(f"The {name} is a name, in which * and ? may stand for what is not named.")
    if kind and kind not in KINDS:
        raise PolicyRefused("Say as what it is hidden, or that it is shown.")
    compiled(path)
    return {"event": event, "tool": tool, "path": path, "kind": kind}


def check_base(workspace_id: UUID, base: int) -> None:
    """RedactionChanged if another version is in force than the one it was made from."""
    current = version(workspace_id)
    if current != base:
        raise RedactionChanged(f"Version {current} is in force; yours was made from version {base}.")


def _next(workspace_id: UUID, base: int) -> int:
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace_id)  # of two at once the second is told
    check_base(workspace_id, base)
    return base + 1


# trying --------------------------------------------------------------------------------------------------------------------------------


def tried(workspace_id: UUID, sample: str, *, label: str, of: About, draft: RedactionPolicy | None = None) -> tuple[Rendition, Rendition]:
    """What would be shown of some JSON now, and with a policy that is not kept yet."""
    rows = list(RedactionPolicy.objects.filter(workspace_id=workspace_id, withdrawn_in=None).order_by("number"))
    how = {"media_type": "application/json", "label": label, "about": str(of)}
    now, then = (replace(DEFAULT, rules=_rules(each)) for each in (rows, [*rows, draft] if draft else rows))
    return redact(sample.encode(), policy=now, **how), redact(sample.encode(), policy=then, **how)
