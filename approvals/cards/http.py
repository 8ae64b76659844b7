"""A request to an address: method, address with its host in bold, each header, and the body."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from approvals.canonical import CanonicalAction, pointer
from approvals.cards.drawing import apart, attachments, reaching, rest, run_and_how, shape, sum_of, warns_at
from approvals.cards.parts import Card, Code, Field, Line, Piece, Place, Setting

# names under which tools carry the parts of a request
METHOD, URL, HEADERS, BODY = ("method",), ("url", "address"), ("headers",), ("body", "json", "content")
PLAIN = ("accept", "content-type", "user-agent")  # headers that say how it is written, and nothing of what is asked: they stand folded
_URL = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*://)(?P<host>[^/\\?#]*)(?P<path>[^?#]*)(?P<query>\?[^#]*)?(?P<rest>#.*)?", re.DOTALL)


def draw(action: CanonicalAction, setting: Setting) -> Card:
    """The request as it goes over the wire. The credential that is added on the way is a line of its own."""
    left = dict(action.arguments)
    url = next((each for each in URL if isinstance(left.get(each), str)), "")
    method = next((each for each in METHOD if isinstance(left.get(each), str)), "") if url else ""
    place = _place(setting, url, left.pop(url), method, left.pop(method) if method else "") if url else None
    headers = next((each for each in HEADERS if isinstance(left.get(each), Mapping) and left[each]), "")
    sent = _headers(setting, headers, left.pop(headers)) if headers else []
    body = next((each for each in BODY if each in left and shape(left[each]) != "empty"), "")
    code = _body(setting, body, left.pop(body)) if body else None
    plain = [each for each in sent if each.title.lower() in PLAIN and not each.warns]
    fields = [*(each for each in sent if each not in plain), *rest(setting, left)]
    how = run_and_how(action)
    return Card(
        kind="http",
        icon="send",
        heading="" if place else setting.title,
        tool=action.tool,
        place=place,
        fields=tuple(reaching(action, setting, fields)),
        letter=None,
        code=code,
        files=attachments(action, setting),
        folded=(*plain, *(line for line in how["folded"] if line.path != "/credential")),
        lines=(_credential(action), *how["lines"]),
        raw=dict(action.arguments),
        unit="request",
        verb="send" if setting.effect == "send" else "run",
        facts=sum_of((len(sent), "header"), (int(code is not None), "body")),
    )


def _place(setting: Setting, url: str, value: str, method: str, verb: str) -> Place:
    path, covers = pointer("arguments", url), (pointer("arguments", method),) if method else ()
    return Place(path, "Address", url, value, verb, pieces(value, plain=setting.masked), warns_at(setting, path, *covers), covers)


def pieces(url: str, *, plain: bool = False) -> tuple[Piece, ...]:
    """The address in pieces: the host is `host`, what is around it `dim` or nothing. One piece if it cannot be taken apart for certain."""
    match = None if plain else _URL.fullmatch(url)
    if match is None or re.search(r"[\s\\@]", url):
        return (("", url),)
    drawn = (("dim", match["scheme"]), ("host", match["host"]), ("", match["path"]), ("dim", match["query"]), ("dim", match["rest"]))
    return tuple((kind, text) for kind, text in drawn if text)


def _headers(setting: Setting, name: str, given: Mapping[str, Any]) -> list[Field]:
    return [replace(field, title=key, name=key) for field, key in zip(apart(setting, name, given), given, strict=True)]


def _body(setting: Setting, name: str, value: Any) -> Code:
    path = pointer("arguments", name)
    lines = ((("", value),),) if isinstance(value, str) else ()
    return Code(path, "Request body", name, value, lines, warns=warns_at(setting, path))


def _credential(action: CanonicalAction) -> Line:
    return Line("/credential", "Credential", action.credential or "None: it goes as anybody’s", is_secret=bool(action.credential))
