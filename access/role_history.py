"""What was changed about who may do what, read from the audit trail."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from access import naming, permissions, reasons
from access.ids import as_number, as_uuid
from access.models import AuditEntry, Role, RoleVersion

# verb → what the page of permissions says of it
CHANGES = {
    "role_made": "Made",
    "role_changed": "Changed",
    "role_retired": "Retired",
    "role_change_asked": "Asked for a change of",
    "role_change_refused": "Refused a change of",
    "role_change_withdrawn": "Withdrew a change of",
    "role_change_overtaken": "Could not confirm a change of",
}
IN_FORCE = ("role_made", "role_changed", "role_retired", "policy_saved", "group_saved")
SHOWN = 100


@dataclass(frozen=True)
class Last:
    """The newest change of who may do what."""

    at: datetime
    by: str


@dataclass(frozen=True)
class Entry:
    """One act about a role."""

    at: datetime
    by: str
    what: str
    role: Role | None
    version: int | None
    second: str  # who had asked for what this person confirmed
    added: tuple[str, ...]
    removed: tuple[str, ...]
    why: str


def last(workspace_id: UUID) -> Last | None:
    found = AuditEntry.objects.filter(workspace_id=workspace_id, verb__in=IN_FORCE).order_by("-at").first()
    return Last(found.at, naming.people([found.actor_id]).get(found.actor_id, "Handrail")) if found else None


def entries(workspace_id: UUID) -> list[Entry]:
    """The newest acts about roles. Five queries at most."""
    found = list(AuditEntry.objects.filter(workspace_id=workspace_id, verb__in=CHANGES).order_by("-at")[:SHOWN])
    names = naming.people([each.actor_id for each in found] + [each.data.get("asked_by", "") for each in found])
    ids = {number for each in found if (number := as_number(each.subject_id, digits=18)) is not None}
    here = Role.objects.in_bulk(ids)
    whys = {(pk, number): why for pk, number, why in RoleVersion.objects.filter(role__in=ids).values_list("role_id", "version", "why")}
    given = {each.pk: as_uuid(str(each.data.get("why", ""))) for each in found}  # an entry of before has none
    words = reasons.shown([*whys.values(), *given.values()])
    said = {key: words.get(why, "") for key, why in whys.items()}
    return [_entry(each, names, here, said, words.get(given[each.pk] or UUID(int=0), "")) for each in found]


def _entry(of: AuditEntry, names: dict[str, str], here: dict[int, Role], whys: dict[tuple[int, int], str], given: str) -> Entry:
    role = here.get(as_number(of.subject_id, digits=18))
    version = of.data.get("version")
    return Entry(
        of.at,
        names.get(of.actor_id, "Handrail"),
        CHANGES[of.verb],
        role,
        version,
        names.get(of.data.get("asked_by", ""), ""),
        tuple(permissions.right(each).title for each in of.data.get("added", ())),
        tuple(permissions.right(each).title for each in of.data.get("removed", ())),
        given or (whys.get((role.pk, version), "") if role and version else ""),
    )
