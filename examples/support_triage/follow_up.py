"""Following up a ticket: wait until the help desk says that it is closed, for as long as that takes, and report."""

from datetime import timedelta

from examples.support_triage.tools import read_ticket
from runs.engine.workflow import Arrived, Channel, workflow

PLAN = ("Read the ticket", "Wait until it is closed")
PATIENCE = timedelta(days=3)


@workflow("ticket-follow-up", version=1, title="Ticket follow-up", plan=PLAN, may_not="Change anything, or write to anybody.")
def follow_up(run: Channel, ticket_id: str) -> None:
    run.plan(*PLAN)
    run.step(read_ticket, ticket_id)
    closed = {"type": "ticket.changed", "data.ticket": ticket_id, "data.status": "closed"}
    came = run.wait_for("desk", match=closed, timeout=PATIENCE, title=PLAN[1])
    if isinstance(came, Arrived):
        run.report("The ticket is closed", body=f"It was {came.body.data.previous_status} before.", cites=[came])
    else:
        run.report("The ticket is open after three days", cites=[came])
