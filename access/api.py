"""Who may use the API: an agent with its key, or a person with the session of the pages."""

from channels.db import database_sync_to_async
from django.http import HttpRequest
from ninja.security.http import HttpAuthBase
from ninja.utils import check_csrf

from access import sockets
from access.errors import Forbidden, NotSignedIn
from access.middleware import scope_of
from access.rules import Actor

SAFE = ("GET", "HEAD", "OPTIONS")


class ForgedRequest(Forbidden):
    """This request does not come from one of our pages."""

    what_next = "Nothing was done. With a session, send the page's token as X-CSRFToken; a program uses an agent key instead."


class Known(HttpAuthBase):
    """Lets in whoever is known. A cookie speaks for its owner only from our own pages."""

    openapi_scheme = "bearer"

    def __call__(self, request: HttpRequest) -> Actor:
        actor: Actor = request.actor
        if not actor.is_known:
            raise _nobody(request)
        if actor.kind == "human" and request.method not in SAFE and check_csrf(request) is not None:
            raise ForgedRequest
        return actor


def _nobody(request: HttpRequest) -> NotSignedIn:
    """A program that did send its key is told that it is the key: else its owner looks for the fault in the program."""
    sent = request.headers.get("Authorization", "").lower().startswith("bearer ")
    return NotSignedIn("The key that was sent opens nothing: it was revoked, has ended, or never was one." if sent else "")


class KnownForAwhile(HttpAuthBase):
    """The same for an operation that waits, and reads only: it looks up who asks without keeping a database connection."""

    openapi_scheme = "bearer"

    async def __call__(self, request: HttpRequest) -> Actor:
        actor = await database_sync_to_async(afresh, thread_sensitive=False)(request)
        if not actor.is_known:
            raise _nobody(request)
        return actor


def afresh(request: HttpRequest) -> Actor:
    """Who asks, as things stand now; after waiting, that may be nobody."""
    return sockets.actor_of(scope_of(request))


known, known_for_awhile = Known(), KnownForAwhile()
