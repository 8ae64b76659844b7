"""Who is asked next, and what it costs. Pure."""

import pytest

from runs.engine import providers
from runs.engine.providers import Candidate, Endpoint, Failed, Memory, cost, left

MAIN = Endpoint("main", "http://main/v1", ("large", "small"), ("one", "two"))
OTHER = Endpoint("fallback", "http://other/v1", ("llama",), ())
LINE = [Candidate(MAIN, model, key) for model in MAIN.models for key in (1, 2)] + [Candidate(OTHER, "llama", 0)]
REFUSED = Failed("refused", "the key was refused", key=True, retryable=False)
LIMITED = Failed("limit", "limited", wait=30)


@pytest.fixture(autouse=True)
def memory(monkeypatch) -> Memory:
    fresh = Memory()
    monkeypatch.setattr(providers, "memory", fresh)
    return fresh


def names(waiting: list[Candidate]) -> list[tuple[str, int]]:
    return [(each.model, each.key) for each in waiting]


def test_a_refused_key_opens_no_other_model_of_its_endpoint_and_another_trouble_is_the_models_own():
    assert names(left(LINE[1:], LINE[0], REFUSED)) == [("large", 2), ("small", 2), ("llama", 0)]
    assert names(left(LINE[1:], LINE[0], LIMITED)) == [("small", 1), ("small", 2), ("llama", 0)]
    assert left(LINE[4:], LINE[4], Failed("refused", "", key=True)) == []


def test_what_failed_lately_is_asked_last_and_first_again_once_it_answers(memory):
    memory.failed(LINE[0], LIMITED)
    memory.failed(LINE[2], REFUSED)
    assert names(providers.in_order(LINE)) == [("small", 2), ("llama", 0), ("large", 1), ("large", 2), ("small", 1)]
    assert memory.why_last(LINE[1]) == "limit" and memory.why_last(LINE[3]) is None
    memory.answered(LINE[0])
    assert providers.in_order(LINE) == LINE


def test_what_time_would_not_cure_is_asked_first_all_the_same(memory):
    memory.failed(LINE[0], Failed("limit", "cut off", retryable=False))
    memory.failed(LINE[0], Failed("invalid", "no JSON"))
    assert providers.in_order(LINE) == LINE


def test_a_cost_is_rounded_up_and_a_price_that_nobody_set_is_none(settings):
    settings.HANDRAIL_MODEL_PRICES = {"large": (2_500_000, 10_000_000), "llama": (0, 0)}
    assert cost(LINE[0], 1_000_000, 100_000) == 3_500_000 and cost(LINE[0], 1, 0) == 3
    assert cost(LINE[2], 10, 10) is None and cost(LINE[4], 10, 10) == 0


def test_a_key_is_in_no_text_of_what_holds_it():
    assert "one" not in repr(MAIN).replace("None", "") and "two" not in repr(LINE) and LINE[1].secret == "two"
