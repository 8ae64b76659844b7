"""Named prompts. Each has a version, and its words stand in a file called after both: `draft-reply@3.md`.

A file is read once, when its workflow is loaded, and its hash goes with every call: what was asked is known, whatever the file says later.
A prompt's words are for the model alone; no page, push or answer of the API has them.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

Script = Callable[..., Mapping[str, Any]]
NAME = re.compile(r"[a-z][a-z0-9-]{0,59}")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,79}")  # as the log holds it
MAIN = "main"


@dataclass(frozen=True)
class Prompt:
    """A named prompt. `title` is its step in a plan; `script` answers it where no model does.

    `words` are the instructions, and `digest` the SHA-256 of their file; a prompt without them is always answered by its script. `gives`
    says what an answer holds; without it, one text called `text`. `at`: the endpoint that is asked.
    """

    version: str
    title: str
    script: Script
    words: str = field(default="", repr=False)
    digest: str = ""
    gives: type[BaseModel] | None = None
    at: str = MAIN

    @property
    def schema(self) -> dict[str, Any]:
        """What an answer holds, as JSON Schema."""
        if self.gives is not None:
            return self.gives.model_json_schema()
        return {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": False}


_PROMPTS: dict[str, Prompt] = {}


def script(
    prompt: str, *, version: str, title: str, words: Path | None = None, gives: type[BaseModel] | None = None, at: str = MAIN
) -> Callable[[Script], Script]:
    """Register the function that answers `prompt` where no model is configured. It is given the prompt's variables.

    `words`: the directory with the prompt's file `<prompt>@<version>.md`. BadPrompt if it is not there.
    """
    if not NAME.fullmatch(prompt):
        raise BadPrompt(f"{prompt}: a prompt is called by small letters, digits and hyphens.")
    text, digest = _read(words / f"{prompt}@{version}.md") if words else ("", "")

    def register(function: Script) -> Script:
        _PROMPTS[prompt] = Prompt(version, title, function, text, digest, gives, at)
        return function

    return register


class UnknownPrompt(LookupError):
    """No prompt of this name is loaded."""


class BadPrompt(Exception):
    """A prompt is not declared as it must be."""


def named(prompt: str) -> Prompt:
    """UnknownPrompt if there is none of that name."""
    if prompt not in _PROMPTS:
        raise UnknownPrompt(prompt)
    return _PROMPTS[prompt]


def titled(title: str, among: Collection[str] = ()) -> Prompt | None:
    """The prompt whose step has this title. `among`: the names of those that may be meant; empty if it can be any."""
    return next((prompt for name, prompt in _PROMPTS.items() if prompt.title == title and (not among or name in among)), None)


def _read(file: Path) -> tuple[str, str]:
    """The words of a prompt's file, and its hash."""
    try:
        content = file.read_bytes()
        words = content.decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadPrompt(f"{file.name}: the prompt's file can't be read.") from error
    if not words:
        raise BadPrompt(f"{file.name}: the prompt's file is empty.")
    return words, hashlib.sha256(content).hexdigest()
