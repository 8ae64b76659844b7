"""What eyes miss is said. The samples in `corpus/` each name all warnings that they lead to, and where; nothing else is said of them."""

import io
import json
import time
import zipfile
from collections.abc import Mapping
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from approvals import by_kind, contacts, domains, inspection, sniffing, statements
from approvals.canonical import Attachment, CanonicalAction
from approvals.inspection import LOCK, NOTE, WARN, WORDS, Facts, Warning, inspect, words
from runs.engine.tools import Limit, Looked

SAMPLES = [
    (f"{file.stem}: {sample['name']}", sample)
    for file in sorted((Path(__file__).parent / "corpus").glob("*.json"))
    for sample in json.loads(file.read_text())
]
CORPUS = dict(SAMPLES)


def action(arguments: Mapping[str, Any] | None = None, **more: Any) -> CanonicalAction:
    return CanonicalAction(
        **{"tool": "send_email", "tool_schema": 1, "arguments": arguments or {}, "target": "help desk", "credential": "c", "nonce": "n"}
        | more
    )


def of(sample: Mapping[str, Any]) -> tuple[CanonicalAction, Facts]:
    """The action and the facts of a sample. `{}` parts what scanners would take for a real key."""
    whole = json.loads(json.dumps(sample).replace("{}IOSF", "IOSF").replace("IOSF{}", "IOSF"))
    files = [_file(each) for each in whole.get("attachments", [])]
    made = action(
        whole["arguments"],
        recipients=tuple(whole.get("recipients", ())),
        attachments=tuple(attachment for attachment, _ in files),
        **{name: whole[name] for name in ("tool", "target", "credential") if name in whole},
    )
    known = whole.get("facts", {})
    return made, Facts(
        internal_domains=frozenset(known.get("internal_domains", ["fernhill.example"])),
        known_addresses=frozenset(known["known_addresses"]) if "known_addresses" in known else None,
        contents={attachment.commitment: content for attachment, content in files if content is not None},
        executed_same=known.get("executed_same", 0),
        rejected_same=known.get("rejected_same", 0),
        kind=known.get("kind", ""),
        dialect=known.get("dialect", ""),
        looked=Looked(**known["looked"]) if "looked" in known else None,
        limit=Limit(**known["limit"]) if "limit" in known else None,
        paid_today=Decimal(known.get("paid_today", "0")),
        paid_before=known.get("paid_before", 0),
    )


def _file(spec: Mapping[str, Any]) -> tuple[Attachment, bytes | None]:
    content = _content(spec)
    commitment = sha256(json.dumps(spec).encode()).hexdigest()
    return Attachment(spec["name"], spec["media_type"], spec.get("size", len(content or b"")), commitment), content


def _content(spec: Mapping[str, Any]) -> bytes | None:
    if "text" in spec:
        return str(spec["text"]).encode()
    if "hex" in spec:
        return bytes.fromhex(spec["hex"])
    if "zip" not in spec:
        return None
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in spec["zip"]:
            archive.writestr(name, "x")
    content = bytearray(made.getvalue())
    if spec.get("locked"):
        content[content.index(b"PK\x01\x02") + 8] |= 1  # the flag in the table of contents
    return bytes(content)


# The corpus


def test_the_corpus_is_large_and_its_names_differ() -> None:
    assert len(CORPUS) == len(SAMPLES) >= 60


@pytest.mark.parametrize("name", CORPUS)
def test_each_sample_is_warned_of_as_it_says(name: str) -> None:
    what, facts = of(CORPUS[name])
    found = sorted([warning.code, warning.path] for warning in inspect(what, facts=facts))
    assert found == sorted(CORPUS[name]["expect"])


def test_the_corpus_leads_to_every_warning_that_has_words() -> None:
    assert {code for sample in CORPUS.values() for code, _ in sample["expect"]} == set(WORDS)


@pytest.mark.parametrize("name", CORPUS)
def test_a_warning_never_repeats_what_an_argument_says(name: str) -> None:
    what, facts = of(CORPUS[name])
    for warning in inspect(what, facts=facts):
        for key, value in warning.params.items():
            assert isinstance(value, int) or key in ("codes", "char", "instead", "kind", "shown", "real", "passes_for")
        said = json.dumps(warning.as_json()["params"])
        assert not [word for word in ("hunter2", "4111", "DE89", "AKIA", "/home/", "@") if word in said]


@pytest.mark.parametrize("name", CORPUS)
def test_every_warning_is_said_in_sentences(name: str) -> None:
    what, facts = of(CORPUS[name])
    for warning in inspect(what, facts=facts):
        said = words(warning.code, warning.params)
        assert said.strong.endswith(".")
        assert "{" not in said.strong + said.text and "?" not in said.strong + said.text


# What stands in the way


AMOUNTS = {
    "amount_not_read",
    "amount_not_above_zero",
    "amount_over_limit",
    "amount_over_day",
    "amount_over_left",
    "amount_in_other_currency",
}


def test_the_number_that_we_gave_a_message_is_no_card_by_chance() -> None:
    by_chance = "01a22d09-2fa4-7457-9739-9488e8c4b661"  # sixteen of its digits have the check digit of a card
    arguments = {"message_id": f"<{by_chance}@fernhill.example>", "body": by_chance}
    assert "card_number" not in {warning.code for warning in inspect(action(arguments, nonce=by_chance), facts=Facts())}
    assert "card_number" in {warning.code for warning in inspect(action(arguments), facts=Facts())}, "in what somebody else wrote it is"


def test_only_secrets_and_amounts_beyond_a_limit_lock_approve() -> None:
    locking = {w.code for sample in CORPUS.values() for w in inspect(of(sample)[0], facts=of(sample)[1]) if w.severity == LOCK}
    assert locking == {"secret", "secret_in_attachment"} | AMOUNTS


def test_a_look_alike_asks_for_a_tick() -> None:
    for code in ("lookalike_domain", "mixed_script_domain", "bidi_characters", "executable_attachment", "repeat_of_executed"):
        assert words(code, {}).ack
    for code in ("external_recipient", "special_spaces", "secret"):
        assert not words(code, {}).ack


def test_the_gravest_comes_first() -> None:
    what = action({"body": "10\u00a0kg \u202e password: hunter2"}, recipients=("x@northwind.example",))
    assert [w.severity for w in inspect(what, facts=Facts())] == [LOCK, WARN, NOTE, NOTE]


def test_a_look_alike_says_what_it_passes_for() -> None:
    what = action({"to": "a@h\u0430ldenmarine.example"})
    (warning,) = inspect(what, facts=Facts(known_addresses=frozenset({"x@haldenmarine.example"})))
    found = {"passes_for": "haldenmarine.example", "char": "U+0430", "at": 1, "instead": "U+0061"}
    assert warning == Warning("lookalike_domain", WARN, "/arguments/to", found)
    assert words(warning.code, warning.params).strong == "This is not haldenmarine.example."


def test_a_name_that_passes_for_anybody_ever_written_to_is_a_look_alike() -> None:
    (warning,) = inspect(action({"to": "a@ha1denmarine.example"}), facts=Facts(known_domains=frozenset({"Haldenmarine.example"})))
    found = {"passes_for": "haldenmarine.example", "char": "U+0031", "at": 2, "instead": "U+006C"}
    assert (warning.code, warning.params) == ("lookalike_domain", found)
    said = words(warning.code, warning.params).text
    assert said == "Character 3 of its name is “1” (Digit one, U+0031), where that one has “l”."
    old = words(warning.code, {"passes_for": "haldenmarine.example"}).text  # as it was stored before
    assert old == "The name is written with other characters that look the same."


def test_hidden_characters_are_counted_and_named() -> None:
    (warning,) = inspect(action({"body": "a\u200bb\u200b\u2060"}), facts=Facts())
    assert warning.params == {"count": 3, "codes": "U+200B U+2060"}


def test_a_warning_is_stored_as_json() -> None:
    (warning,) = inspect(action({"body": "a\u200b"}), facts=Facts())
    assert json.loads(json.dumps(warning.as_json())) == {
        "code": "invisible_characters",
        "severity": "warn",
        "path": "/arguments/body",
        "params": {"count": 1, "codes": "U+200B"},
    }


def test_a_code_that_is_not_known_any_more_is_said_as_it_is() -> None:
    assert words("some_old_code", {}).strong == "Some old code."


def test_there_are_never_more_warnings_than_a_person_could_read() -> None:
    many = inspect(action({"rows": ["\u200b"] * 5_000 + ["password: hunter2"]}), facts=Facts())
    assert len(many) == inspection.MAX_WARNINGS
    assert many[0].severity == LOCK


@pytest.mark.parametrize("module", [by_kind, contacts, inspection, statements])
def test_nothing_that_an_action_says_stays_in_memory(module: ModuleType) -> None:
    assert [name for name, each in vars(module).items() if hasattr(each, "cache_info") and each.__module__ == module.__name__] == []


# Any action


TEXTS = st.text(max_size=20) | st.sampled_from(
    [
        "a@x.example",
        "https://a:b@x.example/",
        "<a href='x.example'>y.example</a>",
        "[a.example](b.example)",
        "xn--",
        "xn--a.example",
        "a@" + "b." * 200,
        "@",
    ]
    + [
        "\u202e",
        "\u200b",
        "password: x",
        "4111 1111 1111 1111",
        "ａ.example",
        "a@\u0430.example",
        "a@.example",
        "a@..",
        "https://[::1]/",
        "https://",
    ]
)
VALUES = st.recursive(
    TEXTS | st.integers(-9, 9) | st.none(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)
FILES = st.lists(
    st.tuples(st.builds(Attachment, TEXTS, TEXTS, st.integers(0, 2**30), st.sampled_from("abc")), st.binary(max_size=80)), max_size=3
)


@given(st.dictionaries(TEXTS, VALUES, max_size=3), st.lists(TEXTS, max_size=3), FILES)
@settings(max_examples=150, deadline=None)
def test_any_action_can_be_inspected_and_gives_the_same_each_time(arguments: Any, to: Any, files: Any) -> None:
    what = action(arguments, recipients=tuple(to), attachments=tuple(a for a, _ in files))
    facts = Facts(frozenset({"fernhill.example"}), frozenset({"a@x.example", "b"}), {a.commitment: c for a, c in files})
    found = inspect(what, facts=facts)
    assert found == inspect(what, facts=facts)
    for warning in found:
        json.dumps(warning.as_json())
        words(warning.code, warning.params)
        assert warning.path == "" or warning.path.startswith("/")


HOSTILE = [
    "<a href=",
    "<a href=x>",
    "[",
    "[a](",
    "https://",
    "a@",
    "a@a.",
    "xn--.",
    "@",
    "https://a@",
    "\u200b",
    "\u0430",
    "a.",
    "<",
    "://",
    "Ａ@Ａ.",
    ",",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_the_work_stays_in_proportion_to_the_text(unit: str) -> None:
    def taken(size: int) -> int:
        what = action({"body": unit * (size // len(unit))})
        begin = time.process_time_ns()
        inspect(what, facts=Facts(internal_domains=frozenset({"fernhill.example"})))
        return (time.process_time_ns() - begin) // 1_000

    small, large = (min(taken(size) for _ in range(2)) for size in (4_000, 32_000))
    assert large <= small * 8 * 2 + 5_000


# Files


@given(st.binary(max_size=600))
@settings(max_examples=300)
def test_any_bytes_can_be_looked_at(content: bytes) -> None:
    for begin in (b"", b"PK\x03\x04", b"%PDF-", b"MZ", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"PK\x05\x06" + bytes(18)):
        sniffing.sniff(begin + content)


def test_an_archive_with_very_many_names_is_looked_into_only_so_far() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for i in range(sniffing.MAX_NAMES + 10):
            archive.writestr(f"{i}.txt", "")
        archive.writestr("late.exe", "")
    assert sniffing.sniff(made.getvalue()).holds == ""


def test_an_archive_is_never_unpacked() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.txt", "0" * 50_000_000)
    begin = time.process_time()
    assert sniffing.sniff(made.getvalue()).kind == "zip"
    assert time.process_time() - begin < 0.5


# Hosts


def test_hosts_are_found_in_addresses_and_links() -> None:
    text = "Write to Marta <marta@northwind.example>, or see https://www.x.example:8443/a?b and ftp://f.example. Not a.b"
    assert domains.hosts(text) == ["northwind.example", "www.x.example", "f.example"]


@pytest.mark.parametrize(("kind", "agrees"), [("text", True), ("script", True), ("empty", True), ("png", False), ("unknown", False)])
def test_what_is_called_text_agrees_with_text_alone(kind: str, agrees: bool) -> None:
    assert sniffing.agrees(kind, "note", "text/plain; charset=utf-8") is agrees


@given(st.text(max_size=60), st.sets(st.text(max_size=20), max_size=3))
def test_any_name_of_a_host_can_be_doubted(host: str, known: set[str]) -> None:
    domains.doubt(host, known)
    domains.doubt("xn--" + host, known)


def test_what_is_known_is_not_doubted() -> None:
    for host in ("fernhill.example", "FERNHILL.example.", "a.b.fernhill.example"):
        assert domains.doubt(host, {"fernhill.example"}) is None


# What a parser reads


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text", ["(" * 9000, "SELECT " + "f(" * 6000, "SELECT " + "NOT " * 4900 + "1", "WITH " * 4000, "'" * 19_999, "a." * 9000]
)
def test_a_hostile_statement_neither_takes_long_nor_passes_for_harmless(text: str) -> None:
    found = inspect(action({"statement": text}), facts=Facts(kind="sql"))
    assert [warning.code for warning in found] == ["sql_not_read"]


def test_what_a_statement_says_never_reaches_the_log_of_the_process(caplog: pytest.LogCaptureFixture) -> None:
    for text in ("REPLACE INTO people VALUES ('hunter2')", "CALL pay('hunter2')", "EXPLAIN DELETE FROM people WHERE name = 'hunter2'"):
        inspect(action({"statement": text}), facts=Facts(kind="sql", dialect="sqlite"))
    assert not caplog.records
