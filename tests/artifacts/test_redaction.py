"""A rendition never holds what it hides, cannot be forged by what it shows, and comes out the same every time."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts import redaction, rendition, structured
from artifacts.redaction import Glyph, Hidden, More, Policy, Text, beginning, narrow, plain, redact, segments

CARD, KEY, IBAN, PATH, MAIL, PHONE = (
    "4111 1111 1111 1111",
    "sk_live_" + "51Habcdefghijkl",
    "DE89 3704 0044 0532 0130 00",
    "/home/marta/notes.txt",
    "marta@northwind.example",
    "+49 30 901820",
)
EVERYTHING = f"Card {CARD}, key {KEY}, {IBAN}, {PATH}, {MAIL}, {PHONE}."
STRICT = Policy(kinds={"public": frozenset({"email", "phone"}), "internal": frozenset({"email"}), "personal": redaction.PERSONAL})


def shown(content: bytes | str, media_type: str = "text/plain", label: str = "internal", **more: Any) -> str:
    data = content if isinstance(content, bytes) else content.encode()
    return plain(redact(data, media_type=media_type, label=label, **more).text)


# What each label hides


@pytest.mark.parametrize("label", ["public", "internal"])
def test_secrets_cards_accounts_and_paths_are_hidden_from_everyone(label: str) -> None:
    made = redact(EVERYTHING.encode(), media_type="text/plain", label=label)
    assert plain(made.text) == f"Card [card number hidden], key [secret hidden], [IBAN hidden], [local path hidden], {MAIL}, {PHONE}."
    assert made.findings == {"card": 1, "iban": 1, "path": 1, "secret": 1}
    assert not made.masked_everything


def test_addresses_and_telephone_numbers_are_hidden_in_personal_data() -> None:
    assert shown(f"{MAIL} or {PHONE}", label="personal") == "[e-mail address hidden] or [phone number hidden]"


@pytest.mark.parametrize("label", ["secret", "confidential", "", "PUBLIC"])
def test_a_secret_and_a_label_nobody_knows_are_hidden_wholly(label: str) -> None:
    made = redact(b"nothing special", media_type="text/plain", label=label)
    assert (plain(made.text), made.findings, made.masked_everything) == ("[secret hidden]", {"secret": 1}, True)


@pytest.mark.parametrize("media_type", ["text/x-prompt", "application/x-hook", "TEXT/X-Prompt; charset=utf-8"])
def test_prompts_and_hook_bodies_are_hidden_wholly(media_type: str) -> None:
    assert shown("You are a helpful assistant.", media_type, "public") == "[prompt hidden]"


@pytest.mark.parametrize(
    "media_type", ["application/pdf", "image/png", "application/octet-stream", "application/zip", "model/gltf", "nonsense"]
)
def test_what_is_no_text_is_hidden_and_its_size_and_type_are_said(media_type: str) -> None:
    made = redact(b"%PDF-1.7" * 1000, media_type=media_type, label="public")
    assert plain(made.text) == f"[content hidden] 8,000 bytes of {media_type}"
    assert made.masked_everything


def test_text_that_is_mostly_no_text_is_hidden() -> None:
    assert shown(bytes(range(128, 256)), label="public") == "[content hidden] 128 bytes of text/plain"
    assert shown(b"", "", "public") == "[content hidden] 0 bytes of an unknown type"


def test_a_media_type_cannot_forge_a_mark() -> None:
    made = redact(b"x", media_type="image/⟦card⟧\u202e", label="public")
    assert made.text == "⟦unreadable⟧ 1 bytes of image/⟦⟦card⟧⟦u202e⟧"


@pytest.mark.parametrize("media_type", ["text/plain; charset=latin-1", 'text/plain; charset="iso-8859-1"', "text/plain;charset=cp1252"])
def test_text_in_another_charset_is_read(media_type: str) -> None:
    assert shown("Grüße".encode("latin-1"), media_type) == "Grüße"


@pytest.mark.parametrize("charset", ["punycode", "unicode_escape", "rot13", "idna", "nonsense", "undefined", "x" * 1000, "utf-8\0"])
def test_a_charset_that_is_none_is_read_as_utf_8(charset: str) -> None:
    assert shown("Grüße", f"text/plain; charset={charset}") == "Grüße"


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_wins_over_the_claimed_charset(codec: str) -> None:
    assert shown(f"Grüße {CARD}".encode(codec), "text/plain; charset=ascii") == "Grüße [card number hidden]"


def test_some_bytes_that_are_no_text_hide_neither_the_text_nor_the_card_in_it() -> None:
    assert (
        shown(b"broken \xff text that goes on and on, 4111\xff1111 1111 1111 ok")
        == "broken � text that goes on and on, [card number hidden] ok"
    )


# Marks


@pytest.mark.parametrize("forged", ["⟦card⟧", "⟦⟦card⟧", "⟦secret⟧⟦", "⟦u202e⟧", "⟦+99⟧", "⟦", "⟧", "⟦⟦⟦", "⟦card", "⟦⟧"])
def test_text_cannot_forge_a_mark(forged: str) -> None:
    made = redact(f"a {forged} b".encode(), media_type="text/plain", label="public")
    assert segments(made.text) == [Text(f"a {forged} b")]
    assert made.findings == {}
    in_json = redact(json.dumps({"k": forged}).encode(), media_type="application/json", label="public")
    assert all(isinstance(part, Text) for part in segments(in_json.text))


def test_a_mark_next_to_a_bracket_is_still_a_mark() -> None:
    made = redact(f"⟦{CARD}⟦".encode(), media_type="text/plain", label="public")
    assert segments(made.text) == [Text("⟦"), Hidden("card"), Text("⟦")]


def test_characters_that_act_on_the_screen_are_named() -> None:
    made = redact("a\u202eb\x1b[31m\0c\U000e0041\u200bd\te\n".encode(), media_type="text/plain", label="public")
    assert plain(made.text) == "a[U+202E]b[U+001B][31m[U+0000]c[U+E0041][U+200B]d\te\n"
    assert segments(made.text)[1] == Glyph(0x202E)
    assert "\0" not in made.text  # a database that keeps text refuses it


def test_what_acts_on_the_screen_is_drawn_as_such_though_it_was_escaped_when_it_was_marked() -> None:
    made = redact(rb'{"headline": "h\u001b[1]\u202e\u3164"}', media_type="application/json", label="public")
    headline = json.loads(made.text)["headline"]
    assert plain(headline) == "h[U+001B][1][U+202E][U+3164]"


def test_half_a_surrogate_pair_does_not_get_into_a_rendition() -> None:
    made = redact(rb'{"a": "x\ud800y"}', media_type="application/json", label="public")
    assert "[U+D800]" in plain(made.text)
    made.text.encode("utf-8")
    redact("x\ud800".encode("utf-8", "surrogatepass"), media_type="text/plain", label="public").text.encode("utf-8")


def test_joiners_that_scripts_need_stay() -> None:
    for text in ("می\u200cخواهم", "👩\u200d🚀", "\u200fשלום"):
        assert shown(text) == text


def test_each_segment_says_its_type_for_templates() -> None:
    made = rendition.marked([Text("a"), Hidden("iban"), Glyph(0x200B), More(1234)])
    assert [(part.type, str(part)) for part in segments(made)] == [
        ("text", "a"),
        ("hidden", "[IBAN hidden]"),
        ("glyph", "[U+200B]"),
        ("more", "… 1,234 bytes more"),
    ]


PARTS = st.one_of(
    st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda t: not rendition._ACTING.search(t)).map(Text),
    st.sampled_from(list(rendition.WORDS)).map(Hidden),
    st.integers(0, 31).filter(lambda c: c not in (9, 10, 13)).map(Glyph),
    st.integers(1, 10**9).map(More),
)


@given(st.lists(PARTS))
def test_segments_and_marks_are_the_same_thing(parts: list[Any]) -> None:
    merged: list[Any] = []
    for part in parts:
        rendition.add(merged, part)
    assert segments(rendition.marked(parts)) == merged


# JSON


def test_json_is_laid_out_with_its_values_redacted_and_its_structure_kept() -> None:
    source = (
        '{"to":"Marta","card":"4111111111111111","n":4111111111111111,"amounts":[1.50,1E30],'
        '"none":null,"empty":{},"list":[],"nested":{"é":"\\u00e9\\n"}}'
    )
    assert shown(source, "application/json") == (
        "{\n"
        '  "to": "Marta",\n'
        '  "card": "[card number hidden]",\n'
        '  "n": "[card number hidden]",\n'
        '  "amounts": [\n'
        "    1.50,\n"
        "    1E30\n"
        "  ],\n"
        '  "none": null,\n'
        '  "empty": {},\n'
        '  "list": [],\n'
        '  "nested": {\n'
        '    "é": "é\\n"\n'
        "  }\n"
        "}"
    )


PIECES_OF_JSON = st.sampled_from(
    [CARD, 4111111111111111, KEY, IBAN, PATH, MAIL, PHONE, "-----BEGIN PRIVATE KEY-----", "password=", '"', "\\", 1.5, None, True]
)
SECRET_KEYS = [
    "password",
    "DB_PASSWORD",
    "apiKey",
    "x-api-key",
    "client_secret",
    "accessToken",
    "Set-Cookie",
    "privateKey",
    "cvv",
    "CVC2",
    "dsn",
]


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_value_is_hidden_by_its_key(key: str) -> None:
    assert shown(json.dumps({key: "x"}), "application/json", "public") == f'{{\n  "{key}": "[secret hidden]"\n}}'
    assert "zebra" not in shown(json.dumps({key: {"a": ["zebra", {"b": "zebra"}], "n": 7}}), "application/json")
    assert "7" not in shown(json.dumps({key: 7}), "application/json").replace("2", "")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("has_password", True),
        ("password", None),
        ("password", ""),
        ("total_tokens", 512),
        ("tokenizer", "x"),
        ("credential", "support-mailbox"),
        ("key", "x"),
    ],
)
def test_what_only_sounds_like_a_secret_key_is_shown(key: str, value: Any) -> None:
    assert json.loads(shown(json.dumps({key: value}), "application/json")) == {key: value}


def test_the_value_of_a_named_pair_is_hidden_by_its_name() -> None:
    source = json.dumps({"env": [{"name": "DB_PASSWORD", "value": "zebra"}, {"name": "DEBUG", "value": "on"}]})
    assert json.loads(shown(source, "application/json")) == {
        "env": [{"name": "DB_PASSWORD", "value": "[secret hidden]"}, {"name": "DEBUG", "value": "on"}]
    }


@pytest.mark.parametrize("key", ["prompt", "system_prompt", "userPrompt", "hook", "hook_body", "internal_score"])
def test_private_machinery_is_hidden_by_its_key(key: str) -> None:
    assert "[prompt hidden]" in shown(json.dumps({key: "You are…"}), "application/json", "public")


def test_a_policy_hides_further_keys() -> None:
    policy = Policy(keys={"salary": "secret"})
    assert json.loads(shown('{"salary": 1, "Sal-ary": "2"}', "application/json", policy=policy)) == {
        "salary": "[secret hidden]",
        "Sal-ary": "[secret hidden]",
    }


KEY_WITHOUT_AN_END = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B"


def test_a_rendition_of_json_is_json_with_the_same_keys() -> None:
    source = {
        "a": KEY_WITHOUT_AN_END,
        "b": [int(CARD.replace(" ", "")), {"password": 1}],
        "c": f'"{KEY}\\',
        "d": json.dumps({"token": [1]}),
        "\u202e": PATH,
    }
    made = redact(json.dumps(source).encode(), media_type="application/json", label="public")
    for text in (made.text, plain(made.text)):
        read = json.loads(text)
        assert list(read)[:4] == ["a", "b", "c", "d"]
        assert len(read["b"]) == 2 and list(read["b"][1]) == ["password"]
    assert json.loads(plain(made.text))["a"] == "[secret hidden]"
    assert "MIIE" not in made.text


@given(
    st.recursive(
        PIECES_OF_JSON, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=8
    )
)
@settings(max_examples=150, deadline=None)
def test_a_rendition_of_any_json_is_json(value: Any) -> None:
    made = redact(json.dumps(value).encode(), media_type="application/json", label="personal")
    assert type(json.loads(plain(made.text))) in (type(value), str)


def test_json_in_a_string_in_json_is_redacted_as_json() -> None:
    inner = json.dumps({"password": ["zebra"], "note": json.dumps({"token": {"x": "zebra"}, "card": CARD})})
    made = shown(json.dumps({"body": inner}), "application/json")
    assert "zebra" not in made and "4111" not in made
    assert json.loads(json.loads(json.loads(made)["body"])["note"])["card"] == "[card number hidden]"


def test_a_key_can_hold_a_secret_too() -> None:
    assert CARD not in shown(json.dumps({CARD: 1}), "application/json")


def test_keys_that_stand_twice_are_both_shown_and_both_redacted() -> None:
    made = shown('{"a":1,"a":2,"password":"x","password":"y"}', "application/json")
    assert made.count('"a"') == 2
    assert made.count("[secret hidden]") == 2


@pytest.mark.parametrize(
    "source",
    ['{"password": "zebra"', "{'password': 'zebra'}", '{"password": "zebra"} trailing', '[{"secret":"zebra"},', '"password": "zebra"'],
)
def test_broken_json_is_redacted_as_text(source: str) -> None:
    assert "zebra" not in shown(source, "application/json")


@pytest.mark.parametrize("media_type", ["application/json", "application/problem+json", "text/json", "application/json; charset=utf-8"])
def test_every_kind_of_json_is_json(media_type: str) -> None:
    assert shown('{"password":"zebra"}', media_type) == '{\n  "password": "[secret hidden]"\n}'


@pytest.mark.parametrize("depth", [100, 5_000, 100_000])
def test_deep_json_costs_no_recursion(depth: int) -> None:
    made = redact(b"[" * depth + f'"{CARD}"'.encode() + b"]" * depth, media_type="application/json", label="public")
    assert "4111" not in made.text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(categories=["Lu", "Nd"])), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_json_without_secrets_says_the_same_after_it_was_laid_out(value: Any) -> None:
    laid_out = "".join(str(piece.part) for piece in structured.pieces(json.dumps(value), {}))
    if "hidden]" not in laid_out:
        assert json.loads(laid_out) == value


# Size


def test_a_long_text_is_cut_and_says_how_many_bytes_more_there_are() -> None:
    made = redact(b"a" * 100_000, media_type="text/plain", label="public")
    text, more = segments(made.text)
    assert isinstance(text, Text) and isinstance(more, More)
    assert len(text.text) + more.size == 100_000
    assert redaction.MAX_RENDITION <= len(text.text) <= redaction.MAX_RENDITION + 1024


def test_bytes_are_counted_and_not_characters() -> None:
    text, more = segments(redact("é".encode() * 100_000, media_type="text/plain", label="public").text)
    assert isinstance(text, Text) and isinstance(more, More)
    assert 2 * len(text.text) + more.size == 200_000


@pytest.mark.parametrize("before", range(redaction.MAX_RENDITION - 24, redaction.MAX_RENDITION + 4))
def test_what_begins_before_the_cut_is_hidden_though_it_ends_after_it(before: int) -> None:
    made = redact(b"x" * (before - 1) + f" {CARD} ".encode() + b"y " * 20_000, media_type="text/plain", label="public")
    assert "4111" not in made.text


@pytest.mark.parametrize("source", ["\0" * 200_000, "⟦" * 200_000, "\u202e" * 200_000])
def test_marks_count_towards_the_size(source: str) -> None:
    assert len(redact(source.encode(), media_type="text/plain", label="public").text) <= redaction.MAX_RENDITION + 10 * 1024


def test_long_json_is_cut_between_or_within_values() -> None:
    rows = json.dumps([{"id": i, "note": "nothing to see"} for i in range(100_000)]).encode()
    *_, more = segments(redact(rows, media_type="application/json", label="public").text)
    assert isinstance(more, More) and len(rows) - 70_000 < more.size < len(rows) - 30_000
    one = json.dumps({"a": "b" * 5_000_000}).encode()
    *_, more = segments(redact(one, media_type="application/json", label="public").text)
    assert isinstance(more, More) and abs(len(one) - redaction.MAX_RENDITION - more.size) < 2_048


def test_what_is_not_shown_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    find = redaction.detectors.find
    monkeypatch.setattr(redaction.detectors, "find", lambda text, **more: (read.append(len(text)), find(text, **more))[1])
    redact(b"word " * 1_000_000, media_type="text/plain", label="personal")
    assert sum(read) < 4 * (redaction.MAX_RENDITION + redaction._BEYOND)


# Messages


def test_a_message_is_shown_as_its_reader_would_see_it() -> None:
    body = base64.encodebytes(f"My card is {CARD}.".encode()).decode()
    raw = f"From: Ines <ines@alderpress.example>\nTo: help@fernhill.example\nSubject: Refund\nContent-Transfer-Encoding: base64\n\n{body}"
    made = shown(raw, "message/rfc822")
    assert made == "From: Ines <ines@alderpress.example>\nTo: help@fernhill.example\nSubject: Refund\n\nMy card is [card number hidden]."
    assert "alderpress" not in shown(raw, "message/rfc822", "personal")


def test_what_only_claims_to_be_a_message_is_hidden() -> None:
    assert shown("no headers here", "message/rfc822") == "[content hidden] 15 bytes of message/rfc822"


# Never wider


PIECES = st.sampled_from(
    [
        EVERYTHING,
        CARD,
        KEY,
        IBAN,
        PATH,
        MAIL,
        PHONE,
        "password=",
        "Bearer ",
        "⟦",
        "⟦card⟧",
        "\n",
        " ",
        '"',
        "=",
        "\\",
        "%20",
        "\0",
        "\u202e",
        "\ufffc",
    ]
    + [
        "-----BEGIN PRIVATE KEY-----",
        "4",
        "DE89",
        "@",
        "/",
        "a",
        "\x85",
        "<b>",
        base64.b64encode(f"x {CARD} y".encode()).decode(),
        "é",
        "Ⅳ",
        "{",
        "[",
        "1",
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join), st.sampled_from(["public", "internal", "personal"]))
@settings(max_examples=200, deadline=None)
def test_a_rendition_is_the_same_each_time_and_made_again_from_itself(text: str, label: str) -> None:
    made = redact(text.encode(), media_type="text/plain", label=label)
    assert redact(text.encode(), media_type="text/plain", label=label) == made
    again = narrow(made.text, label=label)
    assert again == made


@given(st.binary(max_size=300), st.sampled_from(["text/plain", "application/json", "message/rfc822", "text/html", "image/png"]))
@settings(max_examples=150, deadline=None)
def test_no_bytes_are_refused(content: bytes, media_type: str) -> None:
    made = redact(content, media_type=media_type, label="public")
    assert narrow(made.text, label="public").text == made.text
    assert "\0" not in made.text
    made.text.encode("utf-8")


@given(st.lists(PIECES, max_size=10).map("".join))
@settings(max_examples=200, deadline=None)
def test_the_plain_form_is_as_well_redacted(text: str) -> None:
    made = plain(redact(text.encode(), media_type="text/plain", label="personal").text)
    again = redact(made.encode(), media_type="text/plain", label="personal")
    assert again.findings == {} or "[U+" in made


def test_a_later_policy_hides_more_and_never_less() -> None:
    first = redact(EVERYTHING.encode(), media_type="text/plain", label="internal")
    later = narrow(first.text, label="internal", policy=STRICT)
    assert later.findings == {**first.findings, "email": 1}
    assert narrow(later.text, label="internal").text == later.text
    assert plain(narrow(first.text, label="secret").text) == "[secret hidden]"


def test_a_policy_cannot_show_what_is_always_hidden() -> None:
    lenient = Policy(kinds={"public": frozenset()})
    assert lenient.hides("public") >= redaction.ALWAYS
    assert CARD not in shown(CARD, label="public", policy=lenient)


def test_how_much_more_there_is_survives_a_later_policy() -> None:
    first = redact((MAIL + " ").encode() * 5_000, media_type="text/plain", label="internal")
    later = narrow(first.text, label="internal", policy=STRICT)
    assert segments(later.text)[-1] == segments(first.text)[-1]
    assert MAIL not in later.text


def test_the_beginning_of_a_text_ends_within_nothing_that_is_hidden_in_the_whole():
    for hidden in (
        "4111 1111 1111 1111",
        "GB29 NWBK 6016 1331 9268 19",
        "mei@fernhill.example",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "+49 170 1234567",
    ):
        whole = f"{'word ' * 20}{hidden} and more"
        for most in range(80, len(whole) + 1):
            kept = beginning(whole, most)
            shown = plain(redact(kept.encode(), media_type="text/plain", label="personal").text)
            assert len(kept) <= most and hidden[:3] not in shown, kept


def test_of_a_very_long_text_no_more_is_looked_through_than_its_beginning_needs(monkeypatch):
    looked = []
    monkeypatch.setattr(redaction.detectors, "find", lambda text: looked.append(len(text)) or [])
    assert len(beginning("word " * 1_000_000, 200)) <= 200
    assert sum(looked) < 10_000
