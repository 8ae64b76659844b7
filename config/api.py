"""The API: one NinjaAPI, and the one place where a refusal of the domain becomes an RFC 9457 problem."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, ClassVar

import orjson
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.parser import Parser
from ninja.renderers import BaseRenderer

from access import problems
from access.api import known
from access.errors import BadInput, NotFound, Refusal
from approvals.api import router as approvals
from approvals.canonical import NotCanonical, parse_json
from runs.api import router as runs

JSON_MAX = 1024 * 1024  # bytes of a JSON body; larger content goes to its own address, as it is
ROOT = "/api/"

log = logging.getLogger(__name__)


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
        try:
            return parse_json(request.body)
        except NotCanonical as error:
            raise InvalidJson(error.detail) from error


class Orjson(BaseRenderer):
    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        return orjson.dumps(data, default=str)


api = NinjaAPI(
    title="Handrail",
    version="1",
    description="The durable channel of agent runs. Errors are RFC 9457 problems that say what to do next.",
    docs_url=None,  # the docs page would need scripts from elsewhere
    urls_namespace="api",
    auth=known,
    parser=StrictJson(),
    renderer=Orjson(),
)
api.add_router("", runs)
api.add_router("", approvals)


@api.exception_handler(Refusal)
def refused(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
    return HttpResponse(problems.as_json(refusal), status=refusal.status, content_type=problems.MEDIA_TYPE, headers=headers)


@api.exception_handler(ValidationError)
def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    wrong = [{"at": ".".join(map(str, each["loc"])), "why": each["msg"]} for each in error.errors]
    detail = "; ".join(f"{each['at']}: {each['why']}" for each in wrong[:5])
    return refused(request, InvalidRequest(detail, errors=wrong[:100]))


@api.exception_handler(HttpError)
def unreadable(request: HttpRequest, error: HttpError) -> HttpResponse:
    """Ninja hides why a body could not be read behind an error of its own."""
    cause = error.__cause__
    return refused(request, cause if isinstance(cause, Refusal) else Refused(HttpResponse(status=error.status_code)))


@api.exception_handler(RequestDataTooBig)
def too_large(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return refused(request, BodyTooLarge(f"At most {JSON_MAX} bytes are read.", limit=JSON_MAX))


@api.exception_handler(UnreadablePostError)
def half_sent(request: HttpRequest, error: UnreadablePostError) -> HttpResponse:
    return refused(request, InvalidJson("The body ended before it was whole."))


@api.exception_handler(Exception)
def broken(request: HttpRequest, error: Exception) -> HttpResponse:
    """No traceback leaves; the log has it, under the request's id."""
    log.exception("the API broke", extra={"request": getattr(request, "id", "")})
    return refused(request, Broken(request=getattr(request, "id", "")))


class Problems:
    """Middleware: what the framework itself answers under the API's root (no such address, wrong method, …) is a problem as well."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        plain = response.status_code >= 400 and response.headers.get("Content-Type") != problems.MEDIA_TYPE
        if not request.path.startswith(ROOT) or not plain:
            return response
        refusal = NotFound() if response.status_code == 404 else Refused(response)
        told = refused(request, refusal)
        for name in response.headers.keys() & {"Allow", "Retry-After"}:
            told.headers[name] = response.headers[name]
        return told
