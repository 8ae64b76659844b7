"""What the played provider answers: by the rules of the example's scripts, in the shape of OpenAI's API."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

Body = Mapping[str, Any]
ANSWERS = ("answer", "done")  # the tools by which Handrail takes an answer
DATED = "-2026-11-02"


def completion(body: Body, preset: Mapping[str, Any] | None, fault: str) -> dict[str, Any]:
    """One answer. `preset`: {"values": …}, {"call": {"tool", "arguments"}} or {"text": …} instead of what the rules say."""
    given = preset or _played(body)
    if fault == "invent":
        given = {"call": {"tool": "wire_money", "arguments": {"amount": "1000"}}}
    elif fault == "odd":
        given = {"values": {"nothing": "of what was asked for"}}
    elif fault == "words":
        given = {"text": "I would rather talk about the weather."}
    message, finish = _message(given, _answer_tool(body))
    if fault == "length":
        finish = "length"
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = call["function"]["arguments"][: len(call["function"]["arguments"]) // 2]
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": 1_795_000_000,
        "model": f"{body['model']}{DATED}",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": _usage(body, message),
    }


def _message(given: Mapping[str, Any], answer: str) -> tuple[dict[str, Any], str]:
    if "text" in given:
        return {"role": "assistant", "content": given["text"]}, "stop"
    name, arguments = (given["call"]["tool"], given["call"]["arguments"]) if "call" in given else (answer, given["values"])
    as_text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"id": f"call_{uuid.uuid4().hex[:12]}", "type": "function", "function": {"name": name, "arguments": as_text}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"


def _usage(body: Body, message: Mapping[str, Any]) -> dict[str, int]:
    into, out = len(json.dumps([body["messages"], body.get("tools")])) // 4, len(json.dumps(message)) // 4
    return {"prompt_tokens": into, "completion_tokens": out, "total_tokens": into + out}


def _answer_tool(body: Body) -> str:
    return next((name for name in ANSWERS if any(tool["function"]["name"] == name for tool in body.get("tools", ()))), "answer")


# the rules -------------------------------------------------------------------------------------------------------------------------


def _played(body: Body) -> dict[str, Any]:
    """What the example's script for these variables says; for others, something that fits the schema."""
    given = _variables(body)
    if _answer_tool(body) == "done" and "ticket_id" in given:
        return _next_turn(body, given)
    if {"ticket", "account", "notes", "wishes"} <= given.keys():
        return {"values": _draft(given)}
    if {"ticket", "account", "notes", "requests"} <= given.keys():
        return {"values": _settled(given)}
    tool = next(tool for tool in body["tools"] if tool["function"]["name"] == _answer_tool(body))
    return {"values": _filled(tool["function"]["parameters"])}


def _variables(body: Body) -> dict[str, Any]:
    """The first thing that a user says is what is known, as JSON."""
    said = next((message["content"] for message in body["messages"] if message["role"] == "user"), "{}")
    text = said if isinstance(said, str) else "".join(part.get("text", "") for part in said)
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _draft(given: Mapping[str, Any]) -> dict[str, Any]:
    from examples.support_triage import scripted  # here: a test that needs none of it starts sooner

    return scripted.draft_reply(**{name: given[name] for name in ("ticket", "account", "notes", "wishes")})


def _settled(given: Mapping[str, Any]) -> dict[str, Any]:
    from examples.billing_desk import scripted

    return scripted.settle_reply(**{name: given[name] for name in ("ticket", "account", "notes", "requests")})


def _next_turn(body: Body, given: Mapping[str, Any]) -> dict[str, Any]:
    """The loop's script, told what the conversation says of its turns."""
    from examples.support_triage import scripted

    said: list[dict[str, Any]] = []
    called: dict[str, Any] = {}
    for message in body["messages"]:
        for call in message.get("tool_calls") or ():
            called = call["function"]
        if message["role"] == "tool":
            told = json.loads(message["content"])
            said.append({"tool": called["name"], **told} if "result" in told else told)
    turn = scripted.next_turn(ticket_id=given["ticket_id"], said=said, turn=len(said) + 1, tools=[])
    return {"values": turn["done"]} if "done" in turn else turn


def _filled(schema: Mapping[str, Any]) -> Any:
    """Something that fits a schema."""
    match schema.get("type"):
        case "object":
            return {name: _filled(inner) for name, inner in schema.get("properties", {}).items()}
        case "array":
            return []
        case "integer" | "number":
            return 0
        case "boolean":
            return False
    return "Played."
