"""What the scripted models of the example say: fixed rules that really read the ticket."""

from typing import Any

from examples.support_triage.drafting import draft
from examples.support_triage.reading import Ticket
from examples.support_triage.tools import mailbox


def draft_reply(*, ticket: dict[str, Any], account: dict[str, Any], notes: list[str], wishes: list[str]) -> dict[str, Any]:
    """A reply to a ticket, with its subject, a summary and files to send along."""
    written = draft(Ticket.from_json(ticket), account, notes, wishes)
    files = [{"name": f.name, "media_type": f.media_type, "text": f.content.decode()} for f in written.attachments]
    said = {"subject": written.subject, "body": written.body, "html": written.html, "summary": written.summary}
    said |= {"reason": written.reason}
    return said | {"language": written.language, "files": files, "nothing": written.nothing}


def next_turn(*, ticket_id: str, said: list[dict[str, Any]], turn: int, tools: list[dict[str, Any]]) -> dict[str, Any]:
    """The next turn of a loop, chosen by what the tools gave so far."""
    gave = {entry["tool"]: entry for entry in said if "tool" in entry}
    if said and "refused" in said[-1]:
        return {"done": {"outcome": "Not sent", "why": said[-1]["refused"]}}
    if "read_ticket" not in gave:
        return {"call": {"tool": "read_ticket", "arguments": {"ticket_id": ticket_id}}}
    message = gave["read_ticket"]["result"]["message"]
    if "check_account" not in gave:
        return {"call": {"tool": "check_account", "arguments": {"email": message["sender_address"]}}}
    written = draft(Ticket.from_json(message), gave["check_account"]["result"])
    if written.nothing:
        return {"done": {"outcome": "Nothing to send", "why": written.nothing}}
    if "send_email" not in gave:
        to = [mailbox(message["sender_name"], message["sender_address"])]
        return {"call": {"tool": "send_email", "arguments": {"to": to, "subject": written.subject, "body": written.body}}}
    if "update_crm" not in gave:
        account = gave["read_ticket"]["result"]["account"]
        return {"call": {"tool": "update_crm", "arguments": {"account": account, "note": written.summary}}}
    return {"done": {"outcome": "Answered and logged", "why": written.summary}}
