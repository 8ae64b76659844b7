"""Looks: that one person had all of one exact action before them. Deciding on several at once is held to them.

A page that draws an action in full carries a token that only the server can make; who goes on from there sends it back. So nobody can
claim to have seen what was never drawn for them.
"""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.core import signing

from access.rules import Actor
from approvals.errors import StaleLook
from approvals.models import Look, ProposedAction

SALT = "approvals.look"
LASTS = 12 * 3600  # seconds


def token(action: ProposedAction, actor: Actor) -> str:
    """Stands in a page that draws this action in full for this person."""
    return signing.dumps({"action": str(action.pk), "digest": action.digest, "by": actor.id}, salt=SALT)


def named(token: str, actor: Actor) -> tuple[UUID, str]:
    """The action and the digest that were drawn. StaleLook if it was not for this person, or too long ago."""
    try:
        said = signing.loads(token, salt=SALT, max_age=LASTS)
    except signing.BadSignature:
        raise StaleLook from None
    if said["by"] != actor.id:
        raise StaleLook
    return UUID(said["action"]), said["digest"]


def record(action: ProposedAction, *, by: Actor, digest: str) -> None:
    """This person had it before them. Said twice, the first stands. StaleLook if it is another action by now."""
    if digest != action.digest:
        raise StaleLook
    Look.objects.get_or_create(action=action, reviewer_id=by.user_id, digest=digest)


def of(actor: Actor, actions: Collection[UUID]) -> dict[tuple[UUID, str], datetime]:
    """What of these actions this person had before them, by action and digest, and when. One query."""
    rows = Look.objects.filter(reviewer=actor.user_id, action__in=actions)
    return {(pk, digest): at for pk, digest, at in rows.values_list("action", "digest", "looked_at")}
