"""Runs are found by who started them, whoever else is called the same elsewhere."""

import pytest

from access.rules import person
from runs import listing
from tests import cast as casting
from tests.factories import make_run

pytestmark = pytest.mark.django_db(transaction=True)


def test_people_of_other_workspaces_do_not_crowd_out_those_of_ones_own(cast, monkeypatch):
    monkeypatch.setattr(listing, "MOST_NAMED", 2)
    for slug in ("north", "south", "west"):
        casting.member(casting.workspace(slug), "zed", "operator")
    zed = casting.member(cast.workspace, "zed", "operator")
    run = make_run(cast, by=person(zed.pk))
    found = listing.listing(person(cast.riley.pk), listing.Wanted(q="zed"))
    assert [row.run for row in found.rows] == [run]
