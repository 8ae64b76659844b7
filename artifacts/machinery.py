"""Private machinery in text: what an agent is told, what runs around it, what it is scored. Known by its key alone."""

import re
from collections.abc import Iterator

from artifacts import readings
from artifacts.readings import HIDDEN


def values(text: str) -> Iterator[tuple[int, int]]:
    """The value in `"system_prompt": …`, `hook_body: …`, `internal-score=…`: a JSON value whole, anything else to the end of its line."""
    lowered = readings.lowered(text)
    if not any(needle in lowered for needle in _MACHINES):
        return
    at = 0
    while match := _MACHINE.search(text, at):
        start, end = match.end(), _value_ends(text, match.end())
        at = max(end, match.end())
        if text[start] in "\"'" and end - start > 2:
            start, end = start + 1, end - 1  # the quotes stay, so that JSON stays JSON
        if _NOT_HIDDEN_YET.search(text, start, end):
            yield start, end


_MACHINES = ("prompt", "hook", "score", "system")
_SURE = r"(?:system|developer|user|agent)[_\ -]?prompts?|hook[_\ -]?(?:body|bodies)|system[_\ -]?message|internal[_\ -]?scores?"
_MACHINE = re.compile(
    rf"""(?:(?P<q>["'])(?:{_SURE}|prompts?|hooks?)(?P=q)[ \t]{{0,4}}(?::|=>)\s{{0,8}}
         |(?<![A-Za-z])(?:{_SURE})[ \t]{{0,4}}(?:=>|:=|[:=])[ \t]{{0,8}})(?=\S)""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_HIDDEN_YET = re.compile(rf"[^\s\"'{{}}\[\],{HIDDEN}]")
_VALUE_MAX = 16 * 1024
_STRING = re.compile(r'"(?:[^"\\]|\\.){0,16384}"|' + r"'(?:[^'\\\n]|\\.){0,16384}'", re.DOTALL)
_TO_END_OF_LINE = re.compile(r"[^\n]{0,8192}")
_BRACKET_OR_STRING = re.compile(r'[{\[}\]]|"(?:[^"\\]|\\.){0,16384}"', re.DOTALL)
_UP_TO_COMMA = re.compile(r"[^\n,}\]]{0,8192}")


def _value_ends(text: str, at: int) -> int:
    """Where a value that begins here ends."""
    if string := _STRING.match(text, at):
        return string.end()
    if text[at] not in "{[":
        rest = (_UP_TO_COMMA if text[at].isdigit() or text[at] == "-" else _TO_END_OF_LINE).match(text, at)
        return rest.end() if rest else at
    depth = 0
    for found in _BRACKET_OR_STRING.finditer(text, at, at + _VALUE_MAX):
        depth += (found[0] in "{[") - (found[0] in "}]")
        if depth == 0:
            return found.end()
    return min(len(text), at + _VALUE_MAX)
