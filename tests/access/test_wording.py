"""Words that several rooms put together alike."""

import pytest

from access.templatetags.handrail import either
from access.wording import listed

PEOPLE = ["Riley", "Sam", "Ada", "Otto", "Morgan", "Priya"]


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, ""),
        (1, "Riley"),
        (2, "Riley or Sam"),
        (4, "Riley, Sam, Ada or Otto"),
        (5, "Riley, Sam, Ada or 2 others"),
        (6, "Riley, Sam, Ada or 3 others"),
    ],
)
def test_of_many_the_first_are_named_and_the_rest_are_counted(count: int, said: str) -> None:
    assert either(PEOPLE[:count]) == said
    assert listed(PEOPLE[:count], most=4) == said.replace(" or ", " and ")


def test_all_are_named_where_nothing_says_how_many() -> None:
    assert listed(PEOPLE) == "Riley, Sam, Ada, Otto, Morgan and Priya"
