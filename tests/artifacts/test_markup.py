"""What HTML says is told as people see it, and what they do not see is told apart; whatever the HTML is."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts import markup, styles
from artifacts.markup import Link, Remote, read


def seen(source: str) -> str:
    return " ".join(read(source).text.split())


def unseen(source: str) -> list[tuple[str, str]]:
    return [(each.why, each.text) for each in read(source).unseen]


def test_blocks_stand_on_lines_of_their_own_and_words_stay_whole() -> None:
    assert read("<p>Dear <b>Ma</b>rta,</p><p>it is paid.<br>Yours</p>").text == "Dear Marta,\n\nit is paid.\nYours"


@pytest.mark.parametrize(
    ("style", "why"),
    [
        ("display:none", "display: none"),
        ("DISPLAY : None !important", "display: none"),
        ("d\\69splay:none", "display: none"),
        ("display:/* x */none", "display: none"),
        ("visibility:hidden", "visibility: hidden"),
        ("mso-hide:all", "mso-hide: all"),
        ("opacity:0.01", "opacity: 0"),
        ("font-size:0", "font-size: 0px"),
        ("font-size:1pt", "font-size: 1.33333px"),
        ("font:0px/0 serif", "font-size: 0px"),
        ("color:white", "white on white"),
        ("color:#fefefe", "the colour of what is behind it"),
        ("color:rgb(255, 255, 255)", "white on white"),
        ("color:hsl(0 0% 100%)", "white on white"),
        ("color:transparent", "white on white"),
        ("color:rgba(0, 0, 0, 0)", "white on white"),
        ("color:#0000", "white on white"),
        ("color:#000;background:#010101 no-repeat", "the colour of what is behind it"),
        ("max-height:0;overflow:hidden", "max-height: 0"),
        ("text-indent:-9999px", "text-indent: -9999px"),
        ("position:absolute;left:-100em", "left: -100em"),
        ("margin:0 0 0 -5000px", "margin: 0 0 0 -5000px"),
        ("transform:scale(0)", "cut away"),
        ("clip:rect(0,0,0,0)", "cut away"),
        ("clip-path:circle(0)", "cut away"),
        ("zoom:0", "cut away"),
        ("filter:opacity(0)", "see-through"),
        ("-webkit-text-fill-color:transparent", "see-through"),
        ("color:lavenderblush", "the colour of what is behind it"),
        ("background:hsl(330 100% 71%);color:hotpink", "the colour of what is behind it"),
        ("display:none ! important;display:block", "display: none"),
        ("display:none;display:no-such", "display: none"),
        ("font-family:'/*';display:none", "display: none"),
        ("display:none;x:'\\';display:block;", "display: none"),
        ("display:none;x:(;display:block", "display: none"),
        ("color:white;color:no-such", "white on white"),
        ("font:0 serif", "font-size: 0px"),
        ("font-size:14px;font:0/1 serif", "font-size: 0px"),
        ("font-size:1e-9px", "font-size: 1e-09px"),
        ("visibility:hidden;}visibility:visible", "visibility: hidden"),
        ("color:no-such!important;color:white", "white on white"),
        ("height:0;overflow-y:auto", "height: 0"),
        ("text-indent:9999px", "text-indent: 9999px"),
        ("transform:translatex(-9999px)", "transform: translatex(-9999px)"),
    ],
)
def test_what_a_style_hides_is_told_with_the_reason(style: str, why: str) -> None:
    source = f'<p>Seen <span style="{style}">not seen</span></p>'
    assert (seen(source), unseen(source)) == ("Seen", [(why, "not seen")])


@pytest.mark.parametrize(
    "style",
    [
        "color:#767676",
        "color:red",
        "color:some-new-colour",
        "font-size:60%",
        "background:url(x) white;color:white",
        "opacity:.4",
        "overflow:hidden;height:20px",
        "text-indent:-20px",
        "color:transparent;color:#333",
        "display:none;display:block !important",
        "display:block!important;display:none",
        "font:0 serif;font-size:14px",
        "background:url(a;display:none)",
    ],
)
def test_what_can_be_read_is_not_called_hidden(style: str) -> None:
    assert unseen(f'<p style="{style}">Small print</p>') == []


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ('<p style="display:none">a<p>b', "b"),  # the second ends the first
        ("<ul><li hidden>a<li>b</ul>", "b"),
        ('<table><tr><td style="display:none">a<td>b</table>', "b"),
        ('<p><b style="display:none">a</p>b</b>c', "c"),  # formatting goes on behind its paragraph
        ('<div style="display:none"></span>a</div>b', "b"),  # what was not open ends nothing
        ('<div style="font-size:0">a<span style="font-size:13px">b</span></div>', "b"),
        ('<a title="x>y" style="display:none">a</a>b', "b"),
        ("<a title='x' title='y' STYLE=display:none>a</a>b", "b"),
        ("<style>a{}</style >b", "b"),
        ("<div hidden><table><td></div>a</td></table></div>b", "b"),  # a cell keeps in what closes something beyond it
        ("<span hidden><div></span>a</div></span>b", "b"),
        ("<body hidden></body></html>a", ""),  # what comes behind the end stands before it
        ("<ruby>b<rp>a</rp></ruby>", "b"),
        ("<em><div hidden>a</em>a</div>b", "b"),  # nor does a block end with the formatting around it
        ("<p hidden><form style=visibility:hidden>a<hr>a</form>b", "b"),
        ("<dd hidden><object>a<dd>a</object></dd>b", "b"),
        ("<li hidden><p>a<li>b", "b"),
        ("<i hidden><table><tr>a<b>a</b></table></i>b", "b"),
        ('<i style="color:#fff">a<table style="color:#000">a<tr><td>b', "b"),  # what is in no cell stands before its table
        ("<table hidden><li>b<td>a", "b"),
        ("<a href=x hidden>a<a href=y>b", "b"),
        ('b<table bgcolor="#000"><caption style="color:#fff">a', "b"),  # a caption has not the colour of its table behind it
        ('<td style="display:none">b', "b"),  # without a table it is nothing
        ('<th style="background:black"><i style="color:white">a</i>b', "b"),
        ("<!-- a -- > a --!>b", "b"),
        ("<!-->b", "b"),
        ("<?a a?>b<!doctype html>", "b"),
        ("a < b & c &lt;d&gt;", "a < b & c <d>"),
        ("b<textarea><i>c", "b<i>c"),
        ("b<plaintext><i hidden>c", "b<i hidden>c"),
        ("b<div", "b"),
        ('b<a href="c', "b"),
    ],
)
def test_broken_html_is_read_as_a_browser_reads_it(source: str, shown: str) -> None:
    assert seen(source) == shown


def test_links_are_told_by_what_they_show_and_where_they_go() -> None:
    source = '<a href=" https://x.example/a?b=1&amp;c=2 ">Sign <b>in</b></a><a name=x>no link</a><a href="#top"><img alt="up"></a>'
    assert read(source).links == [Link("Sign in", "https://x.example/a?b=1&c=2"), Link("", "#top")]


def test_what_would_be_loaded_is_told_by_its_host() -> None:
    source = """<img src="https://a.example/x.gif" srcset="//b.example/1 1x, https://c.example/2 2x"><img src=cid:logo>
      <td background="http://d.example/x"><p style="background:u\\72l( 'https://user@e.example:8443/x' )">
      <style>@import "https://f.example/a.css"; p{background:url(https://g.example/x)}</style><iframe src=\\\\h.example></iframe>
      <img src="https:\\\\i.example\\x"><video poster=https://j.example/p></video><img src="/x.gif"><img src="data:image/gif;base64,AA">"""
    found = read(source)
    assert [each.host for each in found.remote] == [f"{letter}.example" for letter in "abcdefghij"]
    assert Remote("style sheet", "f.example") in found.remote and Remote("frame", "h.example") in found.remote
    assert found.embedded == 2


def test_what_html_does_is_told_once_each() -> None:
    source = (
        "<script>a</script><form><input><svg onload=x><meta http-equiv=Refresh content=1><a href='&#106;avascript:x'>y</a><base href=x>"
    )
    assert read(source).does == ["script", "form", "drawing", "event handler", "going elsewhere by itself", "another base for links"]


def test_a_body_that_comes_late_and_what_folds_are_told() -> None:
    assert read("<html><body style=color:red>a</body>").does == []
    assert read("a<body hidden>").does == ["a look for what stands before it"]
    assert read("<body><body hidden><details>a").does == ["a look for what stands before it", "text that folds"]


def test_a_look_that_stands_in_a_table_and_in_no_cell_is_told() -> None:
    assert read("<table><tr><td><i style=color:red>a").does == []
    assert read("<table><i style=color:red>a<tr>").does == ["a look in a table outside its cells"]


def test_a_rule_that_hides_is_told_as_it_is_written() -> None:
    assert unseen("<style>@media x { .a { color: red } .b, i\n{ display: none } }</style>") == [
        ("a rule of a style sheet", ".b, i { display: none }")
    ]


@pytest.mark.parametrize(
    "sheet", [".a{display:none;x:'{'}", ".a{display:none;& b{color:red}}", ".a{x:'/*';display:none", ".a{display:none"]
)
def test_a_rule_that_hides_is_found_however_its_sheet_is_written(sheet: str) -> None:
    assert [why for why, _ in unseen(f"<style>{sheet}</style>")] == ["a rule of a style sheet"]


def test_more_rules_than_are_looked_at_are_not_passed_over_in_silence() -> None:
    assert read("<style>" + "a{}" * (styles.RULES + 1) + "</style>").over == ["rules of a style sheet"]


@pytest.mark.parametrize(
    "source",
    [
        "<style>p::before{content:'Pay ' \"\\6e ow\"}</style>",
        "<input value='Pay now'>",
        "<input placeholder='Pay now'>",
        "<select><option label='Pay now'></select>",
    ],
)
def test_words_that_are_seen_and_stand_in_no_text_are_read_all_the_same(source: str) -> None:
    assert seen(source) == "Pay now"
    assert seen("<input type=hidden value=x><style>p::before{content:'»'}</style>") == ""
    assert unseen("<iframe srcdoc='<p>Pay'></iframe>") == [("frame", "<p>Pay")]


@pytest.mark.parametrize(
    ("style", "told"),
    [
        ("position:absolute", True),
        ("margin:calc(1px - 99em)", True),
        ("order:2", True),
        ("flex-direction:row-reverse", True),
        ("-webkit-text-security:disc", True),
        ("color:oklch(1 0 0)", True),
        ("some-day:1", True),
        ("position:relative;top:0;mso-line-height-rule:exactly;border-left-color:red;font-family:'Segoe UI',serif", False),
        ("-webkit-text-size-adjust:100%;transform:none;word-break:break-word;table-layout:fixed", False),
    ],
)
def test_a_style_that_may_move_or_change_text_and_is_not_drawn_is_told(style: str, told: bool) -> None:
    assert bool(read(f'<p style="{style}">x</p>').does) == told


def test_a_link_is_told_as_browsers_go_to_it() -> None:
    source = "<a href='\x01 ht&#9;tps://x.example/?a=1&copy=2&amp;b&lt;'>x</a><svg><a xlink:href=//y.example>y</a></svg>"
    assert [link.to for link in read(source).links] == ["https://x.example/?a=1&copy=2&b<", "//y.example"]


PIECES = st.sampled_from(
    [
        "<p>",
        "</p>",
        "<b style='display:none'>",
        "</b>",
        "<td>",
        "<!--",
        "-->",
        "<a href='",
        "'",
        '"',
        ">",
        "<",
        "&amp;",
        "x",
        " ",
        "<style>",
        "</style>",
    ]
    + ["{color:white}", "\\", "<script>", "</", "=", "<li hidden>", "<img src=//x.example>", "\0", "é"]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=40).map("".join))
def test_any_text_can_be_read(source: str) -> None:
    found = read(source)
    assert "display:none" not in found.text or "display:none" in source


UNITS = [
    *("<p>", "<b>", "<!--", '<a x="', "<a x='<a x=\"", "<i></b>", "<p><b>", "<table><td><i>", "</p>", "<a href=//x.example>"),
    *(
        "<style>a{",
        "a{color:white}",
        "<p style='a:b;'>",
        "<style>a:'",
        "<style>{(",
        "<style>/*",
        "<style>url(",
        "<span><td>",
        "<div><td></div>",
    ),
]


@pytest.mark.parametrize("unit", UNITS)
def test_the_work_stays_in_proportion_to_the_source(unit: str) -> None:
    def taken(size: int) -> int:
        source = unit * (size // len(unit))
        begin = time.process_time_ns()
        read(source)
        return (time.process_time_ns() - begin) // 1_000

    small, large = (min(taken(size) for _ in range(2)) for size in (8_000, 64_000))
    assert large <= small * 8 * 2 + 10_000


@given(st.text(max_size=80))
def test_any_style_can_be_read(text: str) -> None:
    styles.within(styles.Look(), styles.of("font", {"style": text, "color": text, "bgcolor": text}))
    list(styles.hiding(text))


def test_no_more_is_told_than_a_person_could_read() -> None:
    found = read("<p hidden>a</p><p style=opacity:0>b</p>" * 5_000 + "<a href=https://x.example/>c</a>" * 5_000)
    assert len(found.unseen) == len(found.links) == markup.MAX_TOLD and found.over == ["hidden text", "links"]
