"""What HTML says, and what it does: the text that people see, what is there and is not seen, where links go, what would be loaded.

For telling people, not for showing: nothing here is drawn as HTML again. One pass in proportion to the source, and it never raises. It
follows how browsers read broken HTML as far as that decides what is seen: quotes without an end, tags that nobody closed, tags closed
in the wrong order. What a style sheet does to an element is not worked out; a rule that hides is told as such.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from artifacts import styles
from artifacts.styles import Look
from artifacts.tags import RAW, Comment, Tag, pieces

MAX_TOLD = 500  # hidden pieces, comments, links and remote things that are told one by one; of more it is said that there are more
LONG = 20_000  # characters of one hidden piece


@dataclass(frozen=True)
class Unseen:
    """Text that is there and that people do not see, and why: “display: none”, “comment” …"""

    why: str
    text: str


@dataclass(frozen=True)
class Link:
    """What a link shows, and where it goes."""

    shown: str
    to: str


@dataclass(frozen=True)
class Remote:
    """Something that would be loaded from elsewhere: what it is (image, style sheet, frame, file), and the name of the host."""

    what: str
    host: str


@dataclass
class Reading:
    """What was found. `text` is what people see, blocks on lines of their own; `instead` what is shown if an image is not."""

    text: str = ""
    instead: str = ""
    unseen: list[Unseen] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    remote: list[Remote] = field(default_factory=list)
    embedded: int = 0  # images that the message itself brings
    sheets: int = 0
    does: list[str] = field(default_factory=list)  # “script”, “form” …, each once
    over: list[str] = field(default_factory=list)  # of what there is more than is told: “links” …, each once


def read(source: str) -> Reading:
    """Read HTML, whatever it is."""
    return _Reader().read(source)


# Elements

VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())  # noqa: SIM905
_FORMATTING = frozenset("a b big code em font i nobr s small strike strong tt u".split())  # noqa: SIM905
_BLOCKS = frozenset(
    "address article aside blockquote br caption center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 "  # noqa: SIM905
    "h4 h5 h6 header hr li listing main menu nav ol p pre section summary table tbody td tfoot th thead tr ul".split()
)
_CELLS = frozenset("table td th caption template marquee object applet".split())  # noqa: SIM905
_SPECIAL = _BLOCKS | _CELLS | {"body", "button", "select"}
_ROWS = frozenset("table tbody thead tfoot tr colgroup".split())  # noqa: SIM905  what stands between their cells stands before the table
_OF_TABLES = frozenset("tbody thead tfoot tr td th caption colgroup".split())  # noqa: SIM905
_LASTING = ("body", "html")  # closed, they go on
# a closing tag → what is open between it and its element keeps it from closing anything; of what is not here, all that is _SPECIAL
_TABLE = frozenset({"table", "template"})
_HOLDS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(_SPECIAL | _FORMATTING, _CELLS),
    **dict.fromkeys(("li", "p"), _CELLS | {"ul", "ol", "button"}),
    **dict.fromkeys(_OF_TABLES | {"table"}, _TABLE),
    "template": frozenset(),
}


def _ended(names: str, holds: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(names.split()), holds - set(names.split())


_P = _ended("p", _CELLS | {"button"})
_IN_LISTS = _SPECIAL - {"address", "div", "p"}
_GROUPS = _ended("tbody thead tfoot caption colgroup", _TABLE)
# a tag → what it ends if nobody did, and what is open between keeps it from that
_ENDS: Mapping[str, tuple[tuple[frozenset[str], frozenset[str]], ...]] = {
    **dict.fromkeys(_BLOCKS - _OF_TABLES - {"br"}, (_P,)),
    "li": (_ended("li", _IN_LISTS), _P),
    **dict.fromkeys(("dd", "dt"), (_ended("dd dt", _IN_LISTS), _P)),
    **dict.fromkeys(("td", "th"), (_ended("td th caption colgroup", _TABLE),)),
    "tr": (_ended("tr caption colgroup", _TABLE),),
    **dict.fromkeys(("tbody", "thead", "tfoot", "caption", "colgroup"), (_GROUPS, _ended("tr", _TABLE))),
    "option": (_ended("option", frozenset({"select"})),),
    "button": (_ended("button", _CELLS),),
}
_NEAR = 16  # elements that go on where the formatting that they stand in ends
_AGAIN = 8  # formatting that goes on behind the element it was opened in
_UNSHOWN = {"script": "script", "style": "style sheet", "title": "title", "template": "template", "datalist": "list of suggestions"}
_UNSHOWN |= {"rp": "brackets for old programs"}
_SAYS: Mapping[str, tuple[str, ...]] = {
    "input": ("value", "placeholder"),
    "textarea": ("placeholder",),
    "option": ("label",),
    "optgroup": ("label",),
    "isindex": ("prompt",),
}
_DOES = {
    "script": "script",
    "form": "form",
    "input": "form",
    "button": "form",
    "select": "form",
    "option": "form",
    "textarea": "form",
    "iframe": "frame",
    "frame": "frame",
    "frameset": "frame",
    "object": "object",
    "embed": "object",
    "applet": "object",
    "details": "text that folds",
    "svg": "drawing",
    "math": "drawing",
    "audio": "sound or film",
    "video": "sound or film",
    "base": "another base for links",
}
_LOADS: Mapping[str, tuple[str, ...]] = {
    "img": ("src", "srcset"),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "input": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "iframe": ("src",),
    "frame": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "link": ("href",),
    "script": ("src",),
}
_WHAT = {"link": "style sheet", "iframe": "frame", "frame": "frame", "img": "image", "image": "image", "input": "image", "source": "image"}


@dataclass
class _Open:
    """An element that is open: what it does to the look of what is in it, and the look that comes of that."""

    name: str
    own: Mapping[str, str]
    look: Look
    link: list[str] | None = None


class _Reader:
    def __init__(self) -> None:
        self.found = Reading()
        self.text: list[str] = []
        self.instead: list[str] = []
        self.stack: list[_Open] = []
        self.places: dict[str, list[int]] = {}  # of each name where in the stack it is
        self.links: list[tuple[list[str], str]] = []
        self.raw = ""  # the element of RAW whose text comes next

    def read(self, source: str) -> Reading:
        for piece in pieces(source):
            if isinstance(piece, Comment):
                self._comment(piece.text)
            elif isinstance(piece, str):
                self._said(piece)
            elif piece.closes:
                self._close(piece.name)
            else:
                self._open(piece)
        self.found.text = _tidy("".join(self.text))
        self.found.instead = " ".join(self.instead)
        self.found.links = [Link(" ".join("".join(shown).split())[:LONG], to) for shown, to in self.links]
        self.found.does, self.found.over = (list(dict.fromkeys(each)) for each in (self.found.does, self.found.over))
        return self.found

    # text

    def _said(self, text: str) -> None:
        raw, self.raw = self.raw, ""
        if raw == "style":
            self._sheet(text)
        elif raw in ("script", "title", "iframe", "noembed", "noframes"):
            self._unseen(_UNSHOWN.get(raw, "frame"), text)
        elif why := self._why():
            self._unseen(why, text)
        else:
            self.text.append(text)
            around = self._around()
            if around and around.link is not None:
                around.link.append(text)

    def _shown(self, words: str) -> None:
        """Words that stand in no text, and people see all the same: on a line of their own."""
        if any(char.isalnum() for char in words):
            self.text.append(f"\n{words}\n")

    def _why(self) -> str:
        """Why nobody sees what stands here; nothing if they do."""
        around = self._around()
        return around.look.unseen if around else ""

    def _around(self, name: str = "") -> _Open | None:
        """The element in which a text, or an element of this name, comes to stand: what is no part of a table stands before it."""
        inside = bool(self.stack) and self.stack[-1].name in _ROWS and name not in _OF_TABLES
        at = self._at("table") - 1 if inside else len(self.stack) - 1
        return self.stack[at] if at >= 0 else None

    def _unseen(self, why: str, text: str) -> None:
        said = " ".join(text.split())
        if not any(char.isalnum() for char in said):
            return  # what only makes room
        last = self.found.unseen[-1] if self.found.unseen else None
        if last and last.why == why and len(last.text) + len(said) < LONG:
            self.found.unseen[-1] = Unseen(why, f"{last.text} {said}")
        elif self._has_room(self.found.unseen, "hidden text"):
            self.found.unseen.append(Unseen(why, said[:LONG]))
        if len(said) > LONG:
            self.found.over.append("hidden text")

    def _comment(self, text: str) -> None:
        said = " ".join(text.split())
        if said and self._has_room(self.found.comments, "comments"):
            self.found.comments.append(said[:LONG])
        if len(said) > LONG:
            self.found.over.append("comments")

    def _has_room(self, told: Sequence[Any], what: str) -> bool:
        """Whether one more can be told. If not, it is remembered that there is more."""
        if len(told) >= MAX_TOLD:
            self.found.over.append(what)
        return len(told) < MAX_TOLD

    def _sheet(self, text: str) -> None:
        self.found.sheets += 1
        self._load_by_style(text)
        for rule in styles.hiding(text):
            self._unseen("a rule of a style sheet", rule)
        for words in styles.written(text):
            self._shown(words)
        if styles.is_long(text):
            self.found.over.append("rules of a style sheet")

    # tags

    def _open(self, tag: Tag) -> None:
        self._end_what_ends_by_itself(tag.name)
        self._does(tag)
        self._loads(tag)
        if tag.name in _BLOCKS:
            self.text.append("\n")
        if tag.name == "img" and tag.attributes.get("alt"):
            self.instead.append(tag.attributes["alt"])
        if tag.name in RAW:
            self.raw = tag.name
        if not self._why() and tag.attributes.get("type", "").strip().lower() != "hidden":
            for key in _SAYS.get(tag.name, ()):
                self._shown(tag.attributes.get(key, ""))
        if "srcdoc" in tag.attributes and tag.name == "iframe":
            self._unseen("frame", tag.attributes["srcdoc"])
        if tag.name in VOID:
            return
        if tag.name in _OF_TABLES and not self.places.get("table"):
            return  # browsers take it for nothing, and how it looks with it
        if tag.name in _OF_TABLES:
            self._leave_what_is_in_no_cell()
        own = styles.of(tag.name, tag.attributes)
        if tag.name == "body" and own and (self.places.get("body") or any(map(str.strip, self.text))):
            self.found.does.append("a look for what stands before it")
        self._push(tag.name, own, self._link(tag))

    def _leave_what_is_in_no_cell(self) -> None:
        row = max(map(self._at, _ROWS))
        if len(self.stack) - 1 > row > max(map(self._at, ("td", "th", "caption"))):
            self._pop(len(self.stack) - 1 - row, again=False)

    def _push(self, name: str, own: Mapping[str, str], link: list[str] | None) -> None:
        above = self._around(name)
        around = above.look if above else Look()
        if name == "caption":  # it stands outside the box of its table
            around = around._replace(ground=self.stack[self._at("table") - 1].look.ground if self._at("table") > 0 else Look().ground)
        elif own and self.stack and self.stack[-1].name in _ROWS and name not in _OF_TABLES:
            self.found.does.append("a look in a table outside its cells")
        look = styles.within(around, own)
        if name in _UNSHOWN:
            look = look._replace(why=look.why or _UNSHOWN[name])
        self.stack.append(_Open(name, own, look, link if link is not None else above.link if above else None))
        self.places.setdefault(name, []).append(len(self.stack) - 1)

    def _link(self, tag: Tag) -> list[str] | None:
        to = tag.attributes.get("href", tag.attributes.get("xlink:href")) if tag.name in ("a", "area") else None
        if to is None or not self._has_room(self.links, "links"):
            return None
        shown: list[str] = []
        self.links.append((shown, _cleaned(to)[:LONG]))
        return shown

    def _end_what_ends_by_itself(self, name: str) -> None:
        if name in ("a", "nobr"):
            self._close(name)
        for ends, holds in _ENDS.get(name, ()):
            at = max(map(self._at, ends))
            if at >= 0 and all(self._at(each) < at for each in holds):
                self._pop(len(self.stack) - at)

    def _close(self, name: str) -> None:
        if name in _BLOCKS:
            self.text.append("\n")
        at = self._at(name)
        if at < 0 or name in _LASTING or any(self._at(each) > at for each in _HOLDS.get(name, _SPECIAL)):
            return
        inside = self.stack[at + 1 : at + 1 + _NEAR] if name in _FORMATTING else []
        stay = any(each.name in _SPECIAL for each in inside)  # a block does not end with the formatting that it stands in
        self._pop(len(self.stack) - at, again=not stay)
        for each in inside if stay else ():
            self._push(each.name, each.own, None if name == "a" else each.link)

    def _at(self, name: str) -> int:
        """Where in the stack the innermost of this name is; -1 if none is open."""
        there = self.places.get(name)
        return there[-1] if there else -1

    def _pop(self, back: int, *, again: bool = True) -> None:
        """Close the element that is so far up. Formatting that was opened in it and not closed goes on behind it, as in a browser."""
        closed = self.stack[-back:]
        del self.stack[-back:]
        for each in closed:
            self.places[each.name].pop()
        for each in [each for each in closed[1:] if again and each.name in _FORMATTING][:_AGAIN]:
            self._push(each.name, each.own, each.link)

    # what it does and loads

    def _does(self, tag: Tag) -> None:
        if does := _DOES.get(tag.name):
            self.found.does.append(does)
        if tag.name == "meta" and tag.attributes.get("http-equiv", "").strip().lower() == "refresh":
            self.found.does.append("going elsewhere by itself")
        own = styles.declarations(tag.attributes["style"]) if "style" in tag.attributes else {}
        if tag.name == "bdo" or "override" in own.get("unicode-bidi", ""):
            self.found.does.append("text turned around")
        if styles.left_out(own) and not styles.hides(own):
            self.found.does.append("text moved, cut or changed by a style")
        if any(key.startswith("on") and len(key) > 4 for key in tag.attributes):
            self.found.does.append("event handler")
        if any(_scheme(tag.attributes.get(key, "")) in ("javascript", "vbscript") for key in ("href", "src", "action", "formaction")):
            self.found.does.append("script")

    def _loads(self, tag: Tag) -> None:
        for key in _LOADS.get(tag.name, ()):
            value = tag.attributes.get(key, "")
            for address in value.split(",") if key == "srcset" else [value]:
                self._load(_WHAT.get(tag.name, "file"), address.strip().split(" ")[0])
        self._load("image", tag.attributes.get("background", "").strip())
        if style := tag.attributes.get("style"):
            self._load_by_style(style)

    def _load_by_style(self, text: str) -> None:
        for what, address in styles.loaded(text):
            self._load(what, address)

    def _load(self, what: str, address: str) -> None:
        scheme = _scheme(address)
        if scheme in ("cid", "data"):
            self.found.embedded += what == "image"
        elif (scheme or address.startswith(("//", "\\\\"))) and self._has_room(self.found.remote, "what is loaded"):
            self.found.remote.append(Remote(what, host_of(address)))


def host_of(address: str) -> str:
    """The name of the host in an address; “?” if it can't be told."""
    clean = re.sub(r"[\t\r\n]", "", address).replace("\\", "/")
    try:
        host = urlsplit(clean if "://" in clean[:20] or not clean.startswith("//") else f"http:{clean}").hostname
    except ValueError:
        host = None
    return (host or "an address that can’t be read").rstrip(".")[:253]


def _cleaned(address: str) -> str:
    """An address as browsers take it: without line ends and tabs, and without controls and spaces around it."""
    return re.sub(r"[\t\r\n]", "", address).strip("".join(map(chr, range(33))))


def _scheme(address: str) -> str:
    match = re.match(r"[\x00-\x20]*([A-Za-z][A-Za-z0-9+.\-\t\r\n]{0,30}):", address)
    return re.sub(r"\s", "", match[1]).lower() if match else ""


def _tidy(text: str) -> str:
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
