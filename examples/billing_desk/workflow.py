"""The billing desk: a message about a charge, from the ticket to the answer, with what is to go back put aside meanwhile.

It is the triage of `support_triage` with more of a story: it places a hold that policy allows without asking, says at the help desk where
the ticket is, and mends a reply that a reviewer sent back, as often as twice.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from examples.billing_desk import scripted
from examples.billing_desk.tools import check_charges, hold_refund, set_ticket
from examples.support_triage import intake
from examples.support_triage.tools import mailbox, read_ticket, send_email, update_crm
from examples.support_triage.workflow import Draft
from runs.engine.models import script
from runs.engine.workflow import APPROVAL, Answer, Answers, Channel, Kept, Record, Revised, workflow

PROMPTS = Path(__file__).parent / "prompts"
PLAN = ("Read the ticket", "Check the account", "Draft a reply", "Get approval", "Update the CRM", "Send the reply")
# what it does, for who starts it: the story has no headings for what happens without asking
WILL = (
    *("Read the ticket", "Check the account", "Place a refund hold", "Set the ticket", "Draft a reply"),
    *(APPROVAL, "Update the CRM", "Set the ticket", "Send the reply"),
)
SENT_BACK = 2  # how often a reviewer may send a reply back before that is the end of it

# asked of the provider that the demo plays, so that a run of it has tokens; where none is played, the script answers
script("first-reply", version="2", title="Draft a reply", words=PROMPTS, gives=Draft, at="played")(scripted.settle_reply)
script("reworked-reply", version="2", title="Rework the reply", words=PROMPTS, gives=Draft, at="played")(scripted.settle_reply)


@dataclass
class Case:
    """What is known of one message: read once, and added to by people."""

    ticket: Record
    account: Record
    sources: dict[str, int]
    notes: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # by reviewers who sent a reply back


@dataclass(frozen=True)
class Proposed:
    """A reply that was put to people, and what they said."""

    answer: Answer
    summary: str


@workflow(
    "billing-desk",
    version=1,
    title="Billing desk",
    plan=WILL,
    may_not="Give money back (it only places a hold), change the account, or write to anyone but who wrote this message.",
    intake=intake.take_in,
    reads=("context", "revise"),
    asks=("first-reply", "reworked-reply"),
)
def billing_desk(run: Channel, ticket_id: str) -> None:
    run.plan(*PLAN, note="Approval needed before anything leaves the company.")
    case, read = _look(run, ticket_id)
    run.step(set_ticket, ticket_id, "in_progress")
    proposed = _propose(run, case, "first-reply")
    while proposed and (asked := _asked(proposed.answer, before=len(case.asked))):
        case.asked.append(asked)
        if isinstance(proposed.answer, Revised):
            run.plan(*PLAN, note=f"Changed on request: {asked}")
        proposed = _propose(run, case, "reworked-reply")
    if proposed is None:
        run.report("Nothing to send", cites=[read])
        return
    answer = proposed.answer
    if not answer.approved:
        run.report("Not sent", body="The reply was not approved. What was put aside stays so until it is undone.", cites=[answer])
        return
    run.step(update_crm, case.ticket.account, note=proposed.summary)
    run.step(set_ticket, ticket_id, "answered")
    run.perform(answer)
    run.report("Answered and logged", body=proposed.summary, label="personal", cites=[answer, run.done(answer)])


def _asked(answer: Answer, *, before: int) -> str:
    """What is to be different, in the words of who sent the reply back or wants another plan; empty if that is the end of it."""
    if isinstance(answer, Revised):
        return answer.note
    return getattr(answer, "reason", "") if before < SENT_BACK else ""


def _look(run: Channel, ticket_id: str) -> tuple[Case, Kept]:
    """Read the ticket and its account; put aside what was charged twice, if something was."""
    ticket = run.step(read_ticket, ticket_id)
    read = run.artifact(f"ticket-{ticket_id}.txt", ticket.text, label="personal", outside=True)
    account = run.step(check_charges, ticket.account)
    snapshot = run.artifact(f"account-{ticket.account}.json", json.dumps(account), label="personal", media_type="application/json")
    found = scripted.paid_twice(account, ticket.message.invoices)
    if found:
        again = found["settled"][-1]
        run.step(hold_refund, ticket.account, again["id"], again["amount"], again["currency"])
        run.milestone("Duplicate charge confirmed", detail=scripted.in_words(found), label="personal", cites=[snapshot])
    return Case(ticket, account, {"ticket": read.seq, "account": snapshot.seq}), read


def _propose(run: Channel, case: Case, prompt: str) -> Proposed | None:
    """Draft the reply, or mend it, and put it to people. None if there is nothing to send."""
    case.notes += run.context()
    message = case.ticket.message
    written = run.ask_model(prompt, ticket=message, account=case.account, notes=case.notes, requests=case.asked)
    if written.get("nothing"):
        return None
    reply = run.artifact("reply.txt", written.body, label="personal")
    files = [run.artifact(f.name, f.text, label="personal", media_type=f.media_type) for f in written.files]
    cites = [*case.sources.values(), reply]
    run.milestone("Reply ready for review", detail=written.summary, label="personal", cites=cites)
    answer = run.propose(
        send_email,
        to=[mailbox(message.sender_name, message.sender_address)],
        subject=written.subject,
        body=written.body,
        in_reply_to=message.message_id,
        references=[*message.references, message.message_id] if message.message_id else [],
        attachments=files,
        reason=written.summary,
        answers=Answers("answer-question", {"ticket": message, "account": case.account, "sources": case.sources | {"reply": reply.seq}}),
    )
    return Proposed(answer, written.summary)
