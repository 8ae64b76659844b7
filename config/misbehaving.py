"""What can be made to go wrong in the demo, to watch it recover: for `manage.py misbehave` and the page of the same name."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, TypeVar
from uuid import uuid4

import httpx
from django.conf import settings

from access.errors import Refusal
from access.models import Agent
from access.rules import SYSTEM, Actor
from approvals import policy
from artifacts import vault
from config import clock
from runs import starting, webhooks
from runs.engine.providers import PLAYED_KEYS
from runs.management.commands.triage import start
from runs.models import JournalEntry, Lease, Run, WebhookSource

T = TypeVar("T")
PATIENCE = 60.0  # seconds for a run to come so far; its worker may still be starting, and have to import what speaks to models first
TERMS_OF = ("00932", "01184", "01302", "00417", "01355", "01371")  # customers that get other terms of payment
USUAL_DAYS, NEW_DAYS = 30, 14
BEATS = 30  # seconds of a second clock
MARTA, ACCOUNTS = "marta.oyelaran@brightwater.example", "accounts@brightwater.example"
PATIENT_RULE = "E-mail to Brightwater’s accounts payable"
Fault = tuple[str, str, int, dict[str, Any]]  # where, fault, times, options: what the desk is told to do
LOCKED: Fault = ("crm.terms", "lock", 1, {"to": TERMS_OF[-1]})


class NothingWrong(Refusal):
    """It could not be made to go wrong."""

    status = 409
    what_next = "Is the demo running? `make demo` starts it."


@dataclass(frozen=True)
class Letter:
    """A customer's message."""

    sender: str = f"Marta Oyelaran <{MARTA}>"
    subject: str = "Charged twice for INV-20931"
    text: str = "Hello,\n\nwe have been charged twice for INV-20931. Please have a look.\n\nMarta\n"


VAT = Letter(
    "Ines Carvalho <ines@alderpress.example>",
    "Wrong VAT number on INV-21077",
    "Hello,\n\nINV-21077 still carries our old VAT number. Please send it again with PT 509 442 013.\n\nInes Carvalho\n",
)
COPY = Letter(
    f"Brightwater accounts payable <{ACCOUNTS}>",
    "A copy of INV-19804, please",
    "Hello,\n\ncould you send us INV-19804 again? We can’t find it in our books.\n\nAccounts payable\n",
)


@dataclass(frozen=True)
class Misbehaviour:
    """What goes wrong, and what to look for on the run's page. `first` comes before the faults, `then` while the run works."""

    what: str
    watch: str
    faults: tuple[Fault, ...] = ()
    first: Callable[[Agent], None] | None = None
    begin: Callable[[Agent, Actor | None], Run] | None = None  # another run than a triage
    then: Callable[[Run], None] | None = None
    letter: Letter | None = None  # what a customer writes; else Marta does, of a charge that came twice
    agent: str = "support-triage"  # and the workflow that is called as it is
    played: tuple[dict[str, Any], ...] = ()  # faults of the provider that the demo plays


def kill_worker(run: Run) -> None:
    """Kill whoever works on the run, once it has completed a step."""
    _in_time(lambda: JournalEntry.objects.filter(run=run, kind="step", state="done").exists(), PATIENCE, "It completed no step in time.")
    held = Lease.objects.filter(run=run, until__isnull=False).exclude(pid=os.getpid()).values_list("pid", flat=True)
    os.kill(_in_time(held.first, PATIENCE, "No worker took the run up in time, so none was killed."), signal.SIGKILL)


def rotate_key(run: Run) -> None:
    """Once the run waits for people, its provider takes its first key no longer."""
    _wait_for_people(run, "so no key was rotated")
    _provider("POST", json={"fault": "refuse_key", "key": PLAYED_KEYS[0], "times": 1_000_000})


def be_patient(agent: Agent) -> None:
    """A rule that gives people a week for letters to one address, if there is none of that name."""
    if any(rule.name == PATIENT_RULE for rule in policy.rules(agent.workspace_id)):
        return
    to = {"what": "argument", "path": "$.to[*]", "test": "contains", "value": ACCOUNTS}
    asks = {"tool": "send_email", "conditions": [to], "outcome": "reviewers", "quorum": 1}
    times = {"expires_after": timedelta(days=7), "grant_lasts": timedelta(hours=1), "recall_delay": timedelta()}
    policy.put_first(agent.workspace_id, policy.rule(agent.workspace_id, name=PATIENT_RULE, **asks, **times), by=None)


def let_a_day_pass(run: Run) -> None:
    """Once the run waits for people, it is tomorrow."""
    _wait_for_people(run, "so no day was let pass")
    if not clock.forward(timedelta(days=1)):
        raise NothingWrong("Its processes share no clock that could be moved (HANDRAIL_CLOCK_FILE), so no day was let pass.")


def _wait_for_people(run: Run, else_: str) -> None:
    waits = Run.objects.filter(pk=run.pk, state="waiting", waiting__on="decision")
    _in_time(waits.exists, PATIENCE, f"The run did not come to its approval in time, {else_}.")


def _in_time(found: Callable[[], T], seconds: float, else_: str) -> T:
    """What is found at last; NothingWrong with these words if nothing is by then."""
    until = time.monotonic() + seconds
    while not (came := found()):
        if time.monotonic() > until:
            raise NothingWrong(else_)
        time.sleep(0.01)
    return came


def follow_up(agent: Agent, by: Actor | None) -> Run:
    """A run that waits until the help desk says by a webhook that its ticket is closed."""
    key = f"misbehave:{uuid4()}"
    taken = starting.intake(agent.name, _message(None), key)
    ticket = taken.scope["ticket"][0]
    source = WebhookSource.objects.filter(workspace_id=agent.workspace_id, name="desk", closed_at=None).first()
    source = source or webhooks.make_source(agent, "desk", by=SYSTEM)[0]
    secret = vault.open_bytes(source.secret).decode()
    _ask_desk("POST", "/hooks", json={"url": webhooks.address(source), "ticket": ticket, "secret": secret})
    by = by or Actor("human", str(agent.owner_id), agent.owner.name)
    more = {"arguments": taken.arguments, "scope": taken.scope, "key": key, "workflow": "ticket-follow-up"}
    return starting.start(agent=agent, owner=agent.owner, by=by, title=f"Follow up ticket {ticket}", **more)


def usual_terms(agent: Agent) -> None:
    """The six customers have the terms of payment that customers usually have."""
    for account in TERMS_OF:
        _ask_desk("PUT", f"/accounts/{account}/terms", json={"days": USUAL_DAYS})


def new_terms(agent: Agent, by: Actor | None) -> Run:
    """A run that gives six customers other terms of payment, two at a time."""
    by = by or Actor("human", str(agent.owner_id), agent.owner.name)
    arguments = {"accounts": list(TERMS_OF), "days": NEW_DAYS}
    more = {"arguments": arguments, "scope": {"account": list(TERMS_OF)}, "key": f"misbehave:{uuid4()}", "workflow": "payment-terms"}
    return starting.start(agent=agent, owner=agent.owner, by=by, title=f"Terms of payment, {NEW_DAYS} days for six customers", **more)


def close_ticket(run: Run) -> None:
    """Close the ticket, once the run waits for that."""
    waits = Run.objects.filter(pk=run.pk, state="waiting")
    _in_time(waits.exists, PATIENCE, "The run did not come to wait in time, so its ticket was not closed.")
    _ask_desk("POST", f"/tickets/{run.scope['ticket'][0]}/status", json={"status": "closed"})


def second_beat(run: Run) -> None:
    """Run another clock beside the demo's own for a while."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen([sys.executable, "-m", "config.second_beat", str(BEATS)], start_new_session=True, **quiet)  # noqa: S603  ours


NAMES = {
    "killed-worker": Misbehaviour(
        "its worker is killed",
        "It has read the ticket and asks about the account. Another goes on from there within seconds, and does not read it again.",
        (("account.read", "delay", 1, {"seconds": 8}),),  # so that it is at work until it is killed, and nobody waits for that
        then=kill_worker,
    ),
    "a-day-late": Misbehaviour(
        "nobody decides until tomorrow: it is a day later for all of Handrail, and stays so until make reset",
        "Approve the reply, also after you have restarted everything: it goes on where it was. What else waited has expired, as its"
        " rules say, and tells so.",
        first=be_patient,
        then=let_a_day_pass,
        letter=Letter(f"Marta Oyelaran <{ACCOUNTS}>"),
    ),
    "crm-answer-lost": Misbehaviour(
        "the CRM writes the note and drops the answer",
        "Approve the reply: the note is looked up by its key, found, and not written again.",
        (("crm.note", "drop_answer", 1, {}),),
    ),
    "crm-times-out": Misbehaviour(
        "the CRM writes the note, and its answer comes too late",
        "Approve the reply: after ten seconds nobody waits any longer. The note is looked up by its key, found, and not written again.",
        (("crm.note", "delay", 1, {"seconds": 14}),),
    ),
    "crm-half-answer": Misbehaviour(
        "the CRM’s answers about the account break off in the middle, twice",
        "It is asked again, and the run goes on.",
        (("account.read", "half_answer", 2, {}),),
    ),
    "crm-fails-after": Misbehaviour(
        "the CRM writes the note and answers 500",
        "Approve the reply: whether the note is there is looked up.",
        (("crm.note", "fail_after", 1, {}),),
    ),
    "desk-down": Misbehaviour(
        "the help desk answers 500 for a while",
        "The run is tried four times and is then stuck. Clear the fault, and as Otto try it again on the page Recovery.",
        (("ticket.read", "fail_before", 1000, {}),),
    ),
    "changed-schema": Misbehaviour(
        "the help desk calls a field of its answer by another name",
        "The answer does not fit, so it is not tried again: the run is stuck, with the field named.",
        (("ticket.read", "change_schema", 1, {"rename": {"customer": "client"}}),),
        letter=COPY,
    ),
    "resume-from-the-middle": Misbehaviour(
        "the CRM answers nonsense about the account, once, and drafting the reply fails on it",
        "The run is stuck, and trying again is no use: what the CRM said is recorded. As Otto, on Recovery, begin at “Check the account”:"
        " it is asked again, what was read before is kept, and the run goes on.",
        (("account.read", "change_schema", 1, {"rename": {"invoices": "bills", "id": "invoices"}}),),
        letter=VAT,
    ),
    "key-refused": Misbehaviour(
        "the CRM no longer takes our key",
        "Approve the reply: nothing was written, and the run is stuck. Clear the fault, and as Otto try it again on Recovery: the note is"
        " written, and the reply goes out under the approval that it has, while that is still good.",
        (("crm.note", "refuse_key", 1, {}),),
    ),
    "key-rotated": Misbehaviour(
        "the provider of its model takes the first key no longer",
        "Approve the reply: the model’s next turn is asked for with the first key, which is refused, and then with the second. Nothing is"
        " lost, and the page says so.",
        agent="triage-played",
        then=rotate_key,
    ),
    "model-limited": Misbehaviour(
        "the model that it asks first is at its rate limit",
        "The run falls back to the smaller model, says so, and goes on. For twenty seconds, as it was asked, the first is left alone.",
        agent="triage-played",
        played=({"fault": "limit", "model": "played-large", "seconds": 20},),
    ),
    "sent-answer-lost": Misbehaviour(
        "the mail server takes the message and drops the connection",
        "Approve the reply: the message is looked up by its Message-ID, and is in the mailbox once.",
        (("smtp", "drop_answer", 1, {"to": MARTA}),),
    ),
    "nobody-knows": Misbehaviour(
        "the mail server takes the message and drops the connection, and nobody can say whether it went out",
        "Approve the reply: it is looked up, in vain, and nothing is repeated. As Otto, look into the mailbox and say what happened.",
        (("smtp", "drop_answer", 1, {"to": MARTA}), ("effect.read", "fail_before", 1000, {})),
    ),
    "terms-half-done": Misbehaviour(
        "six customers get new terms of payment, two at a time, and one of the last two is locked",
        "The run is stuck with five changes done. As Otto, on Recovery: try it again, and the last is changed too; or undo everything,"
        " and all have the terms they had.",
        (LOCKED,),
        first=usual_terms,
        begin=new_terms,
        agent="back-office",
    ),
    "terms-not-known": Misbehaviour(
        "of the last two customers that get new terms one is locked, and the CRM changes the other and drops the answer",
        "The run is stuck with four changes done and one that nobody knows of. As Otto, on Recovery: it can’t be undone or given up before"
        " that is known. Try it again: it is looked up, found, and not changed twice.",
        (LOCKED, ("crm.terms", "drop_answer", 1, {"to": TERMS_OF[-2]}), ("effect.read", "fail_before", 1, {})),
        first=usual_terms,
        begin=new_terms,
        agent="back-office",
    ),
    "mailbox-full": Misbehaviour(
        "the mailboxes of Riley and Sam are full, so that neither is told of what waits for them",
        "Within a minute both e-mails are on Recovery, as Otto sees it: each was refused, and is not tried again by itself. What they"
        " told of stands in the inbox all the same. Send them again: the mailboxes have room by then.",
        tuple(("smtp", "mailbox_full", 1, {"to": address}) for address in ("riley@fernhill.example", "sam@fernhill.example")),
        letter=COPY,
    ),
    "webhook-twice": Misbehaviour(
        "the help desk tells twice, at once, that the ticket is closed",
        "The run takes one of them, once, and ends. Its log tells of one; that it came twice stands on Webhooks, for Ada.",
        (("webhook", "webhook_twice", 1, {}),),
        begin=follow_up,
        then=close_ticket,
    ),
    "two-beats": Misbehaviour(
        f"a second clock runs beside the first for {BEATS} seconds",
        "Each thing is done once all the same: approve the reply, and it is in the mailbox once.",
        (("account.read", "half_answer", 2, {}),),  # so that timers go off
        then=second_beat,
    ),
}


def misbehave(chosen: Misbehaviour, by: Actor | None = None) -> Run:
    """Start a run in which it goes wrong; the agent's owner did if nobody is named. NothingWrong, or what starting a run raises."""
    behave()  # what an earlier one left
    agent = Agent.objects.select_related("owner").get(name=chosen.agent)
    if chosen.first:
        chosen.first(agent)
    for where, what, times, options in chosen.faults:
        _desk("POST", json={"where": where, "fault": what, "times": times, "options": options})
    for fault in chosen.played:
        _provider("POST", json=fault)
    run = chosen.begin(agent, by) if chosen.begin else start(agent, agent.name, _message(chosen.letter), again=False, by=by)
    if chosen.then:
        chosen.then(run)
    return run


def behave() -> None:
    """The desk does as it is asked again, and the provider too."""
    _desk("DELETE")
    if settings.HANDRAIL_PLAYED_URL:
        _provider("DELETE")


def _message(letter: Letter | None) -> bytes:
    """A customer's message that is like no other, so that it starts a run of its own."""
    letter = letter or Letter()
    mail = EmailMessage(policy=SMTP)
    mail["From"] = letter.sender
    mail["To"] = "support@fernhill.example"
    mail["Subject"] = letter.subject
    mail["Message-ID"] = f"<{uuid4()}@brightwater.example>"
    mail.set_content(letter.text)
    return mail.as_bytes()


def _desk(method: str, **more: Any) -> None:
    _ask_desk(method, "/faults", **more)


def _ask_desk(method: str, path: str, **more: Any) -> None:
    _ask("help desk", f"{settings.HANDRAIL_DESK_URL}{path}", method, **more)


def _provider(method: str, **more: Any) -> None:
    _ask("provider of models", settings.HANDRAIL_PLAYED_URL.removesuffix("v1") + "faults", method, **more)


def _ask(whom: str, url: str, method: str, **more: Any) -> None:
    try:
        httpx.request(method, url, timeout=5, trust_env=False, **more).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NothingWrong(f"The example's {whom} can't be told to misbehave: {error}.") from error
