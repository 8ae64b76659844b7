"""A change of somebody's rights is noticed: by the next request, and by every stream that is open."""

import pytest
from django.test import Client

from access import keys, rules, standing
from access.models import User
from access.rules import SYSTEM
from config import clock
from tests.cast import Cast
from tests.factories import actor, bearer


def version(user: User) -> int:
    return User.objects.values_list("access_version", flat=True).get(pk=user.pk)


def test_the_key_of_an_agent_whose_owner_left_the_workspace_lets_nobody_in(cast: Cast) -> None:
    _, token = keys.make(cast.agent, name="test", by=SYSTEM)
    before, member = bearer(token), cast.priya.memberships.get()
    assert before.kind == "agent" and rules.changed({before.standing}) == set()
    member.deactivated_at = clock.now()
    member.save()
    assert bearer(token) == rules.NOBODY == rules.refresh(before)
    assert rules.changed({before.standing}) == {before.standing}
    assert Client(headers={"Authorization": f"Bearer {token}"}).get("/api/v1/runs").status_code == 401
    member.deactivated_at = None
    member.save()
    assert bearer(token).id == str(cast.agent.pk)
    member.delete()
    assert bearer(token) == rules.NOBODY


def test_a_membership_elsewhere_does_not_keep_a_key_good(cast: Cast) -> None:
    _, token = keys.make(cast.agent, name="test", by=SYSTEM)
    cast.elsewhere.memberships.create(user=cast.priya, role=cast.elsewhere.roles.first())
    assert bearer(token).kind == "agent"
    cast.priya.memberships.filter(workspace=cast.workspace).delete()
    assert bearer(token) == rules.NOBODY


@pytest.mark.parametrize("how", ["deactivated", "another role", "removed", "member elsewhere too", "role changed", "account closed"])
def test_every_change_of_rights_is_seen_by_who_holds_the_old_ones(cast: Cast, how: str) -> None:
    before, others, member = actor(cast.riley).standing, version(cast.morgan), cast.riley.memberships.get()
    match how:
        case "deactivated":
            member.deactivated_at = clock.now()
            member.save()
        case "another role":
            member.role = cast.workspace.roles.get(name="manager")
            member.save()
        case "removed":
            cast.riley.memberships.all().delete()
        case "member elsewhere too":
            cast.elsewhere.memberships.create(user=cast.riley, role=cast.elsewhere.roles.first())
        case "role changed":
            member.role.capabilities = ["runs.view"]
            member.role.save()
        case "account closed":
            cast.riley.is_active = False
            cast.riley.save()
    assert rules.changed({before}) == {before}
    assert version(cast.morgan) == others


def test_signing_in_changes_no_right(cast: Cast) -> None:
    before = version(cast.riley)
    Client().force_login(cast.riley)
    assert version(cast.riley) == before


def test_whoever_changes_many_at_once_says_so(cast: Cast) -> None:
    before = [version(each) for each in (cast.riley, cast.sam)]
    standing.raise_versions(User.objects.filter(memberships__role__name="reviewer"))
    assert [version(each) for each in (cast.riley, cast.sam)] == [number + 1 for number in before]


def test_somebody_read_long_ago_brings_no_old_number_back(cast: Cast) -> None:
    stale = User.objects.get(pk=cast.riley.pk)
    standing.raise_versions(User.objects.filter(pk=cast.riley.pk))
    held = version(cast.riley)
    stale.name = "Riley P."
    stale.save()
    assert version(cast.riley) == held + 1
    stale.refresh_from_db()
    assert stale.access_version == held + 1
