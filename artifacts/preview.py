"""Pictures of images and PDFs, and HTML to look at, made of bytes that somebody else wrote.

The bytes never come before a person as they are. `boxed.py` reads them in a process of its own, with limits on time, memory and pixels
and an empty environment, and what comes back is a new PNG, or HTML in which nothing runs, loads or leads anywhere. Pillow (MIT-CMU),
pypdfium2 (Apache-2.0 or BSD-3-Clause) and nh3 (MIT) were all released within three months of this.
"""

import base64
import hashlib
import json
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BOXED = Path(__file__).with_name("boxed.py")
KINDS = {"pdf": "pdf", **dict.fromkeys(("png", "jpeg", "gif", "webp", "bmp", "tiff"), "image")}  # kind of a file → job
WIDE, HIGH = 1240, 1754  # pixels of a picture at most: A4 at 150 dots an inch
PIXELS = 32_000_000  # of an image that is opened at all
MEMORY = 768 * 1024 * 1024
SECONDS = 6  # of a processor; twice that by the clock
MAX_HTML = 512 * 1024  # characters
AT_ONCE = threading.BoundedSemaphore(2)  # of this process
PATIENCE = 8.0  # seconds to wait for one's turn
STOPPED = {-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGALRM}
logger = logging.getLogger(__name__)

WHY: Mapping[str, str] = {
    "locked": "It is locked by a password, so it can’t be shown here.",
    "broken": "It can’t be read: it is damaged, cut off, or not what it is called.",
    "pixels": "It has too many pixels to be drawn here: {wide:,} × {high:,}.",
    "slow": "Drawing it took too long and was stopped.",
    "memory": "Drawing it took too much memory and was stopped.",
    "failed": "Drawing it failed.",
    "busy": "Others are being drawn just now. Try again.",
    "no_page": "It has no such page: there are {pages}.",
    "long": "It is too long to be drawn here.",
    "hidden": "Its text holds what must stay hidden, a secret or a local path. So this page is not shown.",
}


@dataclass(frozen=True)
class Picture:
    """A page, or an image, drawn anew. `wide` and `high` are of the PNG; `moving`: it is the first picture of several; `text`: what text
    the page has, as far as it can be read."""

    png: bytes
    wide: int
    high: int
    page: int = 1
    pages: int = 1
    moving: bool = False
    text: str = ""
    inked: tuple[int, int] | None = None  # of a page: how large the part is that has anything on it


@dataclass(frozen=True)
class NotDrawn:
    """Why there is no picture: a word of WHY, and the sentence."""

    word: str
    why: str


@dataclass(frozen=True)
class Framed:
    """A document to be shown in a frame, and the policy that goes with it: nothing runs, nothing is loaded, one sheet is applied."""

    document: str
    policy: str


def kind_of(content: bytes) -> str:
    """The kind of a file that can be drawn, by how it begins; empty of any other."""
    found = next((kind for sign, kind in _SIGNS if content.startswith(sign)), "")
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return found or ("pdf" if b"%PDF-" in content[:1024] else "")


_SIGNS = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
    (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
)


def picture(content: bytes, kind: str, page: int = 1, *, inked: bool = False) -> Picture | NotDrawn:
    """One page of a file that is of this kind by its content (KINDS). `inked`: of a PDF's page only what has anything on it."""
    size = {"wide": WIDE, "high": HIGH, "pixels": PIXELS}
    head, png = _apart({"do": KINDS[kind], "page": page, "inked": inked, **size}, content)
    if "not" in head:
        return _not(head)
    part = (head["inked"][0], head["inked"][1]) if "inked" in head else None
    return Picture(png, head["wide"], head["high"], head["page"], head["pages"], head["moving"], head.get("text", ""), part)


def letter(source: str) -> Framed:
    """HTML as a document for a frame. If it can't be drawn, the document says why."""
    head = {"not": "long"} if len(source) > MAX_HTML else _apart({"do": "letter"}, source.encode("utf-8", "replace"))[0]
    if "not" in head:
        return _framed("", f"<p>{_not(head).why}</p>")
    return _framed(head["style"], head["html"])


BASE = """:root{color-scheme:light}
body{margin:8px 12px;font:15px/1.6 Inter,"Helvetica Neue",Helvetica,Arial,"Liberation Sans",sans-serif;color:#000;background:#fff;\
overflow-wrap:anywhere}
p,ul,ol{margin:0 0 1.6em}
ul,ol{padding-left:1.3em}
.n{white-space:nowrap}
a{color:#0645ad;text-decoration:underline}
img{outline:1px dashed #888;outline-offset:-1px;min-width:12px;min-height:12px}
table{max-width:100%}
"""
_DOCUMENT = """<!doctype html>
<html><head><meta charset="utf-8"><title>HTML of the message</title><style>{sheet}</style></head>
<body>{body}</body></html>
"""
_POLICY = "default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'self'; form-action 'none'; base-uri 'none'; sandbox"


def _framed(rules: str, body: str) -> Framed:
    sheet = BASE + rules
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    return Framed(_DOCUMENT.format(sheet=sheet, body=body), _POLICY.format(digest=digest))


def _not(head: Mapping[str, Any]) -> NotDrawn:
    wide, high = head.get("of", (0, 0))
    return NotDrawn(head["not"], WHY[head["not"]].format(wide=wide, high=high, pages=head.get("pages", 0)))


def _apart(job: Mapping[str, Any], content: bytes) -> tuple[dict[str, Any], bytes]:
    """What the program says of the content, and the bytes that it made."""
    if not AT_ONCE.acquire(timeout=PATIENCE):
        return {"not": "busy"}, b""
    try:
        asked = json.dumps({**job, "seconds": SECONDS, "memory": MEMORY})
        ended = subprocess.run(  # noqa: S603  this interpreter, our own program
            [sys.executable, "-I", "-B", str(BOXED), asked],
            input=content,
            capture_output=True,
            timeout=SECONDS * 2 + 1,
            env={},
            cwd="/",
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"not": "slow"}, b""
    finally:
        AT_ONCE.release()
    return _said(ended)


def _said(ended: "subprocess.CompletedProcess[bytes]") -> tuple[dict[str, Any], bytes]:
    line, _, rest = ended.stdout.partition(b"\n")
    try:
        head = json.loads(line)
    except ValueError:
        head = {"not": "slow" if ended.returncode in STOPPED else "failed"}  # it could not even say so
    if head.get("not") in ("slow", "memory", "failed"):
        logger.warning("a preview was not drawn", extra={"why": head["not"], "ended_with": ended.returncode})
    return head, rest
