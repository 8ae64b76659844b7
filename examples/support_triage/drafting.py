"""The scripted model: reads a ticket and its account and writes the reply. Pure: the same input gives the same draft.

It knows twelve situations and three languages, and messages that ask for nothing. Whatever the message says stays text: it chooses a
situation and fills in names, numbers and amounts, and nothing in it can become an instruction, a recipient or an address. Paragraphs that
read like orders to a machine do not even choose.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from examples.support_triage import letters, phrases
from examples.support_triage.reading import Ticket
from runs.engine import orders


@dataclass(frozen=True)
class Attachment:
    """A file that goes with the reply."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True)
class Draft:
    """A reply: `body` has `\\n` line ends, `summary` is the note for the CRM (always English), `language` is en, de or pt.

    `html` says the same as `body`; who wrote as plain text is answered without it. `reason`: for who approves it, why it says what it says.
    `nothing`: why there is nothing to send, if so; then all else is empty but the summary.
    """

    subject: str
    body: str
    summary: str
    language: str
    situation: str
    attachments: tuple[Attachment, ...] = ()
    html: str = ""
    nothing: str = ""
    reason: str = ""


def draft(ticket: Ticket, account: Mapping[str, Any], notes: Sequence[str] = (), wishes: Sequence[str] = ()) -> Draft:
    """The reply to `ticket`, for the customer whose `account` the CRM gave (see the desk's GET /accounts).

    `notes`: what colleagues added; they go into the summary, which stays inside. `wishes`: what they want said, and each is, as it
    stands, but for one that these rules understand: a credit note instead of a refund.
    """
    language = _language(ticket, account)
    ticket = replace(ticket, text=orders.without(ticket.text)) if ticket.orders else ticket
    if nothing := ticket.automatic or _thanks(ticket):
        return Draft("", "", phrases.NOTHING[nothing], language, "nothing", nothing=phrases.NOTHING[nothing])
    invoice = _invoice(ticket, account)
    situation = _situation(ticket, invoice)
    facts = _facts(ticket, account, invoice, language)
    subject, paragraphs = phrases.REPLIES[situation][language]
    if situation == "duplicate_found" and (credit := [wish for wish in wishes if _CREDIT.search(wish)]):
        wishes = [wish for wish in wishes if wish not in credit]
        paragraphs = (*paragraphs[:2], phrases.CREDITED[language], *paragraphs[3:])
    body = [_greeting(ticket, language), *(paragraph.format(**facts) for paragraph in paragraphs)]
    body += [*_remarks(ticket, invoice, situation, facts, language)]
    body += [*(_wished(wish.strip(), language) for wish in wishes), phrases.CLOSING[language]]
    text = "\n\n".join(body) + "\n"
    said = _summary(ticket, account, invoice, situation, language)
    noted = [*([phrases.ORDERS] if ticket.orders else ()), *(f"A colleague noted: “{note.strip()}”" for note in notes)]
    return Draft(
        subject=subject.format(**facts),
        body=text,
        summary="\n".join([said, *noted]),
        reason=" ".join([said, *([phrases.ORDERS] if ticket.orders else ()), *([phrases.NOTED] if notes else ())]),
        language=language,
        situation=situation,
        attachments=_attachments(invoice) if "{payments}" in paragraphs else _correction(ticket, invoice, situation, facts),
        html=letters.as_html(text, strong=(facts["invoice"], facts["vat"])) if ticket.rich else "",
    )


_NO_FACT = "about |of |to |how |why |what |when |where |if |whether "
_TELL = re.compile(
    r"(?:please,? )?(?:also )?(?:tell|inform|let) (?:her|him|them|the customer)(?: know)?(?: that|:|,)? "
    rf"(?P<what>(?!{_NO_FACT})\S.*)",
    re.IGNORECASE | re.DOTALL,
)


def _wished(wish: str, language: str) -> str:
    """What a colleague wants said, as it stands; of “Tell her the money is on its way” what she is to be told.

    A sentence in the letter's language is one of its own; what may be an instruction is said to be the team's.
    """
    if told := _TELL.fullmatch(wish):
        return f"{told['what'][0].upper()}{told['what'][1:]}"
    if (first := re.match(r"\w+(?=\s)", wish)) and first[0].lower() in phrases.STATES[language]:
        return wish
    return phrases.ADDED[language].format(note=wish)


_CREDIT = re.compile(r"\bcredit note\b.*\b(?:instead of|rather than|not)\b.*\brefund", re.IGNORECASE | re.DOTALL)


def _language(ticket: Ticket, account: Mapping[str, Any]) -> str:
    wanted = ticket.language if ticket.language != "und" else account.get("language", "")
    return wanted if wanted in phrases.LANGUAGES else "en"


@dataclass(frozen=True)
class _Payment:
    reference: str
    date: str
    amount: Decimal
    currency: str
    status: str


@dataclass(frozen=True)
class _Invoice:
    number: str
    amount: Decimal
    currency: str
    payments: tuple[_Payment, ...]

    @property
    def settled(self) -> tuple[_Payment, ...]:
        return tuple(payment for payment in self.payments if payment.status == "settled")

    @property
    def surplus(self) -> Decimal:
        return sum((payment.amount for payment in self.settled), Decimal()) - self.amount

    @property
    def paid_twice(self) -> bool:
        return len(self.settled) > 1 and self.surplus > 0


def _invoice(ticket: Ticket, account: Mapping[str, Any]) -> _Invoice | None:
    """The invoice the message is about: the one it names first, else the only one that fits what it says."""
    invoices = [_parsed(record) for record in account.get("invoices", ())]
    named = sorted((each for each in invoices if each.number in ticket.invoices), key=lambda each: ticket.invoices.index(each.number))
    if named or ticket.invoices:
        return named[0] if named else None
    stated = {(amount.value, amount.currency) for amount in ticket.amounts}
    fitting = [invoice for invoice in invoices if (f"{invoice.amount:.2f}", invoice.currency) in stated]
    twice = [invoice for invoice in fitting or invoices if invoice.paid_twice]
    for candidates in (twice, fitting):
        if len(candidates) == 1:
            return candidates[0]
    return None


def _parsed(record: Mapping[str, Any]) -> _Invoice:
    payments = tuple(
        _Payment(payment["id"], payment["date"], _number(payment["amount"]), payment["currency"], payment["status"])
        for payment in record.get("payments", ())
    )
    return _Invoice(record["number"], _number(record["amount"]), record["currency"], payments)


def _number(value: str) -> Decimal:
    try:
        return Decimal(value)
    except InvalidOperation:
        return Decimal()


_THANKS = re.compile(r"thank|cheers|solved|sorted|danke|erledigt|gelöst|obrigad[oa]|resolvido|gracias|merci|grazie|bedankt", re.I)
_ASKS = re.compile(
    r"\?|\d{4}|\b(?:please|could|can you|would|need|when|but|however|still|bitte|könn\w+|brauch\w+|aber|noch)\b"
    r"|\b(?:favor|pode\w*|precis\w+|mas|ainda)\b",
    re.I,
)


def _thanks(ticket: Ticket) -> str:
    """Short, with a word of thanks and none that asks for something: “thanks”, else empty. In doubt it is answered."""
    own = "\n".join(line for line in ticket.text.splitlines() if not line.lstrip().startswith(">"))
    own = re.split(r"(?m)^(?:-- ?$|On .{5,100} wrote:|Am .{5,100} schrieb)", own)[0].strip()
    quiet = len(own) <= 300 and not ticket.attachments and not _ASKS.search(own)
    return "thanks" if own and quiet and _THANKS.search(own) else ""


_ABOUT = {
    "legal": r"\b(?:lawyers?|attorneys?|solicitors?|legal (?:action|proceedings|steps)|take (?:you|this) to court|small claims|sue you)\b"
    r"|rechtsanw[aä]lt|anwaltlich|\bklage\b|mahnbescheid|rechtliche schritte|advogad|tribunal|ação judicial|abogad|avocat|avvocat",
    "duplicate": r"twice|duplicate|charged (?:again|two times)|double[- ]?(?:charge|payment|bill)|two payments"
    r"|doppelt|zweimal|zwei ?mal|duas vezes|duplicad|em dobro|dos veces|deux fois|en double|due volte|dubbel|twee ?(?:keer|maal)",
    "vat": r"(?:vat|tax)[- ]?(?:number|id|no\b|registration)|wrong vat|ust\.?-?id|umsatzsteuer|steuernummer"
    r"|\bnif\b|\bnipc\b|contribuinte|\bcif\b|numéro de tva|partita iva|btw-nummer",
    "amount": r"(?:wrong|incorrect|different) (?:amount|total|sum|price)|(?:amount|total|price)\b[^.?!\n]{0,30}\b(?:wrong|incorrect)"
    r"|overcharg|corrected invoice|korrigierte rechnung|falscher? (?:betrag|preis)|fatura corrigida|valor errado|montante errado",
    "refund": r"refund|money back|reimburse|erstatt|rückzahlung|zurückzahl|reembols|devolu[çc]|rembours|rimbors|terugbeta",
    "sign_in": r"log(?:ging)?[- ]?in|sign(?:ing)?[- ]?in|password|locked out|passwort|kennwort|anmelden|einloggen"
    r"|palavra-passe|\bsenha\b|iniciar sessão|contraseña|mot de passe|me connecter|wachtwoord|inloggen",
    "address": r"(?:new|changed?|change of|our) (?:\w+ )?address|address (?:has )?changed?|we(?:'ve| have)? moved"
    r"|neue (?:anschrift|adresse)|umgezogen|adressänderung|nov[ao] (?:morada|endereço)|mudámos|nueva dirección"
    r"|nouvelle adresse|déménag|nuovo indirizzo|nieuw adres|verhuisd",
}


def _situation(ticket: Ticket, invoice: _Invoice | None) -> str:
    words = f"{ticket.subject}\n{ticket.text[:20_000]}"
    about = next((topic for topic, pattern in _ABOUT.items() if re.search(pattern, words, re.I)), "general")
    if about in ("duplicate", "vat", "amount", "refund") and invoice is None:
        return "invoice_not_found" if ticket.invoices else "invoice_not_named"
    if about == "duplicate":
        return "duplicate_found" if invoice and invoice.paid_twice else "duplicate_not_found"
    if about == "vat":
        return "corrected_invoice" if _vat_number(ticket) else "vat_number_missing"
    if about == "amount":
        return "corrected_invoice" if _vat_number(ticket) else "amount_disputed"
    if about == "refund":
        return "refund" if invoice and invoice.settled else "refund_unpaid"
    return {"sign_in": "cannot_sign_in", "address": "address_change", "legal": "legal"}.get(about, "general")


def _vat_number(ticket: Ticket) -> str:
    found = re.search(r"\b[A-Z]{2}[ \u00a0]?\d(?:[ .\u00a0]?\d){6,11}[A-Z]{0,2}\b", ticket.text)
    return found[0].replace("\u00a0", " ") if found else ""


def _facts(ticket: Ticket, account: Mapping[str, Any], invoice: _Invoice | None, language: str) -> dict[str, str]:
    """Every name that a phrase may use. Those without a meaning here are empty, and no phrase of such a situation uses them."""
    facts = {
        "address": ticket.sender_address,
        "subject": _without_reply_marks(ticket.subject),
        "quote": _quote(ticket.text),
        "invoice": invoice.number if invoice else ", ".join(ticket.invoices[:3]),
        "vat": _vat_number(ticket),
        "vat_before": account.get("vat_number") or "none",
        "amount": "",
        "surplus": "",
        "payments": "",
        "references": "",
        "names": "",
        "found": "",
        "count": "",
    }
    if invoice is None:
        return facts
    lines = [f"• {payment.reference}, {_day(payment.date, language)}, {_amount(payment, language)}" for payment in invoice.settled]
    return facts | {
        "amount": money(invoice.amount, invoice.currency, language),
        "surplus": money(invoice.surplus, invoice.currency, language),
        "payments": "\n".join(lines) or phrases.NO_PAYMENT[language],
        "references": _references(invoice.settled, language),
        "names": _listed([payment.reference for payment in invoice.settled]),
        "found": f"only {_references(invoice.settled, language)}" if invoice.settled else "no payment",
        "count": _times(len(invoice.settled), language),
    }


def _references(payments: Sequence[_Payment], language: str) -> str:
    """“PAY-88120 and PAY-88121 of €1,284.00 each”"""
    amounts = [_amount(payment, language) for payment in payments]
    if len(payments) > 1 and len(set(amounts)) == 1:
        return f"{_listed([payment.reference for payment in payments])} of {amounts[0]} each"
    return _listed([f"{payment.reference} of {amount}" for payment, amount in zip(payments, amounts, strict=True)])


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _remarks(ticket: Ticket, invoice: _Invoice | None, situation: str, facts: dict[str, str], language: str) -> list[str]:
    remarks = []
    known = {f"{amount:.2f}" for amount in (invoice.amount, invoice.surplus, invoice.surplus + invoice.amount)} if invoice else set()
    if invoice and ticket.amounts and "{amount}" in "".join(phrases.REPLIES[situation][language][1]):
        other = [amount for amount in ticket.amounts if amount.value not in known]
        if len(other) == len(ticket.amounts):
            stated = money(Decimal(other[0].value), other[0].currency, language)
            remarks.append(phrases.OTHER_AMOUNT[language].format(stated=stated, **facts))
    names = [file.name for file in ticket.attachments if not orders.found(file.name)]  # nothing of an order is said again
    if names:
        remarks.append(phrases.FILES[language].format(files=", ".join(names[:5])))
    return remarks


def _summary(ticket: Ticket, account: Mapping[str, Any], invoice: _Invoice | None, situation: str, language: str) -> str:
    facts = _facts(ticket, account, invoice, "en")
    said = phrases.SUMMARIES[situation].format(**facts)
    stop = "" if said.rstrip().endswith((".", "?", "!", "…")) else "."
    return f"{said}{stop}" + ("" if language == "en" else f" The reply is in {_LANGUAGE_NAMES[language]}.")


_LANGUAGE_NAMES = {"en": "English", "de": "German", "pt": "Portuguese"}


def _attachments(invoice: _Invoice | None) -> tuple[Attachment, ...]:
    if invoice is None or not invoice.settled:
        return ()
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\r\n")
    table.writerow(("Invoice", "Date", "Reference", "Amount", "Currency", "Status"))
    for payment in invoice.settled:
        row = (invoice.number, payment.date, payment.reference, f"{payment.amount:.2f}", payment.currency, payment.status)
        table.writerow([_harmless(cell) for cell in row])
    name = re.sub(r"[^A-Za-z0-9-]", "_", invoice.number)
    return (Attachment(f"payments-{name}.csv", "text/csv", out.getvalue().encode("utf-8")),)


def _correction(ticket: Ticket, invoice: _Invoice | None, situation: str, facts: Mapping[str, str]) -> tuple[Attachment, ...]:
    """What will change on the invoice, as a PDF to file: for who wrote with HTML, and so does not read on a plain terminal."""
    if situation != "corrected_invoice" or invoice is None or not ticket.rich:
        return ()
    change = (f"VAT number before: {facts['vat_before']}", f"VAT number after: {facts['vat']}")
    first = (f"Correction of {invoice.number}", "Fernhill Ltd", "", f"Amount, unchanged: {invoice.amount:.2f} {invoice.currency}", *change)
    paid = [f"{payment.date}  {payment.reference}  {payment.amount:.2f} {payment.currency}" for payment in invoice.settled]
    pages = (first, (f"Payments booked on {invoice.number}", *(paid or ("None",))))
    name = re.sub(r"[^A-Za-z0-9-]", "_", invoice.number)
    return (Attachment(f"correction-{name}.pdf", "application/pdf", letters.as_pdf(pages)),)


def _harmless(cell: str) -> str:
    # A spreadsheet would run a cell that begins like a formula.
    return f"'{cell}" if cell[:1] in ("=", "+", "@", "\t") else cell


def _greeting(ticket: Ticket, language: str) -> str:
    with_name, without = phrases.GREETING[language]
    last, comma, first = ticket.sender_name.partition(", ")
    full_name = f"{first} {last}" if comma else last
    # A display name is whatever the sender typed: only what looks like a person's name is repeated.
    if len(full_name) > 60 or not re.fullmatch(r"[^\W\d_]+(?:[ '’.-]{1,2}[^\W\d_]+){0,4}\.?", full_name):
        return without
    return with_name.format(name=full_name.split()[0], full_name=full_name)


def _without_reply_marks(subject: str) -> str:
    plain = re.sub(r"(?i)^(?:\s*(?:re|aw|fw|fwd|wg|res|enc)\s*:)+\s*", "", subject).strip()
    return plain[:150].replace("=?", "=\u200a?") or "…"


def _quote(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith(">")][:6]
    return "\n".join(f"> {line[:200]}" for line in lines) or "> …"


def _times(count: int, language: str) -> str:
    twice, more = phrases.TIMES[language]
    return twice if count == 2 else more.format(count=count)


def _amount(payment: _Payment, language: str) -> str:
    return money(payment.amount, payment.currency, language)


_SIGNS = {"EUR": "€", "GBP": "£", "USD": "$", "BRL": "R$"}


def money(amount: Decimal, currency: str, language: str) -> str:
    """€1,284.00, as people write it in that language."""
    figures = f"{amount:,.2f}"
    if language == "en":
        return f"{_SIGNS[currency]}{figures}" if currency in _SIGNS else f"{currency} {figures}"
    figures = figures.translate(str.maketrans(",.", ".,"))
    return f"{figures} {_SIGNS.get(currency, currency)}"


def _day(value: str, language: str) -> str:
    try:
        day = date.fromisoformat(value)
    except ValueError:
        return value
    return phrases.DATE[language].format(day=day.day, month=phrases.MONTHS[language][day.month - 1], year=day.year)
