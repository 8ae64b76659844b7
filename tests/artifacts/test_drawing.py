"""How a rendition is drawn: what is hidden keeps together with what encloses it."""

import re

import pytest

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
