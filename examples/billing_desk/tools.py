"""What the billing desk may do beside what support triage may: hold what is to be given back, and say at the help desk where a ticket is.

Each can be taken back, and the demo's policy lets both happen without asking. The money itself is people's to give back.
"""

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field

from examples.back_office import store
from examples.back_office.tools import by_key, euros, office
from examples.support_triage.tools import ledger_page, outside
from runs.engine.retry import Retry
from runs.engine.tools import Absent, AnswerLost, Arguments, Call, Declined, Found, Limit, TimedOut, Unsure, tool

Status = Literal["open", "in_progress", "answered", "closed"]
WORDS = {"open": "Open", "in_progress": "In progress", "answered": "Answered", "closed": "Closed"}
PATIENT = Retry(attempts=5, first=1)


@tool(
    effect="read",
    title="Check the account",
    gives="The account",
    label="personal",
    reads_private=True,
    target="CRM",
    credential="desk",
    deadline=10,
    touches=lambda a: {"account": [a["account"]]},
)
def check_charges(call: Call, account: str) -> dict[str, Any]:
    """An account by its number: plan, contacts, invoices and payments."""
    try:
        with outside(call) as desk:
            return desk.account(account)
    except AnswerLost as error:  # it only reads: nothing can have happened
        raise TimedOut(f"The CRM gave no answer within {call.deadline:g} s.") from error


@tool(
    effect="write",
    title="Release the refund hold",
    label="internal",
    target="payment provider",
    credential="refunds",
    honours_key=True,
    lookup=by_key,
    deadline=10,
    retry=PATIENT,
    subject=lambda a: f"Release the hold {a['hold']}",
    touches=lambda a: {"account": [a["account"]]},
)
def release_hold(call: Call, account: str, hold: str) -> dict[str, Any]:
    """Undoes `hold_refund`."""
    with office():
        return store.once(call.key, call.last_check, lambda db: store.release(db, account, hold))


@tool(
    effect="write",
    title="Place a refund hold",
    label="internal",
    target="payment provider",
    credential="refunds",
    honours_key=True,
    lookup=by_key,
    compensate="release_hold",
    limit=Limit("EUR", each="2000.00"),
    deadline=10,
    retry=PATIENT,
    subject=lambda a: f"Refund hold of {euros(round(Decimal(a['amount']) * 100))} on {a['payment']}",
    touches=lambda a: {"account": [a["account"]]},
)
def hold_refund(
    call: Call,
    account: Annotated[str, Field(title="Customer number")],
    payment: Annotated[str, Field(title="Payment")],
    amount: Annotated[str, Field(title="Amount", pattern=r"^\d{1,9}(\.\d{1,2})?$")],
    currency: Annotated[str, Field(title="Currency", pattern=r"^[A-Z]{3}$")] = "EUR",
) -> dict[str, Any]:
    """Put aside what is to go back of a payment, so that nobody gives it back twice. No money moves."""
    if currency != "EUR":
        raise Declined(f"Payments are in EUR, not in {currency}.")
    cents = int(Decimal(amount) * 100)
    with office():
        return store.once(call.key, call.last_check, lambda db: store.hold(db, account, payment, cents))


def status_by_key(call: Call, arguments: Arguments) -> Found | Absent | Unsure:
    """Whether the help desk moved the ticket, asked by its key."""
    with outside(call) as desk:
        if not desk.effect(call.key)["found"]:
            return Absent()
    return Found(_set(call, arguments["ticket"], arguments["status"]))  # under the same key: it gives its first answer and moves nothing


def ticket_set(arguments: Arguments) -> str:
    return f"Ticket {arguments['ticket']} set to “{WORDS[arguments['status']]}”"


@tool(
    effect="write",
    title="Put the ticket back",
    label="internal",
    target="help desk",
    credential="desk",
    honours_key=True,
    deadline=10,
    retry=PATIENT,
    subject=lambda a: f"Ticket {a['ticket']} put back to “{WORDS[a['status']]}”",
    touches=lambda a: {"ticket": [a["ticket"]]},
)
def put_ticket_back(call: Call, ticket: str, status: Status) -> dict[str, Any]:
    """Undoes `set_ticket`."""
    return _set(call, ticket, status)


@tool(
    effect="write",
    title="Set the ticket",
    label="internal",
    target="help desk",
    credential="desk",
    honours_key=True,
    lookup=status_by_key,
    where=ledger_page,
    compensate="put_ticket_back",
    undo=lambda a, gave: {"ticket": a["ticket"], "status": gave["before"]},
    deadline=10,
    retry=PATIENT,
    subject=ticket_set,
    touches=lambda a: {"ticket": [a["ticket"]]},
)
def set_ticket(call: Call, ticket: str, status: Status) -> dict[str, Any]:
    """Say at the help desk where a ticket is."""
    return _set(call, ticket, status)


def _set(call: Call, ticket: str, status: str) -> dict[str, Any]:
    with outside(call) as desk:
        moved = desk.set_ticket_status(ticket, status, call.key)
    return {"ticket": ticket, "before": moved["previous_status"]}
