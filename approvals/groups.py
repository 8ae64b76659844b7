"""Reviewer groups: who is in one, and making, changing and closing them. The only writer of their rows.

A rule names a group by its id, so a group that is renamed stays the one that was named, also for what waits. Who may decide for it is asked
when somebody decides, under a lock of the group: of a decision and a change at once one comes first. Whoever is taken out counts no more
for what is not granted yet, and neither does what they approved before; both stay in the record.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q

from access import audit, characters, hiding, rules
from access.models import User, Workspace
from access.rules import Actor
from approvals import reasons
from approvals.errors import GroupChanged, GroupRefused, GroupTooSmall
from approvals.group_models import GroupMember, GroupVersion, ReviewerGroup
from approvals.models import Decision, Policy, PolicySet, ProposedAction
from artifacts import vault
from config import clock
from runs import live

MAX_GROUPS, MAX_MEMBERS, MAX_NAME, MAX_WHY = 50, 200, 60, 500
MANY = 100
HERE = "approvals.decide"


def make(workspace_id: UUID, *, name: str, members: Collection[UUID], by: Actor | None, why: str = "") -> ReviewerGroup:
    """A new group. GroupRefused says what is unfit. `by`: nobody where the installation sets it up, and then it needs no reason."""
    name = _name(name)
    _check_people(workspace_id, members, already=())
    _check_why(why, by)
    try:
        with transaction.atomic():
            Workspace.objects.select_for_update(no_key=True).get(pk=workspace_id)  # one at a time, so that they can be counted
            if ReviewerGroup.objects.filter(workspace_id=workspace_id).count() >= MAX_GROUPS:
                raise GroupRefused(f"There are {MAX_GROUPS} groups already, closed ones among them. Rename one that is no longer needed.")
            made = ReviewerGroup.objects.create(workspace_id=workspace_id, name=name)
            GroupMember.objects.bulk_create(GroupMember(group=made, user_id=pk, since=1) for pk in set(members))
            _write_down(made, members, by=by, why=why)
    except IntegrityError as error:
        raise _named_before(name) from error
    return made


def change(
    group: ReviewerGroup, *, name: str, members: Collection[UUID], closed: bool, by: Actor, why: str, base: int
) -> tuple[ReviewerGroup, int]:
    """Its next version, and how many approvals count no more by it. `base`: the version that was drawn; GroupChanged if it is another now.

    GroupRefused, GroupTooSmall if a rule in force could not be met any more.
    """
    name = _name(name)
    _check_why(why, by)
    try:
        with transaction.atomic():
            now = held(group.pk)
            if now.version != base:
                raise GroupChanged(f"Version {now.version} counts by now; yours was made from version {base}.")
            before = set(GroupMember.objects.filter(group=now).values_list("user_id", flat=True))
            _check_people(now.workspace_id, members, already=before)
            now.name, now.version = name, now.version + 1
            turned, opened = (now.closed_at is not None) != closed, now.closed_at is not None and not closed
            now.closed_at = (now.closed_at or clock.now()) if closed else None
            _check_rules(now, members)
            lost = approvals_of(now, before if turned else before - set(members))
            now.save(update_fields=["name", "version", "closed_at"])
            GroupMember.objects.filter(group=now).exclude(user__in=members).delete()
            if opened:  # nobody was in it meanwhile: what they approved before does not come back with it
                GroupMember.objects.filter(group=now).update(since=now.version)
            GroupMember.objects.bulk_create(GroupMember(group=now, user_id=pk, since=now.version) for pk in set(members) - before)
            _write_down(now, members, by=by, why=why)
            transaction.on_commit(partial(_tell, now.pk), robust=True)
    except IntegrityError as error:
        raise _named_before(name) from error
    return now, lost


# who ------------------------------------------------------------------------------------------------------------------------------


def held(group_id: UUID) -> ReviewerGroup:
    """The group as it is now, and as it stays until the transaction ends. Locked after the run and the action, before the limits."""
    return ReviewerGroup.objects.select_for_update(no_key=True).get(pk=group_id)


def asks(user_id: UUID | None) -> Q:
    """Actions about which all who may decide are asked, or a group that this person is in. For many rows what `has` is for one."""
    mine = GroupMember.objects.filter(user=user_id, group__closed_at=None).values("group")
    return Q(policy__group=None) | Q(policy__group__in=mine)


def has(group: ReviewerGroup, user_id: UUID | None) -> bool:
    return group.closed_at is None and GroupMember.objects.filter(group=group, user=user_id).exists()


def of(user_id: UUID | None) -> frozenset[UUID]:
    """The groups that this person is in and that decide."""
    return frozenset(GroupMember.objects.filter(user=user_id, group__closed_at=None).values_list("group_id", flat=True))


def since(group_id: UUID | None) -> Mapping[UUID, int]:
    """Who is in a group, and since which version of it."""
    return dict(GroupMember.objects.filter(group=group_id).values_list("user_id", "since")) if group_id else {}


def people(group: ReviewerGroup, able: Iterable[User] | None = None) -> list[User]:
    """Those in a group who may decide, by name; nobody once it is closed. `able`: who may on what is asked about; without: on anything."""
    inside = since(group.pk) if group.closed_at is None else {}
    return [user for user in (rules.some_holders(group.workspace_id, HERE) if able is None else able) if user.pk in inside]


def listed(workspace_id: UUID) -> list[tuple[ReviewerGroup, list[User]]]:
    """The groups of a workspace by name, those that are closed last, each with who of it may decide. Three queries."""
    found = sorted(
        ReviewerGroup.objects.filter(workspace_id=workspace_id), key=lambda each: (each.closed_at is not None, each.name.lower())
    )
    able = rules.some_holders(workspace_id, HERE) if found else []
    inside = set(GroupMember.objects.filter(group__in=found).values_list("group_id", "user_id")) if found else set()
    return [(each, [user for user in able if (each.pk, user.pk) in inside and each.closed_at is None]) for each in found]


def of_actions(ids: Iterable[UUID]) -> dict[UUID, tuple[str, frozenset[UUID], frozenset[UUID], int]]:
    """By action, for those about which a group is asked: what it is called, who is in it, who of them approved, and how many must.

    Two queries at most.
    """
    wanted = list(ids)
    if len(wanted) > MANY and not ReviewerGroup.objects.exists():
        return {}
    rows = ProposedAction.objects.filter(pk__in=wanted, policy__group__isnull=False)
    named: dict[UUID, tuple[str, int]] = {}
    inside: dict[UUID, dict[UUID, int]] = defaultdict(dict)
    told = ("name", "closed_at", "members__user", "members__since")
    for pk, quorum, name, closed, user, since_ in rows.values_list("pk", "policy__quorum", *(f"policy__group__{each}" for each in told)):
        named[pk] = (name, quorum)
        if user is not None and closed is None:
            inside[pk][user] = since_
    approved = _approved(named) if named else {}
    return {pk: (name, frozenset(inside[pk]), _counted(approved.get(pk, ()), inside[pk]), quorum) for pk, (name, quorum) in named.items()}


def _counted(given: Iterable[tuple[UUID, int]], since_: Mapping[UUID, int]) -> frozenset[UUID]:
    """Whose approvals count: who has been in the group ever since."""
    return frozenset(user for user, version in given if user in since_ and since_[user] <= version)


def _approved(ids: Collection[UUID]) -> dict[UUID, list[tuple[UUID, int]]]:
    """By action, who approved it as it is, and which version of its group they were in then."""
    given = Decision.objects.filter(action__in=ids, verdict="approved", round=F("action__round"), digest=F("action__digest"))
    found: dict[UUID, list[tuple[UUID, int]]] = defaultdict(list)
    for pk, reviewer, version in given.values_list("action", "reviewer", "group_version"):
        found[pk].append((reviewer, version or 0))
    return found


def approvals_of(group: ReviewerGroup, left: Collection[UUID]) -> int:
    """How many approvals of what waits for this group are by these people, given as who they are in it since."""
    rows = Decision.objects.filter(action__state="waiting", action__policy__group=group, verdict="approved", reviewer__in=left)
    now = rows.filter(round=F("action__round"), digest=F("action__digest"))
    still = GroupMember.objects.filter(group=group, user=OuterRef("reviewer"), since__lte=OuterRef("group_version"))
    return now.filter(Exists(still)).count() if left else 0


# rules ----------------------------------------------------------------------------------------------------------------------------


def check(workspace_id: UUID, drafted: Iterable[Policy], *, hold: bool = True) -> None:
    """Refuse rules that nobody could meet: of a group that is closed or not of here, or of too few people.

    `hold`: the groups stay as they are until the caller's transaction ends, so that what is saved is what was checked.
    """
    named = [rule for rule in drafted if rule.group_id is not None]
    if not named:
        return
    rows = ReviewerGroup.objects.filter(workspace_id=workspace_id, pk__in={rule.group_id for rule in named}).order_by("pk")
    found = {each.pk: each for each in (rows.select_for_update(no_key=True) if hold else rows)}
    for rule in named:
        group = found.get(rule.group_id)
        if group is None:
            raise GroupRefused(f"“{rule.name}” asks a group that is not in this workspace.")
        if group.closed_at is not None:
            raise GroupRefused(f"“{rule.name}” asks {group.name}, which is closed: nobody decides for it.")
        _check_size(group, people(group), rule)


def asked_by(workspace_id: UUID) -> dict[UUID, list[Policy]]:
    """By group: the rules in force that ask it."""
    newest = PolicySet.objects.filter(workspace_id=workspace_id).order_by("-version").values("pk")[:1]
    found: dict[UUID, list[Policy]] = {}
    for rule in Policy.objects.filter(policy_set__in=newest, group__isnull=False).order_by("position"):
        found.setdefault(rule.group_id, []).append(rule)
    return found


def rules_of(group: ReviewerGroup) -> list[Policy]:
    """The rules in force that ask this group."""
    return asked_by(group.workspace_id).get(group.pk, [])


def _check_rules(group: ReviewerGroup, members: Collection[UUID]) -> None:
    able = [user for user in rules.some_holders(group.workspace_id, HERE) if user.pk in set(members)]
    for rule in rules_of(group):
        if group.closed_at is not None:
            raise GroupRefused(f"Rule {rule.position}, “{rule.name}”, asks it. Let that rule ask somebody else first.")
        _check_size(group, able, rule)


def _check_size(group: ReviewerGroup, able: Sequence[User], rule: Policy) -> None:
    if len(able) < rule.needs and rule.outcome != "never":
        there = {0: "nobody", 1: "one person"}.get(len(able), f"{len(able)} people")
        raise GroupTooSmall(f"“{rule.name}” asks {rule.needs} of {group.name}, in which {there} may decide: that could never be met.")


# what is kept ---------------------------------------------------------------------------------------------------------------------


def _write_down(group: ReviewerGroup, members: Collection[UUID], *, by: Actor | None, why: str) -> None:
    kept = vault.keep(group.workspace_id, why.strip(), label="internal") if why.strip() else None
    GroupVersion.objects.create(
        group=group,
        version=group.version,
        name=group.name,
        members=sorted(map(str, members)),
        closed=group.closed_at is not None,
        why=kept,
        saved_by_id=by.user_id if by else None,
    )
    if by is not None:
        told = {"version": group.version, "members": len(set(members)), "closed": group.closed_at is not None}
        audit.record(by, "group_saved", workspace_id=group.workspace_id, subject=("group", group.pk), **told)


def _tell(group_id: UUID) -> None:
    """Open pages look again: what waits for the group may be somebody else's now."""
    waiting = ProposedAction.objects.filter(state="waiting", policy__group=group_id).values_list("run_id", "workspace_id", "run__seq")
    for run_id, workspace_id, seq in waiting[:1]:  # an inbox looks at all that waits, whichever run is named
        live.wake(run_id, workspace_id, seq)


def _name(text: str) -> str:
    name = " ".join(text.split())
    if not 1 <= len(name) <= MAX_NAME:
        raise GroupRefused(f"Its name has 1 to {MAX_NAME} characters.")
    if held := hiding.detectors.holds(name):
        raise GroupRefused(f"Its name holds what looks like {held}, and everybody sees it.")
    if characters.has_hidden(name):
        raise GroupRefused("Its name has a character that nobody can see.")
    if odd := characters.passing(name):
        raise GroupRefused(f"Its name has {odd}: it would be read as another group.")
    return name


def _named_before(name: str) -> GroupRefused:
    return GroupRefused(f"There is a group “{name}” already, or was. A closed one can be opened again.")


def _check_why(why: str, by: Actor | None) -> None:
    if by is not None and (trouble := reasons.trouble(why, MAX_WHY)):
        raise GroupRefused(trouble)


def _check_people(workspace_id: UUID, members: Collection[UUID], *, already: Collection[UUID]) -> None:
    """Who comes in must be allowed to decide; who is in and lost that right since may stay, and does not count."""
    if len(set(members)) > MAX_MEMBERS:
        raise GroupRefused(f"A group has at most {MAX_MEMBERS} people.")
    able = {user.pk for user in rules.some_holders(workspace_id, HERE)}
    if set(members) - able - set(already):
        raise GroupRefused("Only people who may decide can be in a group.")
