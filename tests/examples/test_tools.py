"""The reply that leaves is the one that was approved, address by address and byte by byte."""

from datetime import UTC, datetime
from email import message_from_bytes, policy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.support_triage.desk.seed import ACCOUNTS
from examples.support_triage.reading import read
from examples.support_triage.tools import (
    approved_at,
    complete_message,
    compose,
    everyone,
    mailbox,
    mailboxes,
    reply_subject,
    send_email,
    tell_account,
)
from runs.engine.tools import Declined, File, InvalidArguments


def composed(arguments, files=()):
    a = complete_message({"cc": [], "bcc": [], "in_reply_to": "", "references": []} | arguments, "00000000-0000-5000-8000-000000000001")
    said = (a["to"], a["subject"], a["body"], a["cc"], a["in_reply_to"], a["references"], a["sender"], a["message_id"], files)
    message = compose(*said, html=a.get("html", ""))
    return a, message_from_bytes(message.as_bytes(), policy=policy.default)


def test_what_arrives_has_the_addresses_subject_body_and_files_of_the_action():
    files = [File("payments.csv", "text/csv", b"a,b\r\n1,2\n"), File("x.pdf", "application/pdf", b"%PDF\x00\xff")]
    arguments = {"to": ["Márta O'Yelaran <marta@brightwater.example>"], "subject": "Ihre Rückerstattung – 12 €", "body": "Hé\n\n.dot\n"}
    stored, received = composed(arguments, files)
    assert received["To"].addresses[0].display_name == "Márta O'Yelaran"
    assert received["To"].addresses[0].addr_spec == "marta@brightwater.example"
    assert received["Subject"] == stored["subject"]
    assert received.get_body().get_content() == stored["body"]
    assert [(part.get_filename(), part.get_payload(decode=True)) for part in received.iter_attachments()] == [
        (f.name, f.content) for f in files
    ]
    assert received["Message-ID"] == stored["message_id"]


@pytest.mark.parametrize("files", [[], [File("x.pdf", "application/pdf", b"%PDF\x00\xff"), File("x.html", "text/html", b"<b>x</b>")]])
def test_html_goes_beside_the_text_and_both_arrive_to_the_byte(files):
    arguments = {"to": ["a@b.example"], "subject": "s", "body": "Hé\n\n.dot", "html": "<p>H\u00e9</p>\n<p>.dot</p>\n" + "x" * 2000}
    stored, received = composed(arguments, files)
    assert stored["html"] == "<p>H\u00e9</p>\r\n<p>.dot</p>\r\n" + "x" * 2000 + "\r\n"
    assert received.get_body(("plain",)).get_payload(decode=True) == stored["body"].encode()
    assert received.get_body(("html",)).get_payload(decode=True) == stored["html"].encode()
    assert [part.get_payload(decode=True) for part in received.iter_attachments()] == [file.content for file in files]
    alternative = next(part for part in received.walk() if part.get_content_type() == "multipart/alternative")
    assert [part.get_content_type() for part in alternative.iter_parts()] == ["text/plain", "text/html"]
    assert composed(arguments, files)[1].as_bytes() == received.as_bytes(), "the same bytes each time"


def test_a_message_without_html_is_the_action_that_it_was():
    given = {"to": ["a@b.example"], "subject": "s", "body": "b"}
    assert "html" not in complete_message(send_email.checked(**given), "n") and "html" not in complete_message(given, "n")
    assert complete_message(send_email.checked(**given, html=" \n"), "n") == complete_message(send_email.checked(**given), "n")


def test_html_that_is_too_long_is_not_taken():
    with pytest.raises(InvalidArguments):
        send_email.checked(to=["a@b.example"], subject="s", body="b", html="x" * 200_001)


WORD = "=?utf-8?q?a=0D=0AReply-To=3A_thief@evil.example=0D=0A=0D=0APay_to_XX00?="


@pytest.mark.parametrize(
    "odd",
    [
        {"in_reply_to": f"<{WORD}@x>"},
        {"references": ["<a@b>", f"<{WORD}@x>"]},
        {"subject": WORD},
        {"subject": "=?utf-8?q?You_get_=E2=82=AC9000_back?= ok"},
        {"to": ["a@=?utf-8?q?evil.example?="]},
        {"cc": ["=?utf-8?q?A_=3Ceve@evil.example=3E=2C?= <a@b.example>"]},
        {"sender": "=?utf-8?q?x?= <a@b.example>"},
    ],
)
def test_what_would_be_read_as_other_text_is_neither_taken_nor_sent(odd):
    arguments = {"to": ["a@b.example"], "subject": "s", "body": "b", "cc": [], "bcc": [], "in_reply_to": "", "references": []}
    a = complete_message(arguments, "00000000-0000-5000-8000-000000000001") | odd
    with pytest.raises(InvalidArguments):
        send_email.checked(**a)
    with pytest.raises(Declined):
        compose(a["to"], a["subject"], a["body"], a["cc"], a["in_reply_to"], a["references"], a["sender"], a["message_id"], [])


def test_an_id_that_is_none_is_not_answered_to():
    assert read(f"Message-ID: <{WORD}@x>\nReferences: <a@b> <{WORD}@x>\nFrom: a@b.example\n\nHello".encode()).references == ("<a@b>",)


@given(st.text(max_size=60), st.text(max_size=60))
def test_whatever_stands_in_a_subject_or_a_name_is_what_arrives_or_nothing_is_sent(subject, name):
    try:
        stored, received = composed({"to": [mailbox(name, "a@b.example")], "subject": subject, "body": "b"})
    except (Declined, ValueError):
        return
    assert " ".join(str(received["Subject"]).split()) == " ".join(stored["subject"].split())
    assert [a.addr_spec for a in received["To"].addresses] == ["a@b.example"] and "Reply-To" not in received


@pytest.mark.parametrize("text", ["<", "x.y:\x7f [1.2;a;x.y", '. \u202e:"', "\ud7ffx.y\\@\t[<\t", "x.y@[)?", ""])
def test_what_is_no_address_is_said_to_be_none(text):
    with pytest.raises(Declined):
        mailboxes(text)


def test_a_message_to_nobody_but_copies_is_described():
    assert reply_subject({"to": [], "cc": ["a@b.example"], "bcc": []}) == "E-mail a reply to 1 person, in copy only"


def test_the_same_action_makes_the_same_bytes():
    arguments = {"to": ["a@b.example"], "subject": "s", "body": "b", "cc": [], "bcc": [], "in_reply_to": "", "references": []}
    a = complete_message(arguments, "n")
    made = [
        compose(a["to"], "s", a["body"], [], "", [], a["sender"], a["message_id"], [File("f", "text/csv", b"x")]).as_bytes() for _ in "12"
    ]
    assert made[0] == made[1]


def test_a_message_is_dated_by_its_approval_the_same_at_each_try():
    when = approved_at("01a228c5-5698-73c5-8bb4-1bf751482346")
    message = compose(["a@b.example"], "s", "b\r\n", [], "", [], "c@d.example", "<n@d.example>", [], when)
    assert message["Date"].datetime == when == datetime.fromtimestamp(0x01A228C55698 // 1000, UTC)
    assert approved_at("RN-7Q4K-send") is None and approved_at("00000000-0000-5000-8000-000000000001") is None


def test_a_name_from_outside_never_adds_an_address():
    hostile = mailbox('Eve" <eve@evil.example>, "Marta', "marta@brightwater.example")
    assert [address.addr_spec for address in mailboxes(hostile)] == ["marta@brightwater.example"]
    assert everyone({"to": [hostile], "cc": [], "bcc": []}) == ["marta@brightwater.example"]


def test_a_reply_is_called_by_its_reader_s_name_as_a_sentence_has_it():
    for written, spoken in (("Großmann, Jürgen", "Jürgen Großmann"), ("Marta Oyelaran", "Marta Oyelaran"), ("A, B, C", "A, B, C")):
        assert reply_subject({"to": [mailbox(written, "a@b.example")], "cc": [], "bcc": []}) == f"E-mail a reply to {spoken}"


@given(st.text(max_size=80))
def test_any_name_gives_one_address(name):
    text = mailbox(name, "a@b.example")
    assert [address.addr_spec for address in mailboxes(text)] == ["a@b.example"]
    assert "\n" not in reply_subject({"to": [text], "cc": [], "bcc": []})


@pytest.mark.parametrize("text", ["", "nobody", "a@b@c", "a b@c.example", "x <y>"])
def test_what_is_no_address_is_declined(text):
    with pytest.raises(Declined):
        mailboxes(text)


def test_an_account_says_in_a_few_words_whether_something_was_paid_twice():
    by_name = {account["name"]: tell_account(account) for account in ACCOUNTS}
    assert by_name["Brightwater Logistics"] == ("Two settled payments, one invoice", "PAY-88120 and PAY-88121, €1,284.00 each")
    assert by_name["Alder Press, Lda."] == ("Alder Press, Lda.", "One invoice, none paid twice")
    assert tell_account({"id": "1", "name": "New", "invoices": []}) == ("New", "No invoice on this account")
