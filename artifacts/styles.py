"""As much of CSS as decides whether somebody sees a text: what hides it, its size, its colour and the colour behind it. Pure."""

import colorsys
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from artifacts.boxed import IMPORTANT, PROPERTIES, VALUE

Colour = tuple[int, int, int]
BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)
TINY = 2.0  # pixels: smaller text is not read
FAINT = 1.2  # contrast as WCAG counts it: 1 is the same colour
FAR = -400.0  # pixels: what is moved so far out is out of sight; to the other side, where one can scroll, four times that
RULES = 4000  # rules of a style sheet that are looked at


class Look(NamedTuple):
    """How text looks in an element. `ground` None: behind it is something that has no one colour."""

    colour: Colour | None = BLACK
    ground: Colour | None = WHITE
    size: float = 16.0  # pixels
    why: str = ""  # why it is not seen, whatever its size and colour

    @property
    def unseen(self) -> str:
        """Why text that looks so is not seen; nothing if it is."""
        if self.why:
            return self.why
        if self.size < TINY:
            return f"font-size: {self.size:g}px"
        if self.colour is not None and self.ground is not None and contrast(self.colour, self.ground) < FAINT:
            return "white on white" if self.colour == self.ground == WHITE else "the colour of what is behind it"
        return ""


def of(name: str, attributes: Mapping[str, str]) -> dict[str, str]:
    """What an element's own attributes say of its look, as declarations."""
    said: dict[str, str] = {}
    if attributes.get("bgcolor"):
        said["background-color"] = attributes["bgcolor"].strip().lower()
    if attributes.get("background"):
        said["background-image"] = "url()"
    if name == "font" and attributes.get("color"):
        said["color"] = attributes["color"].strip().lower()
    if name == "body" and attributes.get("text"):
        said["color"] = attributes["text"].strip().lower()
    if "hidden" in attributes:
        said["display"] = "none"
    return said | declarations(attributes.get("style", ""))


def declarations(style: str) -> dict[str, str]:
    """Property → value in lower case, escapes and comments undone: of each name what counts in a browser.

    That is the last, unless an earlier one is important or this one is none that every browser knows.
    """
    return _counting(_Sheet(style).own)


def _counting(said: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    grave: set[str] = set()
    for each in said:
        key, colon, value = _unescape(each).lower().partition(":")
        key, (value, important) = key.strip(), IMPORTANT.subn(" ", value)
        value = " ".join(value.split())
        if not colon or (key in grave and not important):
            continue
        if not _is_a_value(key, value):
            found.setdefault(key, value)
            continue
        found[key] = value
        if key == "font" and (size := _size_in(value)) and (important or "font-size" not in grave):
            key, found["font-size"] = "font-size", size.partition("/")[0]
        if important:
            grave.add(key)
    return found


_DISPLAYS = frozenset(
    "none block inline inline-block list-item table inline-table table-row table-cell table-caption table-row-group table-header-group "  # noqa: SIM905
    "table-footer-group flex inline-flex grid inline-grid contents flow-root initial inherit unset".split()
)
_VISIBLE = frozenset("visible hidden collapse initial inherit unset".split())  # noqa: SIM905


def _is_a_value(key: str, value: str) -> bool:
    """Whether any browser takes this for a value. Told for what hides alone; of the rest everything is one."""
    if key == "display":
        return value in _DISPLAYS
    if key == "visibility":
        return value in _VISIBLE
    if key in ("opacity", "font-size"):
        return _MEASURE.fullmatch(value) is not None or value.isalpha() or "-" in value and value.replace("-", "").isalpha()
    return colour_of(value, BLACK) is not None if key in ("color", "background-color") else True


# How CSS is taken apart: strings and what is in brackets are whole, a comment is nothing, and what never ends lasts to the end
_TOKEN = re.compile(
    r"""/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*(?:["\n]|\\?\Z)|'(?:[^'\\\n]|\\.)*(?:['\n]|\\?\Z)|\\.|url\(\s*(?!["'\s])[^)\\]*|[^/"'\\(){};u]+|.""",
    re.S | re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(?:([0-9A-Fa-f]{1,6})\s?|\r?\n|(.))", re.S)


class _Sheet:
    """A style, or a style sheet: its own declarations, and each block with what it is about. A block within another stands by itself."""

    def __init__(self, css: str) -> None:
        self.blocks: list[tuple[str, list[str]]] = []
        self.own: list[str] = []
        open_, here, depth = [("", self.own)], "", 0
        parts: list[str] = []
        for match in _TOKEN.finditer(css):
            piece = match[0]
            if piece.startswith("/*"):
                continue
            if piece not in ("{", "}", ";") or (piece == ";" and depth) or (piece == "}" and len(open_) == 1):
                depth = max(depth + piece.count("(") - piece.count(")"), 0) if piece[0] not in "\"'\\" else depth
                parts.append(piece)
                continue
            here, parts, depth = "".join(parts).strip(), [], 0
            if piece == "{":
                self.blocks.append((here, []))
                open_.append(self.blocks[-1])
                continue
            open_[-1][1].append(here)
            if piece == "}":
                open_.pop()
        open_[-1][1].append("".join(parts).strip())


def plain(css: str) -> str:
    """Without comments and escapes."""
    if "/*" in css:
        css = "".join(token for token in _TOKEN.findall(css) if not token.startswith("/*"))
    return _unescape(css)


def _unescape(css: str) -> str:
    return _ESCAPE.sub(_unescaped, css) if "\\" in css else css


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        code = int(match[1], 16)
        return chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"
    return match[2] or ""


def within(above: Look, own: Mapping[str, str]) -> Look:
    """The look in an element that says this of itself, in one that looks so."""
    if not own:
        return above
    size = above.size
    if "font-size" in own or "font" in own:
        size = _size(own.get("font-size") or _size_in(own["font"]), above.size)
    ground = _ground(above.ground, own)
    colour = above.colour if "color" not in own else ground if _is_clear(own["color"]) else colour_of(own["color"], above.colour)
    return Look(colour, ground, size, above.why or hides(own))


_OVERFLOWING = ("visible", "initial", "inherit", "unset")


def hides(own: Mapping[str, str]) -> str:
    """The declaration that hides whatever is in the element, if there is one."""
    if own.get("display") == "none":
        return "display: none"
    if own.get("visibility") in ("hidden", "collapse"):
        return f"visibility: {own['visibility']}"
    if own.get("content-visibility") == "hidden":
        return "content-visibility: hidden"
    if own.get("mso-hide") == "all":
        return "mso-hide: all"
    if "opacity" in own and _number(own["opacity"], 1.0) <= 0.05:
        return "opacity: 0"
    if any(own.get(key, "visible") not in _OVERFLOWING for key in ("overflow", "overflow-x", "overflow-y")):
        for key in ("max-height", "height", "max-width", "width"):
            if key in own and 0 <= _number(own[key], 99.0) <= 1:
                return f"{key}: {own[key]}"
    for key in ("text-indent", "left", "top", "right", "bottom", "margin-left", "margin-top", "margin", "transform", "translate"):
        if key in own and any(_number(each, 0.0) <= FAR or _number(each, 0.0) >= -FAR * 4 for each in re.split(r"[\s,()]+", own[key])):
            return f"{key}: {own[key]}"[:60]
    if own.get("color") and own["color"] == own.get("background-color", own.get("background")):
        return "the colour of what is behind it"
    if _is_clear(own.get("-webkit-text-fill-color", "")) or re.search(r"\bopacity\(\s*0*\.?0*%?\s*\)", own.get("filter", "")):
        return "see-through"
    if (
        own.get("zoom") in ("0", "0%")
        or own.get("scale") == "0"
        or re.match(r"(?:circle\(0|inset\((?:[5-9]\d|100)%)", own.get("clip-path", ""))
    ):
        return "cut away"
    if re.search(r"\bscale\w*\(\s*0*\.?0*\s*[,)]", own.get("transform", "")) or own.get("clip", "").startswith("rect(0"):
        return "cut away"
    return ""


def left_out(own: Mapping[str, str]) -> bool:
    """Whether what it says may move, cover, cut or change text in a way that is not worked out here."""
    return any(not _is_told(key, value) for key, value in own.items())


def _is_told(key: str, value: str) -> bool:
    if (
        value in ("none", "normal", "auto", "static", "initial", "inherit", "unset")
        or "url(" in value
        or key in ("unicode-bidi", "mso-hide")
    ):
        return True  # the last two are told by themselves
    if key in PROPERTIES:
        return VALUE.fullmatch(re.sub(r"[\"']", "", value)) is not None and _is_a_value(key, value)
    if key == "position":
        return value == "relative"
    if key in ("top", "right", "bottom", "left"):
        return _number(value, 1.0) == 0
    return key in HARMLESS or key.startswith(HARMLESS_WITH)


HARMLESS = frozenset(
    "-ms-text-size-adjust -webkit-text-size-adjust text-size-adjust -webkit-font-smoothing -moz-osx-font-smoothing text-rendering "  # noqa: SIM905
    "-ms-interpolation-mode word-break word-wrap overflow-wrap hyphens -webkit-hyphens line-break tab-size box-sizing table-layout "
    "box-shadow text-shadow cursor caption-side empty-cells object-fit overflow-x overflow-y color-scheme text-align-last text-justify "
    "text-overflow orphans widows flex flex-wrap flex-grow flex-shrink flex-basis justify-content align-items align-self align-content "
    "gap row-gap column-gap z-index user-select -webkit-user-select pointer-events aspect-ratio".split()
)
HARMLESS_WITH = (
    *("mso-", "-mso-", "panose-", "tab-stops", "border-", "outline", "background-", "text-decoration-", "text-underline-", "font-variant-"),
    *("list-style-", "page-break-", "break-", "transition", "padding-", "margin-", "font-stretch", "font-kerning", "-webkit-tap-"),
)


def hiding(sheet: str) -> Iterator[str]:
    """The rules of a style sheet that hide what they are about, as they are written, on one line."""
    for about, said in _Sheet(sheet).blocks[:RULES]:
        own = _counting(said)
        look = within(Look(), own)
        if look.why or look.size < TINY or ("color" in own and look.unseen):
            yield " ".join(f"{about} {{ {'; '.join(filter(None, said))} }}".split())[:200]


def written(sheet: str) -> Iterator[str]:
    """The words that a style sheet itself puts before or behind what it is about."""
    for _, said in _Sheet(sheet).blocks[:RULES]:
        for each in said:
            key, _, value = each.partition(":")
            if _unescape(key).strip().lower() == "content":
                yield from (_unescape(word[1:-1]) for word in _STRING.findall(value))


def is_long(sheet: str) -> bool:
    """Whether it has more rules than are looked at."""
    return sheet.count("{") > RULES


_STRING = re.compile(r"""(?s)"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")
_LOADED = re.compile(r"(@import\s{0,9}(?:url\()?|\burl\()\s{0,9}[\"']?\s{0,9}([^\s\"')]{1,2000})", re.IGNORECASE)


def loaded(css: str) -> Iterator[tuple[str, str]]:
    """What a style would load: (image or style sheet, address)."""
    for match in _LOADED.finditer(plain(css)):
        yield "style sheet" if match[1].startswith("@") else "image", match[2]


# Sizes and colours

_PIXELS = {"px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "": 1.0}
_MEASURE = re.compile(r"([+-]?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(?:e[+-]?\d{1,3})?)(px|pt|pc|in|cm|mm|r?em|ex|ch|vw|vh|%|)(?![\w.])")


def _number(value: str, otherwise: float) -> float:
    """A measure in pixels, as far as it says; `em` counts 16, and parts of something else 1."""
    match = _MEASURE.match(value)
    return float(match[1]) * (16.0 if "em" in match[2] else _PIXELS.get(match[2], 1.0)) if match else otherwise


def _size(value: str, above: float) -> float:
    match = _MEASURE.match(value)
    if not match:
        return 16.0 if value else above
    number, unit = float(match[1]), match[2]
    if unit in ("em", "%", "ex", "ch"):
        return above * number * {"em": 1.0, "%": 0.01}.get(unit, 0.5)
    return number * (16.0 if unit == "rem" else _PIXELS.get(unit, 10.0))


def _size_in(font: str) -> str:
    return next((word for word in font.split(",")[0].split() if _MEASURE.match(word) and (not word.isdecimal() or int(word) == 0)), "")


def _ground(above: Colour | None, own: Mapping[str, str]) -> Colour | None:
    value = own.get("background-color", own.get("background", ""))
    if "url(" in own.get("background-image", "") + value or "gradient" in own.get("background-image", "") + value:
        return None
    word = next((each for each in _WORDS.findall(value) if _known(each)), "")
    return colour_of(word, above) if word else above if not value or "background-color" not in own else None


_WORDS = re.compile(r"#[0-9a-f]+|[a-z]+\([^()]{0,80}\)|[a-z]+")
_HEX = re.compile(r"#?([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_FUNCTION = re.compile(r"(rgb|hsl)a?\(([^()]{0,80})\)")


def _known(word: str) -> bool:
    return word[0] == "#" or word in NAMED or word == "transparent" or _FUNCTION.fullmatch(word) is not None


_INHERITED = ("inherit", "currentcolor", "initial", "unset")


def _is_clear(value: str) -> bool:
    """Whether text of this colour is wholly transparent."""
    return value not in _INHERITED and colour_of(value, None) is None and colour_of(value, BLACK) is not None


def colour_of(value: str, above: Colour | None) -> Colour | None:
    """The colour a value names; that of above if it is wholly transparent or inherited, None if it is not known."""
    if value in ("transparent", *_INHERITED):
        return above
    if value in NAMED:
        value = NAMED[value]
    hexed = _HEX.fullmatch(value)
    if hexed:
        digits = hexed[1] if len(hexed[1]) > 4 else "".join(char * 2 for char in hexed[1])
        return above if digits[6:] == "00" else (int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16))
    function = _FUNCTION.fullmatch(value)
    return _called(function[1], re.findall(r"[+-]?[\d.]+%?", function[2]), above) if function else None


def _called(name: str, given: list[str], above: Colour | None) -> Colour | None:
    try:
        numbers = [
            float(each.rstrip("%")) * (2.55 if each.endswith("%") and name == "rgb" and at < 3 else 1) for at, each in enumerate(given)
        ]
    except ValueError:
        return None
    if len(numbers) < 3:
        return None
    if len(numbers) > 3 and numbers[3] <= 0.05:
        return above
    if name == "hsl":
        of = colorsys.hls_to_rgb(numbers[0] / 360 % 1, *(min(max(each, 0), 100) / 100 for each in (numbers[2], numbers[1])))
        numbers = [each * 255 for each in of]
    red, green, blue = (round(min(max(each, 0), 255)) for each in numbers[:3])
    return red, green, blue


def contrast(one: Colour, other: Colour) -> float:
    """How far apart two colours are, from 1 (the same) to 21 (black and white), as WCAG 2 has it."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Colour) -> float:
    red, green, blue = ((c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4) for c in (each / 255 for each in colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# the names of CSS Color 4
_TABLE = (  # noqa: SIM905  a table is shorter so
    "aliceblue f0f8ff antiquewhite faebd7 aqua 00ffff aquamarine 7fffd4 azure f0ffff beige f5f5dc bisque ffe4c4 black 000000 "
    "blanchedalmond ffebcd blue 0000ff blueviolet 8a2be2 brown a52a2a burlywood deb887 cadetblue 5f9ea0 chartreuse 7fff00 "
    "chocolate d2691e coral ff7f50 cornflowerblue 6495ed cornsilk fff8dc crimson dc143c cyan 00ffff darkblue 00008b "
    "darkcyan 008b8b darkgoldenrod b8860b darkgray a9a9a9 darkgreen 006400 darkgrey a9a9a9 darkkhaki bdb76b "
    "darkmagenta 8b008b darkolivegreen 556b2f darkorange ff8c00 darkorchid 9932cc darkred 8b0000 darksalmon e9967a "
    "darkseagreen 8fbc8f darkslateblue 483d8b darkslategray 2f4f4f darkslategrey 2f4f4f darkturquoise 00ced1 "
    "darkviolet 9400d3 deeppink ff1493 deepskyblue 00bfff dimgray 696969 dimgrey 696969 dodgerblue 1e90ff firebrick b22222 "
    "floralwhite fffaf0 forestgreen 228b22 fuchsia ff00ff gainsboro dcdcdc ghostwhite f8f8ff gold ffd700 goldenrod daa520 "
    "gray 808080 green 008000 greenyellow adff2f grey 808080 honeydew f0fff0 hotpink ff69b4 indianred cd5c5c indigo 4b0082 "
    "ivory fffff0 khaki f0e68c lavender e6e6fa lavenderblush fff0f5 lawngreen 7cfc00 lemonchiffon fffacd lightblue add8e6 "
    "lightcoral f08080 lightcyan e0ffff lightgoldenrodyellow fafad2 lightgray d3d3d3 lightgreen 90ee90 lightgrey d3d3d3 "
    "lightpink ffb6c1 lightsalmon ffa07a lightseagreen 20b2aa lightskyblue 87cefa lightslategray 778899 "
    "lightslategrey 778899 lightsteelblue b0c4de lightyellow ffffe0 lime 00ff00 limegreen 32cd32 linen faf0e6 magenta ff00ff "
    "maroon 800000 mediumaquamarine 66cdaa mediumblue 0000cd mediumorchid ba55d3 mediumpurple 9370db mediumseagreen 3cb371 "
    "mediumslateblue 7b68ee mediumspringgreen 00fa9a mediumturquoise 48d1cc mediumvioletred c71585 midnightblue 191970 "
    "mintcream f5fffa mistyrose ffe4e1 moccasin ffe4b5 navajowhite ffdead navy 000080 oldlace fdf5e6 olive 808000 "
    "olivedrab 6b8e23 orange ffa500 orangered ff4500 orchid da70d6 palegoldenrod eee8aa palegreen 98fb98 "
    "paleturquoise afeeee palevioletred db7093 papayawhip ffefd5 peachpuff ffdab9 peru cd853f pink ffc0cb plum dda0dd "
    "powderblue b0e0e6 purple 800080 rebeccapurple 663399 red ff0000 rosybrown bc8f8f royalblue 4169e1 saddlebrown 8b4513 "
    "salmon fa8072 sandybrown f4a460 seagreen 2e8b57 seashell fff5ee sienna a0522d silver c0c0c0 skyblue 87ceeb "
    "slateblue 6a5acd slategray 708090 slategrey 708090 snow fffafa springgreen 00ff7f steelblue 4682b4 tan d2b48c "
    "teal 008080 thistle d8bfd8 tomato ff6347 turquoise 40e0d0 violet ee82ee wheat f5deb3 white ffffff whitesmoke f5f5f5 "
    "yellow ffff00 yellowgreen 9acd32 "
    "canvas ffffff canvastext 000000 window ffffff windowtext 000000"
).split()
NAMED: Mapping[str, str] = dict(zip(_TABLE[::2], _TABLE[1::2], strict=True))
