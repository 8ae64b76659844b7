"""What the billing desk's model says: fixed rules that really read the ticket, and a few words of what colleagues ask for."""

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from examples.support_triage.drafting import draft
from examples.support_triage.reading import Ticket

RECORD = "The payment record is attached, so that your accounts team can file it."
HOW, BY_CARD = "the way it was paid", "to the {card}"


def settle_reply(*, ticket: dict[str, Any], account: dict[str, Any], notes: list[str], requests: list[str]) -> dict[str, Any]:
    """A reply to a ticket. Of what colleagues ask for it knows three things: VAT, the card, and the payment record to file."""
    written = draft(Ticket.from_json(ticket), account, notes)
    if written.nothing:
        return {"subject": "", "body": "", "summary": written.summary, "language": written.language, "nothing": written.nothing}
    words = [*notes, *requests]
    files = [
        {"name": f.name, "media_type": f.media_type, "text": f.content.decode()} for f in written.attachments if f.media_type == "text/csv"
    ]
    files = files if _says(words, r"\battach|\bpayment record") else []
    body = written.body if files else written.body.replace(f"{RECORD}\n\n", "")
    if _says(words, r"\bVAT\b"):
        body = re.sub(r"the extra (\S+) ", r"the extra \1, including VAT, ", body, count=1)
    if (card := account.get("refunds_to", "")) and _says(words, r"\bcard\b"):
        body = body.replace(HOW, BY_CARD.format(card=card), 1)
    said = {"subject": written.subject, "body": body, "html": "", "summary": written.summary}
    return said | {"language": written.language, "files": files, "nothing": ""}


def _says(words: Sequence[str], pattern: str) -> bool:
    return any(re.search(pattern, text, re.IGNORECASE) for text in words)


def paid_twice(account: dict[str, Any], named: Sequence[str]) -> dict[str, Any] | None:
    """The first invoice that the ticket names and that was settled more than once, with its payments. None if none was."""
    for invoice in account.get("invoices", ()):
        settled = [payment for payment in invoice.get("payments", ()) if payment["status"] == "settled"]
        if len(settled) > 1 and (not named or invoice["number"] in named):
            return {"number": invoice["number"], "settled": settled}
    return None


def in_words(invoice: dict[str, Any]) -> str:
    """PAY-88120 and PAY-88121 both settled on 24 November for INV-20931."""
    payments = invoice["settled"]
    names = [payment["id"] for payment in payments]
    days = list(dict.fromkeys(f"{date.fromisoformat(payment['date']):%-d %B}" for payment in payments))
    both = "both settled" if len(names) == 2 else "all settled"
    return f"{', '.join(names[:-1])} and {names[-1]} {both} on {' and '.join(days)} for {invoice['number']}."
