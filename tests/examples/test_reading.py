"""What is read from a customer's message, and that no message, however hostile, is more than text."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.support_triage.mime import MAX_TEXT
from examples.support_triage.reading import MAX_BYTES, Amount, Ticket, UnreadableMessage, attachments, read

TICKETS = Path(__file__).parents[2] / "examples" / "support_triage" / "tickets"
SENDER = b"From: Marta <marta@brightwater.example>\r\n"


def message(body: bytes = b"Hello", *headers: bytes) -> bytes:
    return SENDER + b"".join(header + b"\r\n" for header in headers) + b"\r\n" + body


def test_a_plain_message_is_read():
    ticket = read((TICKETS / "duplicate-charge.eml").read_bytes())
    assert (ticket.sender_name, ticket.sender_address) == ("Marta Oyelaran", "marta.oyelaran@brightwater.example")
    assert ticket.cc == ("accounts@brightwater.example",)
    assert ticket.subject == "Charged twice for INV-20931"
    assert (ticket.invoices, ticket.amounts, ticket.language) == (("INV-20931",), (Amount("1284.00", "EUR"),), "en")
    assert ticket.text.startswith("Hello,\n\nWe've been charged twice")
    assert ticket.message_id == "<20261129140141.8f3e@mail.brightwater.example>"


def test_html_with_an_attachment_is_read():
    raw = (TICKETS / "wrong-vat-number.eml").read_bytes()
    ticket = read(raw)
    assert [(file.name, file.media_type) for file in ticket.attachments] == [("INV-21077.pdf", "application/pdf")]
    assert attachments(raw)[0].content.startswith(b"%PDF-1.4")
    assert len(attachments(raw)[0].content) == ticket.attachments[0].size
    assert "PT 509 442 013" in ticket.text
    assert "Alder Press · Porto" in ticket.text


def test_another_language_with_encoded_headers_is_read():
    ticket = read((TICKETS / "rueckerstattung.eml").read_bytes())
    assert ticket.sender_name == "Großmann, Jürgen"
    assert ticket.subject == "Rückerstattung für Rechnung INV-20877 – Kündigung nicht berücksichtigt"
    assert (ticket.language, ticket.amounts) == ("de", (Amount("1079.00", "EUR"),))


@pytest.mark.parametrize("name", [path.name for path in TICKETS.glob("*.eml")])
def test_a_ticket_survives_a_trip_through_json(name):
    ticket = read((TICKETS / name).read_bytes())
    assert Ticket.from_json(json.loads(json.dumps(ticket.as_json()))) == ticket


def test_html_alone_becomes_its_words():
    body = b"<style>p{}</style><p>Hello&nbsp;&amp; <b>welcome</b></p><script>alert(1)</script><ul><li>one<li>two</ul><p hidden>unseen"
    ticket = read(message(body, b"Content-Type: text/html; charset=utf-8"))
    assert ticket.text == "Hello & welcome\n\n- one\n- two\n\nunseen"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I paid €1,284.00 twice", [("1284.00", "EUR")]),
        ("1.284,00 € und 12 EUR", [("1284.00", "EUR"), ("12.00", "EUR")]),
        ("R$ 1.000,50 ou US$ 20", [("1000.50", "BRL"), ("20.00", "USD")]),
        ("1 284,00 € ou CHF 1'284.00", [("1284.00", "EUR"), ("1284.00", "CHF")]),
        ("1\u202f284,00\u00a0€", [("1284.00", "EUR")]),
        ("£0.99", [("0.99", "GBP")]),
        ("invoice 20931 of 2026", []),
    ],
)
def test_amounts_are_found_however_they_are_written(text, found):
    assert [(a.value, a.currency) for a in read(message(text.encode())).amounts] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("INV-20931 and inv 20932, INV-20931 again", ("INV-20931", "INV-20932")),
        ("Rechnung Nr. 20931", ("INV-20931",)),
        ("Rechnungsnummer: 20931", ("INV-20931",)),
        ("a fatura n.º 21077", ("INV-21077",)),
        ("invoice #20931", ("INV-20931",)),
        ("the invoice of 2026", ()),
    ],
)
def test_invoice_numbers_are_found_however_they_are_written(text, found):
    assert read(message(text.encode())).invoices == found


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Hello, could you please tell us when the invoice was paid?", "en"),
        ("Guten Tag, bitte senden Sie uns die Rechnung noch einmal.", "de"),
        ("Olá, a nossa fatura foi paga e não recebemos os recibos. Obrigado.", "pt"),
        ("Hola, no hemos recibido la factura, gracias y saludos. Por favor, los datos son de usted.", "es"),
        ("Bonjour, nous avons payé cette facture et nous n'avons pas de reçu. Merci.", "fr"),
        ("Buongiorno, abbiamo pagato la fattura della settimana, grazie.", "it"),
        ("Hallo, wij hebben de factuur niet ontvangen, graag een kopie.", "nl"),
        ("12345", "und"),
        ("", "und"),
    ],
)
def test_the_language_is_told(text, code):
    assert read(message(text.encode())).language == code


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00",
        b"no headers here",
        b"\r\n\r\nbody",
        b"Subject: nobody wrote this\r\n\r\nHello",
        b"From: nobody\r\n\r\nHello",
        b"From: <>\r\n\r\nHello",
        b"From: " + b"(" * 5000 + b"\r\n\r\nHello",
        b"PK\x03\x04 a zip file: really",
        message(b"x" * MAX_BYTES),
    ],
)
def test_what_is_no_message_from_anybody_is_refused(raw):
    with pytest.raises(UnreadableMessage):
        read(raw)


def test_a_header_cannot_bring_another_header():
    injected = b"Subject: =?utf-8?Q?Hello=0D=0ABcc:_everyone=40example.org?=\r\nMessage-ID: <a@b>\r\n"
    name = b"From: =?utf-8?Q?Marta=0D=0ABcc=3A_x?= <m@b.example>\r\n"
    ticket = read(name + injected + b"\r\nHello")
    assert ticket.subject == "Hello Bcc: everyone@example.org"
    assert ticket.sender_name == "Marta Bcc: x"


def test_the_sender_is_the_address_and_not_the_name():
    ticket = read(b'From: "support@fernhill.example" <eve@elsewhere.example>, other@x.example\r\n\r\nHello')
    assert ticket.sender_address == "eve@elsewhere.example"
    assert read(b"From: =?utf-8?Q?a=40b=2Eexample=2C?= <eve@elsewhere.example>\r\n\r\n.").sender_address == "eve@elsewhere.example"


def test_a_reply_address_is_told_only_when_it_differs():
    assert read(message(b"", b"Reply-To: MARTA@brightwater.example")).reply_to == ""
    assert read(message(b"", b"Reply-To: eve@elsewhere.example")).reply_to == "eve@elsewhere.example"


@pytest.mark.parametrize("charset", ["utf-8", "no-such-charset", "idna", "unicode_escape", "zip", "iso-2022-jp", "utf-16", "", '"\x00'])
def test_a_broken_charset_is_replaced(charset):
    ticket = read(message(b"caf\xe9 \xff\xfe \\u0041", f"Content-Type: text/plain; charset={charset}".encode()))
    assert ticket.text.encode("utf-8")
    assert "\x00" not in ticket.text


def test_control_characters_are_shown_as_such_and_bidi_marks_are_kept():
    ticket = read(message("nul \x00 esc \x1b[31m bidi \u202e end".encode(), b"Content-Type: text/plain; charset=utf-8"))
    assert ticket.text == "nul \ufffd esc \ufffd[31m bidi \u202e end"


def test_a_file_name_has_no_folder_and_no_controls():
    header = b'Content-Type: text/csv\r\nContent-Disposition: attachment; filename="../../etc/pa\x00sswd\\..\\run.csv"'
    assert read(message(b"a,b", header)).attachments[0].name == "run.csv"


def test_an_attached_message_is_one_attachment():
    inner = b"From: a@b.example\r\nSubject: inner\r\n\r\nINV-99999"
    ticket = read(message(inner, b"Content-Type: message/rfc822"))
    assert [file.media_type for file in ticket.attachments] == ["message/rfc822"]
    assert ticket.invoices == ()


def _nested(depth: int) -> bytes:
    opening = b"".join(b'Content-Type: multipart/mixed; boundary="b%d"\r\n\r\n--b%d\r\n' % (n, n) for n in range(depth))
    return SENDER + opening + b"Content-Type: text/plain\r\n\r\nthe core\r\n"


HOSTILE = {
    "one line of 1 MB": message(b"a" * 1_000_000),
    "nested 50 deep": _nested(50),
    "nested 5,000 deep": _nested(5_000),
    "many boundaries and many lines": _nested(55) + b"-\n" * 300_000,
    "only line ends": message(b"\n" * 11_000_000),
    "50,000 parts": message(b"--b\r\n\r\n\r\n" * 50_000, b'Content-Type: multipart/mixed; boundary="b"'),
    "100,000 headers": SENDER + b"X: y\r\n" * 100_000 + b"\r\nHello",
    "a header of 5 MB": message(b"", b"Subject: " + b"=?utf-8?Q?" * 500_000),
    "250,000 addresses": message(b"", b"To: " + b"<a@b.example>," * 250_000),
    "unclosed tags": message(b"<a " * 300_000, b"Content-Type: text/html"),
    "nested tags": message(b"<div>" * 200_000, b"Content-Type: text/html"),
    "unclosed comments": message(b"<!--" * 300_000, b"Content-Type: text/html"),
    "unclosed scripts": message(b"<script>" * 100_000, b"Content-Type: text/html"),
    "quotes in tags": message(b"<a \"'" * 200_000, b"Content-Type: text/html"),
    "ampersands": message(b"&#x" * 300_000, b"Content-Type: text/html"),
    "digits": message(b"1.234." * 20_000),
    "digits and spaces": message(b"EUR 1 234 567 " * 8_000),
    "base64 that is none": message(b"\xff" * 1_000_000, b"Content-Transfer-Encoding: base64"),
    "uuencode that is none": message(b"begin 6\n" * 10_000, b"Content-Transfer-Encoding: x-uuencode"),
    "a boundary of one character": message(b"--\r\n" * 100_000, b"Content-Type: multipart/mixed; boundary=-"),
    "template syntax": message(b"{{ 7*7 }} {% include 'x' %} ${7*7} %(a)s {0.__class__}"),
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_message_is_read_quickly_and_bounded(raw):
    started = time.process_time()
    ticket = read(raw)
    assert time.process_time() - started < 8  # each takes well under 2 s on an idle core; quadratic reading would take minutes
    assert ticket.sender_address == "marta@brightwater.example"
    assert len(ticket.text) <= MAX_TEXT


def test_a_long_text_is_cut_and_says_so():
    assert read(message(b"a" * (MAX_TEXT + 1))).truncated
    assert not read(message(b"a" * MAX_TEXT)).truncated


@given(st.binary(max_size=2_000))
def test_any_bytes_are_read_or_refused(raw):
    _check(raw)


_LINE = st.one_of(
    st.binary(max_size=80),
    st.sampled_from(
        [
            b"--b",
            b"--b--",
            b"",
            b"Content-Type: multipart/mixed; boundary=b",
            b"Content-Type: message/rfc822",
            b"Content-Type: text/html; charset=utf-7",
            b"Content-Type: multipart/digest; boundary=b",
            b"Content-Type: message/delivery-status",
            b"Content-Transfer-Encoding: base64",
            b"Content-Transfer-Encoding: x-uuencode",
            b"Content-Disposition: attachment; filename*0*=utf-8''%ff; filename*1=b",
            b"Content-Disposition: attachment; filename*=nope'x'%e9%",
            b"Subject: =?utf-8?B?//8?= =?x?q?=ZZ?=",
            b"From: a@b.example",
            b"Reply-To: ((((<x@y",
            b"begin 666 f",
        ]
    ),
)


@settings(max_examples=300)
@given(st.lists(_LINE, max_size=30), st.sampled_from([b"\r\n", b"\n", b"\r"]))
def test_any_arrangement_of_mime_is_read_or_refused(lines, end):
    _check(SENDER + end.join(lines))


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_words_in_headers_stay_one_line(subject, name):
    raw = f"From: {name} <a@b.example>\r\nSubject: {subject}\r\n\r\n".encode("utf-8", "surrogatepass")
    _check(raw)


def _check(raw: bytes) -> None:
    try:
        ticket = read(raw)
    except UnreadableMessage:
        return
    json.dumps(ticket.as_json()).encode("utf-8")
    assert Ticket.from_json(ticket.as_json()) == ticket
    fields = (ticket.sender_name, ticket.sender_address, ticket.reply_to, ticket.subject, ticket.date, ticket.message_id)
    for value in (*fields, *ticket.to, *ticket.cc, *ticket.references, *(file.name for file in ticket.attachments)):
        value.encode("utf-8")
        assert value.isprintable() or not any(character < " " or character in "\x7f\x85\u2028\u2029" for character in value)
    assert not any(character < " " and character not in "\n\t" for character in ticket.text)
    ticket.text.encode("utf-8")
    assert len(attachments(raw)) == len(ticket.attachments)
