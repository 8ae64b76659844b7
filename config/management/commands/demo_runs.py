"""`manage.py demo_runs`: the demo's example runs, one for each message of the examples. What has a run gets no other.

So that there is some of everything when the first person looks, a reviewer claims one thing of what these put to people, and a little
later some are decided and one is cancelled, as if people had: each says in its reason that the demo did.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from access import rules
from access.errors import BadInput, Refusal
from access.models import Agent, User
from access.rules import SYSTEM, Actor
from approvals import decisions
from approvals.models import ProposedAction
from artifacts import vault
from runs import live, signals, starting, webhooks
from runs.management.commands.triage import limits, member, start
from runs.models import Run, WebhookSource

EXAMPLES = settings.BASE_DIR / "examples"
MESSAGES = {"support-triage": EXAMPLES / "support_triage" / "tickets", "back-office": EXAMPLES / "back_office" / "requests"}
FIRST = "duplicate-charge.eml"  # so that it gets the number that the docs show
# whose runs these are: of who asked for it
OWNERS = {
    "access.eml": "rafael@fernhill.example",
    "change-of-address.eml": "sofia@fernhill.example",
    "note.eml": "sofia@fernhill.example",
    "prices.eml": "mei@fernhill.example",
    "report.eml": "mei@fernhill.example",
}
CLAIMED, BY = "refund.eml", "sam@fernhill.example"
MORE = EXAMPLES / "support_triage" / "tickets" / "more"
ANSWERED, NO_ANSWER = "nova-morada.eml", "thank-you.eml"
CONTRACTS = "contracts"  # the source of webhooks that says that one was signed
# customer, account and contact; of the first the offer goes out, and that of the last is called off
RENEWED, RENEWING, CALLED_OFF = (
    ("Kestrel Print", "01302", "noor.haddad@kestrelprint.example"),
    ("Halden Marine", "01371", "tomasz@haldenmarine.example"),
    ("Nordkontor", "01355", "anneli.sund@nordkontor.example"),
)
BY_ITSELF = "Decided by the demo’s script."
OPERATOR = "otto@fernhill.example"
LATER = 20.0  # seconds until the first is decided: people take a while
PATIENCE = 30.0  # seconds for the help desk to come up


class Command(BaseCommand):
    help = "Start a run for each of the examples' messages that has none yet."

    def handle(self, **_: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This is not the demo (HANDRAIL_DEMO=1), so nothing was started.")
        until = time.monotonic() + PATIENCE
        for workflow, messages in MESSAGES.items():
            agent = Agent.objects.select_related("owner").get(name=workflow)
            for message in sorted(messages.glob("*.eml"), key=lambda file: (file.name != FIRST, file.name)):
                run = self._start(agent, message, until)
                if run is not None and message.name == CLAIMED:
                    claim(run, by=BY, until=until)
        if MORE.parent in MESSAGES.values():
            self._further(until)

    def _further(self, until: float) -> None:
        """Runs of which something comes, that the reader sees more than what waits."""
        triage, renewals = (Agent.objects.select_related("owner").get(name=name) for name in ("support-triage", "renewals"))
        answered = self._start(triage, MORE / ANSWERED, until)
        self._start(triage, MORE / NO_ANSWER, until)
        source = WebhookSource.objects.filter(workspace_id=renewals.workspace_id, name=CONTRACTS, closed_at=None).first()
        tell_of_signatures(source or webhooks.make_source(renewals, CONTRACTS, by=SYSTEM)[0])
        renewed, _, called_off = (self._renew(renewals, *customer) for customer in (RENEWED, RENEWING, CALLED_OFF))
        time.sleep(LATER if answered or renewed or called_off else 0)
        if renewed:
            approve(renewed, by=BY)
            customer, account, _ = RENEWED
            where = f"{settings.HANDRAIL_DESK_URL}/crm/accounts/{account}"
            self.stdout.write(f"{renewed.ref} waits until the contract of {customer} is signed: on its account's page, {where}")
        if called_off:
            cancel(called_off, by=OPERATOR)
        time.sleep(LATER if answered else 0)
        if answered:
            approve(answered, by=BY)

    def _renew(self, agent: Agent, customer: str, account: str, email: str) -> Run | None:
        """The run that was started; None if there was one."""
        before = Run.objects.filter(agent=agent).count()
        by = Actor("human", str(agent.owner_id), agent.owner.name)
        asked = {"arguments": {"email": email}, "scope": {"email": [email], "account": [account]}, "key": f"demo:{account}"}
        run = starting.start(
            agent=agent,
            owner=agent.owner,
            by=by,
            title=f"Renewal for 2027, {customer}",
            workflow=agent.name,
            budgets=limits(agent.name),
            **asked,
        )
        if Run.objects.filter(agent=agent).count() == before:
            return None
        self.stdout.write(f"started {run.ref} for {customer}")
        return run

    def _start(self, agent: Agent, message: Path, until: float) -> Run | None:
        """The run that was started; None if there was one."""
        before = Run.objects.filter(agent=agent).count()
        owner = member(agent, OWNERS[message.name]) if message.name in OWNERS else None
        while True:
            try:
                run = start(agent, agent.name, message.read_bytes(), again=False, owner=owner)
            except Refusal as refusal:
                if isinstance(refusal, BadInput) or time.monotonic() > until:  # waiting mends no message
                    raise CommandError(f"{message.name}: {refusal.detail} {refusal.what_next}") from refusal
                time.sleep(0.2)  # the help desk starts beside us
                continue
            if Run.objects.filter(agent=agent).count() > before:
                self.stdout.write(f"started {run.ref} for {message.name}")
                return run
            return None


def tell_of_signatures(source: WebhookSource) -> None:
    """Have the desk tell this source of each contract that is signed there, by a signed webhook."""
    secret = vault.open_bytes(source.secret).decode()
    asked = {"url": webhooks.address(source), "ticket": CONTRACTS, "secret": secret}
    try:
        httpx.post(f"{settings.HANDRAIL_DESK_URL}/hooks", json=asked, timeout=PATIENCE, trust_env=False).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CommandError(f"The example's help desk can't be told who waits for signed contracts: {error}.") from error


def claim(run: Run, *, by: str, until: float) -> bool:
    """Have a person claim what a run puts to people, once it has; False if it does not in time, or they may not."""
    return _as(run, by, until, lambda action, person: decisions.claim(action, by=person))


def approve(run: Run, *, by: str) -> bool:
    """Have a person approve what a run puts to people; False if there is nothing, or they may not."""
    return _as(run, by, time.monotonic() + PATIENCE, _approve)


def _approve(action: ProposedAction, person: Actor) -> None:
    decisions.decide(action, reviewer=person, verdict="approved", digest=action.digest, reason=BY_ITSELF)


def _as(run: Run, email: str, until: float, does: Callable[[ProposedAction, Actor], Any]) -> bool:
    person = User.objects.filter(email=email).first()
    while person is not None and time.monotonic() < until:
        action = ProposedAction.objects.select_related("policy", "run__agent").filter(run=run, state="waiting").first()
        if action is not None:
            try:
                does(action, rules.person(person.pk))
            except Refusal:
                return False
            live.wake(run.pk, run.workspace_id, run.seq)
            return True
        time.sleep(0.2)  # a worker works on it
    return False


def cancel(run: Run, *, by: str) -> None:
    """Have a person call a run off: what it did is undone."""
    person = User.objects.filter(email=by).first()
    if person is not None:
        note = f"They stay with the plan that they have. {BY_ITSELF}"
        signals.send(run, kind="cancel", key="demo", by=rules.person(person.pk), note=note)
