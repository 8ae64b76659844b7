"""The same loop with its turns chosen over HTTP, by the provider that the demo plays: to watch keys, limits and fallbacks at work.

The provider answers by the rules of the scripted model. Its models are called played-large and played-small, and cost nothing.
"""

from examples.support_triage import intake, scripted
from examples.support_triage.loop import PLAN, PROMPTS, Done, by_loop
from runs.engine.models import script
from runs.engine.workflow import Channel, workflow

script("triage-next-played", version="1", title="Find out what is asked", words=PROMPTS, gives=Done, at="played")(scripted.next_turn)


@workflow(
    "triage-played",
    version=1,
    title="Support triage, by a loop that asks a played provider",
    plan=PLAN,
    may_not="Refund, change the account, or write to anyone but who wrote this message.",
    intake=intake.take_in,
    asks=("triage-next-played",),
)
def triage_played(run: Channel, ticket_id: str) -> None:
    by_loop(run, ticket_id, "triage-next-played")
