"""What the scripted model answers a reviewer: in whole sentences of what was read, with the events that keep it."""

from examples.support_triage.answering import answer_to_question
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
