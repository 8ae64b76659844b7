from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import pre_migrate


class ConfigConfig(AppConfig):
    """`config` is an app so that its management commands are found and Celery is set up wherever Django is."""

    name = "config"

    def ready(self) -> None:
        import_module("config.logs").catch()
        import_module("config.celery")  # makes it the current app, which `shared_task` binds to
        pre_migrate.connect(_take_its_time, dispatch_uid="migrating-takes-its-time")


def _take_its_time(using: str, **_: Any) -> None:
    """Between two statements of a migration Django may think for longer than a transaction may stand still, on a slow machine."""
    if connections[using].vendor == "postgresql":
        with connections[using].cursor() as cursor:
            cursor.execute("SET idle_in_transaction_session_timeout = 0")
