from importlib import import_module

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    """`config` is an app so that its management commands are found and Celery is set up wherever Django is."""

    name = "config"

    def ready(self) -> None:
        import_module("config.logs").catch()
        import_module("config.celery")  # makes it the current app, which `shared_task` binds to
