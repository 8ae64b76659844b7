"""Reading the inbox takes as many queries with many waiting as with few, and none of them sorts or walks through all that waits."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals import inbox
from approvals.models import ProposedAction
from bench.waiting import QUEUE, fill
from tests.approvals.mailing import propose_mail

pytestmark = pytest.mark.django_db(transaction=True)
MOST = 8  # queries, signing in among them


@pytest.fixture
def first(cast) -> ProposedAction:
    return ProposedAction.objects.select_related("run__title", "subject").get(pk=propose_mail(cast).action.pk)


def test_the_inbox_takes_the_same_few_queries_however_many_wait(first, riley):
    taken = []
    for more in (60, 900):
        fill(first, more)
        with CaptureQueriesContext(connection) as queries:
            page = riley.get("/inbox", headers=QUEUE).content.decode()
        taken.append(len(queries))
        assert page.count("data-item") == inbox.PAGE
    assert taken[0] == taken[1] <= MOST
    assert "500+" in page


@pytest.mark.sqlite_only
def test_no_page_of_the_queue_is_sorted_or_walked_to(first, riley):
    fill(first, 60)
    with CaptureQueriesContext(connection) as queries:
        riley.get("/inbox", headers=QUEUE)
    asked = [each["sql"] for each in queries if '"approvals_proposedaction"."expires_at" > ' in each["sql"]]
    assert len(asked) == 2  # the rows, and how many there are
    for sql in asked:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            steps = cursor.fetchall()
        outer = {0, *(number for number, _, _, what in steps if what.startswith("CO-ROUTINE"))}  # not what is looked up for each row
        plan = [what for _, within, _, what in steps if within in outer]
        assert any("USING INDEX action_queue" in step for step in plan) and not [step for step in plan if "TEMP B-TREE" in step]
