from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.conf import settings

        from access import reach, rules, standing, teams
        from artifacts import revealing
        from runs import audit_names, bar, context, live, log, reveal_places, signals
        from runs.engine import outside, undoing, workflow  # noqa: F401  undoing is a workflow of Handrail's own
        from runs.models import Run

        if signals.refuse_unread not in log.ending_guards:
            log.ending_guards.append(signals.refuse_unread)
        audit_names.register()
        bar.register("runs.recover", context.drawn_count)
        revealing.places["event"] = reveal_places.of_event
        rules.register_runs(lambda teams: Run.objects.filter(team__in=teams).values("pk"))
        teams.runs_follow(log.give_to_team)
        reach.register("runs", lambda workspace: Run.objects.filter(workspace_id=workspace).count(), "run", "runs")
        standing.changed.connect(live.rights_changed, dispatch_uid="rights-changed")

        workflow.load(settings.HANDRAIL_WORKFLOWS)
        try:
            outside.load(settings.HANDRAIL_OUTSIDE_TOOLS)
        except outside.BadDeclaration as error:
            raise SystemExit(f"Handrail: HANDRAIL_OUTSIDE_TOOLS: {error}") from None
