"""The clock: `celery -A config.beat beat`. It says when; what there is to do only workers know, so nothing of the house is loaded for it.

The same settings as `config.celery`, without Django's apps and what Celery does for them: it starts in a fraction of the time.
"""

import os
import warnings
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from celery import Celery
from celery.exceptions import CPendingDeprecationWarning
from celery.signals import setup_logging
from django.conf import settings
from django.utils.log import configure_logging

from config import logs

warnings.simplefilter("ignore", CPendingDeprecationWarning)  # see config/celery.py

app = Celery("handrail", fixups=[])
app.config_from_object("django.conf:settings", namespace="CELERY")


@setup_logging.connect
def log_as_django_does(**_: Any) -> None:
    """Being connected is what counts: Celery then leaves logging alone."""
    configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
    logs.catch()
