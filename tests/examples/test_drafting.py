"""The scripted model reads: each reply names what this customer wrote and what their account says."""

import csv
import dataclasses
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.both_parts import compare
from artifacts import markup
from examples.support_triage import letters, phrases
from examples.support_triage.desk.seed import ACCOUNTS
from examples.support_triage.drafting import draft
from examples.support_triage.reading import Ticket, read

TICKETS = Path(__file__).parents[2] / "examples" / "support_triage" / "tickets"
BRIGHTWATER, ALDER, HALLSTEDT, *_ = ACCOUNTS
STRANGER = {"id": "02001", "name": "Elsewhere", "known": False, "language": "", "vat_number": "", "invoices": []}
CONTACTS = {"en": BRIGHTWATER, "pt": ALDER, "de": HALLSTEDT}


def sample(name: str) -> Ticket:
    return read((TICKETS / name).read_bytes())


def written(text: str, *, name: str = "Marta Oyelaran", subject: str = "A question") -> Ticket:
    return read(f"From: {name} <marta@brightwater.example>\r\nSubject: {subject}\r\n\r\n{text}".encode())


def test_a_duplicate_charge_that_the_books_show_is_confirmed_with_its_payments():
    reply = draft(sample("duplicate-charge.eml"), BRIGHTWATER)
    assert (reply.situation, reply.language) == ("duplicate_found", "en")
    assert reply.subject == "Your duplicate charge on invoice INV-20931"
    assert reply.body.startswith("Hello Marta,\n\n")
    for fact in ("INV-20931", "€1,284.00", "PAY-88120", "PAY-88121", "24 November 2026", "twice"):
        assert fact in reply.body
    assert "\n\n• PAY-88120, 24 November 2026, €1,284.00\n• PAY-88121, " in reply.body, "a list, as people write one"
    assert reply.summary.startswith("INV-20931 was paid twice, by PAY-88120 and PAY-88121, so the reply promises €1,284.00 back.")


def test_the_payment_record_goes_along():
    (file,) = draft(sample("duplicate-charge.eml"), BRIGHTWATER).attachments
    rows = list(csv.DictReader(io.StringIO(file.content.decode())))
    assert (file.name, file.media_type) == ("payments-INV-20931.csv", "text/csv")
    assert [(row["Reference"], row["Amount"], row["Status"]) for row in rows] == [
        ("PAY-88120", "1284.00", "settled"),
        ("PAY-88121", "1284.00", "settled"),
    ]


def test_a_duplicate_charge_that_the_books_do_not_show_is_not_confirmed():
    reply = draft(written("You charged us twice for INV-19804."), BRIGHTWATER)
    assert reply.situation == "duplicate_not_found"
    assert "PAY-81377" in reply.body
    assert "refund" not in reply.body


def test_a_corrected_invoice_carries_the_number_that_was_asked_for():
    reply = draft(sample("wrong-vat-number.eml"), ALDER)
    assert reply.situation == "corrected_invoice"
    assert "PT 509 442 013" in reply.body
    assert "PT 501 234 567" in reply.summary
    assert "INV-21077.pdf" in reply.body


def test_who_wrote_html_is_answered_in_both_and_both_say_the_same():
    reply = draft(sample("wrong-vat-number.eml"), ALDER)
    assert "<b>PT 509 442 013</b>" in reply.html and not compare(reply.body, markup.read(reply.html))
    (file,) = reply.attachments
    assert (file.name, file.media_type) == ("correction-INV-21077.pdf", "application/pdf") and file.content.isascii()
    assert draft(sample("duplicate-charge.eml"), BRIGHTWATER).html == ""


@given(st.text(max_size=200))
def test_whatever_a_text_says_its_html_says_the_same(body):
    html = letters.as_html(body, strong=("a", "1", "<"))
    assert not compare(body, markup.read(html)).only_html
    assert not {"script", "img", "a"} & set(re.findall(r"<([a-z]+)", html))


def test_a_german_message_gets_a_german_answer():
    reply = draft(sample("rueckerstattung.eml"), HALLSTEDT)
    assert (reply.situation, reply.language) == ("refund", "de")
    assert reply.body.startswith("Guten Tag Jürgen Großmann,\n\nvielen Dank")
    assert "1.079,00 €" in reply.body
    assert "20. November 2026" in reply.body
    assert reply.summary.startswith("They ask for a refund of INV-20877, €1,079.00")


@pytest.mark.parametrize(
    ("text", "situation"),
    [
        ("We were charged twice.", "duplicate_found"),  # the only invoice that was paid twice
        ("EUR 1,284.00 was charged twice.", "duplicate_found"),
        ("Please refund invoice INV-99999.", "invoice_not_found"),
        ("Please send a corrected invoice for INV-20931.", "amount_disputed"),
        ("The amount on INV-20931 is wrong, we ordered less.", "amount_disputed"),
        ("Please send INV-20931 with our new VAT number.", "vat_number_missing"),
        ("We have moved. Our new address is 12 Harbour Road.", "address_change"),
        ("I can't log in, the password does not work.", "cannot_sign_in"),
        ("Do you also offer training?", "general"),
        ("", "general"),
    ],
)
def test_the_situation_is_recognised(text, situation):
    assert draft(written(text), BRIGHTWATER).situation == situation


def test_a_stranger_learns_nothing_about_an_invoice():
    reply = draft(sample("duplicate-charge.eml"), STRANGER)
    assert reply.situation == "invoice_not_found"
    assert "PAY-" not in reply.body
    assert reply.attachments == ()
    assert draft(written("We were charged twice."), STRANGER).situation == "invoice_not_named"


def test_an_amount_that_does_not_fit_is_said():
    reply = draft(written("INV-20931 over €99.00 was charged twice."), BRIGHTWATER)
    assert "You mention €99.00; the invoice itself is over €1,284.00." in reply.body


def test_a_partial_surplus_is_what_goes_back():
    account = dict(BRIGHTWATER, invoices=[dict(BRIGHTWATER["invoices"][0], amount="2000.00")])
    assert "€568.00" in draft(sample("duplicate-charge.eml"), account).body


def test_only_settled_payments_count():
    invoice = BRIGHTWATER["invoices"][0]
    payments = [invoice["payments"][0], dict(invoice["payments"][1], status="failed")]
    account = dict(BRIGHTWATER, invoices=[dict(invoice, payments=payments)])
    assert draft(sample("duplicate-charge.eml"), account).situation == "duplicate_not_found"


@pytest.mark.parametrize("name", ["Click here http://evil.example", "{0.__class__}", "<script>", "a" * 100, "", "support@fernhill.example"])
def test_a_name_that_is_none_is_not_repeated(name):
    ticket = dataclasses.replace(written("Hello"), sender_name=name)
    assert draft(ticket, BRIGHTWATER).body.startswith("Hello,\n")


def test_a_reply_to_a_reply_has_one_mark():
    assert draft(written("Hello", subject="Re: AW: Fwd: Training"), STRANGER).subject == "Re: Training"


@pytest.mark.parametrize("situation", phrases.REPLIES)
@pytest.mark.parametrize("language", phrases.LANGUAGES)
def test_every_situation_can_be_said_in_every_language(situation, language):
    subject, paragraphs = phrases.REPLIES[situation][language]
    english_subject, english = phrases.REPLIES[situation]["en"]
    assert len(paragraphs) == len(english)
    assert ("{payments}" in paragraphs) == ("{payments}" in english)
    assert situation in phrases.SUMMARIES


@given(st.text(max_size=400), st.text(max_size=80), st.text(max_size=40), st.sampled_from(["en", "de", "pt", "fr", "und"]))
def test_whatever_the_words_the_reply_stays_one_line_of_subject_and_our_own_frame(text, subject, name, language):
    ticket = dataclasses.replace(
        read(f"From: x <x@y.example>\r\nSubject: {subject}\r\n\r\n{text}".encode("utf-8", "replace")), sender_name=name, language=language
    )
    reply = draft(ticket, CONTACTS.get(language, STRANGER))
    assert "\n" not in reply.subject
    assert reply.body.rstrip().endswith("Fernhill Support")
    assert reply == draft(ticket, CONTACTS.get(language, STRANGER))


def test_what_colleagues_add_stays_inside_and_what_they_want_said_is_said() -> None:
    reply = draft(sample("duplicate-charge.eml"), BRIGHTWATER, ["She called twice."], ["The refund goes out on Friday."])
    assert "She called twice." in reply.summary and "She called twice." not in reply.body
    assert "\n\nThe refund goes out on Friday.\n\n" in reply.body and "Friday" not in reply.summary


@pytest.mark.parametrize(
    ("name", "wish", "said"),
    [
        ("duplicate-charge.eml", "We will call on Friday.", "\n\nWe will call on Friday.\n\n"),
        ("duplicate-charge.eml", "Friday is fine.", "\n\nA note from our team: Friday is fine.\n\n"),
        ("rueckerstattung.eml", "Die Gutschrift kommt am Freitag.", "\n\nDie Gutschrift kommt am Freitag.\n\n"),
        ("rueckerstattung.eml", "We will call on Friday.", "\n\nEin Hinweis unseres Teams: We will call on Friday.\n\n"),
    ],
)
def test_a_sentence_of_the_letters_language_is_one_of_its_own_and_anything_else_is_marked_as_a_note(
    name: str, wish: str, said: str
) -> None:
    assert said in draft(sample(name), STRANGER, [], [wish]).body


@pytest.mark.parametrize("wish", ["Tell her the card gets it back.", "Please let them know that the card gets it back."])
def test_of_what_she_is_to_be_told_only_that_is_said_to_her(wish: str) -> None:
    reply = draft(sample("duplicate-charge.eml"), BRIGHTWATER, [], [wish])
    assert "\n\nThe card gets it back.\n\n" in reply.body and "A note from" not in reply.body


def test_an_instruction_that_tells_no_fact_is_said_as_it_stands() -> None:
    assert "A note from our team: Tell her about it." in draft(sample("duplicate-charge.eml"), BRIGHTWATER, [], ["Tell her about it."]).body


def test_a_credit_note_instead_of_a_refund_is_promised_in_its_place() -> None:
    wish = "Offer a credit note instead of a refund."
    reply = draft(sample("duplicate-charge.eml"), BRIGHTWATER, [], [wish, "Mention the order."])
    assert "a credit note over €1,284.00" in reply.body and "We will refund" not in reply.body and wish not in reply.body
    assert "A note from our team: Mention the order." in reply.body
