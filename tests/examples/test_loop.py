"""The scripted model of the triage loop chooses by what the tools gave, and stops when something is refused."""

from examples.support_triage.scripted import next_turn
from tests.examples.test_drafting import STRANGER, written


def turn(said: list) -> dict:
    return next_turn(ticket_id="ZN-1", said=said, turn=len(said) + 1, tools=[])


def test_it_reads_checks_sends_and_writes_the_note_in_this_order() -> None:
    message = written("We were charged twice for INV-20931.").as_json()
    gave = {
        "read_ticket": {"message": message, "account": "00932"},
        "check_account": STRANGER,
        "send_email": {"accepted": "yes"},
        "update_crm": {"note": "N-1"},
    }
    said: list = []
    for tool in gave:
        call = turn(said)["call"]
        assert call["tool"] == tool
        said.append({"tool": tool, "arguments": call["arguments"], "result": gave[tool]})
    assert turn(said)["done"]["outcome"] == "Answered and logged"


def test_what_was_refused_ends_it() -> None:
    assert turn([{"refused": "Send the reply: rejected. Wrong amount."}])["done"]["why"].endswith("Wrong amount.")
