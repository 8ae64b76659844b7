"""Rows that are found, made and copied without Django's detours are as Django finds, makes and copies them."""

import re
from copy import copy
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.models import User
from access.rows import copied, made, only
from access.rules import person
from approvals import decisions
from artifacts.models import Payload
from runs.models import JournalEntry, Run
from tests.approvals.mailing import propose_mail, sent

RANDOM = ("id", "created_at", "started_at")  # another each time, by whoever it is made


@pytest.mark.parametrize("model", [Payload, JournalEntry, Run])
def test_a_row_is_as_its_model_makes_it(model):
    columns = {"id": uuid4()}
    ours, django = made(model, **columns), model(**columns)
    names = [field.attname for field in model._meta.concrete_fields]
    assert list(vars(ours)) == [*names, "_state"]
    for name in names:
        assert type(getattr(ours, name)) is type(getattr(django, name)), name
        assert name in {*RANDOM, "state_since"} or getattr(ours, name) == getattr(django, name), name
    assert (ours._state.adding, ours._state.db, ours._state.fields_cache) == (True, None, {})


@pytest.mark.django_db
def test_a_row_knows_the_rows_that_it_was_made_with(django_assert_num_queries):
    payload = made(Payload, id=uuid4())
    entry = made(JournalEntry, {"result": payload}, result_id=payload.pk)
    with django_assert_num_queries(0):
        assert entry.result is payload


def test_defaults_are_not_shared():
    one, other = made(Run), made(Run)
    one.tools.append("crm_account")
    assert other.tools == [] and one.pk != other.pk


def test_a_copy_changes_on_its_own():
    payload = Payload(id=uuid4())
    entry = JournalEntry(step="look#1", attempts=1, result=payload)
    twin = copied(entry)
    assert vars(twin).keys() == vars(copy(entry)).keys() - {"_django_version"}  # which is for pickles
    assert twin.result is payload
    twin.attempts, twin.result = 2, None
    assert (entry.attempts, entry.result) == (1, payload)


def test_the_only_row_is_found_without_putting_any_in_order(cast):
    with CaptureQueriesContext(connection) as asked:
        assert only(User.objects.filter(pk=cast.riley.pk)) == cast.riley
        assert only(User.objects.filter(pk=uuid4())) is None
    assert len(asked) == 2 and not any("ORDER BY" in each["sql"] for each in asked)


@pytest.mark.django_db(transaction=True)
def test_on_the_way_of_an_action_no_row_that_is_there_once_is_looked_for_in_an_order(cast):
    sent.clear()
    with CaptureQueriesContext(connection) as asked:
        proposed = propose_mail(cast)
        decisions.decide(proposed.action, reviewer=person(cast.riley.pk), verdict="approved", digest=proposed.action.digest)
        assert proposed.walk() == "succeeded" and len(sent) == 1
    by_key = re.compile(r'ORDER BY ("\w+"\."id"|1) ASC LIMIT 1\b')  # which is what `first()` makes of a query without an order
    assert [each["sql"] for each in asked if by_key.search(each["sql"])] == []
