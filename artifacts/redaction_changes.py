"""Changing what is hidden where a second admin confirms it: a new redaction policy, and withdrawing one."""

from uuid import UUID

from django.urls import reverse

from access import rules, second_admin
from access.change_models import AskedChange
from access.rules import Actor
from access.second_admin import Kind, Part
from artifacts import redaction_policies
from artifacts.models import RedactionPolicy
from artifacts.redaction_policies import RedactionChanged
from artifacts.rendition import WORDS

MADE = "hidden"  # and withdrawn, by the same kind: of all of them one waits, for each makes a version of the whole


def register() -> None:
    second_admin.register(MADE, Kind("redaction.manage", "what is hidden", _parts, _done, lambda change: reverse("artifacts:redaction")))


def make(
    workspace_id: UUID, *, by: Actor, event: str, tool: str, path: str, kind: str, why: str, base: int
) -> RedactionPolicy | AskedChange:
    """Put a policy in force; or ask for it, where a second admin is needed."""
    fields = redaction_policies.checked(event, tool, path, kind)
    if not second_admin.is_needed(workspace_id, MADE):
        return redaction_policies.make(workspace_id, by=by, why=why, base=base, **fields)
    redaction_policies.check_base(workspace_id, base)
    return second_admin.ask(workspace_id, MADE, wanted=fields, by=by, why=why, base=base)


def withdraw(row: RedactionPolicy, *, by: Actor, why: str, base: int) -> AskedChange | None:
    """Withdraw a policy, or ask for that."""
    if not second_admin.is_needed(row.workspace_id, MADE):
        return redaction_policies.withdraw(row, by=by, why=why, base=base)
    redaction_policies.check_base(row.workspace_id, base)
    if row.withdrawn_in is not None:
        raise RedactionChanged("It was withdrawn already.")
    return second_admin.ask(row.workspace_id, MADE, wanted={"withdraw": str(row.pk)}, by=by, why=why, base=base)


def _done(change: AskedChange, by: Actor) -> str:
    given = {"by": rules.person(change.asked_by_id), "why": change.why, "base": change.base}
    if "withdraw" not in change.wanted:
        made = redaction_policies.make(change.workspace_id, **change.wanted, **given)
        return f"In force as number {made.number}. What was kept before is rendered anew."
    redaction_policies.withdraw(RedactionPolicy.objects.get(pk=change.wanted["withdraw"], workspace=change.workspace_id), **given)
    return "Withdrawn. What it hid so far stays hidden."


def _parts(change: AskedChange) -> list[Part]:
    if "withdraw" in change.wanted:
        row = RedactionPolicy.objects.filter(pk=change.wanted["withdraw"]).first()
        return [Part(row.path, _said(row.kind, row.event, row.tool), "")] if row else []
    fields = change.wanted
    return [Part(fields["path"], "", _said(fields["kind"], fields["event"], fields["tool"]))]


def _said(kind: str, event: str, tool: str) -> str:
    what = f"Hidden as {WORDS[kind]}" if kind else "Shown, though an earlier policy hides it"
    where = f"in {'all events' if event == '*' else f'events {event}'}, of {'all tools' if tool == '*' else f'tools {tool}'}"
    return f"{what}, {where}."
