from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.conf import settings

        from runs.engine import workflow

        workflow.load(settings.HANDRAIL_WORKFLOWS)
