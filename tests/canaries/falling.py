"""Tools and a workflow that raise what they are told."""

from typing import Any

from runs.engine.tools import Call, Declined, tool
from runs.engine.workflow import Channel, workflow

NAME = "test-canary-fall"


@tool(effect="write", title="Fall over")
def canary_fall(call: Call, what: str) -> None:
    raise Declined(what)


@tool(effect="read", title="Read and fall")
def canary_read(call: Call, what: str) -> None:
    raise ValueError(what)


@workflow(NAME, version=1, title="Fall over")
def falling(run: Channel, said: dict[str, Any]) -> None:
    run.plan(said["plan"])
    run.note(said["note"])
    run.milestone(said["milestone"])
    if said.get("write"):
        run.step(canary_fall, said["write"])
    if said.get("read"):
        run.step(canary_read, said["read"])
    raise RuntimeError(said["raise"])
