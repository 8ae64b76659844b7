"""The JSON side of the desk: which address does what."""

import hashlib
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import Any
from urllib.parse import unquote

from . import accounts, contracts, faults, hooks, ledger, mail, pages, tickets
from .errors import Malformed, Problem, Unsupported
from .store import Store
from .web import Answer, Dropped, Request, json_answer, of_own_page, problem

View = Callable[[Connection, Request, tuple[str, ...]], Answer]


@dataclass(frozen=True)
class Route:
    """`place` is where faults wait. Every view runs in one transaction that is on the disk before its answer leaves."""

    method: str
    pattern: re.Pattern[str]
    view: View
    place: str = ""


def respond(store: Store, request: Request) -> Answer:
    """Do what `request` asks. Raises Dropped when a fault wants the answer lost."""
    fitting = [(route, match) for route in ROUTES if (match := route.pattern.fullmatch(request.path))]
    for route, match in fitting:
        if route.method == request.method:
            return _carry_out(store, route, request, tuple(unquote(part) for part in match.groups()))
    if fitting:
        allowed = ", ".join(sorted({route.method for route, _ in fitting}))
        return problem(405, "Method not allowed", f"This address takes {allowed}.")
    return problem(404, "Not found", "There is nothing at this address.")


def _carry_out(store: Store, route: Route, request: Request, parts: tuple[str, ...]) -> Answer:
    if instead := _strike(store, route, faults.BEFORE, parts):
        return instead.changed(Answer(500))
    try:
        with store.changing() as db:
            answer = route.view(db, request, parts)
    except Problem as error:
        return problem(error.status, error.title, str(error))
    hitch = _strike(store, route, faults.AFTER, parts)
    return _spoilt(answer, hitch) if hitch else answer


def _strike(store: Store, route: Route, stage: str, parts: tuple[str, ...]) -> faults.Hitch | None:
    if not route.place:
        return None
    with store.changing() as db:
        return faults.strike(db, route.place, stage, to=parts)


def _spoilt(answer: Answer, hitch: faults.Hitch) -> Answer:
    """What leaves of an answer, and when. Raises Dropped."""
    time.sleep(hitch.wait)
    if hitch.drop:
        raise Dropped
    return replace(answer, half=True) if hitch.half else hitch.changed(answer)


def _health(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    return json_answer(200, {"ok": True})


def _file_ticket(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    _expect(request, "message/rfc822", "application/octet-stream")

    def do() -> tuple[str, dict[str, Any]]:
        ticket = tickets.file(db, request.body)
        return f"tickets/{ticket['id']}", ticket

    return _once(db, request, "ticket.file", do)


def _tickets(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    return json_answer(200, {"tickets": tickets.listing(db, _limit(request)), "total": tickets.count(db)})


def _ticket(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    ticket = tickets.get(db, parts[0])
    return json_answer(200, ticket, ETag=f'"{ticket["version"]}"')


def _ticket_message(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    return Answer(200, tickets.raw(db, parts[0]), "message/rfc822")


def _ticket_status(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    body = _json(request)

    def do() -> tuple[str, dict[str, Any]]:
        return f"tickets/{parts[0]}", tickets.set_status(db, parts[0], status=_text(body, "status"), version=_version(request))

    return _once(db, request, "ticket.status", do)


def _account_of(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    if "email" not in request.query:
        return json_answer(200, {"accounts": accounts.listing(db)})
    return json_answer(200, accounts.of(db, request.query["email"]))


def _account(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    account = accounts.get(db, parts[0])
    return json_answer(200, account, ETag=f'"{account["version"]}"')


def _notes(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    return json_answer(200, {"notes": accounts.notes(db, parts[0])})


def _add_note(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    body = _json(request)

    def do() -> tuple[str, dict[str, Any]]:
        note = accounts.add_note(db, parts[0], text=_text(body, "text"), version=_version(request))
        return f"accounts/{parts[0]}/notes/{note['id']}", note

    return _once(db, request, "crm.note", do)


def _remove_note(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    account, number = parts
    key = _key(request)
    note = accounts.get_note(db, account, number)
    if note["removed_at"] and not (key and ledger.find(db, key)["found"]):
        return json_answer(200, note)  # taken back before: nothing is done, so nothing goes into the ledger

    def do() -> tuple[str, dict[str, Any]]:
        return f"accounts/{account}/notes/{number}", accounts.remove_note(db, account, number)

    return _once(db, request, "crm.note.remove", do, status=200)


def _terms(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    return json_answer(200, accounts.terms(db, parts[0]))


def _set_terms(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    days = _json(request).get("days")
    if type(days) is not int:
        raise Malformed('"days" is a whole number.')

    def do() -> tuple[str, dict[str, Any]]:
        return f"accounts/{parts[0]}/terms", accounts.set_terms(db, parts[0], days=days)

    return _once(db, request, "crm.terms", do, status=200)


def _sign(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    if not of_own_page(request):
        return problem(403, "Not from here", "A contract is signed on the account’s own page. Nothing was signed.")
    contracts.sign(db, parts[0])
    return Answer(303, headers={"Location": f"/crm/accounts/{parts[0]}"})


def _effect(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    if not request.query.get("key"):
        raise Malformed("Ask with ?key=, an Idempotency-Key or a Message-ID.")
    return json_answer(200, ledger.find(db, request.query["key"]))


def _ledger(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    return json_answer(200, {"effects": ledger.entries(db)})


def _mails(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    found = mail.listing(db, message_id=request.query.get("message_id"), limit=_limit(request))
    return json_answer(200, {"mail": found, "total": mail.count(db)})


def _mail(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    return json_answer(200, mail.get(db, int(parts[0])))


def _mail_raw(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    return Answer(200, mail.raw(db, int(parts[0])))  # as plain text, so that a browser shows it and nothing more


def _hooks(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    return json_answer(200, {"hooks": hooks.listing(db), "deliveries": hooks.deliveries(db)})


def _add_hook(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    body = _json(request)
    ticket = _text({"ticket": ""} | body, "ticket")
    return json_answer(201, hooks.subscribe(db, url=_text(body, "url"), ticket=ticket, secret=_text(body, "secret")))


def _clear_hooks(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    return json_answer(200, {"cleared": hooks.clear(db)})


def _faults(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    return json_answer(200, {"faults": faults.listing(db)})


def _plant_fault(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    body = _json(request)
    times, options = body.get("times", 1), body.get("options", {})
    if type(times) is not int or not isinstance(options, dict):
        raise Malformed('"times" is a whole number and "options" an object.')
    return json_answer(201, faults.plant(db, place=_text(body, "where"), fault=_text(body, "fault"), times=times, options=options))


def _clear_faults(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
    return json_answer(200, {"cleared": faults.clear(db, int(parts[0]) if parts else None)})


def _once(db: Connection, request: Request, kind: str, do: Callable[[], tuple[str, dict[str, Any]]], status: int = 201) -> Answer:
    whole = b"\n".join((request.method.encode(), request.path.encode(), request.body))
    outcome = ledger.once(db, key=_key(request), kind=kind, digest=hashlib.sha256(whole).hexdigest(), do=do)
    return json_answer(200, outcome.answer, **{"Idempotent-Replay": "true"}) if outcome.repeated else json_answer(status, outcome.answer)


def _key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    # Angle brackets are left to Message-IDs, which share the ledger.
    if key is not None and not re.fullmatch(r"[!-;=?-~]{1,255}", key):
        raise Malformed("An Idempotency-Key has 1 to 255 visible ASCII characters without < and >.")
    return key


def _version(request: Request) -> int | None:
    wanted = request.headers.get("if-match")
    if wanted is None or wanted.strip() == "*":
        return None
    match = re.fullmatch(r'\s*"?(\d{1,15})"?\s*', wanted, re.ASCII)
    if not match:
        raise Malformed('If-Match is a version number, as in If-Match: "3".')
    return int(match[1])


def _limit(request: Request) -> int:
    wanted = request.query.get("limit", "200")
    if not re.fullmatch(r"[1-9]\d{0,3}", wanted, re.ASCII):
        raise Malformed("limit is a whole number from 1 to 9999.")
    return int(wanted)


def _expect(request: Request, *media_types: str) -> None:
    # Also keeps other sites' pages out: a browser may not send these types across origins without asking first.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() not in media_types:
        raise Unsupported(f"Send the body as {' or '.join(media_types)}.")


def _json(request: Request) -> dict[str, Any]:
    _expect(request, "application/json")
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise Malformed("The body is not JSON.") from error
    if not isinstance(body, dict):
        raise Malformed("The body is a JSON object.")
    return body


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or re.search(r"[\ud800-\udfff\x00]", value):
        raise Malformed(f'"{name}" is text.')
    return value


def _route(method: str, path: str, view: View, place: str = "") -> Route:
    return Route(method, re.compile(path.replace("{n}", r"(\d{1,15})").replace("{}", r"([^/]{1,400})"), re.ASCII), view, place)


ROUTES = (
    _route("GET", "/health", _health),
    _route("POST", "/tickets", _file_ticket, "ticket.file"),
    _route("GET", "/tickets", _tickets),
    _route("GET", "/tickets/{}", _ticket, "ticket.read"),
    _route("GET", "/tickets/{}/message", _ticket_message, "ticket.read"),
    _route("POST", "/tickets/{}/status", _ticket_status, "ticket.status"),
    _route("GET", "/accounts", _account_of, "account.read"),
    _route("GET", "/accounts/{}", _account, "account.read"),
    _route("GET", "/accounts/{}/notes", _notes),
    _route("POST", "/accounts/{}/notes", _add_note, "crm.note"),
    _route("DELETE", "/accounts/{}/notes/{}", _remove_note, "crm.note.remove"),
    _route("GET", "/accounts/{}/terms", _terms),
    _route("PUT", "/accounts/{}/terms", _set_terms, "crm.terms"),
    _route("POST", "/crm/accounts/{}/contract", _sign),
    _route("GET", "/effects", _effect, "effect.read"),
    _route("GET", "/ledger", _ledger),
    _route("GET", "/mail", _mails),
    _route("GET", "/mail/{n}", _mail),
    _route("GET", "/mail/{n}/raw", _mail_raw),
    _route("GET", "/hooks", _hooks),
    _route("POST", "/hooks", _add_hook),
    _route("DELETE", "/hooks", _clear_hooks),
    _route("GET", "/faults", _faults),
    _route("POST", "/faults", _plant_fault),
    _route("DELETE", "/faults", _clear_faults),
    _route("DELETE", "/faults/{n}", _clear_faults),
    *(_route("GET", path, view) for path, view in pages.PAGES),
)
