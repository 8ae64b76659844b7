"""To an endpoint and back, by pydantic-ai: a request becomes its messages, its answer or its error becomes ours.

Imported when the first model is asked, and not before: the library takes seconds to import, and a house without models never needs it.
"""

import asyncio
import logging
import re
from collections.abc import Mapping
from typing import Any

import orjson
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic_ai import direct, exceptions
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from runs.engine.conversation import Function, Request
from runs.engine.providers import Candidate, Failed, Got

logger = logging.getLogger(__name__)
MOST_TOKENS = 10**9  # of one call: whoever says more is not believed
LONGEST_WAIT = 3600.0  # seconds; whoever asks for more is asked again after it
ANSWER = "Give your answer by this tool, once, and by nothing else."


def ask(candidate: Candidate, request: Request, *, output: int, seconds: float) -> Got:
    """The answer of one model to one request. Failed if it gives none that can be used, or none within `seconds`."""
    try:
        response = asyncio.run(_asked(candidate, request, output, seconds))
    except TimeoutError:
        raise Failed("timeout", f"it gave no answer within {seconds:g} seconds", lost=True) from None
    except exceptions.AgentRunError as error:
        raise _failed(error) from None
    except Exception as error:  # what the library does not know either; its text may hold anything, so that only its kind is told
        logger.warning("model not asked", extra={"model": candidate.model, "error": type(error).__name__})
        raise Failed("error", f"asking it raised {type(error).__name__}", lost=True) from None
    return _read(request, response)


async def _asked(candidate: Candidate, request: Request, output: int, seconds: float) -> ModelResponse:
    """One call over HTTP: never repeated here, for each is written down."""
    async with (
        asyncio.timeout(seconds),
        AsyncOpenAI(
            base_url=candidate.endpoint.url,
            api_key=candidate.secret or "none",
            max_retries=0,
            timeout=seconds,
            http_client=DefaultAsyncHttpxClient(follow_redirects=False),  # a prompt goes where the setting says, and nowhere else
        ) as client,
    ):
        provider = OpenAICompatibleProvider(candidate.endpoint.name, openai_client=client)
        return await direct.model_request(
            OpenAIChatModel(candidate.model, provider=provider),
            _messages(request),
            model_settings=ModelSettings(max_tokens=output, parallel_tool_calls=False),
            model_request_parameters=ModelRequestParameters(
                function_tools=[_tool(each) for each in request.functions],
                output_mode="tool",
                output_tools=[ToolDefinition(name=request.answer, parameters_json_schema=dict(request.gives), description=ANSWER)],
                allow_text_output=False,
            ),
            instrument=False,
        )


def _tool(function: Function) -> ToolDefinition:
    return ToolDefinition(name=function.name, parameters_json_schema=dict(function.schema), description=function.about)


def _messages(request: Request) -> list[ModelMessage]:
    """Instructions, what is known, and each turn with what it gave."""
    known = UserPromptPart(orjson.dumps(request.variables).decode())
    messages: list[ModelMessage] = [ModelRequest([known], instructions=request.instructions)]
    for number, turn in enumerate(request.turns, 1):
        call, text = turn.chosen.get("call"), turn.chosen.get("text")
        told = orjson.dumps(turn.told).decode()
        if text is None:
            named, given = (call["tool"], call["arguments"]) if isinstance(call, Mapping) else (request.answer, turn.chosen.get("done"))
            part = ToolCallPart(_as_name(named), given if isinstance(given, dict | str) else {}, f"call-{number}")
            messages += [ModelResponse([part]), ModelRequest([ToolReturnPart(part.tool_name, told, part.tool_call_id)])]
        else:
            messages += [ModelResponse([TextPart(str(text))]), ModelRequest([UserPromptPart(told)])]
    messages[-1].instructions = request.instructions
    return messages


def _as_name(name: Any) -> str:
    """A name that a model made up, as one that an endpoint takes back."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", str(name))[:60] or "unnamed"


# back ------------------------------------------------------------------------------------------------------------------------------


def _read(request: Request, response: ModelResponse) -> Got:
    """What was answered, if it is an answer."""
    tokens_in, tokens_out = (min(max(n, 0), MOST_TOKENS) for n in (response.usage.input_tokens, response.usage.output_tokens))
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    estimated = not (tokens_in or tokens_out)
    if estimated:
        tokens_in, tokens_out = request.tokens, -(-len(text or repr(calls)) // 3)
    spent = {"tokens_in": tokens_in, "tokens_out": tokens_out, "version": response.model_name or "", "estimated": estimated}
    if response.finish_reason == "length":
        cut = Got({}, "length", **spent)
        raise Failed("limit", f"its answer was cut off after {tokens_out:,} tokens", retryable=False, got=cut)
    if response.finish_reason == "content_filter":
        raise Failed("refused", "its provider filtered the answer", retryable=False, got=Got({}, **spent))
    if request.functions:
        return Got(_chosen(request, calls, text), "tool" if calls else "stop", **spent)
    given = _object(calls[0].args if calls and calls[0].tool_name == request.answer else text)
    if given is None:
        raise Failed("invalid", "its answer was not the JSON that was asked for", got=Got({}, **spent))
    return Got(given, **spent)


def _chosen(request: Request, calls: list[ToolCallPart], text: str) -> dict[str, Any]:
    """A turn of a loop. Of several calls at once the first: one at a time is made, and what it gave is told before the next."""
    if not calls:
        return {"text": text}
    first = calls[0]
    given = _object(first.args)
    if first.tool_name == request.answer and given is not None:
        return {"done": given}
    return {"call": {"tool": first.tool_name, "arguments": str(first.args) if given is None else given}}


def _object(given: Any) -> dict[str, Any] | None:
    """A JSON object, or the text of one; None if it is neither."""
    if isinstance(given, str):
        try:
            given = orjson.loads(given.strip().removeprefix("```json").strip("`\n "))
        except orjson.JSONDecodeError:
            return None
    return given if isinstance(given, dict) else None


def _failed(error: exceptions.AgentRunError) -> Failed:
    """An error of the library in our words, without what it says: that may hold what was asked, or a part of a key."""
    wait = min(getattr(error, "retry_after", None) or 0.0, LONGEST_WAIT)
    status = f" ({error.status_code})" if isinstance(error, exceptions.ModelHTTPError) else ""
    match error:
        case exceptions.ModelAuthenticationError():
            return Failed("refused", f"the key was refused{status}", key=True, retryable=False)
        case exceptions.ModelQuotaExceededError():
            return Failed("limit", f"its quota is used up{status}", wait=wait)
        case exceptions.ModelRateLimitError():
            asked = f", and it asks to wait {wait:g} seconds" if wait else ""
            return Failed("limit", f"its rate limit was reached{status}{asked}", wait=wait)
        case exceptions.ModelContextWindowExceededError():
            return Failed("limit", f"what it was asked is longer than it takes{status}", retryable=False)
        case exceptions.ModelNotFoundError():
            return Failed("not_found", f"there is no such model, or the address is wrong{status}", retryable=False)
        case exceptions.ModelTimeoutError() | exceptions.ModelRequestTimeout():
            return Failed("timeout", "it gave no answer in time", lost=True)
        case exceptions.ModelConnectionError():
            sent = getattr(error, "phase", None) not in ("pool", "connect")
            return Failed("unavailable", "the connection broke off" if sent else "it could not be reached", lost=sent)
        case exceptions.ModelUnavailableError() | exceptions.ModelServerError():
            return Failed("unavailable", f"it was not available{status}", wait=wait)
        case exceptions.ModelRequestRejectedError():
            return Failed("refused", f"it refused the request{status}", retryable=False)
    return Failed("invalid", f"its answer could not be read{status}", lost=True)
