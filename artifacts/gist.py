"""What a letter says, in a sentence or two: to be quoted where there is no room for all of it. Works on renditions, and is pure."""

import re

WRAPPED = 56  # characters; a line that is shorter was ended by who wrote it
NAMED = 40  # characters of a greeting or a name at the end, at most
_LIST = re.compile(r"(?:[-•*] |--|\d{1,3}[.)] |Attached:|Written in its HTML)")
_SENTENCE = re.compile(r"(?<=[.!?])[”\"’)]?\s+(?=[^\W_a-z]|[“\"⟦(])")
_ENDS = (".", "!", "?", ":", ";", "…", "”", '"', ")")


def gist(text: str, most: int) -> str:
    """The first whole sentences of a text, `most` characters of them: without its greeting, and no further than its first list or name.

    An ellipsis stands where a sentence had to be cut, and only there.
    """
    words = " ".join(_letter(unwrapped(text).split("\n")))
    if len(words) <= most:
        return words
    kept = ""
    for sentence in _SENTENCE.split(words):
        longer = f"{kept} {sentence}".strip()
        if len(longer) > most:
            break
        kept = longer
    return kept or _cut(words, most)


def unwrapped(text: str) -> str:
    """Its lines as somebody wrote them: where a mail program broke a long one, it goes on. Empty ones are left out."""
    lines: list[str] = []
    goes_on = False
    for line in (" ".join(each.split()) for each in text.split("\n")):
        if line and goes_on:
            lines[-1] += f" {line}"
        elif line:
            lines.append(line)
        goes_on = len(line) >= WRAPPED
    return "\n".join(lines)


def _letter(lines: list[str]) -> list[str]:
    """Its lines between the greeting and what comes after the first thing said."""
    if len(lines) > 1 and len(lines[0]) <= NAMED and lines[0].endswith((",", "!")):
        lines = lines[1:]
    until = next((at for at, line in enumerate(lines) if at and (_LIST.match(line) or _is_name(line))), len(lines))
    return lines[:until]


def _is_name(line: str) -> bool:
    return len(line) <= NAMED and not line.endswith(_ENDS)


def _cut(words: str, most: int) -> str:
    """At a space, and never within the mark of something hidden."""
    cut = words[:most].rsplit(" ", 1)[0]
    if cut.rfind("⟦") > cut.rfind("⟧"):
        cut = cut[: cut.rfind("⟦")]
    return cut.rstrip(" ,.;:–-") + "…"
