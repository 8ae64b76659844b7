"""What support triage may do: read tickets and accounts, write a note to the CRM, send one e-mail."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from email import message_from_bytes
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, default
from email.utils import format_datetime
from typing import Annotated, Any
from urllib.parse import quote
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from examples.support_triage.answering import counted
from examples.support_triage.client import Desk, NoAnswer, NotReached, Refused, UnsendableMessage, send_mail
from examples.support_triage.drafting import money
from examples.support_triage.reading import Ticket, UnreadableMessage, read
from runs.engine.retry import Retry
from runs.engine.tools import Absent, AnswerLost, Arguments, Call, Declined, File, Found, OddAnswer, Unavailable, Unsure, tool

COMPANY = "Fernhill Support <support@fernhill.example>"
DOMAIN = "fernhill.example"


def as_it_stands(text: str) -> str:
    """What a header can hold and mean what it says. An encoded word (RFC 2047) would be read as other text, even as other headers."""
    if "=?" in text:
        raise ValueError("“=?” begins what mail programs read as other text than stands there")
    return text


Line = Annotated[str, StringConstraints(pattern=r"^[^\r\n\x00]*$", max_length=900), AfterValidator(as_it_stands)]
ADDRESS = r"[^\s<>@,\x00-\x1f\x7f]+@[^\s<>@,\x00-\x1f\x7f]+"
Mailbox = Annotated[str, StringConstraints(pattern=r"^[^\r\n\x00]*$", max_length=320), AfterValidator(as_it_stands)]


@tool(
    effect="read",
    title="Read the ticket",
    gives="The ticket",
    label="personal",
    reads_untrusted=True,
    target="help desk",
    credential="desk",
    deadline=10,
    touches=lambda a: {"ticket": [a["ticket_id"]]},
)
def read_ticket(call: Call, ticket_id: str) -> dict[str, Any]:
    """The ticket and what its message says. All of it is outside text."""
    with outside(call) as desk:
        filed = desk.read_ticket(ticket_id)
        customer = filed.record["customer"]
    try:
        message = read(filed.raw)
    except UnreadableMessage as error:
        raise OddAnswer(f"The message of {ticket_id} can't be read: {error}") from error
    head = f"From: {message.sender_name} <{message.sender_address}>\nSubject: {message.subject}\nDate: {message.date}\n\n"
    return {"account": customer, "message": message.as_json(), "text": head + message.text + _beside(message)}


def _beside(message: Ticket) -> str:
    """What a reader of the text alone would not see: the names of its files, and what its HTML hides."""
    files = "\n".join(f"- {file.name} ({file.media_type}, {file.size} bytes)" for file in message.attachments)
    said = (("Attached:", files), ("Written in its HTML, and not shown:", message.hidden))
    return "".join(f"\n\n{title}\n{text}" for title, text in said if text)


def tell_account(account: Arguments) -> tuple[str, str]:
    """“Two settled payments, one invoice”, and which; of an account on which nothing was paid twice, whose it is and what it has, or for
    how much it is to be renewed.
    """
    for invoice in account["invoices"]:
        paid = [each for each in invoice["payments"] if each["status"] == "settled"]
        if len(paid) > 1:
            each_of = {money(Decimal(each["amount"]), each["currency"], "en") for each in paid}
            told = f", {each_of.pop()} each" if len(each_of) == 1 else ""
            ids = [each["id"] for each in paid]
            return f"{counted(len(paid)).capitalize()} settled payments, one invoice", f"{', '.join(ids[:-1])} and {ids[-1]}{told}"
    if terms := account.get("renewal"):
        return account[
            "name"
        ], f"“{account['plan']}” until {terms['ends']}; in {terms['term']} €{terms['price']}, held until {terms['held_until']}"
    known = len(account["invoices"])
    told = f"{counted(known)} invoice{'' if known == 1 else 's'}, none paid twice" if known else "no invoice on this account"
    return account["name"], told.capitalize()


@tool(
    effect="read",
    title="Check the account",
    gives="The account",
    label="personal",
    reads_private=True,
    target="CRM",
    credential="desk",
    deadline=10,
    touches=lambda a: {"email": [a["email"]]},
    finds=tell_account,
)
def check_account(call: Call, email: str) -> dict[str, Any]:
    """The account that an address belongs to: plan, contacts, invoices and payments."""
    with outside(call) as desk:
        return desk.account_for(email)


def desk_url() -> str:
    return os.environ.get("HANDRAIL_DESK_URL", "http://127.0.0.1:8001")


def desk_told() -> bool:
    """Whether it was said where the desk is, as the demo does."""
    return bool(os.environ.get("HANDRAIL_DESK_URL"))


def account_page(account: str) -> str:
    return f"{desk_url()}/crm/accounts/{quote(account, safe='')}"


def ledger_page() -> str:
    """Where a person sees what was done at the desk, a message by its Message-ID and all else by its key."""
    return f"{desk_url()}/crm/ledger"


def note_by_key(call: Call, arguments: Arguments) -> Found | Absent | Unsure:
    """Whether the note was written, asked by its key."""
    with outside(call) as desk:
        effect = desk.effect(call.key)
    return Found({"account": arguments["account"], "note": effect["target"].rpartition("/")[2]}) if effect["found"] else Absent()


@tool(
    effect="write",
    title="Take the note back",
    label="internal",
    target="CRM",
    credential="desk",
    honours_key=True,
    deadline=10,
    retry=Retry(attempts=5, first=1),
    subject=lambda a: f"Take the note on account {a['account']} back",
    touches=lambda a: {"account": [a["account"]]},
)
def remove_note(call: Call, account: str, note: str) -> dict[str, Any]:
    """Undoes `update_crm`."""
    with outside(call) as desk:
        return desk.remove_note(account, note, call.key)


@tool(
    effect="write",
    title="Update the CRM",
    label="personal",
    target="CRM",
    credential="desk",
    honours_key=True,
    lookup=note_by_key,
    where=ledger_page,
    compensate="remove_note",
    deadline=10,
    retry=Retry(attempts=5, first=1),
    subject=lambda a: f"Note on account {a['account']}",
    touches=lambda a: {"account": [a["account"]]},
)
def update_crm(call: Call, account: str, note: Annotated[str, StringConstraints(min_length=1, max_length=4000)]) -> dict[str, Any]:
    """Write a note on the account, under the grant's id as its key."""
    with outside(call) as desk:
        written = desk.add_note(account, note, call.key)
    return {"account": account, "note": written["id"]}


def message_in_mailbox(call: Call, arguments: Arguments) -> Found | Absent | Unsure:
    """Whether the mail server has a message with this Message-ID."""
    with outside(call) as desk:
        effect = desk.effect(arguments["message_id"])
    return Found({"message_id": arguments["message_id"], "accepted": "found by its Message-ID"}) if effect["found"] else Absent()


def complete_message(arguments: dict[str, Any], nonce: str) -> dict[str, Any]:
    """Fix what a mail program would otherwise make up while sending: the sender, the Message-ID and the line ends.

    A message without HTML has no such argument at all, as before there was one: so its digest is what it was.
    """
    html = {"html": as_mime(arguments["html"])} if arguments.get("html", "").strip() else {}
    whole = {name: value for name, value in arguments.items() if name != "html"} | html
    return whole | {"sender": COMPANY, "message_id": f"<{nonce}@{DOMAIN}>", "body": as_mime(arguments["body"])}


def as_mime(text: str) -> str:
    """With line ends as MIME has them, so that what arrives equals what was approved."""
    return "\r\n".join(re.split(r"\r\n|\r|\n", text.rstrip())) + "\r\n"


def everyone(arguments: Arguments) -> list[str]:
    """The addresses it reaches, bare."""
    return [address.addr_spec for field in ("to", "cc", "bcc") for text in arguments[field] for address in mailboxes(text)]


def mailboxes(text: str) -> tuple[Address, ...]:
    """The addresses in “Name <address>”. Declined if it is none, so that nothing odd is ever sent."""
    try:
        found = SMTP.header_factory("to", as_it_stands(text))
    except Exception as error:  # the parser of the standard library raises many things over odd text
        raise Declined(f"{text!r} is not an address.") from error
    if found.defects or not found.addresses or not all(re.fullmatch(ADDRESS, address.addr_spec) for address in found.addresses):
        raise Declined(f"{text!r} is not an address.")
    return found.addresses


def mailbox(name: str, address: str) -> str:
    """“Name <address>” as a header writes it; the bare address if the name can't stand in one."""
    shown = " ".join("".join(c if c.isprintable() else " " for c in name).split()).replace("=?", "")
    try:
        text = str(Address(display_name=shown, addr_spec=address))
        same = [found.addr_spec for found in mailboxes(text)] == [address]
    except Exception:  # the same parser
        return address
    return text if same else address


def reply_subject(arguments: Arguments) -> str:
    reached = everyone(arguments)
    if not arguments["to"]:
        return f"E-mail a reply to {len(reached)} {'person' if len(reached) == 1 else 'people'}, in copy only"
    first, others = mailboxes(arguments["to"][0])[0], len(reached) - 1
    return f"E-mail a reply to {_spoken(first.display_name) or first.addr_spec}" + (f" and {others} more" if others else "")


def _spoken(name: str) -> str:
    """Großmann, Jürgen → Jürgen Großmann: as a sentence names people. The address itself stands on the card as it is."""
    last, _, given = name.partition(", ")
    return f"{given} {last}" if last and given and "," not in given else name


@tool(
    effect="send",
    title="Send the reply",
    card="email",
    fixed=("sender", "message_id"),
    label="personal",
    sends_out=True,
    target="mail server",
    credential="smtp",
    lookup=message_in_mailbox,
    where=ledger_page,
    prepare=complete_message,
    recipients=everyone,
    subject=reply_subject,
    done=lambda a: f"E-mail to {', '.join([*a['to'], *a['cc'], *a['bcc']])}",
    touches=lambda a: {"email": everyone(a)},
    # What was redeemed and never seen again is looked up by Message-ID. Absent means "may be sent again" only when no frozen worker
    # can still be sending: the last bytes leave before `deadline`, and the mail server holds an unfinished message for 3 s at most.
    deadline=4,
    quarantine=3,
)
def send_email(
    call: Call,
    to: list[Mailbox],
    subject: Line,
    body: str,
    cc: list[Mailbox] = [],  # noqa: B006  pydantic copies it
    bcc: list[Mailbox] = [],  # noqa: B006
    in_reply_to: Line = "",
    references: list[Line] = [],  # noqa: B006
    sender: Mailbox = COMPANY,
    message_id: Line = "",
    html: Annotated[str, Field(title="HTML", max_length=200_000)] = "",
) -> dict[str, Any]:
    """Send one message, exactly as it was approved, its HTML beside its text if it has any.

    Its Date is when it was approved: the time in the grant's id, the same at each try.
    """
    message = compose(to, subject, body, cc, in_reply_to, references, sender, message_id, call.attachments, approved_at(call.key), html)
    host, _, port = os.environ.get("HANDRAIL_DESK_SMTP", "127.0.0.1:8025").rpartition(":")
    try:
        accepted = send_mail(
            message.as_bytes(),
            sender=message["From"].addresses[0].addr_spec,
            recipients=everyone({"to": to, "cc": cc, "bcc": bcc}),
            host=host,
            port=int(port),
            timeout=call.deadline,
            before_last_byte=call.last_check,
        )
    except NotReached as error:
        raise Unavailable(str(error)) from error
    except (Refused, UnsendableMessage) as error:
        raise Declined(str(error)) from error
    except NoAnswer as error:
        raise AnswerLost(str(error)) from error
    return {"message_id": message_id, "accepted": accepted}


def compose(
    to: Sequence[str],
    subject: str,
    body: str,
    cc: Sequence[str],
    in_reply_to: str,
    references: Sequence[str],
    sender: str,
    message_id: str,
    files: Sequence[File],
    date: datetime | None = None,
    html: str = "",
) -> EmailMessage:
    """The message, the same bytes each time: parts are separated by boundaries made of the Message-ID, and its Date is given."""
    message = EmailMessage(policy=SMTP)
    message["From"], message["To"], message["Subject"], message["Message-ID"] = sender, ", ".join(to), subject, message_id
    if cc:
        message["Cc"] = ", ".join(cc)
    if in_reply_to:
        message["In-Reply-To"] = in_reply_to
    if references:
        message["References"] = " ".join(references)
    if date:
        message["Date"] = format_datetime(date)
    message.set_content(body, cte="base64")
    if html:
        message.add_alternative(html, subtype="html", cte="base64")
    for file in files:
        maintype, _, subtype = file.media_type.partition("/")
        message.add_attachment(file.content, maintype=maintype, subtype=subtype, filename=file.name)
    for nth, part in enumerate(part for part in message.walk() if part.is_multipart()):
        part.set_boundary(f"part-{message_id.strip('<>').partition('@')[0]}" + (f"-{nth}" if nth else ""))
    people, lines = {"to": to, "cc": cc, "from": [sender]}, {"subject": subject, "in-reply-to": in_reply_to}
    _check_it_says(message, people, lines, references, body, html, files)
    return message


HEADERS = frozenset("from to cc subject message-id in-reply-to references date mime-version content-type content-transfer-encoding".split())  # noqa: SIM905


def _check_it_says(
    message: EmailMessage,
    people: Mapping[str, Sequence[str]],
    lines: Mapping[str, str],
    references: Sequence[str],
    body: str,
    html: str,
    files: Sequence[File],
) -> None:
    """Read the bytes as whoever gets them will. Declined if they say anything else than what was approved."""
    got = message_from_bytes(message.as_bytes(), policy=default)
    text, rich = got.get_body(("plain",)), got.get_body(("html",))
    same = [
        {name.lower() for name in got} <= HEADERS,
        all(_addresses(got.get(name)) == [a.addr_spec for each in given for a in mailboxes(each)] for name, given in people.items()),
        all(_spaced(got.get(name, "")) == _spaced(given) for name, given in lines.items()),
        _spaced(got.get("references", "")) == _spaced(" ".join(references)),
        text is not None and text.get_content().splitlines() == body.splitlines(),
        (rich.get_payload(decode=True) if rich is not None else b"") == html.encode(),
        [part.get_filename() for part in got.iter_attachments()] == [file.name for file in files],
        [part.get_payload(decode=True) for part in got.iter_attachments()] == [file.content for file in files],
    ]
    if not all(same):
        raise Declined("The message would not say what was approved; it was not sent.")


def _addresses(header: Any) -> list[str]:
    return [address.addr_spec for address in header.addresses] if header else []


def _spaced(text: str) -> str:
    """As a header is read: how it was folded says nothing."""
    return " ".join(str(text).split())


def approved_at(key: str) -> datetime | None:
    """When the grant of this id (a UUIDv7, whose first 48 bits are milliseconds) was made; None if the key is no such id."""
    try:
        grant = UUID(key)
    except ValueError:
        return None
    return datetime.fromtimestamp((grant.int >> 80) // 1000, UTC) if grant.version == 7 else None


@contextmanager
def outside(call: Call) -> Iterator[Desk]:
    """The desk, with its errors in the engine's words."""
    with Desk(desk_url(), timeout=call.deadline) as desk:
        try:
            yield desk
        except NotReached as error:
            raise Unavailable(str(error)) from error
        except Refused as error:
            raise Declined(str(error)) from error
        except NoAnswer as error:
            raise AnswerLost(str(error)) from error
        except KeyError as error:
            raise OddAnswer(f"The desk’s answer lacks “{error.args[0]}”.") from error
