"""What Celery does for the vault, a while at a time. Each goes on where the last ended, and two at once do no harm."""

import time
from contextlib import closing

from celery import shared_task

from access.models import Workspace
from artifacts import rerendering, rotation, tidying

AT_A_TIME = 20.0  # seconds


@shared_task(name="artifacts.rewrap", ignore_result=True, expires=30)
def rewrap() -> None:
    until = time.monotonic() + AT_A_TIME
    for _ in rotation.rewrap():
        if time.monotonic() > until:
            return


@shared_task(name="artifacts.tidy", ignore_result=True, expires=600)
def tidy() -> None:
    tidying.tidy()


@shared_task(name="artifacts.rerender", ignore_result=True, expires=60)
def rerender() -> None:
    until = time.monotonic() + AT_A_TIME
    for workspace in Workspace.objects.order_by("pk"):
        with closing(rerendering.rerender(workspace)) as batches:
            for _ in batches:
                if time.monotonic() > until:
                    return
