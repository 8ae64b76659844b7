from django.apps import AppConfig


class ArtifactsConfig(AppConfig):
    name = "artifacts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from access import reach
        from artifacts import audit_names, keeping, revealing
        from artifacts.models import Artifact

        keeping.register()
        audit_names.register()
        reach.register("artifacts", lambda workspace: Artifact.objects.filter(workspace_id=workspace).count(), "artifact", "artifacts")

        revealing.places["artifact"] = revealing.of_artifact
