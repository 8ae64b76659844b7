"""A card shows or folds every part of an action, whatever the action is. Pure."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals import cards, changes, course
from approvals.canonical import ABSENT, Attachment, CanonicalAction
from approvals.cards import Setting, Warn, command, drawing, email, http, payment, record, sql
from approvals.cards.parts import Code, Field, Place, Row, Share
from approvals.templatetags import approving
from runs.engine.tools import Limit, Looked
from runs.story import titles

NAMES = st.sampled_from(
    [
        *(*email.FROM, *email.TO, *email.CC, *email.BCC, *email.REPLY_TO, *email.SUBJECT, *email.BODY),
        *(*record.RECORD, *record.VERSION, *record.BEFORE, *record.AFTER),
        *(*payment.AMOUNT, *payment.CURRENCY, *payment.ACCOUNT),
        *(*sql.STATEMENT, *sql.VALUES, *http.METHOD, *http.URL, *http.HEADERS, *command.COMMAND),
        *("x/y~z", ""),
    ]
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e9, 1e9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FILES = st.builds(Attachment, TEXT, st.just("text/plain"), st.integers(0, 99), st.just("ab" * 32))


def an_action(arguments=None, recipients=(), attachments=(), **more) -> CanonicalAction:
    return CanonicalAction("send", 1, arguments or {}, "mail server", "smtp", "n-1", recipients=recipients, attachments=attachments, **more)


def drawn(action, kind="email", **setting) -> cards.Card:
    return cards.card(action, Setting(title="Send", effect="send", kind=kind, **setting))


def values(card: cards.Card) -> dict[str, Any]:
    """What a card draws of each argument, put together again from its parts."""
    found: dict[str, Any] = {}
    for part in card.parts:
        if not part.path.startswith("/arguments/"):
            continue
        name, *inner = [step.replace("~1", "/").replace("~0", "~") for step in part.path.split("/")[2:]]
        if isinstance(part, Row):
            sides = [path.split("/")[2] for path in part.covers if path.startswith("/arguments/") and path.endswith("/" + last(part.path))]
            for side, value in zip(sides[-2:], part.value if len(sides) > 1 else [v for v in part.value if v is not ABSENT], strict=True):
                if value is not ABSENT:
                    found.setdefault(side, {})[part.name] = value
        elif inner and isinstance(part, Field):
            found.setdefault(name, []).append((inner[0], part.value))
        else:
            found[name] = part.value
        if isinstance(part, Place) and part.covers:
            found[last(part.covers[0])] = part.method
    return found


def last(path: str) -> str:
    return path.split("/")[-1]


def whole(shown: Any, value: Any) -> Any:
    """Values that stand one below the other, as what they came from."""
    if isinstance(shown, list) and shown and isinstance(shown[0], tuple):
        return dict(shown) if isinstance(value, dict) else [each for _, each in shown]
    return shown


@given(
    st.dictionaries(NAMES | TEXT, VALUES, max_size=8),
    st.lists(TEXT, max_size=3),
    st.lists(FILES, max_size=2),
    st.sampled_from([*cards.KINDS, "generic", "a kind nobody drew"]),
    st.booleans(),
)
def test_every_part_of_an_action_is_shown_or_folded_and_counted_once(arguments, recipients, attachments, kind, registered):
    action = an_action(arguments, tuple(recipients), tuple(attachments))
    card = drawn(action, kind, properties={} if registered else None)
    assert set(cards.pointers(action)) <= cards.covered(card)
    assert card.count == card.shown_count + card.folded_count == len(card.parts)
    named = [part.path for part in card.parts]
    assert len(named) == len(set(named)), "a part is counted twice"
    if kind == "record":
        return  # below, with real records
    shown = values(card)
    for name, value in action.arguments.items():
        assert whole(shown[name], value) == value
    if card.code and card.code.lines and isinstance(card.code.value, str):
        assert "".join(text for line in card.code.lines for _, text in line) == card.code.value
    if card.place:
        assert "".join(text for _, text in card.place.pieces) == card.place.value


RECORDS = st.dictionaries(TEXT.filter(lambda text: "/" not in text and "~" not in text), VALUES, max_size=4)


@given(RECORDS, RECORDS, st.integers(0, 99))
def test_a_change_of_a_record_shows_every_field_that_either_side_names(before, after, version):
    action = an_action({"record": "417", "version": version, "before": before, "after": after})
    card = drawn(action, "record", properties={})
    old, new = action.arguments["before"], action.arguments["after"]
    assert {row.name: row.value for row in card.rows} == {key: (old.get(key, ABSENT), new.get(key, ABSENT)) for key in {**old, **new}}
    assert set(cards.pointers(action)) <= cards.covered(card)
    assert card.aside == f"Only if still at version {version}" and not [part for part in card.said if part.name == "version"]
    told = drawn(action, "record", properties={"version": {}})
    assert [part.value for part in told.said] == [version] and "version" not in [field.name for field in told.fields]
    assert set(cards.pointers(action)) <= cards.covered(told)
    for row in card.rows:
        assert row.changed == (row.value[0] is ABSENT or row.value[1] is ABSENT or cards.pretty(row.value[0]) != cards.pretty(row.value[1]))


def test_of_a_record_that_was_looked_up_what_stays_is_named_and_not_counted():
    looked = Looked(record={"city": "Gdynia", "plan": "Team", "seats": 12}, version=57)
    action = an_action({"record": "417", "version": 57, "before": {"city": "Gdynia"}, "after": {"city": "Sopot"}})
    card = drawn(action, "record", looked=looked)
    assert card.stays == (("Plan", "Team"), ("Seats", "12"))
    assert card.count == len(drawn(action, "record").parts)


def test_a_change_without_its_before_is_compared_with_what_was_found():
    action = an_action({"record": "417", "version": 57, "after": {"city": "Sopot"}})
    (row,) = drawn(action, "record", looked=Looked(record={"city": "Gdynia"})).rows
    assert (row.before, row.after) == ((("del", "Gdynia"),), (("ins", "Sopot"),))


def test_words_that_changed_side_by_side_are_drawn_as_one():
    action = an_action({"before": {"a": "Nabrzeże 4, Gdynia, Polska (PL)"}, "after": {"a": "Hutnicza 12, Gdynia, Polska (PL)"}})
    (row,) = drawn(action, "record").rows
    assert row.before == (("del", "Nabrzeże 4"), ("same", ", Gdynia, Polska (PL)"))
    assert row.after == (("ins", "Hutnicza 12"), ("same", ", Gdynia, Polska (PL)"))


def test_a_value_of_which_half_the_words_changed_is_drawn_as_another_value():
    action = an_action({"before": {"a": "Hutnicza 12, 81-339 Gdynia"}, "after": {"a": "Hutnicza 14, 81-061 Gdynia"}})
    (row,) = drawn(action, "record").rows
    assert (row.before, row.after) == ((("del", "Hutnicza 12, 81-339 Gdynia"),), (("ins", "Hutnicza 14, 81-061 Gdynia"),))


def test_no_word_is_struck_by_half():
    action = an_action({"before": {"a": "Rua do Norte 4, 1200-109 Lisboa"}, "after": {"a": "Rua do Norte 4, 1200-195 Lisboa"}})
    (row,) = drawn(action, "record").rows
    assert [part for part in row.before if part[0] == "del"] == [("del", "1200-109")]


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        ("1284.00", "EUR", "€1,284.00"),
        (48, "GBP", "£48.00"),
        ("-5.5", "USD", "−US$5.50"),
        ("0.0001", "EUR", "€0.0001"),
        ("12.5", "PLN", "12.50 PLN"),
        ("1,284.00", "EUR", "1,284.00 EUR"),  # a comma says two things
        ("１２", "EUR", "１２ EUR"),
        ("1e9", "EUR", "1e9 EUR"),
        (True, "EUR", "True EUR"),
    ],
)
def test_an_amount_is_drawn_large_and_grouped_only_if_it_can_be_read_for_certain(amount, currency, text):
    card = drawn(an_action({"amount": amount, "currency": currency}), "payment")
    assert card.amount and (card.amount.text, card.amount.value) == (text, amount)
    assert [field.name for field in card.fields] == ["currency"]


def test_a_payment_says_what_it_takes_of_what_was_paid_and_how_far_the_limits_go():
    action = an_action({"amount": "1284.00", "currency": "EUR", "account": "417"})
    card = drawn(
        action,
        "payment",
        looked=Looked(facts={"Paid on invoice": "€2,568.00"}, paid="2568.00", left="2568.00"),
        limit=Limit("EUR", each="2000", a_day="5000"),
        today="300.00",
    )
    assert card.amount.share == (Share("left", 0, 500), Share("this", 500, 500))
    assert card.amount.said == "Of €2,568.00 paid, €0.00 went back before and this takes €1,284.00."
    assert card.found == (
        ("Paid on invoice", "€2,568.00"),
        ("Limit", "€2,000.00 each"),
        ("Paid today", "€300.00 of €5,000.00"),
    )
    whole = drawn(action, "payment", looked=Looked(paid="1284.00", left="1284.00"))
    assert (whole.amount.share, whole.amount.said) == ((), "All that was paid; nothing is left to give back after this.")


def test_what_was_looked_up_of_an_argument_stands_beside_it_and_is_not_counted():
    action = an_action({"amount": "1284.00", "account": "00932", "extra": "7"})
    looked = Looked(facts={"To": "Brightwater Logistics, card ending 4417", "Left before this": "€1,284.00", "": "nothing"})
    card = drawn(action, "payment", properties={"amount": {}, "account": {"title": "To"}}, looked=looked)
    told = {field.name: (field.value, field.told) for field in card.fields}
    assert told == {"account": ("00932", "Brightwater Logistics, card ending 4417"), "extra": ("7", "")}
    assert ("Left before this", "€1,284.00") in card.found and "To" not in dict(card.found)
    assert card.count == drawn(action, "payment", properties={"amount": {}, "account": {"title": "To"}}).count


def test_a_statement_is_drawn_line_by_line_with_each_value_by_its_sign():
    text = "UPDATE invoices -- all of them\n   SET currency = $1\n WHERE issued_at < $2"
    card = drawn(an_action({"statement": text, "parameters": ["EUR", 3]}), "sql", dialect="postgres")
    words = [text for line in card.code.lines for kind, text in line if kind == "b"]
    assert words == ["UPDATE", "SET", "$", "1", "WHERE", "$", "2"]
    assert [text for line in card.code.lines for kind, text in line if kind == "i"] == [" -- all of them"]
    assert len(card.code.lines) == 3
    assert [(field.title, field.typed, field.value) for field in card.options] == [("$1", "text", "EUR"), ("$2", "whole number", 3)]


@pytest.mark.parametrize("text", ["'", "\x00", "SELECT 'a", "/* no end", "a" * 30_000, "💥 \r\n ;", ""])
def test_a_statement_that_cannot_be_read_is_still_shown_to_the_last_character(text):
    card = drawn(an_action({"statement": text}), "sql")
    lines = card.code.lines if card.code else ()
    assert "".join(piece for line in lines for _, piece in line) == text


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.nordkontor.example/v2/orders?currency=EUR", "api.nordkontor.example"),
        ("https://good.example@evil.example/", None),  # nothing stands out where eyes could be led to the wrong place
        ("https://good.example\\@evil.example/", None),
        ("https://good.example\\.evil.example/", None),
        ("https://good.example .evil.example/", None),
        ("//evil.example", None),
    ],
)
def test_the_host_of_a_request_stands_out_where_it_is_certain(url, host):
    card = drawn(an_action({"method": "POST", "url": url}), "http")
    assert next((text for kind, text in card.place.pieces if kind == "host"), None) == host
    assert "/arguments/method" in cards.covered(card)


def test_each_argument_of_a_command_has_a_line_and_it_is_said_whether_a_shell_reads_it():
    card = drawn(an_action({"command": ["tar", "-czf", "a b.tgz", ""]}), "command")
    assert card.code == Code(
        "/arguments/command",
        "The command",
        "command",
        ["tar", "-czf", "a b.tgz", ""],
        ((("b", "tar"),), (("", "-czf"),), (("", "a b.tgz"),), (("", ""),)),
        numbered=True,
    )
    assert card.found == (("Read by", "No shell: each line is taken as it is"),)
    assert drawn(an_action({"command": "rm *"}), "command").found == (("Read by", "A shell"),)


def test_three_kinds_of_empty_are_told_apart():
    assert len({cards.empty_word(None), cards.empty_word(""), cards.empty_word([])}) == 3


def test_of_who_sends_nothing_is_told_and_of_where_answers_go_not_how_often_it_was_written_to():
    addresses = {name: f"{name}@elsewhere.example" for name in ("sender", "to", "reply_to")}
    card = drawn(an_action(addresses), inside=["fernhill.example"], sent=dict.fromkeys(addresses.values(), 3))
    told = {field.title: (field.addresses[0].outside, field.addresses[0].sent) for field in card.fields if field.addresses}
    assert told == {"From": (False, None), "To": (True, 3), "Reply-To": (True, None)}


def test_an_address_is_outside_unless_its_domain_is_surely_inside():
    to = ["a@fernhill.example", "B <b@FERNHILL.example>", "c@evil.example", "a@x.example, b@fernhill.example", "nonsense"]
    card = drawn(an_action({"to": to}, tuple(to)), inside=["fernhill.example"])
    assert [address.outside for address in card.fields[0].addresses] == [False, False, True, True, True]


def test_somebody_whom_no_field_names_is_shown_as_reached():
    card = drawn(an_action({"to": ["a@x.example"]}, ("a@x.example", "hidden@y.example")))
    also = next(field for field in card.fields if field.path == "/recipients")
    assert (also.title, [address.text for address in also.addresses]) == ("Also reaches", ["hidden@y.example"])


def test_an_address_that_differs_only_in_case_is_not_passed_over():
    card = drawn(an_action({"to": ["Ada@x.example"]}, ("ada@x.example",)))
    assert "/recipients" in {field.path for field in card.fields}


@pytest.mark.parametrize("body", [["a", "list"], {"html": "<p>"}, 7])
def test_a_body_that_is_not_text_is_drawn_with_the_rest(body):
    card = drawn(an_action({"body": body}))
    assert card.letter is None
    assert [part.value for part in card.folded if part.path == "/arguments/body"] == [body]


def test_an_argument_that_the_schema_does_not_know_is_named_and_marked():
    card = drawn(an_action({"force": True, "to": []}), "generic", properties={"to": {"title": "To"}})
    force, to = sorted(card.fields, key=lambda field: field.name)
    assert (force.known, force.warns[0].strong) == (False, "Not in the tool’s schema.")
    assert (to.known, to.title, to.shape) == (True, "To", "empty")


def test_a_warning_stands_beside_its_value_or_on_top_of_the_card():
    beside, lost = Warn("look_alike", "warn", "/arguments/to/0", "This is not that."), Warn("repeat", "warn", "", "Ran before.")
    card = drawn(an_action({"to": ["a@x.example"]}, ("a@x.example",)), warns=[beside, lost])
    assert card.fields[0].addresses[0].warns == (beside,)
    assert card.warns == (lost,)


def test_who_runs_it_and_with_what_is_part_of_the_card():
    card = drawn(an_action({}, executor="agent"))
    assert [line.value for line in card.lines] == ["Run by the agent through the mail server; Handrail cannot see the call."]
    assert {part.title: part.value for part in card.folded} == {"Tool": "send, schema 1", "Credential": "smtp", "Nonce": "n-1"}


def test_what_an_edit_changed_is_said_in_the_words_of_the_card():
    old, new = an_action({"force": False, "tags": ["a", "b"]}), an_action({"force": True, "tags": []})
    rows = {row.name: row for row in changes.between(old, new, None).rows}
    said = {name: ["".join(text for _, text in side) for side in (row.before, row.after)] for name, row in rows.items()}
    assert said == {"force": ["No", "Yes"], "tags": ["a, b", cards.empty_word([])]}


def test_of_a_record_that_was_edited_each_field_is_compared_for_itself():
    before, after = {"billing_address": "Hutnicza 12", "X-Id": 7, "gone": True}, {"billing_address": "Hutnicza 14", "X-Id": 7, "new": None}
    rows = changes.between(an_action({"after": before, "record": "1"}), an_action({"after": after, "record": "1"}), None).rows
    said = [(row.title, *("".join(text for _, text in side) for side in (row.before, row.after)), row.changed) for row in rows]
    assert said == [
        ("Billing address", "Hutnicza 12", "Hutnicza 14", True),
        ("New", "Not there", cards.empty_word(None), True),
        ("Gone", "Yes", "Not there", True),
        ("X-Id", "7", "7", False),
        ("record", "1", "1", False),
    ]


def test_a_record_that_holds_very_much_or_is_none_on_one_side_is_compared_as_a_whole():
    many = {f"field_{n}": n for n in range(changes.FIELDS + 1)}
    for other in ({**many, "field_0": "x"}, "nothing", {}):
        (row,) = changes.between(an_action({"after": many}), an_action({"after": other}), None).rows
        assert row.changed and row.title == "after"


def test_what_is_called_in_words_has_an_article_and_a_name_or_an_address_has_none():
    named = ("help desk", "CRM", "office.sqlite3")
    told = {target: drawn(replace(an_action({}), target=target), "generic").lines[0].value for target in named}
    assert told["help desk"] == "On approval, only once, by Handrail at the help desk."
    assert told["CRM"].endswith(" at the CRM.") and told["office.sqlite3"].endswith(" at office.sqlite3.")
    others = ["this machine", "smtp://a.example:25", "a  b", "localhost"]
    assert [drawing.outside(target) for target in others] == others


@pytest.mark.parametrize(("value", "day"), [("2026-11-30", "Mon 30 Nov 2026"), ("2026-02-30", ""), ("2026-11-30\n", ""), (20261130, "")])
def test_a_day_is_told_as_people_write_it(value, day):
    assert approving.as_day(value) == day


def test_a_card_and_a_story_call_what_is_decided_on_the_same() -> None:
    assert course.UNITS is titles.UNITS


def test_what_an_earlier_version_had_stands_in_the_row_that_changed():
    fields = {"before": {"a": "Nabrzeże 4"}, "record": "417", "tell": False}
    old, new = (an_action({**fields, "after": {"a": to}}) for to in ("Hutnicza 12", "Hutnicza 14"))
    differs = changes.between(old, new, None)
    told = record.told_apart(drawn(new, "record"), differs.by_path)
    assert told is not None and [row.was for row in told.rows] == [(("del", "Hutnicza 12"),)]
    assert not any(field.was for field in told.fields)
    other = an_action({**fields, "after": {"a": "Hutnicza 14", "b": 1}})
    assert record.told_apart(drawn(new, "record"), changes.between(other, new, None).by_path) is None, "a field that went has no row"


def test_how_a_request_is_written_stands_folded_and_what_it_asks_in_the_open():
    headers = {"Content-Type": "application/json", "X-On-Behalf-Of": "Riley"}
    card = drawn(an_action({"method": "POST", "url": "https://desk.example/notes", "headers": headers, "body": {"text": "Hello"}}), "http")
    assert [field.title for field in card.fields] == ["X-On-Behalf-Of"] and "Content-Type" in card.folded_names
    warned = drawn(
        an_action({"headers": headers, "url": "https://a.example"}), "http", warns=[Warn("odd", "warn", "/arguments/headers", "Odd.")]
    )
    assert "Content-Type" in [field.title for field in warned.fields], "what is warned of is not folded"
