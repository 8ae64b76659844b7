"""What a policy's path names is hidden; what is shown again is what a policy hid, never what a detector found. Hostile paths and documents
cost nothing but their own visibility."""

import json
import time
from typing import Any

import pytest

from artifacts.json_paths import MAX_DOCUMENT, PathRefused, Rule, compiled
from artifacts.redaction import Policy, plain, redact

ACCOUNT = {
    "name": "Marta",
    "plan": "pro",
    "balance": 12.5,
    "contacts": [{"kind": "home", "note": "ring twice"}, {"kind": "work", "note": "ask for Ines"}],
    "card": "4111 1111 1111 1111",
}


def shown(value: Any, *rules: tuple[str, str], media_type: str = "application/json") -> Any:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    policy = Policy(rules=tuple(Rule(path, kind) for path, kind in rules))
    return plain(redact(content, media_type=media_type, label="internal", policy=policy).text)


@pytest.mark.parametrize(
    ("rules", "hidden", "left"),
    [
        ([("$.name", "secret")], ["Marta"], ["pro", "ring twice"]),
        ([("$.contacts[*].note", "secret")], ["ring twice", "ask for Ines"], ["home", "Marta"]),
        ([("$.contacts[1]", "secret")], ["ask for Ines", "work"], ["ring twice"]),
        ([("$..note", "phone")], ["ring twice", "ask for Ines"], ["home"]),
        ([("$.contacts[?@.kind == 'work'].note", "secret")], ["ask for Ines"], ["ring twice"]),
        ([("$.balance", "secret")], ["12.5"], ["pro"]),
        ([("$", "secret")], ["Marta", "pro", "12.5", "home", "ring twice"], []),
        ([("$.*", "secret"), ("$.plan", "")], ["Marta", "12.5", "home"], ["pro"]),
        ([("$.contacts", "secret"), ("$.contacts[0].note", "")], ["ask for Ines", "home"], ["ring twice", "Marta"]),
        ([("$.plan", ""), ("$.plan", "secret")], ["pro"], ["Marta"]),
        ([("$.card", "")], ["4111"], ["Marta"]),
        ([("$.nothing.here", "secret")], ["4111"], ["Marta", "pro"]),
    ],
)
def test_what_the_rules_name_is_hidden_and_nothing_else(rules, hidden, left) -> None:
    said = shown(ACCOUNT, *rules)
    json.loads(said)
    assert [word for word in hidden if word in said] == [] and [word for word in left if word not in said] == []


def test_keys_that_stand_twice_and_odd_keys_are_named_as_well() -> None:
    assert "zebra" not in shown(b'{"a": "zebra", "a": "zebra 2", "b": 1}', ("$.a", "secret"))
    assert "zebra" not in shown({"a.b['c\"\n": {"é": "zebra"}}, ("$..['é']", "secret"))


def test_a_key_that_promises_a_secret_is_not_shown_by_a_policy() -> None:
    assert "zebra" not in shown({"password": {"x": "zebra"}}, ("$.password", ""), ("$.password.x", ""))


@pytest.mark.parametrize("content", [b'{"a": "zebra"', b"not json", b"[" * 5_000 + b'"zebra"' + b"]" * 5_000])
def test_of_what_cannot_be_looked_through_nothing_is_shown(content) -> None:
    assert shown(content, ("$.b", "secret")) == "[secret hidden]"
    assert "zebra" not in shown(json.dumps({"a": "zebra " * (MAX_DOCUMENT // 6)}).encode(), ("$.b", "secret"))


@pytest.mark.parametrize(
    "path",
    ["", "name", "$.", "$[", "$..*..*", "$[?match(@.a, '(a+)+$')]", "$[?search(@.a, 'x')]", "$" + ".a" * 13, "$" + ".a" * 200]
    + ["$[?@[?@.a]]", "$ | $.a", "$.a[?length(@.b) > 1]", "$\0", "$[?@..a && @..b]"]
    + ["$" + "[*,*,*,*]" * 12 + ".z", "$[0,0]", "$['a',\"a\"]", "$[0:2,*]", "$[0,-1]", "$[?@[*,*][*,*].z]", "$[*][?$[*].z]"],
)
def test_a_hostile_path_is_refused(path: str) -> None:
    with pytest.raises(PathRefused):
        compiled(path)


@pytest.mark.parametrize("path", ["$..*", "$..a", "$..[?@ == 1]", "$.*.*.*", "$..[0,1,9]"])
@pytest.mark.parametrize("document", [{"a": [[1] * 300] * 300}, [[[1]] * 30_000], {"a": {str(n): {"a": n} for n in range(15_000)}}])
def test_following_a_path_takes_little_time(path: str, document: Any) -> None:
    begin = time.process_time()
    shown(document, (path, "secret"))
    assert time.process_time() - begin < 3
