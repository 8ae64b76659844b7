"""How a rendition is laid out on its page: nothing of it gets lost, and what is hidden stays hidden."""

import re
from html import unescape

import pytest

from artifacts.sheets import ROWS, media_name, sheet
from artifacts.templatetags.renditions import coded, marked, rendition

CSV = 'reference,amount,note\nPAY-88120,"1,284.00","said ""twice"""\nPAY-88121,,⟦iban⟧\n'


def test_a_table_has_its_cells_and_says_which_columns_are_numbers() -> None:
    table = sheet("text/csv; charset=utf-8", CSV)
    assert table.kind == "table" and table.head == [("reference", False), ("amount", True), ("note", False)]
    assert [cell for cell, _ in table.rows[0]] == ["PAY-88120", "1,284.00", 'said "twice"']
    assert rendition(table.rows[1][2][0]).count("IBAN hidden") == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "only a head,of two\n",
        "a,b\n1,2,3\n",
        "a,a\n1,2\n",
        "a,\n1,2\n",
        "1,2\n3,4\n",
        'a,b\n"open,2\n',
        "a,b\n" + "1,2\n" * (ROWS + 1),
    ],
)
def test_what_is_no_table_with_a_head_stays_text(text: str) -> None:
    assert sheet("text/csv", text).kind == "text"


def test_json_is_drawn_line_by_line_and_says_the_same() -> None:
    text = '{\n  "a <b>": "⟦email⟧",\n  "c:": [\n    "x: \\"y\\"",\n    1.50\n  ]\n}'
    drawn = coded(text)
    lines = re.findall(r'<span class="ln" data-in="(\d)">(.*?)</span>(?=<span class="ln"|$)', drawn)
    assert [depth for depth, _ in lines] == ["0", "1", "1", "2", "2", "1", "0"]
    said = "\n".join(unescape(re.sub(r"<[^>]+>", "", line)) for _, line in lines)
    assert said == text.replace("⟦email⟧", "e-mail address hidden")
    assert "<i>&quot;a &lt;b&gt;&quot;</i>: " in drawn


def test_markdown_keeps_its_signs() -> None:
    text = "# Ti<tle>\n\n- **b** and `x*` ⟦card⟧\n**open\n```\n# not **a** title\n```\n| a |"
    drawn = marked(text)
    assert '<b class="h"><span class="dim"># </span>Ti&lt;tle&gt;</b>' in drawn and "<b>**b**</b>" in drawn and "<code>`x*`</code>" in drawn
    said = unescape(re.sub(r"<[^>]+>", "", drawn))
    assert said == text.replace("⟦card⟧", "card number hidden")
    assert '<span class="mono"># not **a** title</span>' in drawn


def test_a_media_type_has_the_name_that_people_use() -> None:
    assert [media_name(each) for each in ("application/pdf", "image/png", "text/csv; header=present")] == ["PDF", "PNG", "CSV"]
    assert media_name("application/x-odd") == "" and media_name("image/<b>") == ""
