"""What the scripted model answers a reviewer: in whole sentences of what was read, with the events that keep it."""

from examples.support_triage.answering import answer_to_question
from examples.support_triage.desk.seed import ACCOUNTS
from examples.support_triage.reading import read

MAIL = (
    "From: Jo <jo@brightwater.example>\nSubject: Invoice\nContent-Type: text/plain; charset=utf-8\n\n"
    "Hello,\n\nwe ended the archive on 31 October, and you confirmed it. You still\n"
    "sent us INV-20877 on 20. November. Please give it back.\n\nJo\n"
)


def test_an_answer_is_made_of_whole_sentences_and_names_where_they_stand() -> None:
    ticket = read(MAIL.encode())
    answer, cites = answer_to_question("Why is INV-20877 meant?", ticket, {"name": "Brightwater"}, {"ticket": 9, "account": 15})
    assert (answer, cites) == ("The message says: “You still sent us INV-20877 on 20. November.” (#9).", [9])
    assert answer_to_question("Where is Lisbon?", ticket, {}, {"ticket": 9, "account": 15})[1] == []


def test_what_the_account_says_is_told_in_sentences_with_days_and_sums_as_people_write_them() -> None:
    ticket, sources = read(MAIL.encode()), {"ticket": 9, "account": 15}
    answer, cites = answer_to_question("Which payments came for INV-20931?", ticket, ACCOUNTS[0], sources)
    assert answer == (
        "The account has two payments for INV-20931, both €1,284.00, settled on 24 Nov 2026 by card ending 4417:"
        " PAY-88120, scheduled payment, and PAY-88121, retry after timeout (#15)."
    )
    assert cites == [15]
    answer, _ = answer_to_question("Why is accounts@brightwater.example copied in?", ticket, ACCOUNTS[0], sources)
    assert answer == "The account names Accounts payable (accounts@brightwater.example) as a contact (#15)."
    odd = {"invoices": [{"number": "INV-1", "amount": "much", "payments": None}, 3], "seats": 12, "notes": [{"text": "called twice"}]}
    assert answer_to_question("Does INV-1 stand?", ticket, odd, sources)[0] == "The account has no payments for INV-1 (much) (#15)."
    assert answer_to_question("How many seats?", ticket, odd, sources)[0] == "Under seats the account says 12 (#15)."
    assert (
        answer_to_question("Refunds go where?", ticket, ACCOUNTS[0], sources)[0]
        == "The account takes refunds to its card ending 4417 (#15)."
    )
    assert answer_to_question("Which notes?", ticket, odd, sources)[0] == "Under notes the account lists called twice (#15)."


def test_of_what_is_asked_after_alike_the_one_that_the_message_names_is_told() -> None:
    ticket = read(MAIL.replace("INV-20877", "INV-20931").encode())
    answer, _ = answer_to_question("Which payments did you compare?", ticket, ACCOUNTS[0], {"ticket": 9, "account": 15})
    assert "for INV-20931" in answer and "INV-19804" not in answer
    one, _ = answer_to_question("What of INV-19804?", ticket, ACCOUNTS[0], {"ticket": 9, "account": 15})
    paid = "PAY-81377, €1,284.00, settled on 24 Aug 2026 by card ending 4417, scheduled payment"
    assert one == f"The account has one payment for INV-19804: {paid} (#15)."
