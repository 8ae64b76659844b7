"""What may not be seen in words of ours: names, which everybody sees, and errors, which quote what somebody sent.

The detectors are another room's (artifacts), which puts them here at start-up; until then nothing is shown at all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from access import characters


@dataclass
class Detectors:
    """`hide`: a text with words in place of what must not be seen. `holds`: in words what of it a text holds; empty if nothing."""

    hide: Callable[[str], str] = lambda text: "[hidden]"
    holds: Callable[[str], str] = lambda text: "something that is not known"


detectors = Detectors()


def hidden(value: Any) -> Any:
    """The same value with every text in it hidden, keys as well."""
    if isinstance(value, str):
        return detectors.hide(value)
    if isinstance(value, dict):
        return {hidden(key): hidden(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [hidden(each) for each in value]
    return value


def unfit(name: str, most: int, *, whose: str, another: str) -> str:
    """What is wrong with a name that people type, as a sentence; else nothing. `whose`: Its, Your; `another`: what it may not pass for."""
    if not 1 <= characters.seen_length(name) <= len(name) <= most or "\0" in name or characters.has_hidden(name):
        return f"{whose} name has 1 to {most} characters that can be seen."
    if odd := characters.passing(name):
        return f"{whose} name has {odd}: it would be read as another {another}."
    if held := detectors.holds(name):
        return f"{whose} name holds what looks like {held}, and everybody sees it."
    return ""


def fit(name: str) -> str:
    """The name, if everybody may see it. ValueError, which says why not and does not quote it."""
    if held := detectors.holds(name):
        raise ValueError(f"holds what looks like {held}; names are seen by everybody and kept for good")
    return name
