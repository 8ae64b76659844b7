"""Celery carries wake-ups: "run R can go on". What is true is in the database; a lost message costs a second, until the next sweep."""

import importlib
import os
import warnings
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from billiard import current_process
from celery import Celery
from celery.exceptions import CPendingDeprecationWarning
from celery.platforms import SecurityWarning
from celery.signals import setup_logging, worker_init, worker_process_init

from config import env, lifeline

# it advises to cancel tasks when the broker goes away; ours are held by a lease in the database and go on
warnings.simplefilter("ignore", CPendingDeprecationWarning)
if env.flag("HANDRAIL_DEMO"):
    warnings.simplefilter("ignore", SecurityWarning)  # a newcomer in a container is root; everybody else is told

app = Celery("handrail")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.autodiscover_tasks(["approvals.notifications"])


@setup_logging.connect
def log_as_django_does(**_: Any) -> None:
    """Being connected is what counts: Celery then leaves logging alone, and Django's LOGGING holds for workers too."""


@worker_init.connect
def learn_the_characters(**_: Any) -> None:
    """Asking Unicode about every code point takes a second: once here, and not in a transaction of each process of the pool."""
    from access import characters

    characters.parts("é")


@worker_init.connect
def learn_to_ask_models(**_: Any) -> None:
    """Importing what speaks to models takes seconds: once here, if any is configured, and not in the first step of each process."""
    from django.conf import settings

    if settings.HANDRAIL_MODEL_URL:
        importlib.import_module("runs.engine.wire")


@worker_process_init.connect
def end_with_the_worker(**_: Any) -> None:
    """A worker killed with -9 takes its processes along, at once and in the middle of a step: none goes on unseen."""
    lifeline.tie(current_process()._parent_pid)
