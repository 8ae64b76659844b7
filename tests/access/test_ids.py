import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.errors import BadInput
from access.ids import NotAReference, parse_reference, reference, uuid7


def test_uuids_are_version_7_and_in_the_order_they_were_made() -> None:
    made = [uuid7() for _ in range(2_000)]
    assert {u.version for u in made} == {7}
    assert made == sorted(set(made))


def test_a_uuid_carries_the_time_it_was_made() -> None:
    before = time.time_ns() // 1_000_000
    stamp = uuid7().int >> 80
    assert before <= stamp <= time.time_ns() // 1_000_000


def test_a_reference_is_short_and_has_no_letters_that_pass_for_others() -> None:
    for _ in range(500):
        assert re.fullmatch(r"RN-[0-9A-HJKMNP-TV-Z]{4}", reference())


def test_a_reference_can_be_made_longer_when_the_short_ones_clash() -> None:
    assert len(reference(9)) == 12
    for length in (3, 10):
        with pytest.raises(ValueError, match="characters"):
            reference(length)


@given(st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=4, max_size=9).map("RN-{}".format), st.data())
def test_a_reference_is_read_however_it_is_typed(made: str, data: st.DataObject) -> None:
    typed = "".join(data.draw(st.sampled_from(_spellings(c))) for c in made)
    assert parse_reference(f" {typed} ") == made
    assert parse_reference(typed.replace("-", data.draw(st.sampled_from(["", " ", "–", "_"])))) == made


def test_the_prefix_may_be_left_out() -> None:
    assert parse_reference("7q4k") == "RN-7Q4K"
    assert parse_reference("rn7k") == "RN-RN7K"


@pytest.mark.parametrize("text", ["", "RN-", "RN-7Q", "RN-7Q4U", "RN-7Q4K\0", "RN-1234567890", "7Q4!", "ＲＮ-7Q4K", "x" * 10_000])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(NotAReference) as refused:
        parse_reference(text)
    assert isinstance(refused.value, BadInput)
    assert "RN-7Q4K" in refused.value.what_next


def _spellings(char: str) -> list[str]:
    also = {"0": "Oo", "1": "IiLl"}.get(char, "")
    return [char, char.lower(), *also]
