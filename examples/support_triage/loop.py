"""The same triage, done by an open agent loop: the model chooses what comes next, and each turn and call is a step of the run."""

from collections.abc import Mapping
from typing import Any

from examples.support_triage import intake
from examples.support_triage.drafting import draft
from examples.support_triage.reading import Ticket
from examples.support_triage.tools import check_account, mailbox, read_ticket, send_email, update_crm
from runs.engine.models import script
from runs.engine.workflow import Channel, workflow

TOOLS = (read_ticket, check_account, update_crm, send_email)
PLAN = ("Find out what is asked", "Get approval", "Answer it")


@script("triage-next", version="1", title="Find out what is asked")
def next_turn(*, ticket_id: str, said: list[dict[str, Any]], turn: int, tools: list[dict[str, Any]]) -> dict[str, Any]:
    """The scripted model: a fixed set of rules that chooses by what the tools gave so far. Says so on the page."""
    gave = {entry["tool"]: entry for entry in said if "tool" in entry}
    if said and "refused" in said[-1]:
        return {"done": {"outcome": "Not sent", "why": said[-1]["refused"]}}
    if "read_ticket" not in gave:
        return {"call": {"tool": "read_ticket", "arguments": {"ticket_id": ticket_id}}}
    message = gave["read_ticket"]["result"]["message"]
    if "check_account" not in gave:
        return {"call": {"tool": "check_account", "arguments": {"email": message["sender_address"]}}}
    written = draft(Ticket.from_json(message), gave["check_account"]["result"])
    if "send_email" not in gave:
        to = [mailbox(message["sender_name"], message["sender_address"])]
        return {"call": {"tool": "send_email", "arguments": {"to": to, "subject": written.subject, "body": written.body}}}
    if "update_crm" not in gave:
        account = gave["read_ticket"]["result"]["account"]
        return {"call": {"tool": "update_crm", "arguments": {"account": account, "note": written.summary}}}
    return {"done": {"outcome": "Answered and logged", "why": written.summary}}


@workflow(
    "triage-loop",
    version=1,
    title="Support triage, by a loop",
    plan=PLAN,
    may_not="Refund, change the account, or write to anyone but who wrote this message.",
    intake=intake.take_in,
)
def triage_loop(run: Channel, ticket_id: str) -> None:
    run.plan(*PLAN, note="The model chooses each step; approval is needed before anything leaves the company.")
    came = run.agent("triage-next", tools=TOOLS, until=_says_what_it_did, turns=12, ticket_id=ticket_id)
    run.report(came["outcome"], body=came["why"], label="personal")


def _says_what_it_did(done: Mapping[str, Any]) -> bool:
    return isinstance(done.get("outcome"), str) and isinstance(done.get("why"), str)
