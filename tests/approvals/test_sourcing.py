"""What an answer says is held against the events that it names: what stands there, what does not, and what names none."""

import pytest

from approvals.sourcing import LONGEST, MOST, MOST_VALUES, Claim, Source, claims

MAIL = "From: Marta\n\nWe've been charged twice for INV-20931. Our accounts\nteam can file it.\n"
ACCOUNT = '{"payments": [{"id": "PAY-88120", "date": "2026-11-24", "amount": "1284.00", "paid_by": "card ending 4417"}]}'
SOURCES = {9: Source(MAIL), 15: Source(ACCOUNT)}


def said(answer: str, sources: dict[int, Source] = SOURCES) -> list[tuple[str, int, tuple[str, ...]]]:
    return [(each.state, each.seq, each.values) for each in claims(answer, sources, upto=30)]


def test_what_stands_in_the_event_that_is_named_is_found_however_a_record_writes_it():
    assert said("The account has PAY-88120 of €1,284.00, 24 Nov 2026, card ending 4417 (#15).") == [
        ("stands", 15, ("PAY-88120", "€1,284.00", "24 Nov 2026", "4417"))
    ]
    assert said("She writes: “Our accounts team can file it.” (#9).") == [("stands", 9, ("“Our accounts team can file it.”",))]
    assert said("She writes: “We’ve been charged twice for INV-20931. Our accounts team” (#9).")[0][0] == "stands"


def test_what_does_not_stand_there_is_said_and_a_part_of_a_number_is_no_find():
    assert said("The account has PAY-88121 (#15).") == [("missing", 15, ("PAY-88121",))]
    assert said("The account has PAY-8812 and €284.00 (#15).") == [("missing", 15, ("PAY-8812", "€284.00"))]
    assert said("Paid were €1,284.00, she says “never” (#15).") == [("stands", 15, ("€1,284.00",)), ("missing", 15, ("“never”",))]


@pytest.mark.parametrize(
    ("value", "there"),
    [
        ("€284.00", "€1,284.00 were paid"),
        ("€1,284.00", "1284.50"),
        ("€1,284", '"amount": 1284.5'),
        ("€1,284.00", "$1,284.00"),
        ("€1,284.00", "-1284.00"),
        ("ann@x.com", "jo.ann@x.com"),
        ("ann@x.com", "ann@x.com.evil.org"),
        ("PAY-88120", "PAY-88120-B"),
        ("PAY-88120", "XPAY-88120, RE-PAY-88120"),
        ("88120", "PAY-88120"),
        ("88120", "88120.5 and 1,88120"),
        ("24 Nov 2026", "124 nov 2026, 2026-11-241, 1-2026-11-24"),
        ("“was charged”", "it was charged2"),
    ],
)
def test_a_value_does_not_stand_where_a_part_of_it_does(value, there):
    assert said(f"It says {value} (#15).", {15: Source(there)}) == [("missing", 15, (value,))]


@pytest.mark.parametrize(
    ("value", "there"),
    [
        ("€1,284.00", '{"amount": "1284.00"}'),
        ("€1,284.00", "[1284.0]"),
        ("€1,284", "(1,284.00)."),
        ("€1284.00", "€1,284.00,"),
        ("€1,284.50", "1284.5"),
        ("ann@x.com", "<ann@x.com>."),
        ("PAY-88120", "PAY-88120.pdf"),
        ("24 Nov 2026", '"at": "2026-11-24T10:00:00Z"'),
        ("20. November 2026", "2026-11-20"),
        ("2026", "2026-11-24"),
        ("4417", "the card ending 4417."),
    ],
)
def test_a_value_stands_however_a_record_writes_it(value, there):
    assert said(f"It says {value} (#15).", {15: Source(there)}) == [("stands", 15, (value,))]


def test_no_answer_takes_long_to_hold_against_what_it_names():
    """8,000 characters that name many numbers, or hold what is nearly an address, over a source of 64 Ki."""
    large = {15: Source("1234 5678-90 a.b@c " * 3500)}
    numbers = " ".join(str(n) for n in range(10_000, 11_500))
    assert [claim.seq for claim in claims(f"It says {numbers} (#15).", large, upto=30)] == [15]
    assert sum(len(claim.values) for claim in claims(f"It says {numbers} (#15).", large, upto=30)) == MOST_VALUES
    assert claims("a" * 8000 + " (#15).", large, upto=30) == (Claim("plain", 15, ()),)


def test_a_sentence_that_names_no_event_is_told_as_it_is():
    found = said("It is due (#15). Brightwater asked for this copy in May. Yes, I did.")
    assert found == [("plain", 15, ()), ("unsourced", 0, ("Brightwater asked for this copy in May.",))]
    assert said("Brightwater has asked for this since May (#31).")[0][0] == "unsourced"  # not there yet when it was said


def test_what_is_not_in_the_part_that_may_be_shown_may_stand_in_the_other():
    assert said("Copied to pay@brightwater.example (#15).", {15: Source("{}", partly=True)}) == [
        ("hidden", 15, ("pay@brightwater.example",))
    ]
    assert said("It was INV-1 (#12).", {}) == [("hidden", 12, ("INV-1",))]


def test_one_sentence_may_take_from_two_events_and_two_sentences_from_one():
    assert said("INV-20931 was paid by PAY-88120 (#9, #15).") == [("stands", 9, ("INV-20931",)), ("stands", 15, ("PAY-88120",))]
    assert said("It is PAY-88120 (#15). The card ends with 4417 (#15).") == [("stands", 15, ("PAY-88120", "4417"))]


def test_an_event_that_comes_with_the_answer_and_is_not_written_in_it_is_for_all_that_names_none():
    found = claims("It is PAY-88120. She wrote INV-20931 (#9).", SOURCES, upto=30, cites=(9, 15, 3))
    assert [(each.state, each.seq) for each in found] == [("stands", 15), ("plain", 3), ("stands", 9)]


def test_a_long_answer_gives_no_endless_list():
    found = claims(" ".join(f"This number {n} says nothing of it at all." for n in range(50)), {}, upto=9)
    assert len(found) <= MOST and all(len(value) <= LONGEST + 2 for each in found for value in each.values)
    assert claims("", {}, upto=9) == () and isinstance(found[0], Claim)


def test_a_long_quotation_ends_with_a_whole_sentence():
    quoted = "“We were charged twice for INV-20931. Our bank shows two payments of EUR 1,284.00 on 24 November, both to Fernhill.”"
    assert claims(f"She says: {quoted} (#9).", SOURCES, upto=30)[0].values == ("“We were charged twice for INV-20931…”",)


def test_behind_very_many_that_stand_there_one_that_does_not_is_still_said():
    answer = " ".join(f"It is INV-{number} (#{number})." for number in range(1, 20)) + " She has asked for this since May."
    found = claims(answer, {number: Source(f"INV-{number}" if number != 19 else "") for number in range(1, 20)}, upto=30)
    assert len(found) == MOST and [each.state for each in found[-2:]] == ["missing", "unsourced"]
