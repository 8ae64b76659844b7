"""A workflow that proposes an e-mail with an HTML part and files of any kind; its outside world is a list."""

import base64
from typing import Any

from access.rules import person
from approvals import policy
from approvals.models import ProposedAction
from runs import starting
from runs.engine.tools import Call, tool
from runs.engine.workflow import Channel, workflow
from tests.approvals.mailing import Proposed, read_account, read_mail

sent: list[dict[str, Any]] = []
TEXT = "Hello Marta,\n\nit is corrected.\n"
HTML = "<p>Hello Marta,</p>\n<p>it is <b>corrected</b>.</p>\n"


@tool(
    effect="send",
    title="Send the letter",
    card="email",
    target="mail server",
    credential="smtp",
    recipients=lambda a: a["to"],
    prepare=lambda a, nonce: {name: value for name, value in a.items() if name != "html" or value},
)
def send_letter(call: Call, to: list[str], subject: str, body: str, html: str = "") -> None:
    call.last_check()
    sent.append({"body": body, "html": html, "files": [(f.name, f.content) for f in call.attachments]})


@workflow("test-lettering", version=1, title="Write a letter")
def lettering(run: Channel, letter: dict[str, Any], files: list[list[str]]) -> None:
    run.plan("Read the ticket", "Get approval", "Send the letter")
    run.step(read_mail, "ZN-1")
    run.step(read_account, "A-1")
    kept = [run.artifact(name, base64.b64decode(content), label=label, media_type=kind) for name, kind, label, content in files]
    answer = run.propose(send_letter, attachments=kept, **letter)
    if answer.approved:
        run.perform(answer)


def propose_letter(cast: Any, *, html: str = HTML, files: Any = (), **changes: Any) -> Proposed:
    """`files`: (name, media type, content) and, if it is not personal, the label."""
    if policy.in_force(cast.workspace.pk, "send_letter") is None:
        policy.set_rule(cast.workspace.pk, "send_letter", name="Letters", outcome="reviewers", by=None)
    letter = {"to": ["marta@brightwater.example"], "subject": "Your invoice", "body": TEXT, "html": html} | changes
    packed = [[name, kind, *(label or ["personal"]), base64.b64encode(content).decode()] for name, kind, content, *label in files]
    run = starting.start(
        agent=cast.agent,
        owner=cast.agent.owner,
        by=person(cast.agent.owner_id),
        title="Ticket ZN-1, wrong VAT number",
        agent_version="3.2",
        workflow="test-lettering",
        arguments={"letter": letter, "files": packed},
        scope={},
    )
    proposed = Proposed(run, ProposedAction())
    assert proposed.walk() == "waiting"
    return Proposed(run, ProposedAction.objects.get(run=run))
