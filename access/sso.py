"""Single sign-on by OpenID Connect. Authlib speaks to the provider: authorization code with PKCE, state, nonce, and a signed ID token.

The provider says who somebody is; who may come in is decided here. A person is known by the issuer's `sub`, and the first time by an e-mail
address that the provider has verified. Nobody is made who was not invited.
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from access import audit, invitations, rules, sessions, step_up
from access.errors import Refusal
from access.models import Membership, User
from access.people_models import SsoIdentity
from access.rules import NOBODY
from config import clock

if TYPE_CHECKING:
    from authlib.integrations.django_client import DjangoOAuth2App

WHAT_FOR = "sso_for"  # in the session: {"what": "sign_in" or "confirm", "next": …}
LEEWAY = 30  # seconds that two clocks may differ
SECONDS = 10  # for one answer of the provider
SHOWN_LATELY = timedelta(minutes=5)


class SsoRefused(Refusal):
    """You are not signed in."""

    status = 403

    def __init__(self, why: str, detail: str) -> None:
        super().__init__(detail)
        self.why = why


def is_offered() -> bool:
    return bool(settings.HANDRAIL_SSO) and "sso" in settings.HANDRAIL_SIGN_IN


def name() -> str:
    return settings.HANDRAIL_SSO["name"] if settings.HANDRAIL_SSO else ""


def begin(request: HttpRequest, *, what: str, target: str) -> HttpResponse:
    """To the provider. SsoRefused if it does not answer."""
    request.session[WHAT_FOR] = {"what": what, "next": target}
    again = {"prompt": "login", "max_age": "0"} if what == "confirm" else {}
    try:
        return _client().authorize_redirect(request, _callback(request), **again)
    except _wrong():
        raise SsoRefused("no_answer", f"{name()} does not answer at the moment. Try again, or sign in another way.") from None


def finish(request: HttpRequest) -> str:
    """Back from the provider: sign in, or note that it is still the same person. Gives where to go. SsoRefused says why not."""
    asked = request.session.pop(WHAT_FOR, {})
    claims = _claims(request)
    if asked.get("what") == "confirm":
        _same_person(request, claims)
        step_up.shown_again(request, how=sessions.SSO)
    else:
        sessions.begin(request, _person(request, claims), how=sessions.SSO)
    return asked.get("next") or settings.LOGIN_REDIRECT_URL


def _claims(request: HttpRequest) -> Mapping[str, Any]:
    """What the ID token says, once its signature, issuer, audience, nonce and times are right."""
    try:
        client = _client()
        wanted = {"iss": {"essential": True, "value": client.load_server_metadata()["issuer"]}, "sub": {"essential": True}}
        token = client.authorize_access_token(request, claims_options=wanted, leeway=LEEWAY)
        claims = token["userinfo"]
        if "email" not in claims and "userinfo_endpoint" in client.load_server_metadata():
            more = client.userinfo(token=token)
            claims = {**more, **claims} if more.get("sub") == claims["sub"] else claims
    except _wrong() as error:
        if getattr(error, "error", "") == "access_denied":
            raise SsoRefused("cancelled", f"{name()} did not let you in, or you left there. Nothing happened.") from None
        _refused("untrusted", None)
        raise SsoRefused("untrusted", f"What {name()} answered could not be trusted, so nothing happened. Start again.") from None
    return claims


def _person(request: HttpRequest, claims: Mapping[str, Any]) -> User:
    issuer, subject, email = settings.HANDRAIL_SSO["issuer"], str(claims["sub"])[:255], str(claims.get("email") or "")
    known = SsoIdentity.objects.filter(issuer=issuer, subject=subject).select_related("user").first()
    user = known.user if known else None
    if user is None:
        if claims.get("email_verified") is not True or not email:
            _refused("unverified", None)
            raise SsoRefused("unverified", f"{name()} has not verified your e-mail address, so it is not known who you are here.")
        user = User.objects.by_email(email).first() or invitations.accept_by_address(email, str(claims.get("name") or ""))
        if user is None:
            _refused("unknown", None)
            raise SsoRefused("unknown", "Nobody has invited you here. Ask an admin of your workspace for an invitation.")
        _link(user, issuer, subject)
    if not user.is_active or not Membership.objects.filter(user=user, deactivated_at=None).exists():
        _refused("deactivated", user)
        raise SsoRefused("deactivated", "Your account here is deactivated. Ask an admin of your workspace.")
    return user


def _link(user: User, issuer: str, subject: str) -> None:
    """From now on this `sub` is this person, whatever address it has. One for each person, so that an address that was given to somebody
    else at the provider opens nothing here."""
    try:
        with transaction.atomic():
            SsoIdentity.objects.create(user=user, issuer=issuer, subject=subject)
            audit.record(rules.person(user.pk), "sign_in_linked", workspace_id=_where(user), subject=("user", user.pk))
    except IntegrityError:
        _refused("another", user)
        raise SsoRefused("another", f"Your account here belongs to another account at {name()}. Ask an admin of your workspace.") from None


def _same_person(request: HttpRequest, claims: Mapping[str, Any]) -> None:
    """Lately, and the one who is signed in: a provider that remembers somebody from this morning has shown nothing."""
    mine = {"issuer": settings.HANDRAIL_SSO["issuer"], "subject": str(claims["sub"])[:255], "user_id": request.actor.user_id}
    said = claims.get("auth_time")
    lately = isinstance(said, int | float) and clock.now().timestamp() - said <= SHOWN_LATELY.total_seconds()
    if not lately or not SsoIdentity.objects.filter(**mine).exists():
        raise SsoRefused("not_shown", f"{name()} did not show that it is you. Nothing was changed.")


def _refused(why: str, user: User | None) -> None:
    audit.record(
        NOBODY,
        "sign_in_refused",
        workspace_id=_where(user) if user else None,
        subject=("user", user.pk) if user else None,
        how=sessions.SSO,
        why=why,
    )


def _where(user: User) -> UUID | None:
    return rules.home_of(user.pk)


def _callback(request: HttpRequest) -> str:
    path = reverse("access:sso_callback")
    return request.build_absolute_uri(path) if settings.DEMO else f"{settings.HANDRAIL_URL}{path}"


def _wrong() -> tuple[type[Exception], ...]:
    """What is raised when an answer can't be trusted, whatever of it is wrong. Authlib is imported where it is used: it takes a while, and
    most processes never do."""
    from authlib.common.errors import AuthlibBaseError
    from joserfc.errors import JoseError
    from requests import RequestException

    return (AuthlibBaseError, JoseError, RequestException, ValueError, KeyError, TypeError, RuntimeError, AttributeError)


def _client() -> "DjangoOAuth2App":
    given = settings.HANDRAIL_SSO
    return _made(given["issuer"], given["client_id"], given["client_secret"])


@lru_cache(maxsize=4)
def _made(issuer: str, client_id: str, client_secret: str) -> "DjangoOAuth2App":
    """Kept, as is what it has read of the provider."""
    from authlib.integrations.django_client import OAuth

    return OAuth().register(
        name="sso",
        client_id=client_id,
        client_secret=client_secret,
        server_metadata_url=f"{issuer}/.well-known/openid-configuration",
        client_kwargs={"scope": "openid email profile", "code_challenge_method": "S256", "default_timeout": SECONDS},
    )
