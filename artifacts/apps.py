from django.apps import AppConfig


class ArtifactsConfig(AppConfig):
    name = "artifacts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from access import hiding, reach
        from artifacts import audit_names, keeping, redaction, redaction_changes, redaction_policies, revealing, ruling
        from artifacts.models import Artifact

        keeping.register()
        audit_names.register()
        redaction_changes.register()
        reach.register("artifacts", lambda workspace: Artifact.objects.filter(workspace_id=workspace).count(), "artifact", "artifacts")
        ruling.kept.append(redaction_policies.kept)
        hiding.detectors.hide, hiding.detectors.holds = redaction.hide, redaction.holds
        revealing.places["artifact"] = revealing.of_artifact
