"""The reference workflow: read a ticket, check the account, draft a reply, wait for approval, update the CRM, send the message."""

import json
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, Field, model_validator

from examples.support_triage import intake, scripted
from examples.support_triage.answering import answer_to_question
from examples.support_triage.reading import Ticket
from examples.support_triage.tools import check_account, mailbox, read_ticket, send_email, update_crm
from runs.engine.models import script
from runs.engine.workflow import Answer, Answers, Channel, Record, Revised, workflow

PROMPTS = Path(__file__).parent / "prompts"
PLAN = ("Read the ticket", "Check the account", "Draft a reply", "Get approval", "Update the CRM", "Send the reply")


class Piece(BaseModel):
    """A file to send along."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$")]
    media_type: Annotated[str, Field(pattern=r"^[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60}$")]
    text: str


class Draft(BaseModel):
    """A reply, as a model writes it; or why there is nothing to send."""

    subject: Annotated[str, Field(max_length=300)]
    body: str
    html: str = ""
    summary: Annotated[str, Field(min_length=1, max_length=4000)]
    language: str
    files: list[Piece] = []
    nothing: str = ""
    reason: str = ""

    @model_validator(mode="after")
    def _is_a_reply(self) -> Self:
        if not self.nothing and not (self.subject.strip() and self.body.strip()):
            raise ValueError("a reply has a subject and a body")
        return self


class Said(BaseModel):
    """An answer to a reviewer."""

    answer: Annotated[str, Field(min_length=1)]
    cites: list[int] = []


script("draft-reply", version="3", title="Draft a reply", words=PROMPTS, gives=Draft)(scripted.draft_reply)


@script("answer-question", version="2", title="Answer a question", words=PROMPTS, gives=Said)
def answer_question(*, question: str, ticket: dict, account: dict, sources: dict) -> dict:
    """The scripted model again: it looks for what the question names in what was read, and says where it stands."""
    text, cites = answer_to_question(question, Ticket.from_json(ticket), account, sources)
    return {"answer": text, "cites": cites}


@workflow(
    "support-triage",
    version=3,
    title="Support triage",
    plan=PLAN,
    may_not="Refund, change the account, or write to anyone but who wrote this message.",
    intake=intake.take_in,
    reads=("context", "revise"),
    asks=("draft-reply",),
    steps=24,
)
def support_triage(run: Channel, ticket_id: str) -> None:
    run.plan(*PLAN, note="Approval needed before anything leaves the company.")
    ticket = run.step(read_ticket, ticket_id)
    read = run.artifact(f"ticket-{ticket_id}.txt", ticket.text, label="personal", outside=True)
    account = run.step(check_account, ticket.message.sender_address)
    snapshot = run.artifact(f"account-{ticket.account}.json", json.dumps(account), label="personal", media_type="application/json")
    notes: list[str] = []
    wishes: list[str] = []
    while True:
        notes += run.context()
        sources = {"ticket": read.seq, "account": snapshot.seq}
        written = run.ask_model("draft-reply", ticket=ticket.message, account=account, notes=notes, wishes=wishes)
        if written.get("nothing"):  # what was drafted before there was this has it not
            run.report("Nothing to send", body=written.nothing, cites=[read])
            return
        answer = _propose_reply(run, ticket, account, sources, written)
        if not isinstance(answer, Revised):
            break
        run.plan(*PLAN, note=f"Changed on request: {answer.note}")
        wishes.append(answer.note)
    if not answer.approved:
        run.report("Not sent", body=_why_not(answer), label="personal", cites=[answer])
        return
    run.step(update_crm, ticket.account, note=written.summary)
    run.perform(answer)
    run.report("Answered and logged", body=written.summary, label="personal", cites=[answer, run.done(answer)])


def _propose_reply(run: Channel, ticket: Record, account: Record, sources: dict[str, int], written: Record) -> Answer:
    """Keep the draft and propose it: what became of it."""
    message = ticket.message
    reply = run.artifact("reply.txt", written.body, label="personal")
    files = [run.artifact(f.name, f.text, label="personal", media_type=f.media_type) for f in written.files]
    cites = [*sources.values(), reply]
    why = written.get("reason") or written.summary  # what was drafted before there were reasons has none
    reason = f"{why} See #{sources['ticket']} and #{sources['account']}."
    run.milestone("Reply ready for review", detail=reason, label="personal", cites=cites)
    return run.propose(
        send_email,
        to=[mailbox(message.sender_name, message.sender_address)],
        subject=written.subject,
        body=written.body,
        html=written.get("html", ""),  # what was drafted before there was HTML has none
        in_reply_to=message.message_id,
        references=[*message.references, message.message_id] if message.message_id else [],
        attachments=files,
        reason=reason,
        answers=Answers("answer-question", {"ticket": message, "account": account, "sources": sources | {"reply": reply.seq}}),
    )


def _why_not(answer: object) -> str:
    reason = getattr(answer, "reason", "")
    return f"A reviewer rejected the reply: {reason}" if reason else f"The reply was not approved: {type(answer).__name__.lower()}."
