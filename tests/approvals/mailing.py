"""A small workflow that reads outside text and private data and then proposes an e-mail; and one that proposes anything else.

Their outside world is a list. Used by the tests of what reviewers see and decide.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpResponse

from access.models import User
from access.rules import Actor
from approvals import policy
from approvals.models import ProposedAction
from runs import starting
from runs.engine import executor
from runs.engine.tools import Call, tool
from runs.engine.workflow import Channel, workflow
from runs.models import Run

sent: list[Mapping[str, Any]] = []
TICKET = b"From: Marta <marta@brightwater.example>\nSubject: Charged twice\n\nWe were charged twice. Copy in accounts@brightwater.example."
CSV = "date,reference,amount\n2026-11-24,PAY-88120,1284.00\n2026-11-24,PAY-88121,1284.00\n"


@tool(effect="read", title="Read the ticket", reads_untrusted=True)
def read_mail(call: Call, ticket: str) -> dict[str, Any]:
    return {"ticket": ticket}


@tool(effect="read", title="Check the account", reads_private=True)
def read_account(call: Call, account: str) -> dict[str, Any]:
    return {"account": account}


@tool(
    effect="send",
    title="Send the reply",
    card="email",
    fixed=("sender", "message_id"),
    sends_out=True,
    target="mail server",
    credential="smtp",
    recipients=lambda a: [*a["to"], *a["cc"], *a["bcc"]],
    subject=lambda a: f"E-mail a reply to {a['name']}",
    prepare=lambda a, nonce: a | {"message_id": f"<{nonce}@fernhill.example>"},
)
def send_mail(
    call: Call,
    to: list[str],
    subject: str,
    body: str,
    cc: list[str] = [],  # noqa: B006  pydantic copies it
    bcc: list[str] = [],  # noqa: B006
    name: str = "Marta Oyelaran",
    sender: str = "Fernhill Support <support@fernhill.example>",
    message_id: str = "",
) -> dict[str, Any]:
    call.last_check()
    sent.append({"key": call.key, "to": to, "body": body, "files": [(f.name, f.content) for f in call.attachments]})
    return {"message_id": message_id}


@tool(effect="write", title="Take the note back")
def remove_record(call: Call, record: str) -> None:
    sent.append({"removed": record})


@tool(effect="write", title="Change the record", compensate="remove_record", target="CRM", credential="desk")
def change_record(call: Call, record: str, fields: dict[str, Any], force: bool = False, note: str = "", tags: list[str] = []) -> None:  # noqa: B006
    sent.append({"key": call.key, "record": record, "fields": fields})


@workflow("test-mailing", version=1, title="Answer a ticket")
def mailing(run: Channel, mail: dict[str, Any], file: str) -> None:
    run.plan("Read the ticket", "Check the account", "Get approval", "Send the reply")
    run.step(read_mail, "ZN-1")
    run.artifact("ticket.eml", TICKET, label="internal", media_type="message/rfc822", outside=True)
    run.step(read_account, "A-1")
    files = [run.artifact("payments.csv", file, label="personal", media_type="text/csv")] if file else []
    answer = run.propose(send_mail, attachments=files, reason="She asked why she was charged twice, #7.", **mail)
    if answer.approved:
        run.perform(answer)
    run.report("Answered" if answer.approved else "Not sent", cites=[answer])


@workflow("test-changing", version=1, title="Change a record")
def changing(run: Channel, change: dict[str, Any]) -> None:
    run.plan("Get approval", "Change the record")
    answer = run.propose(change_record, **change)
    if answer.approved:
        run.perform(answer)


@dataclass
class Proposed:
    """An action that waits, and the run it belongs to."""

    run: Run
    action: ProposedAction

    def again(self) -> ProposedAction:
        """The action as it is now."""
        return ProposedAction.objects.get(pk=self.action.pk)

    def walk(self) -> str:
        return executor.execute(self.run.pk)

    def url(self, *more: str) -> str:
        return "/".join(["/actions", str(self.action.pk), *more])


MAIL = {"to": ["marta@brightwater.example"], "subject": "Your duplicate charge", "body": "Hello Marta,\n\nit was charged twice.\n"}


def propose_mail(cast: Any, *, file: str = "", title: str = "Ticket ZN-1, duplicate charge", **changes: Any) -> Proposed:
    return _propose(cast, "test-mailing", title, {"mail": MAIL | changes, "file": file})


def propose_change(cast: Any, **change: Any) -> Proposed:
    given = {"record": "ACC-1", "fields": {"city": "Gdynia", "lines": ["Hutnicza 12", None, 3.5, True]}} | change
    return _propose(cast, "test-changing", "Ticket ZN-2, new address", {"change": given})


def _propose(cast: Any, name: str, title: str, arguments: dict[str, Any]) -> Proposed:
    rules(cast.workspace.pk)
    owner: User = cast.agent.owner
    by = Actor("human", str(owner.pk), owner.name)
    run = starting.start(
        agent=cast.agent, owner=owner, by=by, title=title, agent_version="3.2", workflow=name, arguments=arguments, scope={}
    )
    assert executor.execute(run.pk) == "waiting"
    return Proposed(run, ProposedAction.objects.get(run=run))


def rules(workspace_id: UUID, quorum: int = 1) -> None:
    for name in ("send_mail", "change_record"):
        if policy.in_force(workspace_id, name) is None:
            policy.set_rule(workspace_id, name, name="Outside e-mail, known customer", outcome="reviewers", by=None, quorum=quorum)


def text(response: HttpResponse) -> str:
    """What a page says, without its tags."""
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())
