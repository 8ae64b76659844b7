"""A setting is read, or refused in one line that names it."""

from pathlib import Path

import pytest

from config import env


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch):
    return lambda value: monkeypatch.setenv("ODD", value)


def refused(read, *words: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        read()
    line = str(stopped.value.code)
    assert line.startswith("Handrail: ODD ") and "\n" not in line
    for word in words:
        assert word in line


@pytest.mark.parametrize(("value", "meant"), [("1", True), ("YES", True), (" on ", True), ("0", False), ("False", False), ("", False)])
def test_a_flag_is_read(given, value: str, meant: bool) -> None:
    given(value)
    assert env.flag("ODD") is meant


def test_a_list_of_keys_is_read_and_an_odd_one_is_named_by_its_place_and_not_shown(given) -> None:
    given(" sk-one, sk-two,")
    assert env.secrets("ODD") == ("sk-one", "sk-two")
    given("sk-one, sk two")
    with pytest.raises(SystemExit) as stopped:
        env.secrets("ODD")
    assert "number 2" in str(stopped.value.code) and "sk" not in str(stopped.value.code)


def test_prices_are_read_in_millionths_of_a_euro(given) -> None:
    given("large=2.50/10, org/small:1=0.15/0.6,")
    assert env.prices("ODD") == {"large": (2_500_000, 10_000_000), "org/small:1": (150_000, 600_000)}
    for odd in ("large", "large=2", "large=2/x", "large=-1/2", "=1/2"):
        given(odd)
        refused(lambda: env.prices("ODD"), "list")


@pytest.mark.parametrize("value", ["2", "maybe", "tru"])
def test_an_odd_flag_is_refused(given, value: str) -> None:
    given(value)
    refused(lambda: env.flag("ODD"), value)


@pytest.mark.parametrize("value", ["-1", "11", "1.5", "ten", "0x5", "1e1", "9" * 50, "٣"])
def test_a_number_out_of_bounds_is_refused(given, value: str) -> None:
    given(value)
    refused(lambda: env.integer("ODD", 5, low=0, high=10), "from 0 to 10")


def test_a_number_within_bounds_is_read(given) -> None:
    given("10")
    assert env.integer("ODD", 5, low=0, high=10) == 10
    given("")
    assert env.integer("ODD", 5, low=0, high=10) == 5


def test_a_choice_outside_the_list_is_refused(given) -> None:
    given("xml")
    refused(lambda: env.choice("ODD", "json", of=("line", "json")), "line, json", "xml")


def test_a_list_is_split_and_each_word_checked(given) -> None:
    given(" a.b, c ,,")
    assert env.words("ODD", each=r"[a-z.]+") == ("a.b", "c")
    given("a, b!")
    refused(lambda: env.words("ODD", each=r"[a-z.]+"), "b!")


@pytest.mark.parametrize("value", ["redis://valkey:6379/0", "unix:///run/valkey.sock"])
def test_an_address_is_read(given, value: str) -> None:
    given(value)
    assert env.url("ODD", schemes=("redis", "unix")) == value


@pytest.mark.parametrize("value", ["valkey:6379", "http://valkey", "redis://", "unix://", "redis://h:port", "redis://user:hunter2@"])
def test_an_odd_address_is_refused_without_showing_its_password(given, value: str) -> None:
    given(value)
    with pytest.raises(SystemExit) as stopped:
        env.url("ODD", schemes=("redis", "unix"))
    assert "hunter2" not in str(stopped.value.code) and "redis:// or unix://" in str(stopped.value.code)


def test_a_path_is_absolute(given) -> None:
    given("~/there")
    assert env.path("ODD", Path("x")) == Path.home() / "there"
