from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from access import append_only
        from approvals import gate, presenting, witness
        from runs import bar, verification

        append_only.connect()
        gate.register()
        bar.register("approvals.view", presenting.count)
        bar.register("runs.view", presenting.frozen_now)
        if witness.claims not in verification.witnesses:
            verification.witnesses.append(witness.claims)
