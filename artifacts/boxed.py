"""The program that reads what others made, in a process of its own: an image, a page of a PDF, the HTML of a message. See `preview.py`.

`python -I boxed.py JOB`: JOB is JSON, the content comes on stdin. On stdout: one line of JSON, then the bytes of a PNG if one was made.
It takes its limits on itself before it reads anything, knows nothing of Handrail, and writes to no file. Standard library, and the one
reader that the job needs.
"""

import contextlib
import io
import json
import re
import secrets
import signal
import sys
from typing import Any

Answer = tuple[dict[str, Any], bytes]
MAX_TEXT = 64 * 1024  # characters of a page
AROUND = 16  # pixels around what is on a page
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")


class NotDrawn(Exception):
    """It is not drawn; the first argument is the word for why, the second what goes with the word."""


def main(job: dict[str, Any]) -> None:
    limit(job["seconds"], job["memory"])
    content = sys.stdin.buffer.read()
    try:
        head, body = JOBS[job["do"]](content, job)
    except NotDrawn as why:
        head, body = {"not": why.args[0], **(why.args[1] if len(why.args) > 1 else {})}, b""
    except MemoryError:
        head, body = {"not": "memory"}, b""
    except ImportError:
        head, body = {"not": "failed"}, b""  # nothing of the content: its reader is not there, or too large for the memory
    except Exception:  # a reader raises anything over broken input; which, says nothing to anybody
        head, body = {"not": "broken"}, b""
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + body)
    sys.stdout.buffer.flush()


def limit(seconds: int, memory: int) -> None:
    """At most so much time and memory, no file written, no core left, and an end also if whoever asked is gone."""
    import resource

    for what, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # some systems know a limit and hold nobody to it
            resource.setrlimit(what, (most, most))
    signal.alarm(seconds * 2)


# Pictures


def image(content: bytes, job: dict[str, Any]) -> Answer:
    """The first picture of an image file, or the page asked for of a TIFF: on white, as large as wanted at most, nothing but its pixels."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None  # below, with words for it
    with Image.open(io.BytesIO(content), formats=FORMATS) as found:
        pages = found.n_frames if found.format == "TIFF" else 1
        _check_page(job["page"], pages)
        if found.format == "TIFF":
            found.seek(job["page"] - 1)
        _check_pixels(*found.size, job["pixels"])
        moving = found.format != "TIFF" and bool(getattr(found, "is_animated", False))
        found.draft("RGB", (job["wide"], job["high"]))  # of a JPEG: fewer pixels from the start
        found.load()
        head, png = _png(found, job)
    return head | {"page": job["page"], "pages": pages, "moving": moving}, png


def pdf(content: bytes, job: dict[str, Any]) -> Answer:
    """One page of a PDF, with what was filled into its forms."""
    import pypdfium2 as pdfium
    from pypdfium2 import raw

    try:
        document = pdfium.PdfDocument(content)
    except pdfium.PdfiumError as error:
        raise NotDrawn("locked" if getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD else "broken") from error
    with contextlib.suppress(pdfium.PdfiumError):
        document.init_forms()
    pages = len(document)
    _check_page(job["page"], pages)
    page = document[job["page"] - 1]
    wide, high = page.get_size()
    if not (wide > 0 and high > 0):
        raise NotDrawn("broken")
    scale = min(job["wide"] / wide, job["high"] / high, 3.0)
    drawn = page.render(scale=scale).to_pil()
    inked = _inked(drawn)
    head, png = _png(drawn.crop(inked) if job["inked"] else drawn, job)
    told = {"text": _text(page), "inked": [inked[2] - inked[0], inked[3] - inked[1]]}
    return head | {"page": job["page"], "pages": pages, "moving": False} | told, png


def _inked(page: Any) -> tuple[int, int, int, int]:
    """The part of a page that has anything on it, and a little around it; of an empty page all."""
    from PIL import Image, ImageChops

    seen = page.convert("RGB")
    found = ImageChops.difference(seen, Image.new("RGB", seen.size, "white")).getbbox()
    if found is None:
        return 0, 0, seen.width, seen.height
    left, top, right, bottom = found
    return max(left - AROUND, 0), max(top - AROUND, 0), min(right + AROUND, seen.width), min(bottom + AROUND, seen.height)


def _text(page: Any) -> str:
    """What text a page has, so that whoever asked can look whether it may be shown."""
    with contextlib.suppress(Exception):  # it has none that can be read
        return str(page.get_textpage().get_text_range())[:MAX_TEXT]
    return ""


def _png(found: Any, job: dict[str, Any]) -> Answer:
    """Drawn on white, upright, as large as wanted at most: its size, and the bytes."""
    from PIL import Image, ImageOps

    if found.mode.startswith(("I", "F")):  # more than 256 greys
        found = found.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    found.thumbnail((job["wide"], job["high"]))
    with contextlib.suppress(Exception):  # it says in which way it is broken: then it stays as its pixels are
        ImageOps.exif_transpose(found, in_place=True)
        found.thumbnail((job["wide"], job["high"]))
    seen = found.convert("RGBA")
    drawn = Image.new("RGB", seen.size, "white")
    drawn.paste(seen, mask=seen.getchannel("A"))
    made = io.BytesIO()
    drawn.save(made, "PNG")
    return {"wide": drawn.width, "high": drawn.height}, made.getvalue()


def _check_page(page: int, pages: int) -> None:
    if pages < 1:
        raise NotDrawn("broken")
    if page > pages:
        raise NotDrawn("no_page", {"pages": pages})


def _check_pixels(wide: int, high: int, most: int) -> None:
    if wide * high > most:
        raise NotDrawn("pixels", {"of": (wide, high)})


# HTML

TAGS = frozenset(
    "a abbr address article aside b bdi big blockquote br caption center cite code col colgroup dd del dfn div dl dt em figcaption "  # noqa: SIM905
    "figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark nav ol p pre q rp rt ruby s samp section small span strike "
    "strong sub sup table tbody td tfoot th thead tr tt u ul var wbr".split()
)
SIZES = {"align", "valign", "width", "height", "bgcolor", "border", "cellpadding", "cellspacing", "colspan", "rowspan"}
ATTRIBUTES = {
    **{tag: {"style", "dir", "lang", "hidden"} for tag in TAGS},
    **{
        tag: {"style", "dir", "lang", "hidden"} | SIZES for tag in ("table", "tbody", "thead", "tfoot", "tr", "td", "th", "col", "colgroup")
    },
    **{tag: {"style", "dir", "lang", "hidden", "align"} for tag in ("p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "hr")},
    "font": {"style", "color", "size", "face"},
    "img": {"alt", "width", "height"},
    "ol": {"style", "dir", "lang", "hidden", "start", "type", "reversed"},
    "li": {"style", "dir", "lang", "hidden", "value"},
}
UNSHOWN = {"script", "style", "title", "template", "head", "datalist", "select", "iframe", "object", "svg", "math", "noembed", "noframes"}
UNSHOWN |= {"audio", "video", "canvas", "xmp", "textarea"}
PROPERTIES = frozenset(
    "color background-color background font-size font-weight font-style font-family font font-variant text-align text-decoration "  # noqa: SIM905
    "text-transform text-indent line-height letter-spacing word-spacing white-space vertical-align direction list-style list-style-type "
    "padding padding-top padding-right padding-bottom padding-left margin margin-top margin-right margin-bottom margin-left border "
    "border-top border-right border-bottom border-left border-color border-style border-width border-radius border-collapse "
    "border-spacing width max-width min-width height max-height min-height display visibility opacity overflow float clear".split()
)
VALUE = re.compile(r"(?:[\w\s#%.,+\-/]|(?:rgb|rgba|hsl|hsla)\([\w\s%.,/+\-]{1,60}\)){1,200}")
IMPORTANT = re.compile(r"!\s*important\b")
MAX_STYLES = 2000
TAG = re.compile(r'(<[^<>"]*(?:"[^"]*"[^<>"]*)*>)')  # as the cleaner spells it: values in double quotes, which none of them holds
NUMBER = re.compile(r"(?<![\w/#=\"-])[A-Z]{2,5}-\d{3,10}(?![\w\"-])")  # INV-20931: a browser would break it after the hyphen
BODY = re.compile(r"<(/?)body(?=[\s/>])", re.IGNORECASE)


def letter(content: bytes, job: dict[str, Any]) -> Answer:
    """HTML without anything that runs, loads or leads away; and the one style sheet that its styles became, each a class."""
    import nh3

    token = "k" + secrets.token_hex(16)  # nobody can have written it into the HTML
    rules: dict[str, int] = {}

    def kept(tag: str, attribute: str, value: str) -> str | None:
        if attribute != "style":
            return value
        said = _style(value)
        if not said or (said not in rules and len(rules) >= MAX_STYLES):
            return None
        return f"{token}-{rules.setdefault(said, len(rules))}"

    clean = nh3.clean(
        BODY.sub(r"<\1div", content.decode("utf-8", "replace")),
        tags=set(TAGS),
        clean_content_tags=set(UNSHOWN),
        attributes={tag: set(names) for tag, names in ATTRIBUTES.items()},
        attribute_filter=kept,
        url_schemes=set(),
        link_rel=None,
    )
    clean = re.sub(rf' style="{token}-(\d+)"', r' class="s\1"', clean)
    clean = "".join(NUMBER.sub(r'<span class="n">\g<0></span>', each) if at % 2 == 0 else each for at, each in enumerate(TAG.split(clean)))
    sheet = "\n".join(f".s{number}{{{said}}}" for said, number in rules.items())
    return {"html": clean, "style": sheet}, b""


def _style(value: str) -> str:
    """The declarations that say how text looks, spelled so that nothing but a value can stand in them."""
    said: list[str] = []
    grave: list[str] = []  # last, and so what counts, as it does where it is received
    for each in value[:4000].split(";"):
        name, _, given = each.partition(":")
        name = name.strip().lower()
        given, important = IMPORTANT.subn(" ", re.sub(r"[\"']", "", given).lower())
        given = " ".join(given.split())
        if name in PROPERTIES and given and VALUE.fullmatch(given):
            (grave if important else said).append(f"{name}:{given}")
    return ";".join(said + grave)


JOBS = {"image": image, "pdf": pdf, "letter": letter}

if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
