"""Which values of a JSON document a policy's paths name (JSONPath, RFC 9535), with limits on hostile paths and huge documents.

`python-jsonpath` reads and follows the paths: MIT, no dependencies, kept (2.2.2 of October 2026), and strict about the RFC if asked.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice
from typing import Any

from jsonpath import JSONPath, JSONPathEnvironment, JSONPathError
from jsonpath.selectors import IndexSelector, NameSelector

from access.errors import BadInput

MAX_PATH = 200  # characters
MAX_SEGMENTS = 12
MAX_DOCUMENT = 1024 * 1024  # characters; of a longer one nothing is shown
MAX_VALUES = 20_000  # that one path names
_QUOTED = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""")

Place = tuple[str | int, ...]  # keys and indices from the root


class PathRefused(BadInput):
    """This path can't be followed."""

    what_next = "Write it as RFC 9535 says, such as $.customer.phone, $.items[*].note or $..iban: one `..` at most, and no functions."


@dataclass(frozen=True)
class Rule:
    """What a path names is hidden as `kind`; or shown, if that is empty, though an earlier rule hides it. In the texts of these events and
    tools, * and ? standing for what is not named."""

    path: str
    kind: str
    event: str = "*"
    tool: str = "*"

    def covers(self, about: str) -> bool:
        """`about`: the type of a text's event and its tool, with a blank between."""
        event, _, tool = about.partition(" ")
        return fnmatchcase(event, self.event) and fnmatchcase(tool, self.tool)


_environment = JSONPathEnvironment(strict=True)
_environment.function_extensions = {}  # match() and search() would run somebody's regular expression over each value


@lru_cache(maxsize=1024)
def compiled(path: str) -> JSONPath:
    """The path, ready to be followed. PathRefused says what is wrong with it."""
    if not path.startswith("$") or len(path) > MAX_PATH:
        raise PathRefused(f"It begins with $ and has at most {MAX_PATH} characters.")
    if path.count("..") > 1 or path.count("?") > 1:
        raise PathRefused("It has one `..` and one filter at most, so that following it takes no longer than reading the document.")
    try:
        found = _environment.compile(path)
    except (JSONPathError, RecursionError) as error:
        raise PathRefused(f"It is no JSONPath: {str(error).splitlines()[0][:200]}.") from error
    if not isinstance(found, JSONPath) or len(found.segments) > MAX_SEGMENTS:
        raise PathRefused(f"It has at most {MAX_SEGMENTS} steps.")
    if not all(_apart(segment.selectors) for segment in found.segments):
        raise PathRefused(
            "Several things in brackets are different names, or different numbers from 0: else one value would be come to twice."
        )
    if {",", "$"} & set(_QUOTED.sub("", path).partition("?")[2]):
        raise PathRefused("From a filter on it has no `$` and no `,`, so that following it takes no longer than reading the document.")
    return found


def _apart(selectors: Sequence[Any]) -> bool:
    """Whether no value is named by two of them. Twelve steps that each come to the same value twice would come to it 4,096 times."""
    names = [each.name for each in selectors if isinstance(each, NameSelector)]
    numbers = [each.index for each in selectors if isinstance(each, IndexSelector) and each.index >= 0]
    return len(selectors) == 1 or len(set(names)) + len(set(numbers)) == len(selectors)


def places(text: str, rules: Sequence[Rule]) -> Mapping[Place, str] | None:
    """What the rules say of which values, the last of them for each; None if the document can't be looked through: then all is hidden."""
    if len(text) > MAX_DOCUMENT:
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    named: dict[Place, str] = {}
    for rule in rules:
        try:
            matches = list(islice(compiled(rule.path).finditer(document), MAX_VALUES + 1))
        except (JSONPathError, PathRefused, RecursionError):
            return None
        if len(matches) > MAX_VALUES:
            return None
        named |= {tuple(match.parts): rule.kind for match in matches}
    return named
