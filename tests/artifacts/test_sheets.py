"""How a rendition is laid out on its page: nothing of it gets lost, and what is hidden stays hidden."""

import re
from html import unescape

import pytest

from artifacts.sheets import ROWS, media_name, sheet
from artifacts.templatetags.renditions import coded, marked, rendition, tree

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


def test_json_folds_between_its_brackets_and_says_the_same() -> None:
    text = '{\n  "a": {\n    "b": [\n      1\n    ],\n    "c": {}\n  },\n  "d": "]"\n}'
    drawn = tree(text)
    assert drawn.count("<details open>") == drawn.count("</details>") == 2
    assert unescape(re.sub(r"<[^>]+>", "", drawn.replace('<span class="ln"', "\n<span"))).strip() == text
    for odd in ("", "}", "[\n]\n]\n}", " {\n {\n {", "x\n" * 3000):
        assert tree(odd).count("<details open>") == tree(odd).count("</details>")


HOSTILE = """# Ti<tle> ⟦card⟧

- **b** and `x*`
> [A link](https://evil.example) ![i](https://evil.example/i.png) <https://evil.example>
[ref]: https://evil.example

<script>go()</script> <img src=x onerror=go()> <!-- c --> \ue0000\ue001

| a | b |
|---|--:|
| 1 | ⟦secret⟧ |
"""


def test_markdown_is_drawn_and_nothing_in_it_runs_loads_leads_away_or_is_left_out() -> None:
    drawn = marked(HOSTILE)
    assert (
        "<h3>Ti&lt;tle&gt; " in drawn
        and "<strong>b</strong> and <code>x*</code>" in drawn
        and "<blockquote>" in drawn
        and "<td>1</td>" in drawn
    )
    assert drawn.count('class="redacted"') == 2 and "card number hidden" in drawn and "secret hidden" in drawn
    tags = re.findall(r"<[^>]*>", re.sub(r'<span class="redacted">.*?</span>', "", drawn))
    assert [tag for tag in tags if not re.fullmatch(r"</?[a-z0-9]+>|<t[hd] class=\"r\">", tag)] == [], "no other tag has an attribute"
    assert not {"<a>", "<img>", "<script>"} & set(tags)
    said = unescape(re.sub(r"<[^>]+>", "", drawn))
    for each in ("https://evil.example)", "[ref]: https://evil.example", "<script>go()</script>", "<!-- c -->", "<img src=x onerror=go()>"):
        assert each in said
    assert marked("a" * 300).count("<wbr>") == 3 and marked(None) == ""


def test_a_column_that_markdown_sets_to_the_right_has_a_class_and_no_style() -> None:
    drawn = marked("| What | Paid |\n|:--|--:|\n| Fee | 1.00 |\n")
    assert '<td class="r">1.00</td>' in drawn and "<td>Fee</td>" in drawn and "style" not in drawn


def test_a_media_type_has_the_name_that_people_use() -> None:
    assert [media_name(each) for each in ("application/pdf", "image/png", "text/csv; header=present")] == ["PDF", "PNG", "CSV"]
    assert media_name("application/x-odd") == "" and media_name("image/<b>") == ""
