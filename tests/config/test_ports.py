"""The ports of the houses that tests run at the same time."""

import os

from tests.stack import free_ports


def test_ports_that_were_given_to_one_house_are_given_to_no_other_before_it_has_taken_them(monkeypatch):
    some, others = os.urandom(2), os.urandom(2)
    while int.from_bytes(others, "big") % 2_000 == int.from_bytes(some, "big") % 2_000:
        others = os.urandom(2)
    drawn = iter([some, some, others] + [os.urandom(2) for _ in range(400)])
    monkeypatch.setattr(os, "urandom", lambda _: next(drawn))
    first, second = free_ports(4), free_ports(4)
    assert abs(first - second) >= 4
