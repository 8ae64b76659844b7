"""The number in the top bar."""

from types import SimpleNamespace

import pytest

from access.rules import NOBODY, person
from approvals import presenting
from approvals.context import inbox_count
from tests.approvals.mailing import propose_mail

pytestmark = pytest.mark.django_db


def test_it_counts_only_when_drawn_and_only_for_who_may_see(cast, django_assert_num_queries):
    riley = person(cast.riley.pk)
    with django_assert_num_queries(0):
        counted = inbox_count(SimpleNamespace(actor=riley))["inbox_count"]
        nobody = inbox_count(SimpleNamespace(actor=NOBODY))["inbox_count"]
        assert not nobody and not inbox_count(SimpleNamespace())["inbox_count"]
    with django_assert_num_queries(1):
        assert counted == 0


@pytest.mark.django_db(transaction=True)
def test_it_counts_for_who_may_decide_and_not_what_others_decide(cast):
    propose_mail(cast)
    assert ">1<" in presenting.count(person(cast.riley.pk)) and "waiting for you" in presenting.count(person(cast.riley.pk))
    assert " hidden>0<" in presenting.count(person(cast.morgan.pk))
