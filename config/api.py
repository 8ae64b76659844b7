"""The API: one NinjaAPI, and the one place where a refusal of the domain becomes an RFC 9457 problem."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from http import HTTPStatus
from typing import Any, ClassVar, Literal

import orjson
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, RawPostDataException, UnreadablePostError
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.parser import Parser
from ninja.renderers import BaseRenderer

from access import problems
from access.api import known
from access.audit_api import router as audit
from access.errors import AWAY, RETRY_AFTER, BadInput, DatabaseAway, NotFound, NotSignedIn, Refusal
from access.key_api import router as agents
from approvals.api import router as approvals
from approvals.canonical import HALF_PAIR, NotCanonical, parse_json
from approvals.outside_api import router as outside
from approvals.policy_api import router as policies
from approvals.stopping_api import router as stopping
from artifacts.policy_api import router as redaction
from runs.api import router as runs
from runs.branches_api import router as branches
from runs.reveal_api import router as reveals
from runs.steps_api import router as steps
from runs.uploads_api import router as uploads
from runs.webhook_api import router as webhooks

JSON_MAX = 1024 * 1024  # bytes of a JSON body; larger content goes to its own address, as it is
ROOT = "/api/"

logger = logging.getLogger(__name__)


class InvalidJson(BadInput):
    """The body is not JSON that has one meaning."""

    status: ClassVar[int] = 400


class InvalidRequest(BadInput):
    """The request is not valid."""


class WrongMediaType(BadInput):
    """The body is of a kind that is not taken here."""

    status: ClassVar[int] = 415


class BodyTooLarge(BadInput):
    """The body is too large."""

    status: ClassVar[int] = 413


class Broken(Refusal):
    """Something broke here."""

    status: ClassVar[int] = 500
    what_next: ClassVar[str] = (
        "Nothing was changed by this request unless an earlier answer said so. Sending it again with the same ids is safe."
    )


class Refused(Refusal):
    """The request was refused."""

    def __init__(self, response: HttpResponse) -> None:
        self.status, self._title = response.status_code, HTTPStatus(response.status_code).phrase
        super().__init__(WORDS.get(self.status, f"{self._title}."))

    @property
    def title(self) -> str:
        return self._title

    @property
    def kind(self) -> str:
        return self._title.lower().replace(" ", "-")


WORDS = {
    400: "The server could not make sense of this request.",
    404: "The API has no such address.",
    405: "This address does not know that method.",
}


class StrictJson(Parser):
    """Bodies that mean one thing only: UTF-8 JSON, each key once, no NaN, no number that another reader would round."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type != "application/json" or request.content_params.get("charset", "utf-8").lower() != "utf-8":
            raise WrongMediaType("Send JSON in UTF-8, as Content-Type: application/json.")
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise WrongMediaType("Send the body as it is, without Content-Encoding.")
        if len(request.body) > JSON_MAX:
            raise BodyTooLarge(f"{len(request.body)} bytes; at most {JSON_MAX} are read.", limit=JSON_MAX)
        value = _parsed(request.body)
        if wrong := [_as_wrong(("body", *place), why) for place, each, why in _unfit(value) if each != "nul" or not _is_content(place)]:
            raise _invalid(wrong)
        return value


def _parsed(body: bytes) -> Any:
    try:
        return parse_json(body)
    except NotCanonical as error:
        if wrong := [
            _as_wrong(("body", *place), why) for place, each, why in _unfit(_read_anyhow(body)) if each in ("half", "half in name")
        ]:
            raise _invalid(wrong) from error
        raise InvalidJson(error.detail) from error


def _read_anyhow(body: bytes) -> Any:
    """What was refused, to say where the text in it is that is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


Place = tuple[str | int, ...]
Unfit = Literal["nul", "half", "nul in name", "half in name"]
WHY: Mapping[Unfit, str] = {
    "nul": "It has a NUL character.",
    "half": "It has half a surrogate pair, which is no character.",
    "nul in name": "Its name has a NUL character.",
    "half in name": "Its name has half a surrogate pair, which is no character.",
}


def _unfit(value: Any) -> Iterator[tuple[Place, Unfit, str]]:
    """Where a value holds text that no database keeps and no other system takes, in keys as well: (place, what it is, why in words)."""
    left: list[tuple[Place, Any]] = [((), value)]
    while left:
        place, each = left.pop()
        if isinstance(each, str) and (found := _unfit_text(each)):
            yield place, found, WHY[found]
        elif isinstance(each, dict):
            left += [((*place, _shown(name)), part) for name, part in each.items()]
            yield from (((*place, _shown(name)), found, WHY[found]) for name in each if (found := _unfit_name(name)))
        elif isinstance(each, list):
            left += [((*place, i), part) for i, part in enumerate(each)]


def _unfit_text(text: str) -> Literal["nul", "half"] | None:
    if "\0" in text:
        return "nul"
    return None if text.isascii() or not HALF_PAIR.search(text) else "half"


def _unfit_name(name: str) -> Literal["nul in name", "half in name"] | None:
    found = _unfit_text(name)
    return None if found is None else "nul in name" if found == "nul" else "half in name"


def _shown(name: str) -> str:
    return HALF_PAIR.sub("\N{REPLACEMENT CHARACTER}", name).replace("\0", "\N{SYMBOL FOR NULL}")


def _is_content(place: Place) -> bool:
    """What somebody wrote is kept as bytes, whatever it holds: an event's `texts`, and those of one in a list."""
    start = 1 if place and isinstance(place[0], int) else 0
    return place[start : start + 1] == ("texts",) and len(place) > start + 1 and place[start + 2 :] in ((), ("text",))


def _as_wrong(place: Place, why: str) -> dict[str, str]:
    return {"at": ".".join(map(str, place)), "why": why}


TOLD = 100  # of what is wrong with one request


def _invalid(wrong: list[dict[str, str]]) -> InvalidRequest:
    return InvalidRequest("; ".join(f"{each['at']}: {each['why']}" for each in wrong[:5]), errors=wrong[:TOLD])


class Orjson(BaseRenderer):
    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        return orjson.dumps(data, default=str)


DESCRIPTION = """The durable channel of agent runs. Errors are RFC 9457 problems that say what to do next.

Texts are renditions: what must not be seen is not in them at all. Single texts (a title, a reason) have words in its place, such as
`[card number hidden]`. The `texts` of events, over every way to read them, have marks: `⟦secret⟧`, `⟦card⟧`, `⟦iban⟧`, `⟦path⟧`,
`⟦email⟧`, `⟦phone⟧`, `⟦prompt⟧` and `⟦unreadable⟧` for what is hidden; `⟦u202e⟧` for a character that is not seen or acts on its
neighbours, by its code in hexadecimal; `⟦+99⟧` at the end, where so many bytes more are not shown; and `⟦⟦` for one `⟦` that somebody
wrote."""


def _for_who_is_known(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The description is for who may use the API."""

    @wraps(view)
    def described(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return view(request, *args, **kwargs) if request.actor.is_known else refused(request, NotSignedIn())

    return described


api = NinjaAPI(
    title="Handrail",
    version="1",
    description=DESCRIPTION,
    docs_url=None,  # the docs page would need scripts from elsewhere, and styles within the page
    docs_decorator=_for_who_is_known,
    urls_namespace="api",
    auth=known,
    parser=StrictJson(),
    renderer=Orjson(),
)
api.add_router("", audit)
api.add_router("", agents)
api.add_router("", runs)
api.add_router("", branches)
api.add_router("", steps)
api.add_router("", reveals)
api.add_router("", webhooks)
api.add_router("", uploads)
api.add_router("", approvals)
api.add_router("", outside)
api.add_router("", policies)
api.add_router("", stopping)
api.add_router("", redaction)


@api.exception_handler(Refusal)
def refused(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
    if "retry_after" in refusal.extra:
        headers["Retry-After"] = str(refusal.extra["retry_after"])
    return HttpResponse(problems.as_json(refusal), status=refusal.status, content_type=problems.MEDIA_TYPE, headers=headers)


@api.exception_handler(ValidationError)
def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    body = _read_anyhow(request.body) if any(each["loc"][0] == "body" for each in error.errors) else None
    return refused(request, _invalid([_as_wrong(_place(body, each), each["msg"]) for each in error.errors[:TOLD]]))


def _place(body: Any, error: dict[str, Any]) -> Place:
    """Where the sender finds what is wrong. Ninja's own place also has our parameter's name and the schema's alternatives in it."""
    source, *within = error["loc"]
    if source != "body":
        return (source, *within)
    value, place = body, [source]
    for i, part in enumerate(within[1:], 2):
        if (isinstance(value, dict) and part in value) or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
            value = value[part]
        elif i < len(within) or error["type"] != "missing":
            continue
        place.append(part)
    return tuple(place)


@api.exception_handler(HttpError)
def unreadable(request: HttpRequest, error: HttpError) -> HttpResponse:
    """Ninja hides why a body could not be read behind an error of its own."""
    cause = error.__cause__
    return refused(request, cause if isinstance(cause, Refusal) else Refused(HttpResponse(status=error.status_code)))


@api.exception_handler(RequestDataTooBig)
def too_large(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return refused(request, BodyTooLarge(f"At most {JSON_MAX} bytes are read.", limit=JSON_MAX))


@api.exception_handler(RawPostDataException)
def a_form(request: HttpRequest, error: RawPostDataException) -> HttpResponse:
    """A form, in which the token of a browser was looked for, so that its body is gone."""
    return refused(request, WrongMediaType("Send JSON in UTF-8, as Content-Type: application/json."))


@api.exception_handler(UnreadablePostError)
def half_sent(request: HttpRequest, error: UnreadablePostError) -> HttpResponse:
    return refused(request, InvalidJson("The body ended before it was whole."))


@api.exception_handler(Exception)
def broken(request: HttpRequest, error: Exception) -> HttpResponse:
    """No traceback leaves; the log has it, under the request's id."""
    logger.exception("the API broke", extra={"request": getattr(request, "id", "")})
    if not isinstance(error, AWAY):
        return refused(request, Broken(request=getattr(request, "id", "")))
    told = refused(request, DatabaseAway(request=getattr(request, "id", "")))
    told.headers["Retry-After"] = RETRY_AFTER
    return told


class Problems:
    """Middleware: what the framework itself answers under the API's root (no such address, wrong method, …) is a problem as well."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def process_view(self, request: HttpRequest, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> HttpResponse | None:
        """No address and no query has text in it that is none; a body is looked at when it is read."""
        wrong = [_as_wrong(("path", *place), why) for place, _, why in _unfit({name: str(value) for name, value in kwargs.items()})]
        if request.path.startswith(ROOT):
            wrong += [_as_wrong(("query", *place[:1]), why) for place, _, why in _unfit(dict(request.GET.lists()))]
            return refused(request, _invalid(wrong)) if wrong else None
        if wrong:
            raise Http404
        return None

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        plain = response.status_code >= 400 and response.headers.get("Content-Type") != problems.MEDIA_TYPE
        if not request.path.startswith(ROOT) or not plain:
            return response
        away = DatabaseAway(request=getattr(request, "id", ""))  # it was away before the API was come to
        refusal = {404: NotFound(), 503: away}.get(response.status_code) or Refused(response)
        told = refused(request, refusal)
        for name in response.headers.keys() & {"Allow", "Retry-After"}:
            told.headers[name] = response.headers[name]
        return told
