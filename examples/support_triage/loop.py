"""The same triage, done by an open agent loop: the model chooses what comes next, and each turn and call is a step of the run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from examples.support_triage import intake, scripted
from examples.support_triage.tools import check_account, read_ticket, send_email, update_crm
from runs.engine.models import script
from runs.engine.workflow import Channel, workflow

TOOLS = (read_ticket, check_account, update_crm, send_email)
PROMPTS = Path(__file__).parent / "prompts"
PLAN = ("Find out what is asked", "Get approval", "Send the reply", "Update the CRM")


class Done(BaseModel):
    """What came of it."""

    outcome: str
    why: str


script("triage-next", version="2", title="Find out what is asked", words=PROMPTS, gives=Done)(scripted.next_turn)


@workflow(
    "triage-loop",
    version=1,
    title="Support triage, by a loop",
    plan=PLAN,
    may_not="Refund, change the account, or write to anyone but who wrote this message.",
    intake=intake.take_in,
    asks=("triage-next",),
)
def triage_loop(run: Channel, ticket_id: str) -> None:
    by_loop(run, ticket_id, "triage-next")


def by_loop(run: Channel, ticket_id: str, prompt: str) -> None:
    """The triage, each turn of it chosen by the model that answers this prompt."""
    run.plan(*PLAN, note="The model chooses each step; approval is needed before anything leaves the company.")
    came = run.agent(prompt, tools=TOOLS, until=_says_what_it_did, turns=12, ticket_id=ticket_id)
    run.report(came["outcome"], body=came["why"], label="personal", cites=came["cites"])


def _says_what_it_did(done: Mapping[str, Any]) -> bool:
    return isinstance(done.get("outcome"), str) and isinstance(done.get("why"), str)
