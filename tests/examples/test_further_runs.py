"""What `manage.py demo_runs` starts beside the messages: renewals, and two letters of which one is answered. Each once."""

import time
from types import SimpleNamespace

import pytest
from django.core.management import call_command

from access.models import Agent
from approvals.models import Decision, ProposedAction
from artifacts import vault
from config.management.commands import demo_runs
from config.management.commands.demo_runs import BY, BY_ITSELF, CALLED_OFF, CONTRACTS, RENEWED, RENEWING
from examples.support_triage import renewals, workflow  # noqa: F401  they are registered by being loaded
from runs.engine import executor
from runs.models import Run, WebhookSource
from tests.examples.outside import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture
def agent(settings: SimpleNamespace) -> Agent:
    settings.DEMO = True
    call_command("demo_seed")
    return Agent.objects.select_related("owner").get(name="renewals")


def worked(_seconds: float) -> None:
    """In the place of waiting: what a worker does meanwhile."""
    for run in Run.objects.filter(state__in=["queued", "cancelling", "compensating"]):
        executor.execute(run.pk)


def test_a_renewal_is_started_once_within_its_account_and_its_few_steps(agent: Agent) -> None:
    customer, account, email = RENEWED
    run = demo_runs.Command()._renew(agent, *RENEWED)
    assert run is not None and run.owner == agent.owner and run.budgets["steps"] == 16
    assert (vault.open_bytes(run.title).decode(), run.scope) == (f"Renewal for 2027, {customer}", {"email": [email], "account": [account]})
    assert demo_runs.Command()._renew(agent, *RENEWED) is None and Run.objects.count() == 1


def test_of_the_further_runs_one_offer_goes_out_one_waits_one_is_called_off_and_a_letter_is_answered(
    agent: Agent, world: World, settings: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HANDRAIL_DESK_URL = world.url.rstrip("/")
    monkeypatch.setenv("HANDRAIL_DESK_URL", settings.HANDRAIL_DESK_URL)
    monkeypatch.setenv("HANDRAIL_DESK_SMTP", "{}:{}".format(*world.smtp))
    monkeypatch.setattr(demo_runs, "time", SimpleNamespace(monotonic=time.monotonic, sleep=worked))
    for _ in range(2):  # the second time there is nothing to do
        demo_runs.Command()._further(time.monotonic() + 20)
        worked(0)
        found = {vault.open_bytes(run.title).decode().rpartition(", ")[2]: run for run in Run.objects.filter(agent=agent)}
        assert {name: run.state for name, run in found.items()} == {
            RENEWED[0]: "waiting",
            RENEWING[0]: "waiting",
            CALLED_OFF[0]: "cancelled",
        }
        assert Run.objects.exclude(agent=agent).count() == 2
        assert [run.waiting["on"] for run in (found[RENEWED[0]], found[RENEWING[0]])] == ["webhook", "decision"]
        decided = Decision.objects.select_related("reviewer", "reason__key", "action__run__agent")
        assert sorted(each.action.run.agent.name for each in decided) == ["renewals", "support-triage"]
        assert {(each.reviewer.email, vault.open_bytes(each.reason).decode()) for each in decided} == {(BY, BY_ITSELF)}
        assert ProposedAction.objects.filter(state="waiting").count() == 1 and len(world.http.get("/mail").json()["mail"]) == 2
    assert WebhookSource.objects.get(name=CONTRACTS).workspace_id == agent.workspace_id
