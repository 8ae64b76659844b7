"""What is searched for is found whatever its accents."""

import re

import pytest

from runs.folding import pattern


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("ozturk", "Jürgen Öztürk"),
        ("Öztürk", "ozturk"),
        ("ÖZTÜRK", "Öztu\u0308rk"),
        ("lodz", "Łódź"),
        ("zn-48", "Ticket ZN-4821"),
        ("a.b", "A.B"),
        ("müller", "MULLER"),
        ("東", "東京"),
    ],
)
def test_it_is_found(term: str, text: str) -> None:
    assert re.search(pattern(term), text)


@pytest.mark.parametrize(("term", "text"), [("a.b", "axb"), ("[a-z]", "q"), ("(", "x"), ("ozturk", "ozturc"), ("\\", "x"), ("a*", "b")])
def test_it_is_not_found(term: str, text: str) -> None:
    assert not re.search(pattern(term), text)
