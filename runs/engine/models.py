"""Calls to language models. A model answers a named prompt; which model that is is a setting, and every call is recorded with it.

With no provider configured the answers come from scripts that workflows register, and the page says that they are scripted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runs.vocabulary import ModelCalled

Script = Callable[..., Mapping[str, Any]]


@dataclass(frozen=True)
class Completion:
    """What a model gave: JSON values by name, and what it took."""

    model: str
    scripted: bool
    prompt_version: str
    values: Mapping[str, Any]
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micro: int = 0
    finish: str = "stop"

    def told(self, prompt: str, *, ms: int, step: str | None = None) -> ModelCalled:
        """The event of this call, as the log has it."""
        return ModelCalled(
            model=self.model,
            scripted=self.scripted,
            prompt=prompt,
            prompt_version=self.prompt_version,
            step=step,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            cost_micro=self.cost_micro,
            ms=ms,
            finish=self.finish,
        )


@dataclass(frozen=True)
class Prompt:
    """A named prompt, and the script that answers it when no model is configured. `title` is its step in a plan."""

    version: str
    title: str
    script: Script


_PROMPTS: dict[str, Prompt] = {}


def script(prompt: str, *, version: str, title: str) -> Callable[[Script], Script]:
    """Register the function that answers `prompt` when no model is configured. It is given the prompt's variables."""

    def register(function: Script) -> Script:
        _PROMPTS[prompt] = Prompt(version, title, function)
        return function

    return register


class UnknownPrompt(LookupError):
    """No prompt of this name is loaded."""


def named(prompt: str) -> Prompt:
    """UnknownPrompt if there is none of that name."""
    if prompt not in _PROMPTS:
        raise UnknownPrompt(prompt)
    return _PROMPTS[prompt]


def titled(title: str) -> bool:
    """Whether a prompt is the step of this title."""
    return any(prompt.title == title for prompt in _PROMPTS.values())


def ask(prompt: str, variables: Mapping[str, Any]) -> Completion:
    """Answer a prompt, from its script."""
    asked = named(prompt)
    return Completion(model="scripted", scripted=True, prompt_version=asked.version, values=asked.script(**variables))
