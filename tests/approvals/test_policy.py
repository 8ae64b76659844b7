"""What a rule asks, and which rule counts: the first that matches. Unknown means no, and what can't be read is not guessed."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from approvals import conditions, policy
from approvals.conditions import Case, ConditionRefused, Taint
from approvals.models import Policy

CLEAN, LETHAL = Taint(False, False, False), Taint(True, True, True)
MONDAY = datetime(2026, 11, 30, 10, 30, tzinfo=UTC)
ARGUMENTS = {"account": "417", "amount": "250.00", "currency": "EUR", "to": ["a@ours.example", "b@Theirs.example"], "force": True, "n": 3}


def case(**changes: Any) -> Case:
    fields: dict[str, Any] = {"agent": "triage", "tool": "refund", "effect": "write", "label": "internal", "taint": CLEAN, "at": MONDAY}
    return Case(**{**fields, "arguments": ARGUMENTS, "recipients": 2, "outside": True, "new": False, **changes})


def rule(outcome: str = "automatic", *asks: dict[str, str], tool: str = "refund", **more: Any) -> Policy:
    times = {"expires_after": timedelta(hours=1), "grant_lasts": timedelta(hours=1)}
    return policy.rule(uuid4(), name=outcome, tool=tool, outcome=outcome, conditions=conditions.checked(asks), **times, **more)


def ask(what: str, test: str, value: str = "", path: str = "") -> dict[str, str]:
    return {"what": what, "test": test, "value": value, "path": path}


TOLD = [
    (ask("argument", "is", "417", "$.account"), "yes"),
    (ask("argument", "is", "0417", "$.account"), "no"),
    (ask("argument", "is_not", "417", "$.account"), "no"),
    (ask("argument", "one_of", "416, 417", "$.account"), "yes"),
    (ask("argument", "more", "249.99", "$.amount"), "yes"),
    (ask("argument", "is", "true", "$.force"), "yes"),
    (ask("argument", "is", "3.0", "$.n"), "yes"),
    (ask("argument", "there", "", "$.note"), "no"),
    (ask("argument", "absent", "", "$.note"), "yes"),
    (ask("argument", "ends", "@theirs.example", "$.to[*]"), "yes"),
    (ask("every", "ends", "@ours.example", "$.to[*]"), "no"),
    (ask("every", "ends", "@ours.example", "$.cc[*]"), "no"),  # nothing is there, so nothing is known to be fit
    (ask("argument", "is", "417", "$.to"), "unclear"),  # a list is no value
    (ask("argument", "more", "1", "$.account[0]"), "no"),
    (ask("argument", "less", "1", "$.to[0]"), "unclear"),
    (ask("amount", "at_most", "250 EUR"), "yes"),
    (ask("amount", "more", "250 EUR"), "no"),
    (ask("amount", "more", "1 USD"), "unclear"),
    (ask("effect", "is", "write"), "yes"),
    (ask("label", "at_least", "personal"), "no"),
    (ask("label", "at_most", "internal"), "yes"),
    (ask("leg", "is", "private"), "no"),
    (ask("leg", "is_not", "sends"), "yes"),
    (ask("agent", "one_of", "desk, triage"), "yes"),
    (ask("recipients", "is", "outside"), "yes"),
    (ask("recipients", "is", "inside"), "no"),
    (ask("recipients", "is", "known"), "yes"),
    (ask("time", "within", "mon-fri 09:00-17:00 Europe/Berlin"), "yes"),  # 11:30 there
    (ask("time", "within", "mon-fri 09:00-11:00 Europe/Berlin"), "no"),
    (ask("time", "outside", "sat,sun 00:00-23:59 UTC"), "yes"),
    (ask("time", "within", "sun 22:00-11:00 UTC"), "yes"),  # began on Sunday, lasts into Monday
]


@pytest.mark.parametrize(("condition", "holds"), TOLD, ids=lambda each: "-".join(each.values()) if isinstance(each, dict) else each)
def test_each_condition_holds_or_not_or_says_that_it_cannot_tell(condition, holds):
    (checked,) = conditions.checked([condition])
    assert conditions.holds(checked, case()) == holds
    assert conditions.said(checked)


@pytest.mark.parametrize(
    "condition",
    [
        ask("argument", "is", "1", "$..account"),
        ask("argument", "is", "1", "$.a[?@.b == 1]"),
        ask("argument", "is", "1", "$.a['b', 'b']"),
        ask("argument", "is", "1", "the account"),
        ask("argument", "is", "", "$.account"),
        ask("argument", "more", "much", "$.amount"),
        ask("amount", "more", "500"),
        ask("amount", "is", "500 EUR"),
        ask("time", "within", "09:00-17:00 Europe/Atlantis"),
        ask("time", "within", "mon-fri 9-17 UTC"),
        ask("recipients", "is", "friends"),
        ask("moon", "is", "full"),
        ask("argument", "is", "x" * 201, "$.a"),
        ask("argument", "is", "a\0b", "$.a"),
    ],
    ids=str,
)
def test_a_condition_that_cannot_be_understood_is_refused(condition):
    with pytest.raises(ConditionRefused, match="Condition 1: "):
        conditions.checked([condition])


def test_a_path_may_be_typed_as_it_is_said_and_is_kept_in_full():
    short = conditions.checked([ask("argument", "is", "EUR", "currency"), ask("every", "ends", "@nordwind.example", "to[*]")])
    assert [each["path"] for each in short] == ["$.currency", "$.to[*]"]
    assert [conditions.said(each) for each in short] == ["currency is EUR", "every value of to[*] ends with @nordwind.example"]
    assert "path" not in conditions.checked([ask("amount", "more", "500 EUR", "left.behind")])[0], "only an argument has a path"


def test_a_condition_is_said_in_plain_words_and_not_more_loosely_than_it_holds():
    assert conditions.said(ask("argument", "is", "x", "$.to[*].name")) == "some value of to[*].name is x", "there may be several"
    assert conditions.said(ask("argument", "is", "x", "$.to[0:2]")) == "some value of $.to[0:2] is x"
    assert conditions.said(ask("argument", "starts", "ACC-", "$.accounts[0].id")) == "accounts[0].id starts with ACC-"
    assert conditions.said(ask("amount", "more", "1000 EUR")) == "its amount is more than €1,000"
    assert conditions.said(ask("amount", "at_most", "0.50 CHF")) == "its amount is at most 0.50 CHF"


def test_the_first_rule_that_matches_counts():
    small = ask("amount", "at_most", "100 EUR")
    rules = [rule("automatic", small), rule("reviewers", quorum=2), rule("never", tool="")]
    assert policy.judge(rules, case()).needs == 2
    assert policy.judge(rules, case(arguments=ARGUMENTS | {"amount": "99"})).outcome == "automatic"
    assert policy.judge(rules, case(tool="other")).why == "never"
    assert policy.judge(rules[:2], case(tool="other")) == policy.Judgement("never", 0, why="unmatched")


def test_what_a_rule_cannot_read_is_refused_and_not_left_to_the_next_rule():
    rules = [rule("never", ask("amount", "more", "100 EUR")), rule("automatic")]
    for odd in ("1,000.00", "１２", None, ["5"], {"amount": "5"}):
        assert policy.judge(rules, case(arguments={"amount": odd, "currency": "EUR"})).why == "unclear"
    assert policy.judge(rules, case(arguments={"amount": "5", "currency": "USD"})).why == "unclear"


def test_a_value_that_nobody_looked_at_lets_nothing_go():
    many = [f"{n}@ours.example" for n in range(conditions.MAX_FOUND)]
    inside, foreign = ask("every", "ends", "@ours.example", "$.to[*]"), ask("argument", "ends", "@theirs.example", "$.to[*]")
    assert policy.judge([rule("automatic", inside)], case(arguments={"to": many})).outcome == "automatic"
    beyond = case(arguments={"to": [*many, "z@theirs.example"]})
    assert policy.judge([rule("automatic", inside)], beyond).why == "unclear"
    assert policy.judge([rule("never", foreign), rule("automatic")], beyond).why == "unclear"
    assert policy.judge([rule("automatic", ask("argument", "is_not", "x", "$.to[*]"))], beyond).why == "unclear"


def test_an_amount_below_zero_counts_as_much_as_one_above():
    small = rule("automatic", ask("amount", "at_most", "100 EUR"))
    assert policy.judge([small], case(arguments={"amount": "-5000", "currency": "EUR"})).why == "unmatched"


def test_a_rule_may_ask_for_a_plan_first():
    assert policy.judge([rule(plan_first=True)], case(planned=False)).why == "no_plan"
    assert policy.judge([rule(plan_first=True)], case(planned=True)).outcome == "automatic"


ASKS = st.sampled_from([condition for condition, _ in TOLD])
RULES = st.lists(
    st.builds(
        lambda outcome, asks, tool, quorum: rule(outcome, *asks, tool=tool, quorum=quorum),
        st.sampled_from(["automatic", "reviewers", "never"]),
        st.lists(ASKS, max_size=2),
        st.sampled_from(["", "refund", "send"]),
        st.integers(0, 3),
    ),
    max_size=5,
)
VALUES = st.one_of(st.none(), st.booleans(), st.text(max_size=5), st.integers(), st.lists(st.text(max_size=3), max_size=2))
CASES = st.builds(
    lambda legs, tool, arguments: case(taint=Taint(*legs), tool=tool, arguments=arguments),
    st.sampled_from(list(product([False, True], repeat=3))),
    st.sampled_from(["refund", "send", "other"]),
    st.dictionaries(st.sampled_from(["account", "amount", "currency", "to", "force", "n"]), VALUES),
)


@settings(max_examples=200, deadline=None)
@given(rules=RULES, what=CASES)
def test_whatever_the_rules_and_the_action_the_answer_is_safe(rules, what):
    told = policy.judge(rules, what)
    assert told == policy.judge(rules, what), "it depends on nothing else"
    if what.taint.lethal:
        assert told.outcome != "automatic", "with all three legs a person decides"
    if told.rule is None:
        assert told.outcome == "never" and all(each.tool not in ("", what.tool) or "no" in _each(each, what) for each in rules)
    else:
        at = rules.index(told.rule)
        assert all(each.tool not in ("", what.tool) or "no" in _each(each, what) for each in rules[:at]), "none before it matched"
        assert told.outcome == "never" or _each(told.rule, what) <= {"yes"}, "nothing is allowed by what is unclear"
    assert (told.needs > 0) == (told.outcome == "reviewers")


def _each(rule: Policy, what: Case) -> set[str]:
    return {conditions.holds(each, what) for each in rule.conditions}
