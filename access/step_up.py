"""Before something grave: has this session shown lately that the person is there who signed in?

Signing in counts, as does a password, a code or a passkey given again. In the demo, where nobody has any of them, a click counts that says
so. `require` raises StepUpNeeded; pages then ask, and take the person back to what they were doing with all that they had typed.
"""

from datetime import datetime, timedelta

from django.http import HttpRequest

from access import audit, rules
from access.errors import Forbidden, NotSignedIn, Refusal
from config import clock

FRESH = timedelta(minutes=15)
MARK, HOW = "proved_at", "proved_how"


class StepUpNeeded(Refusal):
    """Show again that it is you."""

    status = 403
    what_next = "Nothing was changed. Open /confirm in this browser, show that it is you, and send this again at once."


def require(request: HttpRequest, *, within: timedelta = FRESH) -> None:
    """StepUpNeeded unless a person asks, whose session has shown within so long who they are."""
    if not request.actor.is_known:
        raise NotSignedIn
    if request.actor.kind != "human":
        raise Forbidden("A person has to do this, signed in.")
    if not is_fresh(request, within=within):
        minutes = int(within.total_seconds() // 60)
        after = f"{minutes} minute{'' if minutes == 1 else 's'}"
        raise StepUpNeeded(f"You last showed it more than {after} ago, and an important step needs it again.", confirm="/confirm")


def is_fresh(request: HttpRequest, *, within: timedelta = FRESH) -> bool:
    """Whether this session has shown who is there within so long."""
    try:
        shown = datetime.fromisoformat(request.session.get(MARK, ""))
    except (TypeError, ValueError):
        return False
    return timedelta() <= clock.now() - shown <= within


def shown(request: HttpRequest, *, how: str) -> None:
    """This session has just shown it."""
    request.session[MARK], request.session[HOW] = clock.now().isoformat(), how


def shown_again(request: HttpRequest, *, how: str) -> None:
    """The same, in the middle of a session; it goes into the audit trail."""
    shown(request, how=how)
    actor = rules.person(request.actor.user_id)
    audit.record(actor, "confirmed_again", workspace_id=actor.home, how=how)
