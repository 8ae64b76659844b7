"""A message that came in, made a ticket of the help desk; and what a run for it may touch."""

from uuid import UUID

from examples.support_triage.reading import UnreadableMessage, read
from examples.support_triage.tools import outside
from runs.engine.tools import Call, ToolError
from runs.engine.workflow import Intake
from runs.errors import IntakeFailed

NO_RUN = UUID(int=0)


def take_in(message: bytes, key: str) -> Intake:
    """File the message at the help desk, once per key. IntakeFailed if it is not a message, or the desk is away."""
    try:
        ticket = read(message)
    except UnreadableMessage as error:
        raise IntakeFailed(str(error)) from error
    call = Call(NO_RUN, "intake", key, deadline=10, last_check=lambda: None)
    try:
        with outside(call) as desk:
            filed = desk.file_ticket(message, key)
    except ToolError as error:
        raise IntakeFailed(f"The help desk did not take it: {error}") from error
    return Intake(
        arguments={"ticket_id": filed["id"]},
        title=f"Ticket {filed['id']}, {ticket.subject or 'no subject'}"[:200],
        scope={"ticket": [filed["id"]], "account": [filed["customer"]], "email": [ticket.sender_address]},
    )
