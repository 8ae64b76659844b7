"""The digest of an exact action. The vectors are RFC 8785's own (sections 3.2.2, 3.2.3, appendix B) and those published beside it."""

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.errors import BadInput
from approvals.canonical import (
    ABSENT,
    MAX_DEPTH,
    Attachment,
    CanonicalAction,
    Change,
    NotCanonical,
    canonical_bytes,
    canonical_json,
    diff,
    digest,
    parse,
    parse_json,
    pointer,
)

ACTION = CanonicalAction(
    tool="send_email",
    tool_schema=2,
    arguments={
        "to": ["marta@northwind.example"],
        "subject": "Your invoice",
        "body": "Dear Marta,\nthe duplicate is gone.",
        "priority": None,
    },
    recipients=("marta@northwind.example",),
    attachments=(Attachment("invoice.pdf", "application/pdf", 48_213, "ab" * 32),),
    target="smtp://mail.example:587",
    credential="support-mailbox",
    executor="handrail",
    nonce="0198c0de-7000-7000-8000-000000000001",
)

# RFC 8785, 3.2.2 (input) and 3.2.3 (output); the sort sample of 3.2.3
RFC_SAMPLE = (
    r"""{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}""",
    r"""{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}""",
)
RFC_SORTING = (
    r"""{
  "\u20ac": "Euro Sign",
  "\r": "Carriage Return",
  "\ufb33": "Hebrew Letter Dalet With Dagesh",
  "1": "One",
  "\ud83d\ude00": "Emoji: Grinning Face",
  "\u0080": "Control",
  "\u00f6": "Latin Small Letter O With Diaeresis"
}""",
    [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ],
)
# RFC 8785, appendix B: the 64 bits of a double, and its spelling
RFC_NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}
RFC_NOT_NUMBERS = ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"]
PUBLISHED = {
    "arrays": ('[\n  56,\n  {\n    "d": true,\n    "10": null,\n    "1": [ ]\n  }\n]', '[56,{"1":[],"10":null,"d":true}]'),
    "french": (
        '{\n  "peach": "This sorting order",\n  "péché": "is wrong according to French",\n'
        '  "pêche": "but canonicalization MUST",\n  "sin":   "ignore locale"\n}',
        '{"peach":"This sorting order","péché":"is wrong according to French","pêche":"but canonicalization MUST","sin":"ignore locale"}',
    ),
    "structures": (
        '{\n  "1": {"f": {"f": "hi","F": 5} ,"\\n": 56.0},\n  "10": { },'
        '\n  "": "empty",\n  "a": { },\n  "111": [ {"e": "yes","E": "no" } ],\n  "A": { }\n}',
        r'{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}',
    ),
    "unicode": ('{\n  "Unnormalized Unicode":"A\\u030a"\n}', '{"Unnormalized Unicode":"A\u030a"}'),
    "values": (
        r"""{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}""",
        r"""{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}""",
    ),
    "weird": (
        r"""{
  "\u20ac": "Euro Sign", "\r": "Carriage Return", "\u000a": "Newline", "1": "One", "\u0080": "Control\u007f",
  "\ud83d\ude02": "Smiley", "\u00f6": "Latin Small Letter O With Diaeresis",
  "\ufb33": "Hebrew Letter Dalet With Dagesh", "</script>": "Browser Challenge"
}""",
        '{"\\n":"Newline","\\r":"Carriage Return","1":"One","</script>":"Browser Challenge","\x80":"Control\x7f",'
        '"ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😂":"Smiley","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    ),
}


# RFC 8785


def test_the_rfcs_sample_object_is_written_as_the_rfc_writes_it() -> None:
    given_text, wanted = RFC_SAMPLE
    assert canonical_json(parse_json(given_text)) == wanted.encode()


def test_keys_are_sorted_by_their_utf16_code_units() -> None:
    given_text, wanted = RFC_SORTING
    assert list(json.loads(canonical_json(parse_json(given_text))).values()) == wanted


@pytest.mark.parametrize(("bits", "wanted"), RFC_NUMBERS.items())
def test_numbers_are_written_as_in_appendix_b(bits: str, wanted: str) -> None:
    assert canonical_json(_double(bits)) == wanted.encode()


@pytest.mark.parametrize("bits", RFC_NOT_NUMBERS)
def test_what_appendix_b_calls_an_error_is_refused(bits: str) -> None:
    with pytest.raises(NotCanonical, match="not a number that JSON knows"):
        canonical_json(_double(bits))


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_vectors_pass(name: str) -> None:
    given_text, wanted = PUBLISHED[name]
    assert canonical_json(parse_json(given_text)) == wanted.encode()
    assert canonical_json(parse_json(wanted.encode())) == wanted.encode()


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=25,
)


@given(JSON_VALUES)
def test_any_json_value_is_written_so_that_another_reader_reads_the_same(value: Any) -> None:
    assert json.loads(canonical_json(value), parse_int=float) == value  # as RFC 8785 reads numbers: doubles


# The digest


def test_the_digest_is_sha256_of_the_canonical_bytes_and_the_bytes_are_stored_for_ever() -> None:
    # if this fails, every digest that was ever stored no longer names its action
    assert digest(ACTION) == hashlib.sha256(canonical_bytes(ACTION)).hexdigest()
    assert canonical_bytes(ACTION) == (
        b'{"arguments":{"body":"Dear Marta,\\nthe duplicate is gone.","priority":null,"subject":"Your invoice",'
        b'"to":["marta@northwind.example"]},"attachments":[{"commitment":"' + b"ab" * 32 + b'","media_type":"application/pdf",'
        b'"name":"invoice.pdf","size":48213}],"credential":"support-mailbox","executor":"handrail",'
        b'"nonce":"0198c0de-7000-7000-8000-000000000001","recipients":["marta@northwind.example"],'
        b'"target":"smtp://mail.example:587","tool":"send_email","tool_schema":2}'
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"tool": "send_mail"},
        {"tool_schema": 3},
        {"arguments": {}},
        {"arguments": dict(ACTION.arguments, priority=0)},
        {"arguments": {k: v for k, v in ACTION.arguments.items() if k != "priority"}},
        {"arguments": dict(ACTION.arguments, subject="Your invoice ")},
        {"arguments": dict(ACTION.arguments, subject="Your inv\u200boice")},
        {"recipients": ()},
        {"recipients": ("marta@northwind.example", "marta@northwind.example")},
        {"attachments": ()},
        {"attachments": (replace(ACTION.attachments[0], name="invoice.exe"),)},
        {"attachments": (replace(ACTION.attachments[0], media_type="text/plain"),)},
        {"attachments": (replace(ACTION.attachments[0], size=48_214),)},
        {"attachments": (replace(ACTION.attachments[0], commitment="ac" * 32),)},
        {"target": "smtp://mail.example:25"},
        {"credential": "sales-mailbox"},
        {"executor": "agent"},
        {"nonce": "0198c0de-7000-7000-8000-000000000002"},
    ],
    ids=lambda changed: ",".join(changed),
)
def test_every_part_of_the_action_moves_the_digest(changed: dict[str, Any]) -> None:
    assert digest(replace(ACTION, **changed)) != digest(ACTION)


def test_every_field_is_covered_by_the_digest() -> None:
    assert set(json.loads(canonical_bytes(ACTION))) == {f.name for f in fields(CanonicalAction)}
    assert set(json.loads(canonical_bytes(ACTION))["attachments"][0]) == {f.name for f in fields(Attachment)}


def test_text_is_compared_as_it_is_and_never_normalised() -> None:
    composed, decomposed = replace(ACTION, target="\u00e9"), replace(ACTION, target="e\u0301")
    assert digest(composed) != digest(decomposed)


def test_the_order_of_the_keys_and_the_spelling_of_numbers_do_not_matter() -> None:
    one = replace(ACTION, arguments={"a": 1, "b": 2.0})
    assert digest(one) == digest(replace(ACTION, arguments={"b": 2, "a": 1.0}))


def test_a_later_change_of_the_callers_arguments_does_not_reach_the_action() -> None:
    mine = {"to": ["marta@northwind.example"]}
    action = replace(ACTION, arguments=mine)
    before = digest(action)
    mine["to"].append("eve@evil.example")
    assert digest(action) == before
    assert action.arguments == {"to": ["marta@northwind.example"]}


def test_arguments_may_be_any_mapping() -> None:
    assert digest(replace(ACTION, arguments=MappingProxyType(dict(ACTION.arguments)))) == digest(ACTION)


# Reading back

ACTIONS = st.builds(
    CanonicalAction,
    tool=st.text(min_size=1),
    tool_schema=st.integers(0, 99),
    arguments=st.dictionaries(st.text(), JSON_VALUES.filter(lambda v: not _has_great_float(v)), max_size=4),
    recipients=st.lists(st.text(), max_size=3),
    attachments=st.lists(st.builds(Attachment, st.text(), st.text(), st.integers(0, 2**40), st.text()), max_size=2),
    target=st.text(),
    credential=st.text(),
    executor=st.sampled_from(["handrail", "agent"]),
    nonce=st.text(),
)


@given(ACTIONS)
def test_an_action_reads_back_as_itself(action: CanonicalAction) -> None:
    again = parse(canonical_bytes(action))
    assert again == action
    assert digest(again) == digest(action)
    assert diff(action, again) == ()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda body: body | {"note": 1}, "no key 'note'"),
        (lambda body: {k: v for k, v in body.items() if k != "nonce"}, "needs nonce"),
        (lambda body: body | {"attachments": {}}, "attachments is a list"),
        (lambda body: body | {"attachments": [{"name": "a"}]}, "An attachment needs"),
        (lambda body: body | {"attachments": ["a"]}, "An attachment is an object"),
        (lambda body: body | {"recipients": "marta"}, "recipients is a list"),
        (lambda body: body | {"recipients": [7]}, "recipients is a list"),
        (lambda body: body | {"arguments": []}, "arguments is an object"),
        (lambda body: body | {"executor": "root"}, "executor is one of"),
        (lambda body: body | {"tool_schema": True}, "tool_schema"),
        (lambda body: body | {"tool_schema": "2"}, "tool_schema"),
        (lambda body: body | {"tool": ""}, "names its tool"),
        (lambda body: body | {"target": None}, "target is text"),
        (lambda body: [body], "An action is an object"),
    ],
)
def test_another_shape_is_refused(spoil: Any, message: str) -> None:
    with pytest.raises(NotCanonical, match=message):
        parse(canonical_json(spoil(json.loads(canonical_bytes(ACTION)))))


def test_another_spelling_of_the_same_action_is_refused() -> None:
    pretty = json.dumps(json.loads(canonical_bytes(ACTION)), indent=1).encode()
    with pytest.raises(NotCanonical, match="not in canonical form"):
        parse(pretty)


# What cannot be written down


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "not a number"),
        (-math.inf, "not a number"),
        (2**53, "beyond"),
        (-(2**53), "beyond"),
        (10**5000, "beyond"),
        ("a\ud800b", "half a surrogate"),
        ("\udc00", "half a surrogate"),
        ({"\udfff": 1}, "half a surrogate"),
        ({1: "one"}, "A key is text, not int"),
        ({None: "one"}, "A key is text"),
        (b"bytes", "bytes is not a JSON value"),
        ({"a", "b"}, "set is not a JSON value"),
        (1 + 2j, "complex is not"),
    ],
    ids=lambda v: ascii(v)[:30] if not isinstance(v, int) else "int",
)
def test_what_has_no_single_spelling_is_refused(value: Any, message: str) -> None:
    for nested in (value, [value], {"k": [{"k": value}]}):
        with pytest.raises(NotCanonical, match=message):
            canonical_json(nested)
    with pytest.raises(NotCanonical, match=message):
        replace(ACTION, arguments={"k": value})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"to":"a","to":"b"}', "'to' stands twice"),
        (b'{"a":{"x":1,"x":1}}', "'x' stands twice"),
        (b'{"to":"a","t\\u006f":"b"}', "'to' stands twice"),
        (b"[NaN]", "NaN is not a number"),
        (b"[-Infinity]", "-Infinity is not a number"),
        (b"[1e999]", "inf is not a number"),
        (b"[9007199254740992]", "beyond"),
        (b"[-9007199254740993]", "beyond"),
        (b"[" + b"9" * 100_000 + b"]", "beyond"),
        (rb'["\ud800"]', "half a surrogate"),
        (b'["\xff"]', "not UTF-8"),
        (b'["\xed\xa0\x80"]', "not UTF-8"),
        (b"{", "not JSON"),
        (b"", "not JSON"),
        (b"[1,]", "not JSON"),
        (b"[1] 2", "not JSON"),
        (b"\xef\xbb\xbf[1]", "not JSON"),
        (b"[" * 200_000, "nested more than"),
        (b"[" * (MAX_DEPTH + 2) + b"]" * (MAX_DEPTH + 2), "nested more than"),
    ],
    ids=lambda v: repr(v)[:40],
)
def test_json_text_that_two_readers_could_read_as_two_things_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(NotCanonical, match=message):
        parse_json(text)


def test_a_float_that_would_be_spelled_as_a_great_whole_number_is_refused_in_an_action() -> None:
    with pytest.raises(NotCanonical, match="beyond"):
        replace(ACTION, arguments={"amount": 1e20})
    assert replace(ACTION, arguments={"amount": 1e21}).arguments == {"amount": 1e21}


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotCanonical, match="nested"):
        canonical_json(loop)


@pytest.mark.parametrize("part", ["tool", "target", "credential", "nonce"])
def test_half_a_surrogate_pair_is_refused_in_every_field(part: str) -> None:
    with pytest.raises(NotCanonical, match="surrogate"):
        replace(ACTION, **{part: "\ud800"})
    with pytest.raises(NotCanonical, match="surrogate"):
        replace(ACTION, recipients=("\ud800",))
    with pytest.raises(NotCanonical, match="surrogate"):
        replace(ACTION, attachments=(replace(ACTION.attachments[0], name="\ud800"),))


def test_a_refusal_is_bad_input_and_a_value_error() -> None:
    with pytest.raises(NotCanonical) as refused:
        canonical_json(math.nan)
    assert isinstance(refused.value, BadInput)
    assert isinstance(refused.value, ValueError)
    assert refused.value.status == 422


# Differences


def test_an_edit_shows_what_stood_there_before_and_what_stands_there_now() -> None:
    edited = replace(
        ACTION,
        arguments={
            "to": ["marta@northwind.example"],
            "subject": "Your refund",
            "body": ACTION.arguments["body"],
            "cc": ["ada@northwind.example"],
        },
        nonce="2",
    )
    assert diff(ACTION, edited) == (
        Change("/arguments/cc", ABSENT, ["ada@northwind.example"]),
        Change("/arguments/priority", None, ABSENT),
        Change("/arguments/subject", "Your invoice", "Your refund"),
        Change("/nonce", ACTION.nonce, "2"),
    )
    assert [c.kind for c in diff(ACTION, edited)] == ["added", "removed", "changed", "changed"]


def test_null_and_not_there_are_two_things() -> None:
    (change,) = diff(ACTION, replace(ACTION, arguments={k: v for k, v in ACTION.arguments.items() if k != "priority"}))
    assert (change.before, change.after) == (None, ABSENT)
    assert not ABSENT
    assert repr(ABSENT) == "ABSENT"


def test_true_and_one_are_two_things() -> None:
    old, new = replace(ACTION, arguments={"now": True}), replace(ACTION, arguments={"now": 1})
    assert diff(old, new) == (Change("/arguments/now", True, 1),)


def test_a_recipient_put_in_front_is_one_change() -> None:
    old, new = (
        replace(ACTION, recipients=("b@x.example", "c@x.example")),
        replace(ACTION, recipients=("a@x.example", "b@x.example", "c@x.example")),
    )
    assert diff(old, new) == (Change("/recipients/0", ABSENT, "a@x.example"),)
    assert diff(new, old) == (Change("/recipients/0", "a@x.example", ABSENT),)


def test_a_renamed_attachment_shows_only_its_name() -> None:
    renamed = replace(ACTION, attachments=(replace(ACTION.attachments[0], name="other.pdf"),))
    assert diff(ACTION, renamed) == (Change("/attachments/0/name", "invoice.pdf", "other.pdf"),)


def test_long_lists_are_compared_in_bounded_work() -> None:
    old, new = replace(ACTION, arguments={"rows": list(range(20_000))}), replace(ACTION, arguments={"rows": list(range(1, 20_001))})
    assert len(diff(old, new)) == 20_000


@given(ACTIONS, ACTIONS)
def test_there_is_a_difference_exactly_when_the_digests_differ(old: CanonicalAction, new: CanonicalAction) -> None:
    assert (diff(old, new) == ()) == (digest(old) == digest(new))


def test_paths_are_json_pointers() -> None:
    assert pointer("arguments", "a/b~c", 0) == "/arguments/a~1b~0c/0"


def _double(bits: str) -> float:
    return struct.unpack(">d", bytes.fromhex(bits))[0]


def _has_great_float(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_great_float, value.values()))
    if isinstance(value, list):
        return any(map(_has_great_float, value))
    return isinstance(value, float) and 2**53 <= abs(value) < 1e21
