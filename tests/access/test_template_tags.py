"""The marks of the interface: each is shape and word, each is safe whatever text it is given."""

from datetime import UTC, datetime, timedelta
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.template import Context, Template
from hypothesis import given, settings
from hypothesis import strategies as st

from access.rules import NOBODY, Actor
from access.templatetags import handrail as tags
from config import clock

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
HOSTILE = """"><script>alert(1)</script><img src=x onerror='alert(2)'>&quot; {{ 7|add:7 }} {% now "Y" %}"""
AT = datetime(2026, 11, 29, 14, 2, 3, tzinfo=UTC)


def draw(source: str, **context: object) -> str:
    return Template("{% load handrail %}" + source).render(Context(context))


class Elements(HTMLParser):
    """(tag, attributes) of every element, and the text without tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


TAKING_TEXT = [
    "{% state x %}",
    '{% state "waiting" x %}',
    "{% icon x %}",
    '{% icon "mail" x %}',
    "{% sensitivity x %}",
    "{% redacted x %}",
    "{% redacted x x %}",
    "{% digest x %}",
    "{% digest x 0 True x %}",
    "{% person x %}",
    "{% person x named=True %}",
    "{% num x %}",
    "{% glyphs x %}",
    "{{ x|initials }}",
    "{{ x|shade }}{{ x|shape }}",
    '{% include "_note.html" with strong=x text=x state="failed" %}',
    '{% include "_note.html" with state=x text=x id=x role=x %}',
    '{% include "_empty.html" with what=x why=x %}',
    '{% include "_sorry.html" with head=x text=x next=x code=x %}',
    '{% include "_connection.html" with seq=x %}',
    '{% include "_skeleton.html" with label=x url=x word=x %}',
]
ALLOWED = {"span", "svg", "use", "button", "b", "bdi", "div", "p", "a", "section", "h1", "strong", "code", "time", "data"}


@pytest.mark.parametrize("source", TAKING_TEXT)
def test_a_hostile_text_stays_text(source):
    elements = Elements(draw(source, x=HOSTILE))
    assert {tag for tag, _ in elements.found} <= ALLOWED
    assert not [name for _, attrs in elements.found for name in attrs if name.startswith("on") or name == "style"]
    assert "14" not in elements.text.replace(HOSTILE, "")


@pytest.mark.parametrize("source", TAKING_TEXT)
@settings(deadline=None)
@given(text=st.text())
def test_no_text_adds_an_element(source, text):
    before, after = Elements(draw(source, x="waiting")), Elements(draw(source, x=text))
    assert {tag for tag, _ in after.found} <= {tag for tag, _ in before.found} | {"span"}


def test_a_state_is_shape_word_and_colour():
    html = draw('{% state "parked" %}')
    assert 'class="st" data-s="failed"' in html and "#i-fail" in html and "Stuck" in html
    assert 'class="st pill"' in draw('{% state "waiting" "Waiting for Riley" True %}')


def test_an_unknown_state_is_ink_under_its_own_name():
    html = draw('{% state "half_done" %}')
    assert 'data-s=""' in html and "Half done" in html


def test_every_icon_that_is_drawn_is_in_the_sprite():
    sprite = (TEMPLATES / "_sprite.html").read_text()
    used = {shape for _, shape, _ in tags.STATES.values()} | {"minus", "lock", "copy"}
    assert not {name for name in used if f'id="i-{name}"' not in sprite}


def test_what_has_no_label_counts_as_the_highest():
    assert 'data-n="4"' in draw("{% sensitivity label %}", label=None)
    assert 'data-n="3"' in draw('{% sensitivity "personal" %}') and "Personal data" in draw('{% sensitivity "personal" %}')


def test_a_redacted_value_has_a_reveal_only_when_there_is_a_dialog_for_it():
    assert "<button" not in draw('{% redacted "IBAN" %}')
    assert 'commandfor="reveal"' in draw('{% redacted "IBAN" "reveal" %}')


def test_a_digest_is_grouped_and_copied_whole():
    whole = "41b79f2ce06d" + "0" * 52
    html = draw("{% digest whole %}", whole=f"sha256:{whole}")
    assert "41b7 9f2c e06d" in html and f'data-copy="{whole}"' in html and 'aria-label="Copy full digest 41b7 9f2c e06d"' in html
    assert "41b7 9f2c e06d" in draw("{% digest raw copy=False %}", raw=bytes.fromhex(whole))
    assert "<button" not in draw("{% digest whole copy=False %}", whole=whole)
    assert len(Elements(draw("{% digest whole 0 %}", whole=whole)).text.strip()) == 64 + 15


@pytest.mark.parametrize(
    ("left", "percent"), [(1440, 100), (4320, 100), (480, 76), (150, 52), (60, 35), (10, 11), (0.1, 1), (0, 0), (-600, 0)]
)
def test_a_fuse_tells_the_time_left_on_one_scale_whatever_it_had(left, percent):
    now = AT + timedelta(days=3)
    assert tags.left_of(AT, now + timedelta(minutes=left), now) == percent


@pytest.mark.parametrize(("passed", "percent"), [(0, 100), (1, 90), (5, 50), (9.99, 1), (10, 0), (600, 0)])
def test_a_fuse_of_minutes_burns_from_a_hundred_to_nothing(passed, percent):
    assert tags.left_of(AT, AT + timedelta(minutes=10), AT + timedelta(minutes=passed)) == percent


def test_a_fuse_is_hot_in_its_last_quarter_of_an_hour():
    until = clock.now() + timedelta(minutes=10)
    assert "fuse hot" in draw("{% fuse until since %}", until=until, since=until - timedelta(hours=2))
    assert "fuse hot" not in draw("{% fuse until since %}", until=until, since=until - timedelta(minutes=11))
    assert draw("{% fuse until %}", until=None) == ""


def test_a_time_says_when_in_utc_until_the_script_words_it():
    assert draw("{% clock at %}", at=AT) == '<time datetime="2026-11-29T14:02:03.000Z" data-time="clock">29 Nov 2026, 14:02 UTC</time>'
    assert 'data-time="ago">29 Nov 2026, 14:02 UTC<' in draw("{% ago at %}", at=AT)
    assert "14:02:03 UTC" in draw("{% clock at seconds=True %}", at=AT)
    assert "29 Nov 2026, 14:02 UTC" in draw("{% clock at %}", at=AT.astimezone(tz=None))
    assert draw("{% ago at %}{% clock at %}{% duration at %}", at=None) == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 s"),
        (0, "0 s"),
        (0.4, "0.4 s"),
        (9.97, "10.0 s"),
        (38, "38 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (252, "4 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (7800, "2 h 10"),
        (7500, "2 h 05"),
        (86399, "23 h 59"),
        (86400, "1 day"),
        (3 * 86400 + 5, "3 days"),
    ],
)
def test_a_span_is_spelled_as_people_say_it(seconds, words):
    assert tags.spell(seconds) == words


def test_a_duration_is_taken_from_seconds_a_span_or_two_times():
    for given_ in ({"a": 38}, {"a": timedelta(seconds=38)}, {"a": AT, "b": AT + timedelta(seconds=38)}):
        assert draw("{% duration a b %}", **{"b": None} | given_) == '<time datetime="PT38S">38 s</time>'
    assert 'data-time="so-far"' in draw("{% duration a %}", a=AT)


@pytest.mark.parametrize(
    ("called", "letters"),
    [("Jonas Weber", "JW"), ("riley", "R"), ("Ada van der Berg", "AB"), ("<b> o", "BO"), ("", "?"), ("--", "?"), ("李 明", "李明")],
)
def test_initials_are_of_the_first_and_the_last_word(called, letters):
    assert tags.initials(called) == letters


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1.0 kB"), (84_123, "84 kB"), (999_600, "1.0 MB"), (12_345_678, "12 MB")],
)
def test_a_size_is_round_and_its_title_exact(count, words):
    html = draw("{% bytesize count %}", count=count)
    assert f">{words}<" in html and f"{count:,} byte" in html


def test_what_cannot_be_seen_is_drawn_with_its_code_point():
    html = draw("{% glyphs text %}", text="Halden \u202estnuoccA\u200b\u200b <b>")
    assert '<span class="glyph" title="Right-to-left override">U+202E</span>' in html
    assert ">U+200B ×2</span>" in html and "&lt;b&gt;" in html
    assert "\u202e" not in html and "\u200b" not in html


def test_a_letter_that_passes_for_another_is_marked_and_kept():
    html = draw("{% glyphs text %}", text="haldenm\u0430rine.example")
    assert '<span class="glyph" title="Cyrillic small letter a, U+0430">\u0430</span>' in html
    assert Elements(html).text == "haldenm\u0430rine.example"


def test_a_hidden_message_does_not_blow_up_the_page():
    smuggled = "".join(chr(0xE0000 + 32 + i % 90) for i in range(100_000))
    html = draw("{% glyphs text %}", text=f"Hello{smuggled}")
    assert "100,000 hidden characters" in html and "U+E0020" in html and len(html) < 1000


def test_text_that_no_charset_can_write_is_still_drawn():
    assert (
        draw("{% glyphs text %}", text="a\ud83d").encode()
        == b'<bdi>a<span class="glyph" title="Half of a broken character">U+D83D</span></bdi>'
    )


def test_the_theme_comes_from_the_cookie_and_only_known_words_are_written():
    def html(cookie):
        return draw("<html{% theme %}>", request=SimpleNamespace(COOKIES={"theme": cookie}))

    assert html("dark") == '<html data-theme="dark">'
    assert html("system") == html('x" onload="y') == draw("<html{% theme %}>") == "<html>"


def test_the_bar_offers_only_rooms_that_exist_and_may_be_entered(monkeypatch):
    monkeypatch.setattr(
        tags,
        "NAV",
        (
            ("access:sign_in", "Door", ("audit.view", "runs.view")),
            ("nowhere:at_all", "Dead", ("runs.view",)),
            ("access:theme", "Shut", ("access.manage",)),
        ),
    )
    request = SimpleNamespace(path="/sign-in", actor=Actor("human", "1", "Riley", {uuid4(): frozenset({"runs.view"})}), COOKIES={})
    source = "{% nav as rooms %}{% for room in rooms %}{{ room.word }} {{ room.here }};{% endfor %}"
    assert draw(source, request=request) == "Door True;"
    assert draw(source, request=SimpleNamespace(path="/", actor=NOBODY, COOKIES={})) == ""


def test_a_very_long_word_has_places_to_break_and_loses_nothing():
    drawn = tags.glyphs("A" * 1000 + " <b>" + "&" * 200)
    assert drawn.count("<wbr>") == 12 + 2
    assert unescape(drawn.replace("<wbr>", "")) == f"<bdi>{'A' * 1000} <b>{'&' * 200}</bdi>"
    assert "<wbr>" not in tags.glyphs("word " * 500)
