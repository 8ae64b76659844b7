"""The back office: each request becomes one exact action of its kind, which is done once it is approved, once, and not otherwise."""

import gzip
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from access.rules import person
from approvals import background, decisions, demo, editing, exact, presenting
from approvals.errors import ApproveLocked, NothingChanged
from approvals.models import ProposedAction
from examples.back_office import store, tools
from examples.back_office.reading import read
from examples.back_office.seed import CUSTOMERS
from examples.back_office.workflow import WAYS, answer_question, take_in
from examples.support_triage.desk.seed import ACCOUNTS
from runs import starting
from runs.engine import executor
from runs.engine.tools import Absent, AnswerLost, Call, Declined, Found, Unsure
from runs.errors import IntakeFailed, MessageRefused
from tests.approvals.mailing import Proposed
from tests.examples.outside import World
from tests.together import together

REQUESTS = Path(__file__).parents[2] / "examples" / "back_office" / "requests"
KINDS = {
    "change-of-address": "record",
    "refund": "payment",
    "prices": "sql",
    "note": "http",
    "report": "command",
    "access": "generic",
}


@pytest.fixture(autouse=True)
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HANDRAIL_BACK_OFFICE", str(tmp_path / "office"))
    yield tmp_path / "office"


def call(key: str = "k-1") -> Call:
    return Call(tools_run, "step", key, deadline=10, last_check=lambda: None)


tools_run: Any = "a run"


def rows(question: str, *values: Any) -> list[tuple]:
    with store.reading() as db:
        return [tuple(row) for row in db.execute(question, values).fetchall()]


def request(name: str, change: tuple[str, str] = ("", "")) -> bytes:
    return (REQUESTS / f"{name}.eml").read_text().replace(*change).encode()


def propose(cast, name: str, change: tuple[str, str] = ("", "")) -> Proposed:
    demo.policies(cast.workspace)
    taken = take_in(request(name, change), f"message-{name}")
    run = starting.start(
        agent=cast.agent,
        owner=cast.agent.owner,
        by=person(cast.agent.owner_id),
        title=taken.title,
        workflow="back-office",
        arguments=taken.arguments,
        scope=taken.scope,
    )
    assert executor.execute(run.pk) == "waiting"
    return Proposed(run, ProposedAction.objects.get(run=run))


def approve(proposed: Proposed, by) -> str:
    decisions.decide(proposed.action, reviewer=person(by.pk), verdict="approved", digest=proposed.action.digest, reason="", seen={})
    return proposed.walk()


def card(proposed: Proposed, user) -> Any:
    return presenting.panel(presenting.find(person(user.pk), proposed.action.pk), person(user.pk)).card


def test_there_is_a_request_for_each_job_and_each_has_another_card():
    assert {file.stem for file in REQUESTS.glob("*.eml")} == set(KINDS)
    assert sorted(tool.card for tool, *_ in WAYS.values()) == sorted(KINDS.values())


def test_a_message_that_asks_for_none_of_them_is_not_taken():
    with pytest.raises(MessageRefused) as refused:
        take_in(b"Subject: Lunch\n\nPizza?", "k")
    assert refused.value.status == 422


def test_a_run_is_called_as_its_message_is_and_one_of_a_note_by_what_it_says():
    assert take_in(request("refund"), "k").title == "Refund for Brightwater, INV-20931"
    assert take_in(request("note"), "k").title == "Note on Brightwater Logistics: Refund of PAY-88121 asked for on 29 November"


def test_a_message_that_can_not_be_read_is_not_taken():
    with pytest.raises(MessageRefused):
        take_in(b"Subject: refund\nContent-Type: text/plain; charset=no-such-charset\n\nrefund \xff", "k")


def test_a_message_that_can_not_be_kept_may_be_sent_again(office, monkeypatch):
    office.write_text("a file where the directory should be")
    with pytest.raises(IntakeFailed):
        take_in(request("refund"), "k")


def test_what_a_request_says_fills_in_values_and_nothing_else():
    asked = read("refund", "customer 00932 PAY-1 EUR 1,284.00\nReason: '; DROP TABLE payment; --\n")
    assert (asked["payment"], asked["amount"], asked["why"]) == ("PAY-1", "1284.00", "'; DROP TABLE payment; --")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_each_request_is_put_to_people_on_the_card_of_its_kind_with_every_argument(cast, name, kind):
    proposed = propose(cast, name)
    drawn = card(proposed, cast.riley)
    assert (drawn.kind, proposed.action.state) == (kind, "waiting")
    assert [warning for warning in proposed.action.warnings if warning["severity"] == "lock"] == []
    if kind != "generic":
        assert drawn.found or drawn.heading == "Customer 01371, Halden Marine", (
            "what was found out stands among the facts, or is the heading"
        )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_action_can_be_edited_and_comes_back_to_the_byte(cast, client, name):
    proposed = propose(cast, name)
    client.force_login(cast.riley)
    assert client.get(proposed.url("edit")).status_code == 200
    with pytest.raises(NothingChanged):
        editing.version(proposed.action, exact.read(proposed.action).arguments)


@pytest.mark.django_db(transaction=True)
def test_a_record_is_changed_as_approved_and_only_if_nobody_else_was_faster(cast):
    proposed = propose(cast, "change-of-address")
    drawn = card(proposed, cast.riley)
    assert [(row.title, row.changed) for row in drawn.rows] == [
        ("Billing address", True),
        ("Invoice contact", True),
        ("Purchase order needed", True),
    ]
    assert drawn.aside == "Only if still at version 57" and len(drawn.stays) == 7
    assert approve(proposed, cast.riley) == "succeeded"
    ((version, record),) = rows("SELECT version, record FROM customer WHERE id = '01371'")
    assert version == 58 and json.loads(record)["invoice_contact"] == "Tomasz Zieliński"


@pytest.mark.django_db(transaction=True)
def test_a_record_that_somebody_changed_meanwhile_stays_as_it_is(cast):
    proposed = propose(cast, "change-of-address")
    with store.reading() as db:
        db.execute("UPDATE customer SET version = 58 WHERE id = '01371'")
    assert approve(proposed, cast.riley) == "parked"
    assert "Gdynia" in rows("SELECT record FROM customer WHERE id = '01371'")[0][0]
    assert rows("SELECT version FROM customer WHERE id = '01371'") == [(58,)]


@pytest.mark.django_db(transaction=True)
def test_a_refund_is_paid_once_and_never_beyond_what_was_paid(cast):
    proposed = propose(cast, "refund")
    drawn = card(proposed, cast.riley)
    assert drawn.amount.said == "All that was paid; nothing is left to give back after this."
    assert {field.title: field.told for field in drawn.fields if field.told} == {
        "To": "Brightwater Logistics, the card ending 4417",
        "Payment": "€1,284.00, for INV-20931",
    }
    assert approve(proposed, cast.riley) == "succeeded"
    assert rows("SELECT payment, cents FROM refund") == [("PAY-88121", 128400)]
    again = propose(cast, "refund", ("Hello", "Hello again"))
    assert {warning["code"] for warning in again.action.warnings} >= {"amount_over_left", "paid_before"}
    with pytest.raises(ApproveLocked):
        approve(again, cast.riley)
    assert len(rows("SELECT 1 FROM refund")) == 1


@pytest.mark.django_db(transaction=True)
def test_a_statement_is_tried_on_a_copy_and_then_run(cast):
    before = dict(rows("SELECT sku, price_cents FROM stock"))
    proposed = propose(cast, "prices")
    assert dict(rows("SELECT sku, price_cents FROM stock")) == before, "a dry run changes nothing"
    assert dict(card(proposed, cast.riley).found)["Changes"] == "3 of 8 rows"
    assert approve(proposed, cast.riley) == "succeeded"
    after = dict(rows("SELECT sku, price_cents FROM stock"))
    assert {sku: after[sku] for sku in after if after[sku] != before[sku]} == {"M2-GREY": 9345, "M2-BLACK": 9345, "M5-POLE": 10448}


@pytest.mark.django_db(transaction=True)
def test_a_command_is_run_in_its_directory_and_leaves_its_file(cast, office):
    proposed = propose(cast, "report")
    assert dict(card(proposed, cast.riley).found)["Read by"].startswith("No shell")
    assert not (office / "reports" / "stock-2026-11.csv.gz").exists()
    assert approve(proposed, cast.riley) == "succeeded"
    packed = (office / "reports" / "stock-2026-11.csv.gz").read_bytes()
    assert gzip.decompress(packed) == (office / "reports" / "stock-2026-11.csv").read_bytes()


@pytest.mark.django_db(transaction=True)
def test_what_has_no_card_of_its_own_is_done_as_well(cast):
    proposed = propose(cast, "access")
    titles = [field.title for field in card(proposed, cast.riley).fields]
    assert titles == ["Person", "Systems to remove", "On", "Tell the manager", "Notes"]
    assert approve(proposed, cast.riley) == "succeeded"
    assert rows("SELECT person, systems, day FROM removal") == [("Rafael Costa", "Data warehouse, Billing admin", "2026-11-30")]


@pytest.mark.django_db(transaction=True)
def test_a_request_reaches_the_help_desk_once_under_the_key_of_its_grant(cast, world: World, monkeypatch):
    monkeypatch.setenv("HANDRAIL_DESK_URL", world.url)
    proposed = propose(cast, "note")
    assert card(proposed, cast.riley).place.method == "POST"
    assert world.http.get("/accounts/00932/notes").json()["notes"] == []
    assert approve(proposed, cast.riley) == "succeeded"
    (note,) = world.http.get("/accounts/00932/notes").json()["notes"]
    assert note["text"].startswith("Refund of PAY-88121 asked for")


@pytest.mark.django_db(transaction=True)
def test_what_is_rejected_is_not_done(cast):
    proposed = propose(cast, "refund")
    decisions.decide(
        proposed.action,
        reviewer=person(cast.riley.pk),
        verdict="rejected",
        digest=proposed.action.digest,
        reason="The second payment is not settled yet.",
        seen={},
    )
    assert proposed.walk() == "succeeded" and rows("SELECT 1 FROM refund") == []


def test_a_question_is_answered_with_the_line_that_says_so_or_with_nothing():
    text = request("refund").decode()
    assert answer_question(question="What is the reason?", text=text, source=9) == {
        "answer": "The request says: “Reason: Duplicate”",
        "cites": [9],
    }
    assert answer_question(question="Is it raining?", text=text, source=9)["cites"] == []


# the tools by themselves


def test_the_same_key_does_it_once_however_often_and_from_however_many_threads():
    arguments = {"amount": "1.00", "account": "00932", "payment": "PAY-88121", "bank_reason": "r", "statement_text": "s"}
    store.connect().close()
    threads = [threading.Thread(target=lambda: tools.refund_payment(call(), arguments)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert rows("SELECT cents FROM refund") == [(100,)]
    assert tools.by_key(call(), {}) == Found({"refund": "RF-1"}) and tools.by_key(call("k-2"), {}) == Absent()
    assert isinstance(tools.ran(call("k-2"), {}), Unsure)


def test_what_was_taken_out_stays_out_and_reading_does_not_write(office):
    tools.run_sql(call(), {"statement": "DELETE FROM stock WHERE sku = 'C1-USB'", "parameters": [], "at_most": 1})
    assert rows("SELECT count(*) FROM stock WHERE sku = 'C1-USB'") == [(0,)]
    with closing(sqlite3.connect(office / "office.sqlite3", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert rows("SELECT count(*) FROM stock") == [(7,)], "who reads does not wait for who writes"


def test_of_many_that_open_it_first_one_fills_it():
    together([lambda: store.connect().close() for _ in range(8)])
    assert rows("SELECT count(*) FROM stock") == [(8,)] and rows("PRAGMA user_version") == [(store.VERSION,)]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM payment",
        "DROP TABLE stock",
        "ATTACH 'other.db' AS other",
        "PRAGMA writable_schema = 1",
        "COMMIT",
        "VACUUM INTO 'copy.db'",
        "UPDATE stock SET quantity = 0; DELETE FROM stock",
        "INSERT INTO done VALUES ('k', '{}')",
        "nonsense",
    ],
)
def test_a_statement_that_does_more_than_change_rows_of_the_stock_is_refused_tried_or_run(statement, office):
    with pytest.raises(Declined):
        tools.try_on_a_copy(call(), {"statement": statement, "parameters": []})
    with pytest.raises(Declined):
        tools.run_sql(call(), {"statement": statement, "parameters": [], "at_most": 100})
    assert rows("SELECT count(*) FROM stock") == [(8,)] and rows("SELECT 1 FROM done") == []
    assert {file.name for file in office.iterdir()} <= {"office.sqlite3", "reports"}


def test_a_statement_that_would_change_more_rows_than_was_said_changes_none():
    with pytest.raises(Declined, match="8 rows, more than 7"):
        tools.run_sql(call(), {"statement": "UPDATE stock SET quantity = 0", "parameters": [], "at_most": 7})
    assert rows("SELECT count(*) FROM stock WHERE quantity = 0") == [(0,)]


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
ENDLESS_CHANGE = f"UPDATE stock SET quantity = ({ENDLESS})"


@pytest.mark.parametrize("statement", [ENDLESS, ENDLESS_CHANGE])
def test_a_statement_without_an_end_is_stopped_at_its_deadline_tried_or_run(statement):
    short = replace(call(), deadline=0.3)
    with pytest.raises(Declined, match="stopped after 0.3 seconds"):
        tools.try_on_a_copy(short, {"statement": statement, "parameters": []})
    with pytest.raises(Declined, match="stopped after 0.3 seconds"):
        tools.run_sql(short, {"statement": statement, "parameters": [], "at_most": 100})
    assert rows("SELECT count(*) FROM stock WHERE quantity > 0") == [(8,)] and rows("SELECT 1 FROM done") == []


def test_a_command_under_the_same_key_is_run_once(office):
    arguments = {"command": ["gzip", "--keep", "--force", "stock-2026-11.csv"]}
    first = tools.run_command(call(), arguments)
    packed = office / "reports" / "stock-2026-11.csv.gz"
    packed.unlink()
    assert tools.run_command(call(), arguments) == first and not packed.exists()


def test_a_command_whose_receipt_can_not_be_kept_is_not_said_to_have_done_nothing(office, monkeypatch):
    store.connect().close()
    with sqlite3.connect(office / "office.sqlite3") as other:
        other.execute("CREATE TRIGGER full BEFORE INSERT ON done BEGIN SELECT RAISE(FAIL, 'disk full'); END")
    with pytest.raises(AnswerLost, match="receipt") as lost:
        tools.run_command(call(), {"command": ["gzip", "--keep", "stock-2026-11.csv"]})
    assert lost.value.happened is None and (office / "reports" / "stock-2026-11.csv.gz").exists()


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("POST", "/accounts/00932/notes", "Put a note on the file of Brightwater Logistics at the help desk"),
        ("DELETE", "/accounts/00932/notes", "DELETE /accounts/00932/notes at the help desk"),
        ("POST", "/tickets/ZN-1/close", "POST /tickets/ZN-1/close at the help desk"),
        ("POST", "/" + "x" * 500, "POST /" + "x" * 119 + "… at the help desk"),
    ],
)
def test_a_request_is_called_by_what_it_asks_for(method, path, words):
    assert tools.call_desk.describe({"method": method, "url": tools.desk_url() + path}) == words
    elsewhere = {"method": "POST", "url": "http://127.0.0.1:1/accounts/00932/notes"}
    assert tools.call_desk.describe(elsewhere) == "POST http://127.0.0.1:1/accounts/00932/notes"


@pytest.mark.parametrize(
    "command", [["rm", "-r", "x"], ["sh", "-c", "id"], ["gzip", "../office.sqlite3"], ["gzip", "/etc/hosts"], ["gzip", "a;b"]]
)
def test_a_command_runs_nothing_but_its_programs_on_files_right_here(command):
    with pytest.raises(Declined):
        tools.run_command(call(), {"command": command})


def test_only_the_help_desk_is_called():
    with pytest.raises(Declined):
        tools.call_desk(call(), {"method": "POST", "url": "http://127.0.0.1:1/x", "headers": {}, "body": {}})


def test_every_tool_of_the_back_office_has_a_rule_in_the_demo():
    assert {tool.name for tool, *_ in WAYS.values()} == set(demo.BACK_OFFICE)


@pytest.mark.django_db(transaction=True)
def test_what_somebody_edited_of_a_record_stands_in_its_row_and_the_bar_says_which_of_the_two_is_approved(cast, client):
    proposed = propose(cast, "change-of-address")
    old, given = proposed.action, dict(exact.read(proposed.action).arguments)
    after = given["after"] | {"billing_address": "Hutnicza 14, 81-061 Gdynia"}
    made = editing.edit(old, by=person(cast.sam.pk), arguments=given | {"after": after}, digest=old.digest).action
    client.force_login(cast.riley)
    page = client.get(f"/actions/{made.pk}").content.decode()
    assert page.count("<table") == 1 and f"<b>#{made.proposed_seq}, not #{old.proposed_seq}</b>" in page
    row = page[page.index("Hutnicza 14, 81-061 Gdynia") :].partition("</tr>")[0]
    assert f"#{old.proposed_seq}" in row and "<del>" in row and "Hutnicza 12, 81-339 Gdynia" in row


@pytest.mark.django_db(transaction=True)
def test_a_refund_comes_with_what_was_found_about_its_payment(cast):
    proposed = propose(cast, "refund")
    told = {each.title: each.text for each in background.around(proposed.action).evidence}
    assert told["Two settled payments, one invoice"] == "PAY-88120 and PAY-88121, €1,284.00 each"
    assert told["Nothing refunded before"] == "0 refunds on INV-20931"
    moved = {each.title: each.text for each in background.around(propose(cast, "change-of-address").action).evidence}
    assert moved["Halden Marine, customer 01371"] == "Business plan, 12 seats, 30 days to pay, version 57"


@pytest.mark.django_db(transaction=True)
def test_each_correction_changes_one_field_and_says_why(cast):
    demo.policies(cast.workspace)
    for letter in sorted((REQUESTS / "corrections").glob("*.eml")):
        taken = take_in(letter.read_bytes(), letter.stem)
        proposed = propose(cast, f"corrections/{letter.stem}")
        arguments = exact.read(proposed.action).arguments
        assert list(arguments["after"]) == list(arguments["before"]) and len(arguments["after"]) == 1, letter.name
        assert arguments["after"] != arguments["before"] and taken.scope == {"customer": [arguments["record"]]}
        assert presenting.words(proposed.action, full=True)[1].startswith("The sender says: “")


def test_many_at_once_have_a_name():
    one, two = {"after": {"city": "Köln"}}, {"after": {"city": "Köln", "street": "Ring 1"}}
    assert tools.update_customer.several([one, one]) == "updates of one field each"
    assert tools.update_customer.several([one, two]) == "updates of customers"
    note = {"method": "POST", "url": f"{tools.desk_url()}/accounts/00932/notes"}
    assert tools.call_desk.several([note]) == "notes for the help desk"
    assert tools.call_desk.several([note, note | {"method": "DELETE"}]) == "calls of the help desk"


def test_the_office_and_the_help_desk_know_a_customer_by_one_number():
    def first(name: str) -> str:
        return name.split(",")[0]

    here = {first(record["name"]): number for number, _, record in CUSTOMERS}
    there = {first(account["name"]): account["id"] for account in ACCOUNTS}
    both = here.keys() & there.keys()
    assert len(both) >= 5 and {name: here[name] for name in both} == {name: there[name] for name in both}
    others = {here[name] for name in here.keys() - both} & {there[name] for name in there.keys() - both}
    assert not others
