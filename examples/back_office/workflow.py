"""The back office at work: read a request, look at what is there, put one exact action to people, and do exactly that."""

import hashlib
import sqlite3
from collections.abc import Callable, Mapping
from email import message_from_bytes, policy
from email.errors import MessageError
from typing import Any

from examples.back_office import store
from examples.back_office.reading import JOBS, closest, job_of, read
from examples.back_office.tools import (
    call_desk,
    desk_url,
    name_of,
    read_customer,
    read_payments,
    read_refunds,
    read_request,
    refund_payment,
    run_command,
    run_sql,
    schedule_removal,
    update_customer,
)
from runs.engine.models import script
from runs.engine.tools import Tool
from runs.engine.workflow import APPROVAL, Answers, Channel, Intake, workflow
from runs.errors import IntakeFailed, MessageRefused

RAISE = """UPDATE stock
   SET price_cents = CAST(round(price_cents * (1 + ? / 100.0)) AS INTEGER)
 WHERE category = ?
   AND price_cents < ?"""
READS = ("Read the request", "Read the customer", "Read what was paid", "Work out what to do")
MAX_TEXT = 20_000


def take_in(message: bytes, key: str) -> Intake:
    """Keep the request, and say which customer it is about.

    MessageRefused if it asks for none of the six things, IntakeFailed if it can't be kept now.
    """
    try:
        parsed = message_from_bytes(message, policy=policy.default)
        body = parsed.get_body(("plain",))
        text, subject = (body.get_content() if body else ""), str(parsed["Subject"] or "")
    except (MessageError, LookupError, ValueError) as error:
        raise MessageRefused(f"This message can't be read: {error}") from error
    job = job_of(subject, text)
    if job is None:
        raise MessageRefused(f"It asks for nothing that the back office does: {', '.join(JOBS.values()).lower()}.")
    request = f"REQ-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
    whole = f"From: {parsed['From']}\nSubject: {subject}\n\n{text}"[:MAX_TEXT]
    try:
        store.keep_request(request, whole)
    except (sqlite3.Error, OSError) as error:
        raise IntakeFailed(f"The back office's file can't be used: {error}") from error
    asked = read(job, whole)
    scope = {"customer": [asked["customer"]]} if asked.get("customer") else {}
    return Intake(arguments={"request": request, "job": job}, title=_title(job, subject, asked), scope=scope)


def _title(job: str, subject: str, asked: Mapping[str, Any]) -> str:
    """What the run is about in one line: its subject, but of a note what it says, for all of them have one subject."""
    if job == "note" and asked["note"] and asked["customer"]:
        return f"Note on {name_of(asked['customer'])}: {asked['note'].partition('. ')[0].rstrip('.')}"
    return subject or JOBS[job]


@script("back-office-job", version="1", title="Work out what to do")
def work_out(*, job: str, text: str, customer: Mapping[str, Any] | None) -> dict[str, Any]:
    """The scripted model: reads the request by fixed rules. Says so on the page."""
    asked = read(job, text)
    if job == "customer" and customer:
        after = {field: value for field, value in asked["fields"].items() if field in customer["record"]}
        asked = asked | {"version": customer["version"], "after": after, "before": {field: customer["record"][field] for field in after}}
    return {"asked": asked}


@script("back-office-question", version="1", title="Answer a question")
def answer_question(*, question: str, text: str, source: int) -> dict[str, Any]:
    """The scripted model again: it gives the line of the request that shares most words with the question, and says where it stands."""
    line = closest(question, text)
    said = f"The request says: “{line}”" if line else "The request says nothing about that, and I know no more than it says."
    return {"answer": said, "cites": [source] if line else []}


@workflow(
    "back-office",
    version=2,
    title="Back office",
    plan=("Read the request", "Work out what to do", APPROVAL, "Do exactly that"),
    may_not="Do anything but one of its six things, or any of them without approval.",
    intake=take_in,
    asks=("back-office-job",),
    steps=14,
)
def back_office(run: Channel, request: str, job: str) -> None:
    tool, needs_customer, arguments = WAYS[job]
    needed = {"Read the customer": needs_customer, "Read what was paid": job == "refund"}
    steps = [step for step in READS if needed.get(step, True)]
    run.plan(*steps, APPROVAL, tool.title, note="Nothing is changed without approval.")
    text = run.step(read_request, request).text
    kept = run.artifact(f"{request}.txt", text, label="personal", outside=True)
    customer = run.step(read_customer, read(job, text)["customer"]) if needs_customer else None
    if job == "refund":
        paid = run.step(read_payments, read(job, text)["payment"])
        run.step(read_refunds, paid.invoice)
    asked = run.ask_model("back-office-job", job=job, text=text, customer=customer).asked
    answers = Answers("back-office-question", {"text": text, "source": kept.seq})
    answer = run.propose(tool, reason=asked.reason, answers=answers, **arguments(asked))
    if not answer.approved:
        run.report("Not done", body=getattr(answer, "reason", "") or "It was not approved.", label="personal", cites=[answer, kept])
        return
    result = run.perform(answer)
    run.report("Done", body=", ".join(f"{name} {value}" for name, value in result.items())[:500], label="personal", cites=[answer, kept])


def _customer(asked: Any) -> dict[str, Any]:
    return {"record": asked.customer, "version": asked.version, "before": dict(asked.before), "after": dict(asked.after)}


def _refund(asked: Any) -> dict[str, Any]:
    words = {"bank_reason": asked.why, "statement_text": asked.statement}
    return {"amount": asked.amount, "currency": asked.currency, "account": asked.customer, "payment": asked.payment} | words


def _prices(asked: Any) -> dict[str, Any]:
    return {"statement": RAISE, "parameters": [asked.percent, asked.category, asked.below_cents], "at_most": 100}


def _note(asked: Any) -> dict[str, Any]:
    url = f"{desk_url()}/accounts/{asked.customer}/notes"
    return {"method": "POST", "url": url, "headers": {"Content-Type": "application/json"}, "body": {"text": asked.note}}


def _report(asked: Any) -> dict[str, Any]:
    return {"command": ["gzip", "--keep", "--best", "--force", asked.file]}


def _access(asked: Any) -> dict[str, Any]:
    return {"person": asked.person, "systems": list(asked.systems), "on": asked.on}


WAYS: dict[str, tuple[Tool, bool, Callable[[Any], dict[str, Any]]]] = {
    "customer": (update_customer, True, _customer),
    "refund": (refund_payment, False, _refund),
    "prices": (run_sql, False, _prices),
    "note": (call_desk, False, _note),
    "report": (run_command, False, _report),
    "access": (schedule_removal, False, _access),
}
