"""A card shows or folds every part of an action, whatever the action is. Pure."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals import cards
from approvals.canonical import Attachment, CanonicalAction, pointer
from approvals.cards import Setting, Warn

NAMES = st.sampled_from(
    [*cards.FROM, *cards.TO, *cards.CC, *cards.BCC, *cards.REPLY_TO, *cards.SUBJECT, *cards.BODY, "headers", "x/y~z", ""]
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


@given(
    st.dictionaries(NAMES | TEXT, VALUES, max_size=8),
    st.lists(TEXT, max_size=3),
    st.lists(FILES, max_size=2),
    st.sampled_from(["email", "generic", "a kind nobody drew"]),
    st.booleans(),
)
def test_every_part_of_an_action_is_shown_or_folded_and_counted_once(arguments, recipients, attachments, kind, registered):
    action = an_action(arguments, tuple(recipients), tuple(attachments))
    card = drawn(action, kind, properties={} if registered else None)
    assert set(cards.pointers(action)) <= cards.covered(card)
    assert card.count == card.shown_count + card.folded_count
    named = [part.path for part in cards._parts(card)]
    assert len(named) == len(set(named)), "a part is counted twice"
    values = {part.path: part.value for part in cards._parts(card) if isinstance(part, cards.Field)}
    for name, value in action.arguments.items():
        shown = values[pointer("arguments", name)]
        assert shown == value or (shown == "Nobody" and not value)


def test_three_kinds_of_empty_are_told_apart():
    assert len({cards.empty_word(None), cards.empty_word(""), cards.empty_word([])}) == 3


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
    assert [line.value for line in card.lines] == ["Run by the agent through mail server; Handrail cannot see the call."]
    assert {part.title: part.value for part in card.folded} == {"Tool": "send, schema 1", "Credential": "smtp", "Nonce": "n-1"}
