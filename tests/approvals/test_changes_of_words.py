"""What differs between two texts: what both have is the same on both sides, and no text takes long."""

from hypothesis import given
from hypothesis import strategies as st

from approvals.wordwise import ALIGNED, words

TEXTS = st.text(st.sampled_from("a b,\n"), max_size=60)


def side(parts) -> str:
    return "".join(text for _, text in parts)


@given(TEXTS, TEXTS)
def test_each_side_reads_as_its_text_and_the_same_parts_are_the_same(before, after):
    left, right = words(before, after)
    assert (side(left), side(right)) == (before, after)
    assert "".join(text for kind, text in left if kind == "same") == "".join(text for kind, text in right if kind == "same")
    assert all(one[0] != other[0] for parts in (left, right) for one, other in zip(parts, parts[1:], strict=False))


def test_one_change_in_a_long_text_is_one_change():
    text = "word " * 5000
    left, right = words(text + "old" + text, text + "new" + text)
    assert [kind for kind, _ in left] == ["same", "del", "same"] and [kind for kind, _ in right] == ["same", "ins", "same"]


def test_an_empty_line_amid_what_is_new_bears_no_mark_unless_it_is_all_there_is():
    _, right = words("Hello.", "Hello.\n\nIt is paid.\n\nYours")
    assert [part for part in right if part[0] == "ins"] == [("ins", "It is paid."), ("ins", "Yours")]
    assert words("a b", "a\n\nb")[1] == (("same", "a"), ("ins", "\n\n"), ("same", "b"))


def test_what_differs_in_very_many_places_is_shown_whole():
    many = ALIGNED + 1
    left, right = words("a " * many + "b", "a b " * many + "c")
    assert len(left) <= 3 and len(right) <= 3
