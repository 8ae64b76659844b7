"""What cannot be seen is found, whole and in order; what is written as it should be is left alone."""

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from access.characters import Hidden, Lookalike, has_hidden, lookalikes, name, parts, seen_length, whole


def joined(text: str) -> str:
    return "".join(part if isinstance(part, str) else "".join(one.char * one.count for one in part) for part in parts(text))


@settings(deadline=None)
@given(st.text(alphabet=st.characters(codec=None, exclude_categories=())))
def test_no_character_is_lost_or_moved(text):
    assert joined(text) == text
    assert "".join(part if isinstance(part, str) else part.char for part in lookalikes(text)) == text


@settings(deadline=None)
@given(st.text(alphabet=st.characters(codec=None, exclude_categories=())))
def test_the_visible_parts_hold_no_control_and_no_format_character(text):
    visible = "".join(part for part in parts(text) if isinstance(part, str)).replace("\r\n", "")
    assert not [c for c in visible if unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp") and c not in "\n\t\r"]


@pytest.mark.parametrize(
    ("char", "called"),
    [
        ("\u202e", "Right-to-left override"),
        ("\u2066", "Left-to-right isolate"),
        ("\u200b", "Zero width space"),
        ("\u00ad", "Soft hyphen"),
        ("\ufeff", "Zero-width no-break space"),
        ("\x00", "Null"),
        ("\x1b", "Escape"),
        ("\x9f", "Control character"),
        ("\u00a0", "No-break space"),
        ("\u2003", "Em space"),
        ("\u2028", "Line separator"),
        ("\u3164", "Hangul filler"),
        ("\u2800", "Braille pattern blank"),
        ("\U000e0061", "Tag “a”"),
        ("\U000e0100", "Variation selector-17"),
        ("\ue000", "Private use"),
        ("\uffff", "Not a character"),
        ("\ud800", "Half of a broken character"),
    ],
)
def test_each_kind_of_hidden_character_is_found_and_named(char, called):
    assert parts(f"a{char}b") == ["a", [Hidden(char)], "b"]
    assert name(char).replace("Zero-width space", "Zero width space") == called


@pytest.mark.parametrize(
    "text",
    [
        "two\nlines\tand a tab",
        "from Windows\r\nmail\r\n",
        "Grüße, Łódź, Đorđe",
        "مرحبا",
        "שלום",
        "नमस्ते",
        "こんにちは",
        "❤️ and 1️⃣",
        "e\u0301",
        "🙂👍🏽",
    ],
)
def test_ordinary_text_of_any_language_is_left_alone(text):
    assert not has_hidden(text)
    assert parts(text) == [text]


def test_a_lone_carriage_return_is_hidden_but_a_line_end_is_not():
    assert parts("a\r\nb\rc") == ["a\r\nb", [Hidden("\r")], "c"]


def test_a_pile_of_marks_on_one_letter_is_cut():
    assert parts("z" + "\u0301" * 9) == ["z" + "\u0301" * 3, [Hidden("\u0301", 6)]]


def test_a_second_selector_is_not_a_presentation():
    assert parts("❤\ufe0f\ufe0f") == ["❤", [Hidden("\ufe0f", 2)]]


def test_a_letter_of_another_script_is_marked_inside_a_latin_word_only():
    assert lookalikes("haldenm\u0430rine.example") == ["haldenm", Lookalike("\u0430"), "rine", ".", "example"]
    assert all(isinstance(part, str) for part in lookalikes("Привет, Галина. Καλημέρα. 5 µm, Δt"))


def test_a_latin_letter_in_disguise_is_marked_anywhere():
    assert lookalikes("ｐ") == [Lookalike("ｐ")]
    assert lookalikes("𝐚") == [Lookalike("𝐚")]


@pytest.mark.parametrize("text", ["a" * 1_000_000, "\u200b\u200c" * 500_000, "\u0430a" * 500_000, "\u0301" * 1_000_000, "é" * 1_000_000])
def test_a_megabyte_takes_seconds_not_minutes(text):
    parts("\u200b")  # the pattern is built once
    started = time.process_time()
    assert joined(text) == text
    lookalikes(text)
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    "text", ["\U0001f1e9" * 65_537, "\u0600" + "\U0001f1e9" * 65_536, "\U0001f468\u200d" * 40_000, "\u0915\u094d" * 40_000]
)
def test_to_end_a_text_takes_a_time_in_proportion_also_where_much_of_it_could_be_seen_as_one(text):
    started = time.process_time()
    assert 0 <= 65_000 - whole(text, 65_000) < 32
    assert time.process_time() - started < 5


def test_no_half_of_a_flag_is_left_whichever_number_of_its_letters_come_in_a_row():
    flag = "\U0001f1e9\U0001f1ea"
    for text, ends in ((flag * 3, {0, 2, 4, 6}), (f"a{flag}{flag[0]}b", {0, 1, 3, 4, 5}), (f"{flag}\u0301{flag}", {0, 3, 5})):
        assert {whole(text, end) for end in range(len(text) + 1)} == ends


@pytest.mark.parametrize(
    ("text", "seen"), [("", 0), ("  a b ", 3), ("\u200b" * 30, 0), ("\u3164\u2800 \u200b", 0), ("a\u200bb", 2), ("नमस्ते", 6), ("❤\ufe0f", 2)]
)
def test_only_what_can_be_seen_is_counted(text: str, seen: int) -> None:
    assert seen_length(text) == seen
