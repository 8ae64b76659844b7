"""What others made is drawn anew or it is said why not; it never comes out as it went in, and never takes the house with it."""

import io
import json
import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from artifacts import boxed, preview
from artifacts.preview import Framed, NotDrawn, Picture, letter, picture
from tests.artifacts.files import as_pdf, image, locked_pdf, png_of

PAGES = [[f"Page {n}", "(A) \\ €"] for n in range(1, 8)]


def drawn(content: bytes, kind: str, page: int = 1) -> tuple[Picture, Image.Image]:
    found = picture(content, kind, page)
    assert isinstance(found, Picture), found
    made = Image.open(io.BytesIO(found.png))
    assert (made.format, made.size) == ("PNG", (found.wide, found.high))
    return found, made.convert("RGB")


def test_a_page_of_a_pdf_is_drawn_and_counted() -> None:
    found, made = drawn(as_pdf(PAGES), "pdf", 7)
    assert (found.page, found.pages, found.wide, found.high) == (7, 7, 1240, 1754)
    colours = {colour for _, colour in made.getcolors(1 << 24) or []}
    assert (255, 255, 255) in colours and min(map(sum, colours)) < 60, "there is ink on it"


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp", "bmp", "tiff"])
def test_an_image_is_drawn_anew_and_brings_nothing_but_its_pixels(kind: str) -> None:
    content = image(kind.upper()) + b"<script>go()</script>"
    found, made = drawn(content, kind)
    assert (found.wide, found.high, found.pages) == (60, 40, 1)
    red, green, blue = made.getpixel((30, 20))
    assert red > 240 and green < 20 and blue < 20
    assert b"script" not in found.png


def test_what_is_see_through_stands_on_white_and_what_is_large_is_made_small() -> None:
    made = io.BytesIO()
    Image.new("RGBA", (4000, 100), (0, 0, 0, 0)).save(made, "PNG")
    found, shown = drawn(made.getvalue(), "png")
    assert (found.wide, shown.getpixel((0, 0))) == (preview.WIDE, (255, 255, 255))


@pytest.mark.parametrize("kind", ["jpeg", "png", "webp", "tiff"])
def test_an_image_that_says_how_it_is_held_is_drawn_upright(kind: str) -> None:
    turned, exif, made = Image.new("RGB", (60, 40), "red"), Image.Exif(), io.BytesIO()
    turned.paste("blue", (0, 0, 30, 40))
    exif[0x0112] = 6  # its top is at the right
    turned.save(made, kind.upper(), exif=exif)
    found, shown = drawn(made.getvalue(), kind)
    assert (found.wide, found.high) == (40, 60)
    assert shown.getpixel((20, 5))[2] > 200 and shown.getpixel((20, 55))[0] > 200


def test_of_what_moves_the_first_picture_is_drawn_and_of_a_fax_the_page_asked_for() -> None:
    frames = [Image.new("RGB", (9, 9), colour) for colour in ("blue", "red")]
    moving, pages = io.BytesIO(), io.BytesIO()
    frames[0].save(moving, "GIF", save_all=True, append_images=frames[1:])
    frames[0].save(pages, "TIFF", save_all=True, append_images=frames[1:])
    assert drawn(moving.getvalue(), "gif")[0].moving
    found, made = drawn(pages.getvalue(), "tiff", 2)
    assert (found.page, found.pages, made.getpixel((4, 4))) == (2, 2, (255, 0, 0))


WHOLE = as_pdf(PAGES)
HOSTILE: dict[str, tuple[bytes | Callable[[], bytes], str, str]] = {
    "a PDF with a password": (locked_pdf(), "pdf", "locked"),
    "a PDF cut off": (WHOLE[: len(WHOLE) // 3], "pdf", "broken"),
    "a PDF of nothing": (b"%PDF-1.7\n", "pdf", "broken"),
    "a PDF without pages": (as_pdf([]), "pdf", "broken"),
    "an image cut off": (image("PNG", (900, 900))[:-40], "png", "broken"),
    "a JPEG cut off": (image("JPEG", (900, 900))[:900], "jpeg", "broken"),
    "an image that is another": (b"GIF89a" + image(), "gif", "broken"),
    "an image of nothing": (b"\x89PNG\r\n\x1a\n", "png", "broken"),
    "a bomb that says so": (png_of(60_000, 60_000), "png", "pixels"),
    "a bomb of nearly as many pixels as there may be, all of them there": (lambda: image("PNG", (5_000, 6_000)), "png", ""),
    "a page that is not there": (WHOLE, "pdf", "no_page"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_hostile_or_broken_is_said_in_a_sentence(name: str) -> None:
    content, kind, word = HOSTILE[name]
    content = content() if callable(content) else content  # what takes long to draw is drawn for its test alone
    begin = time.monotonic()
    found = picture(content, kind, 99 if word == "no_page" else 1)
    assert time.monotonic() - begin < 2 * preview.SECONDS + 2
    if not word:
        assert isinstance(found, Picture)
        return
    assert isinstance(found, NotDrawn) and found.word == word, found
    assert found.why.endswith(".") and "{" not in found.why


def endless() -> bytes:
    """A PDF whose page fills itself a hundred million times."""
    lines = as_pdf([["x"]]).decode()
    forms = "".join(
        f"{10 + n} 0 obj\n<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X {11 + n} 0 R >> >> /Length 600 >>\n"
        f"stream\n{('/X Do ' * 100):<600}\nendstream\nendobj\n"
        for n in range(6)
    )
    last = "16 0 obj\n<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length 8 >>\nstream\n0 0 9 9 re f\nendstream\nendobj\n"
    used = lines.replace("/Font << /F1 3 0 R >> >>", "/Font << /F1 3 0 R >> /XObject << /X 10 0 R >> >>")
    return used.replace("ET\nendstream", "ET /X Do\nendstream").replace("xref\n", forms + last + "xref\n", 1).encode()


def test_what_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "SECONDS", 1)
    found = picture(endless(), "pdf")
    assert isinstance(found, NotDrawn) and found.word == "slow"


def test_what_takes_too_much_memory_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "MEMORY", 200 * 1024 * 1024)
    monkeypatch.setattr(preview, "PIXELS", 200_000_000)
    rows = b"\0" * ((3 * 9_000 + 1) * 9_000)
    found = picture(png_of(9_000, 9_000, rows), "png")
    assert isinstance(found, NotDrawn) and found.word == "memory"


def test_only_so_many_are_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "PATIENCE", 0.01)
    taken = [preview.AT_ONCE.acquire(timeout=5) for _ in range(2)]
    try:
        found = picture(image(), "png")
        assert isinstance(found, NotDrawn) and found.word == "busy"
    finally:
        for _ in taken:
            preview.AT_ONCE.release()


def test_every_word_of_the_program_has_a_sentence() -> None:
    source = preview.BOXED.read_text()
    said = set(re.findall(r'NotDrawn\("(\w+)"', source)) | set(re.findall(r'"not": "(\w+)"', source)) | {"locked", "broken"}
    assert said <= preview.WHY.keys()


# HTML


def body(framed: Framed) -> str:
    return re.search(r"<body>(.*)</body>", framed.document, re.DOTALL)[1]


HOSTILE_HTML = """<!doctype html><html><head><base href=https://evil.example><meta http-equiv=refresh content="0;url=https://evil.example">
<link rel=stylesheet href=https://evil.example/a.css><title>t</title><style>@import 'https://evil.example'</style></head>
<body onload="go()" style="background:url(https://evil.example)"><script>go()</script><img src=x onerror=go() alt="a logo">
<a href="javascript:go()" target=_top>one</a><a href="https://evil.example/?secret" ping=https://evil.example>two</a>
<form action=https://evil.example><input name=pin autofocus><button formaction=javascript:go()>b</button></form>
<iframe src=https://evil.example srcdoc="<script>go()</script>"></iframe><object data=https://evil.example></object><embed src=x>
<svg><use href="https://evil.example#x"/><style>a{}</style></svg>
<math><mtext><mglyph><style><img src onerror=go()></style></mglyph></mtext></math>
<video src=https://evil.example poster=https://evil.example></video><picture><source srcset=https://evil.example></picture>
<p style="color:red;position:fixed;background-image:url(https://evil.example);width:expression(go())" class="s0" id=main>three</p>
<p style="color:blue}</style><script>go()</script>">four</p><noscript><p title="</noscript><img src=x onerror=go()>">five</p></noscript>
<p style='font-family:"a</style>'>six</p><template><script>go()</script></template></body></html>"""


def test_html_is_framed_without_anything_that_runs_loads_or_leads_away() -> None:
    framed = letter(HOSTILE_HTML)
    for gone in (
        "evil.example",
        "script>",
        "onerror",
        "onload",
        "href",
        "src",
        "action",
        "url(",
        "expression",
        "position",
        "<input",
        "<iframe",
        "<form",
    ):
        assert gone not in framed.document.replace("</style>", "").replace("<title>HTML of the message</title>", ""), gone
    assert framed.document.count("<style") == framed.document.count("</style>") == 1
    for words in ("one", "two", "three", "four", "five", "six", 'alt="a logo"'):
        assert words in body(framed)


def test_its_policy_lets_one_sheet_apply_and_nothing_else() -> None:
    framed = letter('<p style="color: red">x</p>')
    assert "unsafe" not in framed.policy
    assert framed.policy.startswith("default-src 'none'; style-src 'sha256-") and framed.policy.endswith("; sandbox")
    assert '<p class="s0">x</p>' in framed.document and ".s0{color:red}" in framed.document


def test_a_class_of_a_message_is_not_taken_for_one_of_ours_nor_a_text_for_a_style() -> None:
    framed = letter('<p class="s0">a</p><p style="color:red">b</p><p> style="k00-0" class="s0"</p>')
    assert '<p>a</p><p class="s0">b</p>' in framed.document
    assert 'style="k00-0" class="s0"' in body(framed)


def test_of_one_thing_said_twice_that_counts_which_counts_where_it_is_received() -> None:
    assert boxed._style("display:block ! important;display:none") == "display:none;display:block"
    assert boxed._style("COLOR:white!important;color:#000") == "color:#000;color:white"


def test_how_it_looks_is_kept() -> None:
    framed = letter(
        '<body style="background:#eee"><table bgcolor="#112233" width=100%><tr><td align=center style="padding:4px 8px">x</td></tr></table>'
    )
    assert '<table bgcolor="#112233" width="100%">' in framed.document and "padding:4px 8px" in framed.document
    assert "background:#eee" in framed.document


def test_html_that_is_made_to_take_for_ever_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "SECONDS", 1)
    assert "too long" in letter("<b>" * 200_000).document
    begin = time.monotonic()
    nested = letter("".join(f"<b x={n}>" for n in range(20_000)) + "<p>" * 20_000)
    assert time.monotonic() - begin < 20
    assert "unsafe" not in nested.policy


@given(st.text(max_size=60))
@settings(max_examples=200)
def test_whatever_a_style_says_it_stays_within_its_rule(text: str) -> None:
    said = boxed._style(text + ";color:red;" + text)
    assert not re.search(r"[{}<>\\@\"'\n]|url\(|/\*", said)


def test_the_program_says_what_it_says_in_one_line() -> None:
    assert json.dumps(boxed.letter(b"<p>a\nb</p>", {})[0]).count("\n") == 0
