"""What the back office may do, one tool for each kind of action. Every one of them really does it, once per key.

Of a command that is not quite so: it is run before its receipt can be kept. One that was broken off between the two is never run again by
itself; a person says what became of it.
"""

import os
import re
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from time import perf_counter
from typing import Annotated, Any, Literal

import httpx
from pydantic import Field

from examples.back_office import store
from examples.back_office.seed import CUSTOMERS
from examples.back_office.telling import tell_customer, tell_payments, tell_refunds
from runs.engine.tools import (
    Absent,
    AnswerLost,
    Arguments,
    Call,
    Declined,
    Found,
    Limit,
    Looked,
    OddAnswer,
    TimedOut,
    Unavailable,
    Unsure,
    tool,
)

OFFICE = "office.sqlite3"
PROGRAMS = ("gzip", "cksum")  # none of them runs what it is given
MAX_OUTPUT = 4000  # characters of what a command says
MAX_PATH = 120  # characters of an address in a line for people


@contextmanager
def office() -> Iterator[None]:
    """The back office's words of refusal in the engine's. A file that is locked or full did nothing: the transaction was not committed."""
    try:
        yield
    except store.Refused as error:
        raise Declined(str(error)) from error
    except (sqlite3.Error, OSError) as error:
        raise Unavailable(f"The back office's file can't be used: {error}") from error


def by_key(call: Call, arguments: Arguments) -> Found | Absent | Unsure:
    """Whether the back office did it, asked by its key."""
    with office():
        found = store.done(call.key)
    return Found(found) if found is not None else Absent()


# reading ------------------------------------------------------------------------------------------------------------------------------


@tool(effect="read", title="Read the request", gives="The request", label="personal", reads_untrusted=True, target="mailbox", deadline=10)
def read_request(call: Call, request: str) -> dict[str, Any]:
    """What somebody asked for. All of it is outside text."""
    with office():
        return {"text": store.request(request)}


@tool(
    effect="read",
    title="Read the customer",
    gives="The customer",
    label="personal",
    reads_private=True,
    target=OFFICE,
    deadline=10,
    finds=tell_customer,
    touches=lambda a: {"customer": [a["customer"]]},
)
def read_customer(call: Call, customer: str) -> dict[str, Any]:
    """A customer's record and the version that it is at."""
    with office(), store.reading() as db:
        version, record = store.customer(db, customer)
    return {"customer": customer, "version": version, "record": record}


@tool(
    effect="read",
    title="Read what was paid",
    gives="What was paid",
    label="personal",
    reads_private=True,
    target="payment provider",
    deadline=10,
    finds=tell_payments,
)
def read_payments(call: Call, payment: str) -> dict[str, Any]:
    """The payments of the invoice that this payment was for."""
    with office(), store.reading() as db:
        invoice = store.payment(db, payment)["invoice"]
        paid = store.paid_for(db, invoice)
    return {"invoice": invoice, "payments": [{"payment": each["id"], "amount": euros(each["cents"])} for each in paid]}


@tool(
    effect="read",
    title="Read what went back",
    gives="What went back",
    label="personal",
    reads_private=True,
    target="payment provider",
    deadline=10,
    finds=tell_refunds,
)
def read_refunds(call: Call, invoice: str) -> dict[str, Any]:
    """Of which payments of an invoice something went back before."""
    with office(), store.reading() as db:
        back = [each["id"] for each in store.paid_for(db, invoice) if each["back"]]
    return {"invoice": invoice, "refunded": back}


# a change of a record ------------------------------------------------------------------------------------------------------------------


def look_at_customer(call: Call, arguments: Arguments) -> Looked:
    with office(), store.reading() as db:
        version, record = store.customer(db, arguments["record"])
    return Looked({"Customer": record["name"]}, record=record, version=version)


@tool(
    effect="write",
    title="Update the customer",
    card="record",
    label="personal",
    target=OFFICE,
    honours_key=True,
    lookup=by_key,
    look=look_at_customer,
    deadline=10,
    subject=lambda a: f"Update {len(a['after'])} field{'' if len(a['after']) == 1 else 's'} of {name_of(a['record'])}",
    several=lambda those: "updates of one field each" if all(len(a["after"]) == 1 for a in those) else "updates of customers",
    touches=lambda a: {"customer": [a["record"]]},
)
def update_customer(
    call: Call,
    record: Annotated[str, Field(title="Customer number")],
    version: Annotated[int, Field(title="Only if at version")],
    before: Annotated[dict[str, Any], Field(title="Before")],
    after: Annotated[dict[str, Any], Field(title="After", min_length=1)],
    tell_the_customer: Annotated[bool, Field(title="Tell the customer")] = False,
) -> dict[str, Any]:
    """Set fields of a customer, only if the record is as it was read."""
    with office():
        return store.once(call.key, call.last_check, lambda db: store.change_customer(db, record, version, before, after))


def name_of(customer: str) -> str:
    return next((record["name"] for pk, _, record in CUSTOMERS if pk == customer), f"customer {customer}")


# a refund ------------------------------------------------------------------------------------------------------------------------------


def look_at_payment(call: Call, arguments: Arguments) -> Looked:
    with office(), store.reading() as db:
        found = store.payment(db, arguments["payment"])
        _, record = store.customer(db, found["customer"])
    left = found["cents"] - found["back"]
    facts = {"To": f"{record['name']}, the {found['card']}", "Payment": f"{euros(found['cents'])}, for {found['invoice']}"}
    return Looked(facts, paid=f"{found['cents'] / 100:.2f}", left=f"{left / 100:.2f}")


def euros(cents: int) -> str:
    return f"€{cents / 100:,.2f}"


@tool(
    effect="write",
    title="Refund a payment",
    card="payment",
    label="personal",
    target="payment provider",
    credential="refunds",
    honours_key=True,
    lookup=by_key,
    look=look_at_payment,
    limit=Limit("EUR", each="2000.00", a_day="5000.00"),
    deadline=10,
    subject=lambda a: f"Refund {euros(round(Decimal(a['amount']) * 100))} to {name_of(a['account'])}",
    touches=lambda a: {"customer": [a["account"]]},
)
def refund_payment(
    call: Call,
    amount: Annotated[str, Field(title="Amount", pattern=r"^\d{1,9}(\.\d{1,2})?$")],
    account: Annotated[str, Field(title="To")],
    payment: Annotated[str, Field(title="Payment")],
    bank_reason: Annotated[str, Field(title="Reason", max_length=60)],
    statement_text: Annotated[str, Field(title="Statement text", max_length=35)],
    currency: Annotated[str, Field(title="Currency", pattern=r"^[A-Z]{3}$")] = "EUR",
) -> dict[str, Any]:
    """Give money back of a payment, never more than is left of it."""
    if currency != "EUR":
        raise Declined(f"Payments are in EUR, not in {currency}.")
    cents = int(Decimal(amount) * 100)
    with office():
        return store.once(call.key, call.last_check, lambda db: store.refund(db, account, payment, cents, bank_reason, statement_text))


# a statement ---------------------------------------------------------------------------------------------------------------------------


def try_on_a_copy(call: Call, arguments: Arguments) -> Looked:
    begun = perf_counter()
    with office():
        changed = store.dry_run(arguments["statement"], arguments["parameters"], call.deadline)
        with store.reading() as db:
            (of,) = db.execute("SELECT count(*) FROM stock").fetchone()
    took = f"Passed, {(perf_counter() - begun) * 1000:.0f} ms, on a copy"
    return Looked({"Database": OFFICE, "Changes": f"{changed} of {of} rows", "Dry run": took, "Locks": "The whole file, while it runs"})


@tool(
    effect="write",
    title="Run SQL",
    card="sql",
    dialect="sqlite",
    label="internal",
    target=OFFICE,
    honours_key=True,
    lookup=by_key,
    look=try_on_a_copy,
    deadline=10,
    subject=lambda a: f"Run SQL on {OFFICE}",
)
def run_sql(
    call: Call,
    statement: Annotated[str, Field(title="Statement", max_length=20_000)],
    parameters: Annotated[list[str | int | float | None], Field(title="Values")],
    at_most: Annotated[int, Field(title="At most, rows", ge=0, le=10_000)],
    if_it_fails: Annotated[Literal["Rolled back"], Field(title="If it fails")] = "Rolled back",
) -> dict[str, Any]:
    """Run one statement on the stock; all of it or nothing."""
    with office():
        return store.once(
            call.key,
            call.last_check,
            lambda db: {"changed": store.run_statement(db, statement, parameters, at_most, call.deadline)},
        )


# a request -----------------------------------------------------------------------------------------------------------------------------


def desk_url() -> str:
    return os.environ.get("HANDRAIL_DESK_URL", "http://127.0.0.1:8001")


def look_at_host(call: Call, arguments: Arguments) -> Looked:
    known = arguments["url"].startswith(desk_url() + "/")
    host = "The help desk’s" if known else "Not the help desk’s: it would be refused"
    return Looked({"Host": host, "Added when sent": "Idempotency-Key, so that it is done once"})


def is_note(method: str, url: str) -> re.Match[str] | None:
    return re.fullmatch(re.escape(desk_url()) + r"/accounts/(\d{1,12})/notes", url) if method == "POST" else None


def asked_of_desk(method: str, url: str) -> str:
    """What a request asks for, in words if it is one that is known here."""
    known = url.startswith(desk_url() + "/")
    path = url.removeprefix(desk_url()) if known else url
    if note := is_note(method, url):
        return f"Put a note on the file of {name_of(note[1])} at the help desk"
    shown = path if len(path) <= MAX_PATH else path[:MAX_PATH] + "…"
    return f"{method} {shown} at the help desk" if known else f"{method} {shown}"


def effect_at_desk(call: Call, arguments: Arguments) -> Found | Absent | Unsure:
    """Whether the help desk did it, asked by its key."""
    found = _ask("GET", f"{desk_url()}/effects", call.deadline, params={"key": call.key})
    return Found({"target": found["target"]}) if found.get("found") else Absent()


@tool(
    effect="send",
    title="Call the help desk",
    card="http",
    label="personal",
    sends_out=True,
    target="help desk",
    credential="desk",
    honours_key=True,
    lookup=effect_at_desk,
    look=look_at_host,
    deadline=10,
    subject=lambda a: asked_of_desk(a["method"], a["url"]),
    several=lambda those: "notes for the help desk" if all(is_note(a["method"], a["url"]) for a in those) else "calls of the help desk",
)
def call_desk(
    call: Call,
    method: Annotated[str, Field(title="Method", pattern="^(POST|PUT|PATCH|DELETE)$")],
    url: Annotated[str, Field(title="Address", max_length=2000)],
    headers: Annotated[dict[str, str], Field(title="Headers")],
    body: Annotated[dict[str, Any], Field(title="Body")],
) -> dict[str, Any]:
    """Send one request to the help desk, exactly as it was approved, under the grant's key."""
    if not url.startswith(desk_url() + "/"):
        raise Declined("Only the help desk may be called.")
    call.last_check()
    return _ask(method, url, call.deadline, json=body, headers=headers | {"Idempotency-Key": call.key})


def _ask(method: str, url: str, seconds: float, **more: Any) -> dict[str, Any]:
    try:
        with httpx.Client(timeout=seconds, trust_env=False) as http:
            answer = http.request(method, url, **more)
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise Unavailable(f"The help desk can't be reached: {error}") from error
    except httpx.TimeoutException as error:
        raise TimedOut("The help desk gave no answer in time.") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise AnswerLost(f"The help desk was asked and gave no answer: {error or type(error).__name__}") from error
    if 300 <= answer.status_code < 500:
        raise Declined(f"The help desk answered {answer.status_code}: {answer.text}")
    if answer.status_code >= 500:
        raise AnswerLost(f"The help desk failed with {answer.status_code}.")
    try:
        found = answer.json()
    except ValueError as error:
        raise OddAnswer("The help desk answered something else than JSON.") from error
    return found if isinstance(found, dict) else {"answer": found}


# a command -----------------------------------------------------------------------------------------------------------------------------


def look_at_directory(call: Call, arguments: Arguments) -> Looked:
    with office():
        files = sorted(file for file in store.reports().iterdir() if not file.name.startswith("."))
        listed = ", ".join(f"{file.name} ({file.stat().st_size:,} bytes)" for file in files[:5]) or "Nothing"
    return Looked({"Files there": listed + (f" and {len(files) - 5} more" if len(files) > 5 else "")})


def ran(call: Call, arguments: Arguments) -> Found | Absent | Unsure:
    """Whether the command left its receipt. One that was broken off leaves none, and nobody knows how far it came."""
    with office():
        found = store.done(call.key)
    return Found(found) if found is not None else Unsure("It left no receipt; how far it came is not known.")


@tool(
    effect="write",
    title="Run a command",
    card="command",
    label="internal",
    target="this machine",
    lookup=ran,
    look=look_at_directory,
    deadline=20,
    subject=lambda a: f"Run {a['command'][0]} in {a['directory']}",
)
def run_command(
    call: Call,
    command: Annotated[list[Annotated[str, Field(max_length=200)]], Field(title="Command", min_length=1, max_length=20)],
    directory: Annotated[str, Field(title="In the directory", pattern="^reports$")] = "reports",
    environment: Annotated[dict[str, str], Field(title="Environment", max_length=0)] = {},  # noqa: B006  pydantic copies it
) -> dict[str, Any]:
    """Run one program without a shell, in the directory of reports, with an empty environment."""
    if command[0] not in PROGRAMS:
        raise Declined(f"Only {' and '.join(PROGRAMS)} may be run.")
    if odd := [word for word in command[1:] if not store.is_plain_name(word)]:
        raise Declined(f"{odd[0]!r} is neither an option nor a file of this directory.")
    with office():
        earlier, where = store.done(call.key), store.reports()
    if earlier is not None:
        return earlier
    call.last_check()
    try:
        ended = subprocess.run(  # noqa: S603  no shell, a program of the list above, and no path
            command,
            cwd=where,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=call.deadline,
            check=False,
        )
    except FileNotFoundError as error:
        raise Declined(f"{command[0]} is not installed here.") from error
    except OSError as error:
        raise Unavailable(f"{command[0]} can't be started: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise TimedOut(f"{command[0]} did not end in time and was stopped.") from error
    said = ended.stdout.decode("utf-8", "replace")[:MAX_OUTPUT]
    try:
        return store.once(call.key, lambda: None, lambda db: {"ended_with": ended.returncode, "said": said})
    except (sqlite3.Error, OSError) as error:  # not as `office` has it: it was done
        raise AnswerLost(f"{command[0]} ended with {ended.returncode}, and its receipt can't be kept: {error}") from error


# something without a card of its own ---------------------------------------------------------------------------------------------------


@tool(
    effect="write",
    title="Schedule access removal",
    label="personal",
    target="directory of people",
    honours_key=True,
    lookup=by_key,
    deadline=10,
    subject=lambda a: f"Take {len(a['systems'])} systems from {a['person']}",
)
def schedule_removal(
    call: Call,
    person: Annotated[str, Field(title="Person")],
    systems: Annotated[list[str], Field(title="Systems to remove", min_length=1)],
    on: Annotated[str, Field(title="On", pattern=r"^\d{4}-\d{2}-\d{2}$")],
    tell_manager: Annotated[bool, Field(title="Tell the manager")] = True,
    notes: Annotated[str, Field(title="Notes")] = "",
) -> dict[str, Any]:
    """Note that somebody is to lose systems on a day."""

    def do(db: sqlite3.Connection) -> dict[str, Any]:
        row = (person, ", ".join(systems), on, tell_manager, notes)
        made = db.execute("INSERT INTO removal (person, systems, day, tell_manager, notes) VALUES (?, ?, ?, ?, ?)", row)
        return {"removal": made.lastrowid}

    with office():
        return store.once(call.key, call.last_check, do)
