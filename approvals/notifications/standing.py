"""What the card says of who decides in whose stead, and to whom an action went when nobody answered. Two queries, if there is neither."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from access.models import User
from access.rules import Actor
from approvals.models import ProposedAction
from approvals.notifications import delegation, preferences, quiet
from approvals.notifications.models import Delegation, Escalation


def sentences(action: ProposedAction, people: Sequence[User], actor: Actor) -> Iterable[str]:
    """“Sam, for Riley, until 4 Dec.” and “Nobody answered, so it went to Riley.” `people`: who may decide."""
    for each in delegation.among(action.workspace_id, people):
        who, for_whom = ("You" if str(user.pk) == actor.id else user.name for user in (each.to, each.giver))
        yield f"{who}, for {for_whom if for_whom != 'You' else 'you'}, until {_last_day(each)}."
    went = Escalation.objects.filter(action=action).select_related("to", "via__to").order_by("at")
    for each in went:
        to = "you" if str(each.to_id) == actor.id else each.to.name
        via = "" if each.via is None else f", and on to {'you' if str(each.via.to_id) == actor.id else each.via.to.name}"
        yield f"Nobody answered, so it went to {to}{via}."


def _last_day(each: Delegation) -> str:
    """As the person reckons who is away."""
    last = (each.ends_at - timedelta(seconds=1)).astimezone(quiet.zone(preferences.of(each.giver_id).quiet.zone))
    return f"{last.day} {last:%b}"
