"""New terms of payment for several customers, two at a time. Each change can be taken back; the log knows of each what it was.

No model is asked: what is to be done is given when the run is started.
"""

from typing import Annotated, Any

from pydantic import Field

from examples.support_triage.tools import outside
from runs.engine.retry import Retry
from runs.engine.tools import Absent, Arguments, Call, Found, Unsure, tool
from runs.engine.workflow import Channel, workflow

PLAN = ("Read the terms", "Change the terms", "Say what was changed")
AT_ONCE = 2
Days = Annotated[int, Field(title="Days to pay", ge=1, le=365)]


@tool(
    effect="read",
    title="Read the terms",
    gives="The terms",
    reads_private=True,
    target="CRM",
    credential="desk",
    deadline=10,
    touches=lambda a: {"account": list(a["accounts"])},
)
def read_terms(call: Call, accounts: list[str]) -> dict[str, Any]:
    """How many days each of these accounts has to pay now."""
    with outside(call) as desk:
        return {"terms": [desk.terms(account) for account in accounts]}


def terms_by_key(call: Call, arguments: Arguments) -> Found | Absent | Unsure:
    """Whether the terms were changed, asked by the key."""
    with outside(call) as desk:
        effect = desk.effect(call.key)
    return Found(effect["answer"]) if effect["found"] else Absent()


@tool(
    effect="write",
    title="Change the terms",
    target="CRM",
    credential="desk",
    honours_key=True,
    lookup=terms_by_key,
    compensate="change_terms",
    undo=lambda asked, gave: asked | {"days": gave["before"]},
    deadline=10,
    retry=Retry(attempts=5, first=1),
    subject=lambda a: f"{a['customer']}: {a['days']} days to pay",
    touches=lambda a: {"account": [a["account"]]},
)
def change_terms(call: Call, account: str, customer: str, days: Days) -> dict[str, Any]:
    """Give a customer so many days to pay, under the grant's id as its key. Undone, it has as many as before."""
    with outside(call) as desk:
        return desk.set_terms(account, days, call.key)


@workflow("payment-terms", version=1, title="Terms of payment", plan=PLAN, may_not="Write to anybody, or change anything but the terms.")
def payment_terms(run: Channel, accounts: list[str], days: int) -> None:
    run.plan(*PLAN, note=f"{len(accounts)} customers get {days} days to pay, {AT_ONCE} at a time.")
    found = [each for each in run.step(read_terms, accounts).terms if each.days != days]
    for at in range(0, len(found), AT_ONCE):
        some = found[at : at + AT_ONCE]
        run.parallel(*(run.later(change_terms, account=each.account, customer=each.name, days=days) for each in some))
    run.report(f"{len(found)} customers have {days} days to pay", body=", ".join(each.name for each in found))
