from django.apps import AppConfig


class AccessConfig(AppConfig):
    name = "access"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from access import invitations, people, standing  # noqa: F401  the first two say what of theirs takes a second admin

        standing.connect()
