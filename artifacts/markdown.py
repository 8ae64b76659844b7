"""The Markdown of a rendition as HTML that runs nothing, loads nothing and leads nowhere.

What is hidden is taken out before the parser sees the text, and its mark is put back behind it. Raw HTML is text; links, images and
references stay as they are written, so that an address is read and not followed; nh3 then lets through these few tags, without attributes
but the class of a column that is set to the right.
markdown-it-py (MIT) is kept by the makers of Jupyter Book; nh3 is here already.
"""

import re
from collections.abc import Callable, Sequence

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from artifacts.rendition import Segment, Text, segments

TAGS = set("h3 h4 h5 h6 p ul ol li blockquote pre code strong em s br hr table thead tbody tr th td".split())  # noqa: SIM905
ATTRIBUTES = {"th": {"class"}, "td": {"class"}}
_PARSER = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
_PARSER.disable(["link", "autolink", "image", "reference"])
_OURS = re.compile("[\ue000-\ue002]")  # private use: the parser leaves them alone, and a text’s own are none of ours
_HELD = re.compile("\ue000([0-9]{1,6})\ue001")
_LONG = re.compile("([^\\s\ue000-\ue002]{80})(?=[^\\s\ue000-\ue002])")  # where a browser may break a very long word


def as_html(text: str, draw: Callable[[Segment], str]) -> str:
    """A rendition’s Markdown; `draw` gives the HTML of what is no text in it."""
    held: list[Segment] = []
    tokens = _PARSER.parse(_source(segments(text), held))
    html = nh3.clean(_PARSER.renderer.render(_lower(tokens), _PARSER.options, {}), tags=TAGS, attributes=ATTRIBUTES, link_rel=None)
    return _HELD.sub(lambda mark: draw(held[int(mark[1])]), html).replace("\ue002", "<wbr>")


def _source(parts: Sequence[Segment], held: list[Segment]) -> str:
    source = []
    for part in parts:
        if isinstance(part, Text):
            source.append(_LONG.sub("\\1\ue002", _OURS.sub("\ufffd", part.text)))
        else:
            source.append(f"\ue000{len(held)}\ue001")
            held.append(part)
    return "".join(source)


def _lower(tokens: Sequence[Token]) -> Sequence[Token]:
    """Its headings stand below those of the page; a column that it sets to the right has a class, for a style is none of ours."""
    for token in tokens:
        right = token.attrs.get("style") == "text-align:right"
        token.attrs = {"class": "r"} if right and token.type in ("th_open", "td_open") else {}
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + 2, 6)}"
    return tokens
