"""A message's preview says what the message says, and survives whatever it is."""

import base64
import hashlib
from datetime import UTC, datetime
from email import policy
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from access.errors import BadInput
from artifacts import messages
from artifacts.messages import MAX_PARTS, MAX_TEXT, Address, NotAMessage, preview, text_of_html

HEAD = (
    "From: Ines Carvalho <ines@alderpress.example>\nTo: support@fernhill.example\nSubject: Wrong VAT number\n"
    "Date: Sun, 29 Nov 2026 14:12:00 +0100\n"
)


def message(body: str = "Hello,\n\nthe invoice is wrong.\n", *, head: str = HEAD) -> bytes:
    return f"{head}\n{body}".encode()


def built(**parts: str | bytes) -> bytes:
    made = EmailMessage(policy=policy.SMTP)
    made["From"], made["To"], made["Subject"], made["Date"] = "a@x.example", "b@x.example", "s", "Sun, 29 Nov 2026 14:12:00 +0100"
    if "text" in parts:
        made.set_content(str(parts["text"]))
    if "html" in parts:
        (made.add_alternative if "text" in parts else made.set_content)(str(parts["html"]), subtype="html")
    if "pdf" in parts:
        made.add_attachment(bytes(parts["pdf"]), maintype="application", subtype="pdf", filename="INV-21077.pdf")  # type: ignore[arg-type]
    return made.as_bytes()


# What it says


def test_a_plain_message_is_read() -> None:
    read = preview(message())
    assert read.sender == Address("Ines Carvalho", "ines@alderpress.example")
    assert read.to == (Address("", "support@fernhill.example"),)
    assert (read.cc, read.reply_to, read.attachments, read.problems, read.html_present) == ((), (), (), (), False)
    assert read.subject == "Wrong VAT number"
    assert read.date == datetime(2026, 11, 29, 13, 12, tzinfo=UTC)
    assert read.text == "Hello,\n\nthe invoice is wrong."


def test_line_ends_of_every_system_are_read() -> None:
    assert preview(message().replace(b"\n", b"\r\n")) == preview(message())


def test_an_attachment_is_named_with_its_size_and_digest() -> None:
    content = b"%PDF-1.7 " * 500
    read = preview(built(text="see it", pdf=content))
    (attached,) = read.attachments
    assert (attached.name, attached.media_type, attached.size) == ("INV-21077.pdf", "application/pdf", 4_500)
    assert attached.sha256 == hashlib.sha256(content).hexdigest()
    assert read.text == "see it"


def test_plain_text_is_preferred_and_html_is_mentioned() -> None:
    read = preview(built(text="plain", html="<p>rich</p>"))
    assert (read.text, read.html_present, read.attachments) == ("plain", True, ())


def test_html_alone_is_shown_as_text() -> None:
    read = preview(
        built(html="<html><style>p{}</style><p>Dear&nbsp;you,<br>see <a href='https://x.example/?a=1&amp;b'>this</a></p></html>")
    )
    assert (read.text, read.html_present) == ("Dear\xa0you,\nsee [https://x.example/?a=1&b] this", True)


def test_encoded_words_and_foreign_names_are_decoded() -> None:
    head = (
        'From: =?utf-8?q?J=C3=B6rg_M=C3=BCller?= <j@x.example>\nTo: =?iso-8859-1?B?R3L832U=?= <g@x.example>, "Last, First" <l@x.example>\n'
        "Subject: =?utf-8?b?UmVjaG51?=\n =?utf-8?b?bmcg?= =?utf-8?q?f=C3=BCr_?= Mai\n"
    )
    read = preview(message(head=head))
    assert read.sender.name == "Jörg Müller"
    assert read.to == (Address("Grüße", "g@x.example"), Address("Last, First", "l@x.example"))
    assert read.subject == "Rechnung für Mai"


def test_raw_utf_8_in_headers_is_read() -> None:
    assert preview("From: Jörg <j@x.example>\nSubject: Grüße\n\nx".encode()).sender.name == "Jörg"


def test_an_attached_message_is_one_attachment_and_not_part_of_the_text() -> None:
    inner = message("inner text")
    raw = (
        f"{HEAD}Content-Type: multipart/mixed; boundary=b\n\n--b\n\nouter\n--b\nContent-Type: message/rfc822\n\n".encode()
        + inner
        + b"\n--b--\n"
    )
    read = preview(raw)
    assert read.text == "outer"
    assert [a.media_type for a in read.attachments] == ["message/rfc822"]
    assert read.attachments[0].size >= len(inner) - 5


@pytest.mark.parametrize("charset", ["iso-8859-1", "windows-1252", "utf-8", "utf-16"])
def test_the_body_is_read_in_its_charset(charset: str) -> None:
    body = base64.b64encode("Grüße".encode(charset)).decode()
    head = f"{HEAD}Content-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: base64\n"
    assert preview(message(body, head=head)).text == "Grüße"


def test_the_preview_as_text_has_headers_body_and_attachments() -> None:
    text = preview(built(text="see it", pdf=b"x" * 1500)).as_text()
    assert text == (
        "From: a@x.example\nTo: b@x.example\nSubject: s\nDate: 29 November 2026, 13:12 UTC\n\nsee it\n\n"
        "Attached: INV-21077.pdf (application/pdf, 1,500 bytes)"
    )


# What to doubt

DOUBTS = {
    "does not say who": "To: b@x.example\n",
    "more than one sender": "From: a@x.example, b@x.example\n",
    "more than one From line": "From: a@x.example\nFrom: b@x.example\n",
    "more than one Subject line": "From: a@x.example\nSubject: a\nSubject: b\n",
    "Replies would go to another": "From: a@x.example\nReply-To: b@y.example\n",
    "name is another address": 'From: "ceo@fernhill.example" <a@x.example>\n',
    "not an e-mail address": "From: a@x.example\nTo: undisclosed\n",
    "has no date": "From: a@x.example\n",
    "date cannot be read": "From: a@x.example\nDate: yesterday\n",
}


@pytest.mark.parametrize(("problem", "head"), DOUBTS.items())
def test_a_reader_is_told_what_to_doubt(problem: str, head: str) -> None:
    assert any(problem in said for said in preview(message(head=head)).problems)


@pytest.mark.parametrize(
    "date", ["Sun, 99 Nov 2026 99:12:00 +0100", "0", "Sun, 29 Nov 99999999 14:12:00 +9999", "-" * 5000, "Fri, 31 Dec 9999 23:59:59 -1400"]
)
def test_a_date_that_is_none_is_no_date(date: str) -> None:
    assert preview(message(head=f"From: a@x.example\nDate: {date}\n")).date is None


def test_an_attachments_name_that_is_a_path_is_pointed_out() -> None:
    raw = message(head=f'{HEAD}Content-Type: application/pdf\nContent-Disposition: attachment; filename="../../etc/passwd"\n')
    read = preview(raw)
    assert read.attachments[0].name == "../../etc/passwd"
    assert any("path" in problem for problem in read.problems)


# What is no message


@pytest.mark.parametrize(
    "raw", [b"", b"\n", b"hello", b"just a line: with a colon\n\nx", b"\0" * 100, b"%PDF-1.7\n1 0 obj\n", b"\xff\xfe" * 50, b"Host: x\n\nx"]
)
def test_what_is_no_message_is_refused_with_the_way_on(raw: bytes) -> None:
    with pytest.raises(NotAMessage) as refused:
        preview(raw)
    assert isinstance(refused.value, BadInput)
    assert ".eml" in refused.value.what_next


def test_a_message_over_the_limit_is_refused() -> None:
    with pytest.raises(NotAMessage, match="at most"):
        preview(HEAD.encode() + b"\n" + b"x" * messages.MAX_BYTES)


# What is broken or hostile


def nested(depth: int) -> bytes:
    open_, close = "", ""
    for i in range(depth):
        open_ += f"Content-Type: multipart/mixed; boundary=b{i}\n\n--b{i}\n"
        close = f"\n--b{i}--\n" + close
    return (HEAD + open_ + "\ninnermost\n" + close).encode()


HOSTILE = {
    "deep nesting": nested(30),
    "deeper nesting": nested(3_000),
    "messages in messages": HEAD.encode() + b"Content-Type: message/rfc822\n\n" * 5_000,
    "boundaries that never come": (HEAD + "Content-Type: multipart/mixed; boundary=b\n\n" + "--b\n" * 50_000).encode(),
    "no boundary": (HEAD + "Content-Type: multipart/mixed\n\nx").encode(),
    "an empty boundary": (HEAD + 'Content-Type: multipart/mixed; boundary=""\n\n----\nx').encode(),
    "many parts": (
        HEAD + "Content-Type: multipart/mixed; boundary=b\n\n" + "--b\nContent-Type: image/png\n\nx\n" * 2_000 + "--b--"
    ).encode(),
    "broken base64": (HEAD + "Content-Transfer-Encoding: base64\n\n=A=!@#$%^&*()").encode(),
    "broken uuencode": (HEAD + "Content-Transfer-Encoding: x-uuencode\n\nbegin 644 x\n\xff\xff\nend").encode("latin-1"),
    "an unknown encoding": (HEAD + "Content-Transfer-Encoding: x-foo\n\nx").encode(),
    "a charset of code": (HEAD + "Content-Type: text/plain; charset=unicode_escape\n\n\\x41").encode(),
    "a charset with nulls": (HEAD + 'Content-Type: text/plain; charset="a\0b"\n\nx').encode(),
    "a charset in pieces": (HEAD + "Content-Type: text/plain; charset*0*=utf-8''a; charset*9=x\n\nx").encode(),
    "a file name in pieces": (HEAD + "Content-Disposition: attachment; filename*0*=bogus'x'%FF; filename*x=1\n\nx").encode(),
    "a long header": (HEAD + "X: " + "a" * 1_000_000 + "\n\nx").encode(),
    "a long line": (HEAD + "\n" + "a" * 1_000_000).encode(),
    "many headers": (HEAD + "X: 1\n" * 100_000 + "\nx").encode(),
    "open comments": ("From: " + "(" * 100_000 + "\n\nx").encode(),
    "open quotes": ('From: "' + '\\"' * 50_000 + "\n\nx").encode(),
    "angles": ("From: " + "<" * 50_000 + ">" * 50_000 + "\n\nx").encode(),
    "commas": ("From: a@x.example\nTo: " + "," * 60_000 + "\n\nx").encode(),
    "many addresses": ("From: a@x.example\nTo: " + "b@x.example, " * 5_000 + "\n\nx").encode(),
    "groups": ("From: a@x.example\nTo: " + "g:" * 5_000 + "b@x.example;\n\nx").encode(),
    "encoded words": ("From: a@x.example\nSubject: " + "=?utf-8?b?" * 5_000 + "\n\nx").encode(),
    "encoded words of nothing": b"From: a@x.example\nSubject: =?utf-8?b?A?= =?x?q??= =?utf-8?q?=C3?=\n\nx",
    "encoded words of a bad charset": ("From: a@x.example\nSubject: =?idna?q?" + "a" * 3_000 + "?=\n\nx").encode(),
    "null bytes": HEAD.encode() + b"\n\0\0\0text\0",
    "no text": HEAD.encode() + b"\n" + bytes(range(256)) * 10,
    "half surrogates": HEAD.encode() + b"Subject: \xed\xa0\x80\n\n\xed\xa0\x80",
    "open tags": (HEAD + "Content-Type: text/html\n\n" + "<a" * 100_000).encode(),
    "open scripts": (HEAD + "Content-Type: text/html\n\n" + "<script>" * 50_000).encode(),
    "open comments in HTML": (HEAD + "Content-Type: text/html\n\n" + "<!--" * 50_000).encode(),
    "entities": (HEAD + "Content-Type: text/html\n\n" + "&#x110000;&#xD800;&nbsp" * 10_000).encode(),
    "only a header": b"From: a@x.example",
    "a mailbox": b"From a@x.example Sun Nov 29 14:12:00 2026\n" + HEAD.encode() + b"\nx",
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_broken_or_hostile_message_has_a_preview_all_the_same(raw: bytes) -> None:
    read = preview(raw)
    whole = read.as_text()
    assert "\0" not in whole
    whole.encode("utf-8")
    assert len(read.text) <= MAX_TEXT
    assert len(read.attachments) <= MAX_PARTS
    assert all(len(a.address) <= messages.MAX_HEADER for a in read.to)


def test_parts_that_are_nested_too_deep_are_shown_as_text_and_said_to_be() -> None:
    read = preview(nested(3_000))
    assert "innermost" in read.text
    assert any("nested deeper" in problem for problem in read.problems)


def test_text_that_is_too_long_is_cut_and_said_to_be() -> None:
    read = preview(message("a" * (MAX_TEXT + 1)))
    assert len(read.text) == MAX_TEXT
    assert any("cut after" in problem for problem in read.problems)


LINES = st.sampled_from(
    [
        "From: a@x.example",
        "Content-Type: multipart/mixed; boundary=b",
        "--b",
        "--b--",
        "",
        "Content-Type: text/html; charset=x",
        "=?utf-8?q?=?=",
    ]
    + [
        "Content-Transfer-Encoding: base64",
        "Content-Disposition: attachment; filename=",
        "<b>x",
        "QUJD",
        "\t folded",
        "To: <<a>, (b",
        "\xff\0",
        "Date: 1",
    ]
)


@given(st.lists(LINES, max_size=30).map("\n".join))
@settings(max_examples=400, deadline=None)
def test_no_arrangement_of_lines_raises_anything_but_that_it_is_no_message(text: str) -> None:
    try:
        preview(text.encode("latin-1")).as_text().encode("utf-8")
    except NotAMessage:
        assert "from: a@x.example" not in text.partition("\n\n")[0].lower().splitlines()[:1]


@given(st.binary(max_size=400))
@settings(max_examples=300, deadline=None)
def test_no_bytes_raise_anything_but_that_it_is_no_message(content: bytes) -> None:
    preview(b"From: a@x.example\n" + content).as_text().encode("utf-8")


# HTML


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a<b>b</b>c", "abc"),
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("1 < 2 &amp; 3 > 2", "1 < 2 & 3 > 2"),
        ("a<script>alert('x')</script>b", "ab"),
        ("a<STYLE>x</Style >b", "ab"),
        ("a<script>never closed", "a"),
        ("a<!-- hidden -->b", "ab"),
        ("a<!-- never closed", "a"),
        ("<p hidden style='display:none'>seen all the same</p>", "seen all the same"),
        ("<a href=https://evil.example>https://good.example</a>", "[https://evil.example] https://good.example"),
        ("<ul><li>1<li>2</ul>", "1\n2"),
        ("&lt;b&gt;", "<b>"),
    ],
)
def test_html_becomes_the_text_in_it(source: str, text: str) -> None:
    assert text_of_html(source) == text


@pytest.mark.parametrize("charset", ["idna", "punycode", "undefined", "rot13", "base64", "utf-8\0"])
def test_a_charset_that_is_none_of_peoples_text_is_read_as_far_as_it_goes(charset: str) -> None:
    raw = f"From: a@b.example\nContent-Type: text/plain; charset={charset}\n\nxn--a".encode() + b"\xff\n"
    assert "xn--a" in str(messages.preview(raw))
