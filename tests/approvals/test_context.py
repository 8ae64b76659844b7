"""The number in the top bar."""

from types import SimpleNamespace

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from access.rules import NOBODY, person
from approvals import freezes, presenting
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


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("path", "status"), [("/nowhere", 404), ("/runs/new", 403), ("/recovery", 403)])
def test_a_page_that_refuses_asks_once_what_waits_and_what_is_frozen(cast, path, status):
    freezes.freeze(cast.workspace.pk, what="tool", tool="send_mail", by=person(cast.ada.pk), reason="Wait.")
    morgan = Client()
    morgan.force_login(cast.morgan)
    with CaptureQueriesContext(connection) as asked:
        page = morgan.get(path)
    told = [each["sql"] for each in asked]
    assert page.status_code == status and "Frozen: " in page.content.decode()
    assert sum('FROM "approvals_freeze"' in each for each in told) == 2, "whether any is, and which"
    assert sum("approvals_proposedaction" in each for each in told) <= 1 and len(set(told)) == len(told), "nothing is asked twice"
