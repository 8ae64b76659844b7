"""Aligning the words of two texts: however they are chosen, it looks at no more of them than it may."""

import difflib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import FrameType
from typing import Any

import pytest

from approvals import wordwise
from runs.story.aligning import LOOKED, opcodes

LINES = 8  # of Python's module, that one look takes at most


@contextmanager
def counted() -> Iterator[Callable[[], int]]:
    """How many lines of Python's own module have run."""
    ran, before = 0, sys.gettrace()

    def line(_frame: FrameType, event: str, _what: Any) -> Any:
        nonlocal ran
        ran += event == "line"
        return line

    sys.settrace(lambda frame, _event, _what: line if frame.f_code.co_filename == difflib.__file__ else None)
    try:
        yield lambda: ran
    finally:
        sys.settrace(before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (" ".join(f"a{number}" for number in range(200)), " ".join(f"b{number}" for number in range(200))),  # the same spaces alone
        ("a " * 200, "a b " * 100),
        (".," * 199, ",,." * 132),
    ],
)
def test_two_texts_that_take_long_to_align_are_shown_whole_before_much_was_looked_at(before: str, after: str) -> None:
    with counted() as ran:
        left, right = wordwise.words(f"x{before}", f"y{after}")
    assert 0 < ran() <= LOOKED * LINES
    assert [kind for kind, _ in left if kind != "same"] == ["del"] and [kind for kind, _ in right if kind != "same"] == ["ins"]


def test_space_alone_is_what_both_have_only_where_it_is_asked_for() -> None:
    both = (["one", " ", "two"], ["three", " ", "four"])
    assert [kind for kind, *_ in opcodes(*both, 9)] == ["replace"]
    assert [kind for kind, *_ in opcodes(*both, 9, blanks=True)] == ["replace", "equal", "replace"]


def test_a_page_of_which_half_is_written_anew_is_aligned_all_the_same() -> None:
    chance = Random(1)
    before = [f"w{chance.randrange(120)}" for _ in range(200)]
    after = [word if chance.random() < 0.5 else f"v{chance.randrange(120)}" for word in before]
    left, right = wordwise.words(" ".join(before), " ".join(after))
    assert sum(kind == "del" for kind, _ in left) > 40 and sum(kind == "ins" for kind, _ in right) > 40
