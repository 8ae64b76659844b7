"""How a rendition is drawn: what is hidden keeps together with what encloses it."""

import re

import pytest

from artifacts.gist import cut
from artifacts.templatetags.renditions import one_line, paths, quote, rendition, unbroken


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("E-mail to Tomás <⟦email⟧>", "E-mail to Tomás [&lt;e-mail address hidden&gt;]"),
        ("From Tomás <⟦email⟧>.", "From Tomás [&lt;e-mail address hidden&gt;.]"),
        ("From ⟦email⟧; answered in English.", "From [e-mail address hidden;] answered in English."),
        ("It is ⟦card⟧ here", "It is card number hidden here"),
        ("(⟦card⟧), (⟦email⟧)", "[(card number hidden),] [(e-mail address hidden)]"),
        ("⟦card⟧,⟦email⟧", "[card number hidden,]e-mail address hidden"),
        ("<" * 10 + "⟦card⟧" + ">" * 10, "&lt;" * 7 + "[" + "&lt;" * 3 + "card number hidden" + "&gt;" * 3 + "]" + "&gt;" * 7),
    ],
)
def test_what_opens_and_closes_around_a_hidden_place_stands_on_its_line(text: str, drawn: str) -> None:
    assert _flat(rendition(text)) == drawn
    assert _flat(one_line(text)) == drawn.replace("&lt;e-mail address hidden&gt;", "address hidden").replace(
        "[address hidden]", "address hidden"
    )
    assert _flat(quote(text)) == f"“{drawn}”"


def test_an_address_behind_a_name_is_a_lock_in_a_list_and_is_read_out_in_words() -> None:
    drawn = one_line("E-mail to Tomás <⟦email⟧>")
    assert 'title="e-mail address hidden"' in drawn and drawn.endswith('<span class="vh">address hidden</span></span>')


def test_a_number_with_a_hyphen_stays_on_one_line_and_says_the_same() -> None:
    assert _flat(unbroken(rendition("Refund of INV-20931, <b> & PAY-88121."))) == "Refund of [INV-20931], &lt;b&gt; &amp; [PAY-88121]."
    for left_alone in ("non-stop", "UTF-8", "https://x.example/INV-20931", "INV-20931-B"):
        assert unbroken(rendition(left_alone)) == left_alone


def _flat(html: str) -> str:
    """Its words, with [ ] around each piece that is not broken."""
    found, open_ = "", []
    for tag, words in re.findall(r"(<[^>]+>)|([^<]+)", html):
        if tag.startswith("<span"):
            open_.append('class="nowrap"' in tag)
            found += "[" if open_[-1] else ""
        elif tag == "</span>":
            found += "]" if open_.pop() else ""
        found += words
    return found


def test_a_path_is_drawn_in_type_and_nothing_else_is():
    said = "Read the ticket: /tickets/ZN-4825 failed with 500. and/or 3/4/5 https://x.example/a/b <i>/a/b</i>"
    drawn = str(paths(one_line(said)))
    assert '<code class="nowrap">/tickets/ZN-4825</code> failed with 500.' in drawn
    assert drawn.count("<code") == 1
    assert f"<code>/tickets/{'a' * 40}</code>" in paths(f"/tickets/{'a' * 40}")


def test_nothing_is_cut_within_what_people_see_as_one_character():
    family, flag, letter = "👨\u200d👩\u200d👧\u200d👦", "🇩🇪", "e\u0301"
    for whole in (family, flag, letter, "👍🏽", "क\u094dष", "각", "1\ufe0f\u20e3"):
        for length in range(1, 60):
            for kept in (_flat(one_line(whole * 80, length)).removesuffix(" …"), cut(whole * 80, length).removesuffix("…")):
                assert kept.replace(whole, "") == "" and len(kept) <= length, (whole, length)
    assert len(cut("e" + "\u0301" * 300, 100)) == 101, "marks without end are of no letter"


def test_what_is_cut_says_so_and_shows_no_half_of_a_mark():
    for many in range(160, 260):
        drawn = _flat(one_line("a" + "⟦u202e⟧⟦u202d⟧" * many))
        assert drawn.endswith("hidden characters …") and "⟦" not in drawn
    assert _flat(one_line("⟦⟦" * 900)).strip("⟦") == " …"


def test_characters_that_are_not_seen_are_counted_and_marks_piled_upon_a_letter_cover_nothing():
    assert _flat(rendition("a" + "⟦u202e⟧" * 199)) == "aU+202E ×199"
    assert _flat(rendition("Z" + "\u0301" * 99 + "b")) == "Z\u0301\u0301\u0301U+0301 ×96b"
    assert _flat(rendition("Việt, שָׁלוֹם, ที่นี่, é́")) == "Việt, שָׁלוֹם, ที่นี่, é́"


def test_words_from_right_to_left_keep_their_direction_to_themselves():
    assert rendition("שלום 123") == "<bdi>שלום 123</bdi>" and one_line("الحساب") == "<bdi>الحساب</bdi>" == one_line("الحساب", 9)
    assert rendition("Ticket 123") == "Ticket 123"
