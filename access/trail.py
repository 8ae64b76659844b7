"""Reading the audit trail of a workspace: the newest entries first, page by page, narrowed by who, what, label, time and run."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet

from access import naming, rules
from access.audit import GROUPS, VERBS
from access.errors import BadInput
from access.ids import as_uuid
from access.models import Agent, AuditEntry, Membership, Role

PAGE = 50
COUNTED = 10_000  # entries that are counted; more are “10,000+”
LABELS = ("public", "internal", "personal", "secret")


class BadFilter(BadInput):
    """The access log can’t be searched like this."""

    what_next = "Nothing was searched. Choose again, or clear the filter."


@dataclass(frozen=True)
class Wanted:
    """What is looked for; empty: everything. `who`: human:ID, agent:ID, provisioner:ID or system; `since`, `until`: days, in UTC."""

    q: str = ""
    who: str = ""
    what: str = ""
    label: str = ""
    since: str = ""
    until: str = ""
    run: str = ""

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    def as_dict(self) -> dict[str, str]:
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}


@dataclass(frozen=True)
class Page:
    entries: list[AuditEntry]
    older: str  # the cursor of the next page; empty at the end


def wanted(given: Mapping[str, str]) -> Wanted:
    """The filter in a query or form; BadFilter says what in it can't be."""
    found = Wanted(**{field.name: str(given.get(field.name, "")).strip()[:200] for field in fields(Wanted)})
    if "\0" in "".join(found.as_dict().values()):
        raise BadFilter("It has a character that no text can have.")
    if found.what and found.what not in GROUPS:
        raise BadFilter("There is no such group of entries.")
    if found.label and found.label not in LABELS:
        raise BadFilter("There is no such label.")
    kind, _, pk = found.who.partition(":")
    if found.who and found.who != "system" and (kind not in ("human", "agent", "provisioner") or as_uuid(pk) is None):
        raise BadFilter("There is no such person or agent.")
    since, until = _day(found.since), _day(found.until)
    if since and until and until < since:
        raise BadFilter("The last day lies before the first.")
    return found


def page(workspace_id: UUID, asked: Wanted, *, before: str = "", size: int = PAGE) -> Page:
    """The next entries after the cursor `before`, the newest first. Two queries at most with their filters' own."""
    rows = after(found(workspace_id, asked), before).order_by("-at", "-pk")[: size + 1]
    entries = list(rows)
    more = len(entries) > size
    return Page(entries[:size], cursor(entries[size - 1]) if more else "")


def cursor(entry: AuditEntry) -> str:
    return f"{int(entry.at.timestamp() * 1_000_000)}.{entry.pk.hex}"


def after(rows: QuerySet[AuditEntry], before: str) -> QuerySet[AuditEntry]:
    """Those that stand after a cursor; BadFilter if it is none."""
    if not before:
        return rows
    at, _, pk = before.partition(".")
    found = as_uuid(pk)
    if not (at.isdecimal() and at.isascii() and len(at) <= 17) or found is None:
        raise BadFilter("This is no place in the access log.")
    moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(at))
    # the first condition is the second's and third's together: it is the one that the index is asked with
    return rows.filter(Q(at__lte=moment), Q(at__lt=moment) | Q(at=moment, pk__lt=found))


def count(workspace_id: UUID, asked: Wanted | None = None) -> int:
    """How many there are, up to COUNTED + 1."""
    return found(workspace_id, asked or Wanted())[: COUNTED + 1].count()


def found(workspace_id: UUID, asked: Wanted) -> QuerySet[AuditEntry]:
    """The entries that are asked for, in no order. What was asked has been checked: see `wanted`."""
    rows = AuditEntry.objects.filter(workspace_id=workspace_id)
    if asked.who:
        kind, _, pk = asked.who.partition(":")
        rows = rows.filter(actor_kind=kind, actor_id=str(as_uuid(pk))) if pk else rows.filter(actor_kind="system")
    if asked.what:
        rows = rows.filter(verb__in=[verb for verb, told in VERBS.items() if told.group == asked.what])
    if asked.label:
        rows = rows.filter(data__label=asked.label)
    if since := _day(asked.since):
        rows = rows.filter(at__gte=datetime.combine(since, time(), UTC))
    if until := _day(asked.until):
        rows = rows.filter(at__lte=datetime.combine(until, time.max, UTC))
    if asked.run:
        run = naming.run(workspace_id, asked.run)
        rows = rows.filter(_about_run(run)) if run else rows.none()
    return rows.filter(_says(workspace_id, asked.q)) if asked.q else rows


def _about_run(run_id: UUID) -> Q:
    actions = Q(subject_kind="action", subject_id__in=naming.within(run_id))
    return Q(subject_kind="run", subject_id=str(run_id)) | Q(data__run=str(run_id)) | actions


def _says(workspace_id: UUID, q: str) -> Q:
    """Entries by somebody of this name, about this run or a role of this name, or whose words have it."""
    low = q.lower()
    people = Membership.objects.filter(workspace_id=workspace_id, user__name__icontains=q).values_list("user_id", flat=True)
    agents = Agent.objects.filter(workspace_id=workspace_id, name__icontains=q).values_list("pk", flat=True)
    ids = [str(pk) for pk in [*people[:200], *agents[:200]]]
    roles = [str(pk) for pk in Role.objects.filter(workspace_id=workspace_id, name__icontains=q).values_list("pk", flat=True)[:200]]
    verbs = [verb for verb, told in VERBS.items() if low in told.words.lower() or low in GROUPS[told.group].lower()]
    rights = [right for right, words in rules.CAPABILITIES.items() if low in words.lower()]
    told = Q(actor_id__in=ids) | Q(subject_id__in=ids) | Q(verb__in=verbs) | Q(data__right__in=rights)
    told |= Q(subject_kind="role", subject_id__in=roles) | Q(data__role__icontains=q) | Q(data__was__icontains=q)
    if (exact := as_uuid(q)) is not None:
        told |= Q(subject_id=str(exact)) | Q(pk=exact)
    run = naming.run(workspace_id, q)
    return told | _about_run(run) if run else told


def _day(text: str) -> date | None:
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise BadFilter(f"“{text[:20]}” is no day. A day looks like 2026-11-24.") from None


def actors(workspace_id: UUID) -> list[tuple[str, str]]:
    """Who may be chosen: (value, name), people first. Two queries."""
    people = Membership.objects.filter(workspace_id=workspace_id).order_by("user__name").values_list("user_id", "user__name")[:500]
    agents = Agent.objects.filter(workspace_id=workspace_id).order_by("name").values_list("pk", "name")[:500]
    system = [("system", "Handrail itself")]
    return [(f"human:{pk}", name) for pk, name in people] + [(f"agent:{pk}", name) for pk, name in agents] + system
