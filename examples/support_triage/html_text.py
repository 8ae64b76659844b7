"""HTML to plain text, for reading only: in one pass, so that no nesting and no broken tag makes it slow.

A tree builder would be the usual tool. The two tried here (nh3, selectolax) took 5 to 15 s for 256 KB of nested tags, and
`html.parser` is slow on unclosed ones, so a message could stop a worker. Nothing here is meant to be shown as HTML again.
"""

import html
import re

# A comment that never ends hides the rest, as it does in a browser; "<" inside a tag ends it, which keeps the search linear.
_TAG = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(?P<end>/?)(?P<name>[a-zA-Z][a-zA-Z0-9]{0,20})(?:[^<>a-zA-Z0-9][^<>]{0,8000})?>"
    r"|<[!?/][^<>]{0,8000}>",
    re.S,
)
_BREAKS = re.compile(
    "address|article|aside|blockquote|br|div|d[dlt]|fieldset|footer|form|h[1-6r]|header|main|nav|ol|pre|section|table|tr|ul"
)
_SILENT = {name: re.compile(f"</{name}", re.I) for name in ("script", "style", "title")}


def to_text(markup: str) -> str:
    """The words of `markup`, block elements on lines of their own. Hidden elements are kept: what is there is read."""
    pieces: list[str] = []
    position = 0
    while match := _TAG.search(markup, position):
        pieces.append(_words(markup[position : match.start()]))
        position = match.end()
        name = (match["name"] or "").lower()
        if name in _SILENT and not match["end"]:
            position = _end_of(name, markup, position)
        pieces.append(_space_for(name, match["end"]))
    pieces.append(_words(markup[position:]))
    return _tidy("".join(pieces))


_HIDES = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0*(?:\.0+)?(?:px|pt|em|rem|%)?\s*(?:[;\"']|$)|opacity\s*:\s*0*(?:\.0+)?\s*(?:[;\"']|$)"
    r"|(?<![-\w])color\s*:\s*(?:#fff(?:fff)?\b|white\b)|\bhidden(?=[\s>/]|$)",
    re.I,
)
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())  # noqa: SIM905  they have no inside


def hidden(markup: str) -> str:
    """The words of `markup` that a browser most likely does not show: inside what its own style hides, and in comments."""
    pieces: list[str] = []
    position, inside, depth = 0, "", 0  # the element that hides, and how many of its name are open
    while match := _TAG.search(markup, position):
        if inside:
            pieces.append(_words(markup[position : match.start()]))
        elif match[0].startswith("<!--"):
            pieces.append(_words(match[0].removeprefix("<!--").removesuffix("-->")))
        position, name = match.end(), (match["name"] or "").lower()
        if name in _SILENT and not match["end"]:
            position = _end_of(name, markup, position)
        elif inside and name == inside:
            depth += -1 if match["end"] else 1
            inside = inside if depth else ""
        elif not inside and name and not match["end"] and name not in _VOID and _HIDES.search(match[0]):
            inside, depth = name, 1
    return _tidy("\n".join(pieces))


def _end_of(name: str, markup: str, position: int) -> int:
    closing = _SILENT[name].search(markup, position)
    return closing.start() if closing else len(markup)


def _space_for(name: str, end: str) -> str:
    if name == "li" and not end:
        return "\n- "
    if name == "p":
        return "\n\n"
    if name in ("td", "th"):
        return " "
    return "\n" if _BREAKS.fullmatch(name) else ""


def _words(piece: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(piece))


def _tidy(text: str) -> str:
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
