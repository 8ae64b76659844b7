"""After too many wrong answers nobody may try for a while: neither on that account nor from that address. django-axes counts.

What was typed as an e-mail is counted under its keyed hash, so that an address nobody has and a real one are told apart by nothing, and
nothing that somebody typed is kept.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.helpers import get_client_username
from axes.models import AccessAttempt
from django.contrib.auth.signals import user_login_failed
from django.db.models import Sum
from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from config import clock

TRIES = 5  # for one account
TRIES_OF_AN_ADDRESS = 50  # many people may sit behind one address
WAIT = timedelta(minutes=15)


class Tries(NamedTuple):
    """How many are left, and until when there are none. `left` is 0 while locked."""

    left: int
    until: datetime | None


class Attempts(AxesDatabaseHandler):
    """axes' own handler with two limits, one for an account and a wider one for an address."""

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        account, address = self.get_user_attempts(request, credentials)
        return max(_failures(account), _failures(address) * TRIES // TRIES_OF_AN_ADDRESS)

    def reset_user_attempts(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Who gets in wipes out the wrong answers on their own account; what came from their address else still counts."""
        return AccessAttempt.objects.filter(username=get_client_username(request, credentials)).delete()[0]


def tries(request: HttpRequest, email: str) -> Tries:
    """What this request may still try on this account."""
    _prepare(request)
    account, address = AxesProxyHandler.get_implementation().get_user_attempts(request, {"email": email})
    ends = [end for end in (_end(account, TRIES), _end(address, TRIES_OF_AN_ADDRESS)) if end]
    return Tries(0, max(ends)) if ends else Tries(max(TRIES - _failures(account), 1), None)


def tries_of_address(request: HttpRequest, name: str) -> Tries:
    """What this request may still try where there is nothing to guess, and so no account to wait: its address alone counts."""
    _prepare(request)
    _, address = AxesProxyHandler.get_implementation().get_user_attempts(request, {"email": name})
    until = _end(address, TRIES_OF_AN_ADDRESS)
    return Tries(0, until) if until else Tries(TRIES, None)


def failed(request: HttpRequest, email: str) -> None:
    """One more wrong answer that was not a password: a code, a passkey."""
    _prepare(request)
    user_login_failed.send(sender=__name__, credentials={"email": email}, request=request)


def _prepare(request: HttpRequest) -> None:
    AxesProxyHandler.update_request(request)
    request.axes_attempt_time = clock.now()


def counted_as(request: HttpRequest | None, credentials: dict[str, Any] | None) -> str:
    """axes' name for an account."""
    email = (credentials or {}).get("email") or ""
    return salted_hmac("access.lockout", str(email).strip().lower(), algorithm="sha256").hexdigest()


def told_as(*_: Any) -> str:
    """axes' words for whoever tried, which it writes in log lines."""
    return "somebody"


def _failures(attempts: Any) -> int:
    return attempts.aggregate(sum=Sum("failures_since_start"))["sum"] or 0


def _end(attempts: Iterable[AccessAttempt], limit: int) -> datetime | None:
    """When so many of the counted answers are too old to count that one may try again; None if one may now."""
    counted = sorted((each.attempt_time, each.failures_since_start) for each in attempts)
    left = sum(number for _, number in counted)
    if left < limit:
        return None
    for at, number in counted:
        left -= number
        if left < limit:
            return at + WAIT
    return None
