"""Fills an inbox, and counts what reading it takes of the database.

`python -m bench.waiting ACTION N EMAIL HOST` lets N more actions wait that are like the action with this id, but less urgent than it, and
prints as JSON how many queries the queue alone and the whole page take, as this person reads them.
"""

import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from itertools import islice

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django
import orjson

BATCH = 500
QUEUE = {"HX-Request": "true", "HX-Target": "queue"}  # the queue without an open action


def main(action_id: str, count: int, email: str, host: str) -> None:
    django.setup()
    from approvals.models import ProposedAction

    fill(ProposedAction.objects.select_related("run__title", "subject").get(pk=action_id), count)
    print(orjson.dumps({"queue": queries(email, host, QUEUE), "page": queries(email, host, {})}).decode())


def fill(first, count: int) -> None:
    """Rows as proposing would leave them, without their logs: each with a run, a title and a subject of its own."""
    from django.db import connection, transaction

    from approvals.models import ProposedAction
    from artifacts.models import Payload
    from runs.models import Run

    numbers = iter(range(ProposedAction.objects.count(), ProposedAction.objects.count() + count))
    while batch := [like(first, number) for number in islice(numbers, BATCH)]:
        with transaction.atomic():
            Payload.objects.bulk_create([payload for run, action in batch for payload in (run.title, action.subject)])
            Run.objects.bulk_create([run for run, _ in batch])
            ProposedAction.objects.bulk_create([action for _, action in batch])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")  # a database that runs for a while does so by itself


def like(first, number: int):
    """A run and its action, as the first one's."""
    run = copied(first.run, title=copied(first.run.title), ref=f"RN-{number:08X}", start_key=None)
    digest = sha256(f"{first.digest}{number}".encode()).hexdigest()
    risk, until = 1 + number % first.risk, first.expires_at + timedelta(seconds=number)
    return run, copied(first, run=run, subject=copied(first.subject), digest=digest, risk=risk, expires_at=until)


def copied(row, **changes: object):
    from access.ids import uuid7

    fields = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    given = {(name if name in fields else f"{name}_id"): (value if name in fields else value.pk) for name, value in changes.items()}
    made = type(row)(**fields | {"id": uuid7()} | given)
    for name, value in changes.items():
        if name not in fields:
            setattr(made, name, value)
    return made


def queries(email: str, host: str, headers: dict[str, str]) -> int:
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from access.models import User

    client = Client(HTTP_HOST=host)
    client.force_login(User.objects.get(email=email))
    client.get("/inbox", headers=headers)  # what is only read once
    with CaptureQueriesContext(connection) as taken:
        assert client.get("/inbox", headers=headers).status_code == 200
    return len(list(said(taken)))


def said(taken) -> Iterator[str]:
    """The statements that read, without the marks of a transaction."""
    return (each["sql"] for each in taken.captured_queries if not each["sql"].startswith(("SAVEPOINT", "RELEASE", "BEGIN", "COMMIT")))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
