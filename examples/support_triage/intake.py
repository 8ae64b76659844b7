"""A message that came in, made a ticket of the help desk; and what a run for it may touch."""

from uuid import UUID

from examples.support_triage.client import Refused
from examples.support_triage.reading import UnreadableMessage, read
from examples.support_triage.tools import outside
from runs.engine.tools import Call, ToolError
from runs.engine.workflow import Intake
from runs.errors import IntakeFailed, MessageRefused

NO_RUN = UUID(int=0)
THE_MESSAGE = (400, 413, 415, 422)  # what the desk answers if the fault is in the message


def take_in(message: bytes, key: str) -> Intake:
    """File the message at the help desk, once per key. MessageRefused if nobody could answer it, IntakeFailed if the desk is away."""
    try:
        ticket = read(message)
    except UnreadableMessage as error:
        raise MessageRefused(str(error)) from error
    call = Call(NO_RUN, "intake", key, deadline=10, last_check=lambda: None)
    try:
        with outside(call) as desk:
            filed = desk.file_ticket(message, key)
    except ToolError as error:
        refused = error.__cause__
        if isinstance(refused, Refused) and refused.code in THE_MESSAGE:
            raise MessageRefused(f"The help desk does not take it: {refused.reason}") from error
        raise IntakeFailed(f"The help desk did not take it: {error.said}") from error
    return Intake(
        arguments={"ticket_id": filed["id"]},
        title=f"Ticket {filed['id']}, {ticket.subject or 'no subject'}",
        scope={"ticket": [filed["id"]], "account": [filed["customer"]], "email": [ticket.sender_address]},
    )
