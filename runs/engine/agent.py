"""An open agent loop: a model chooses what is done next, turn by turn, and each turn and each call is a journaled, gated step.

A turn is one answer of the model, a JSON object with either of

    {"call": {"tool": name, "arguments": {…}}}
    {"done": {…}}

A script is given the tools, and what it was told so far as `said`. A model at an endpoint gets the tools as its own, `done` as one more,
and its turns as it took them. What a call gave, or why it was refused, is what it is told in the next turn. A tool that it invents,
arguments that do not fit and a call that it made before are refused back to it; what people reject comes back with their reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runs.engine import calls, models
from runs.engine.gates import Approved
from runs.engine.journal import digest
from runs.engine.models import Function, Turn
from runs.engine.outcomes import Parked
from runs.engine.tools import InvalidArguments, Tool
from runs.engine.walk import Walk

MAX_TURNS = 25
MAX_REFUSED = 5  # turns in a row that led to nothing
Until = Callable[[Mapping[str, Any]], bool]  # whether what the model says when it is done is enough


@dataclass
class Loop:
    """What has been said and done so far."""

    tools: Mapping[str, Tool]
    said: list[dict[str, Any]] = field(default_factory=list)  # what the model is told: one entry a turn
    chosen: list[Mapping[str, Any]] = field(default_factory=list)  # what it had chosen: one entry a turn
    made: set[str] = field(default_factory=set)  # fingerprints of the calls that were made
    refused: int = 0  # in a row
    cites: list[int] = field(default_factory=list)  # the events that say what became of what it asked for


def agent(
    run: Any, walk: Walk, prompt: str, *, tools: Sequence[Tool], until: Until, turns: int = MAX_TURNS, **variables: Any
) -> dict[str, Any]:
    """Let the model work with `tools` until it says that it is done and `until` agrees; gives what it said then, with the events to cite.

    `run` is the channel. Parked if it needs more than `turns`, or is refused too often in a row: then people must look.
    """
    loop = Loop({tool.name: tool for tool in tools})
    declared = [_declared(tool) for tool in tools]
    functions = tuple(Function(tool.name, tool.schema_version, tool.title, tool.arguments.model_json_schema()) for tool in tools)
    for number in range(1, turns + 1):
        so_far = tuple(Turn(chosen, _gave(told)) for chosen, told in zip(loop.chosen, loop.said, strict=True))
        given = {"turn": number, "said": loop.said, "tools": declared, **variables}
        turn = calls.ask(walk, prompt, given, models.Loop(functions, so_far, variables))
        done = turn.get("done")
        if isinstance(done, dict) and until(done):
            return {"cites": loop.cites, **done}
        told = (
            _refuse(loop, "It is not done yet: what was asked for is not there.")
            if done is not None
            else _call(run, loop, turn.get("call"))
        )
        loop.chosen.append(turn)
        loop.said.append(told)
        if loop.refused >= MAX_REFUSED:
            raise Parked("agent_stopped", step=None, detail=f"{MAX_REFUSED} turns in a row led to nothing. The last: {told['refused']}")
    raise Parked("agent_stopped", step=None, detail=f"It was not done after {turns} turns.")


def _gave(told: Mapping[str, Any]) -> dict[str, Any]:
    """Of what is told of a turn, what its call does not say itself."""
    return {key: told[key] for key in ("result", "refused") if key in told}


def _declared(tool: Tool) -> dict[str, Any]:
    """A tool as the model is told of it."""
    return {"name": tool.name, "title": tool.title, "effect": tool.effect, "schema": tool.arguments.model_json_schema()}


def _call(run: Any, loop: Loop, call: Any) -> dict[str, Any]:
    """Make the call that the model chose, or say why not."""
    if not isinstance(call, dict) or not isinstance(call.get("tool"), str) or not isinstance(call.get("arguments"), dict | str):
        return _refuse(loop, "Answer with either a call, with its tool and arguments, or with done.")
    tool = loop.tools.get(call["tool"])
    if tool is None:
        run.block(call["tool"], f"There is no tool called {call['tool'][:80]}. There are: {', '.join(loop.tools)}.")
        return _refuse(loop, f"There is no tool called {call['tool'][:80]}. There are: {', '.join(loop.tools)}.")
    if isinstance(call["arguments"], str):
        return _refuse(loop, "The arguments are not a JSON object.")
    try:
        arguments = tool.checked(**call["arguments"])
    except (InvalidArguments, TypeError) as error:
        return _refuse(loop, f"The arguments do not fit: {error}")
    made = digest([tool.name, arguments])
    if made in loop.made:
        return _refuse(loop, f"{tool.name} was called with exactly this before. What it gave stands above.")
    loop.made.add(made)
    return _made(run, loop, tool, arguments)


def _made(run: Any, loop: Loop, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    if tool.effect == "read":
        loop.refused = 0
        return {"tool": tool.name, "arguments": arguments, "result": run.step(tool, **arguments)}
    answer = run.propose(tool, **arguments)
    loop.cites.append(answer.seq)
    if isinstance(answer, Approved):
        loop.refused = 0
        return {"tool": tool.name, "arguments": arguments, "result": run.perform(answer), "seq": answer.seq}
    why = getattr(answer, "reason", "") or getattr(answer, "note", "")
    return _refuse(loop, f"{tool.title}: {type(answer).__name__.lower()}." + (f" {why}" if why else ""))


def _refuse(loop: Loop, why: str) -> dict[str, Any]:
    loop.refused += 1
    return {"refused": why}
