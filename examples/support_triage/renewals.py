"""Renewing a contract: note it on the account, put the offer to people, send it, and wait until the signed contract comes."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from examples.support_triage.tools import (
    account_page,
    check_account,
    complete_message,
    desk_told,
    everyone,
    ledger_page,
    mailbox,
    mailboxes,
    message_in_mailbox,
    send_email,
    update_crm,
)
from runs.engine.tools import tool
from runs.engine.workflow import APPROVAL, Arrived, Channel, Link, Record, workflow

SIGNED = "A signed contract"
PLAN = ("Check the account", "Update the CRM", APPROVAL, "Send the offer", SIGNED)
PATIENCE = timedelta(days=14)
SOURCE = "contracts"  # who says by a webhook that one was signed

# the same letter, and sent as that is; rules tell the two apart by the tool
send_offer = tool(
    name="send_offer",
    effect="send",
    title="Send the offer",
    card="email",
    fixed=("sender", "message_id"),
    label="personal",
    target="mail server",
    credential="smtp",
    lookup=message_in_mailbox,
    where=ledger_page,
    prepare=complete_message,
    recipients=everyone,
    subject=lambda a: f"E-mail an offer to {mailboxes(a['to'][0])[0].display_name or everyone(a)[0]}",
    done=lambda a: f"E-mail to {', '.join(a['to'])}",
    touches=lambda a: {"email": everyone(a)},
    deadline=send_email.deadline,
    quarantine=send_email.quarantine,
)(send_email.function)


def where_signed(match: Mapping[str, Any]) -> Link | None:
    """On the account's own page. Only the demo says at which address its desk is."""
    return Link("Sign the contract at the help desk", account_page(match["data.account"])) if desk_told() else None


@workflow(
    "renewals",
    version=1,
    title="Contract renewals",
    plan=PLAN,
    may_not="Change a price or a contract, or write to anyone but the contact of the account.",
    steps=16,
    where=where_signed,
)
def renewals(run: Channel, email: str) -> None:
    run.plan(*PLAN, note="Approval needed before the offer leaves the company.")
    account = run.step(check_account, email)
    terms = account.renewal
    run.step(update_crm, account.id, note=f"Renewal for {terms.term} is offered at €{terms.price} a year.")
    run.step(update_crm, account.id, note=f"The price of €{terms.price} is held until {terms.held_until}.")
    letter = {"to": [_contact(account, email)], "subject": f"Your plan in {terms.term}", "body": _offer(account, email)}
    answer = run.propose(send_offer, **letter, reason=_why(account))
    if not answer.approved:
        run.report("Not offered", body=getattr(answer, "reason", "") or "It was not approved.", label="personal", cites=[answer])
        return
    run.perform(answer)
    signed = {"type": "contract.signed", "data.account": account.id}
    came = run.wait_for(SOURCE, match=signed, timeout=PATIENCE, title=SIGNED)
    if isinstance(came, Arrived):
        run.step(update_crm, account.id, note=f"Renewed for {terms.term}.")
        run.report("Renewed", cites=[answer, came])
    else:
        run.report("No signed contract came in two weeks", cites=[answer, came])


def _why(account: Record) -> str:
    """For who approves it: what the account says, from where plan, price and days are taken."""
    terms = account.renewal
    return (
        f"The account of {account.name} says that “{account.plan}” ends on {terms.ends}, and what it is to cost in {terms.term}:"
        f" €{terms.price}. That price is held until “{terms.held_until}”."
    )


def _contact(account: Record, email: str) -> str:
    return mailbox(_name(account, email), email)


def _name(account: Record, email: str) -> str:
    return next((contact.name for contact in account.contacts if contact.email == email), "")


def _offer(account: Record, email: str) -> str:
    terms = account.renewal
    first, _, _ = _name(account, email).strip().partition(" ")
    return (
        f"Hello {first or 'there'},\n\nyour plan, {account.plan}, ends on {terms.ends}. We would like to go on"
        f" working with {account.name}: for {terms.term} it is €{terms.price} a year, and we hold that price until {terms.held_until}.\n\n"
        "The contract lies in your account. Once it is signed there, nothing else is needed.\n\nFernhill"
    )
