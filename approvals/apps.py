from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from access import append_only, break_glass, reach, roles
        from approvals import audit_names, gate, policy_changes, presenting, reveal_places, witness
        from approvals.models import ProposedAction
        from approvals.notifications import outbox
        from artifacts import revealing
        from runs import bar, log, verification

        append_only.connect()
        log.listeners[outbox.listen] = outbox.TOLD
        gate.register()
        break_glass.taken.connect(lambda sender, glass, **_: outbox.glass_broken(glass), weak=False, dispatch_uid="glass-told")
        audit_names.register()
        policy_changes.register()
        roles.asked.connect(lambda sender, change, **_: outbox.change_asked(change), weak=False, dispatch_uid="change-told")
        reach.register("actions", lambda at: ProposedAction.objects.filter(workspace_id=at).count(), "proposed action", "proposed actions")
        revealing.places |= {"action": reveal_places.of_attachment, "evidence": reveal_places.of_evidence}
        if reveal_places.judged not in revealing.judges:
            revealing.judges.append(reveal_places.judged)
        bar.register("approvals.view", presenting.count)
        bar.register("runs.view", presenting.frozen_now)
        if witness.claims not in verification.witnesses:
            verification.witnesses.append(witness.claims)

        from approvals import erasing

        erasing.register()
