"""The vocabulary is closed and strict: these types, these fields, these writers, and nothing else passes."""

import string
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from runs import vocabulary
from runs.errors import InvalidEvent, UnknownEventType
from runs.vocabulary import AGENT, ENGINE, PEOPLE, ROUTES, TYPES, Data, parse
from tests.runs import made_up

# the closed list, group by group; a new type is a decision record
DESIGNED = {
    "run": "created started waiting resumed queued paused stalled cancel_requested cancelling compensating parked "
    "succeeded failed cancelled forked",
    "plan": "set",
    "milestone": "reached",
    "checkpoint": "saved",
    "note": "posted",
    "report": "published",
    "artifact": "created",
    "step": "started completed failed retrying",
    "tool": "started ended",
    "model": "called switched",
    "action": "proposed superseded withdrawn escalated delegated decided covered recalled expired granted delivered redeemed "
    "executed verified unknown resolved",
    "signal": "received applied refused",
    "question": "asked answered",
    "block": "raised cleared",
    "budget": "warned exceeded changed",
    "child": "started ended",
    "deadletter": "entered resolved",
    "webhook": "received",
    "effect": "done undone undo_failed",
}
AGENTS_OWN = {"plan", "milestone", "checkpoint", "note", "report", "artifact", "tool", "model", "block"}
every_type = pytest.mark.parametrize("kind", sorted(TYPES))


def test_the_types_are_those_of_the_design():
    assert set(TYPES) == {f"{group}.{verb}" for group, verbs in DESIGNED.items() for verb in verbs.split()}
    assert len(TYPES) == 63
    assert all(known.type == kind for kind, known in TYPES.items())


def test_agents_write_plan_progress_tools_models_and_blocks_and_nothing_else():
    written = {kind for kind, known in TYPES.items() if AGENT in known.writers}
    assert written == {kind for kind in TYPES if kind.split(".")[0] in AGENTS_OWN}
    assert not written & {"action.decided", "action.executed", "run.succeeded", "effect.done", "signal.received", "question.answered"}


def test_what_people_write_no_agent_writes():
    people = {kind for kind, known in TYPES.items() if PEOPLE in known.writers}
    assert {"action.decided", "action.recalled", "action.resolved", "signal.received", "deadletter.resolved"} <= people
    assert not any(AGENT in TYPES[kind].writers for kind in people)
    assert all(known.writers <= {AGENT, ENGINE, PEOPLE} and known.writers for known in TYPES.values())


def test_an_agent_is_told_the_way_to_whatever_it_may_not_write():
    assert set(ROUTES) == {kind.split(".")[0] for kind, known in TYPES.items() if AGENT not in known.writers}
    assert all(ROUTES.values())


# what passes and what does not --------------------------------------------------------------------------------------------------------


@every_type
@given(st.data())
@settings(max_examples=10)
def test_what_is_written_is_read_back_the_same(kind: str, draw: st.DataObject):
    told = draw.draw(made_up.data_of(kind))
    assert parse(kind, orjson.dumps(told.model_dump(mode="json"))) == told
    assert parse(kind, told.model_dump(mode="json", exclude_none=True)) == told


@every_type
@given(st.data())
@settings(max_examples=2)
def test_nothing_unknown_and_nothing_of_another_kind_passes(kind: str, draw: st.DataObject):
    good = draw.draw(made_up.data_of(kind)).model_dump(mode="json", exclude_none=True)
    refuse(kind, good | {"more": 1})
    refuse(kind, good | {"type": kind})
    for name, field in TYPES[kind].model_fields.items():
        for odd in ({}, [[]], 1.5, "two words\n", "", "\x00", -1, 2**53, 10**30, "1" * 10_000):
            refuse(kind, good | {name: odd})
        if field.is_required():
            refuse(kind, {other: value for other, value in good.items() if other != name})
            refuse(kind, good | {name: None})
        if isinstance(good.get(name), bool):
            for odd in (0, 1, "true", "yes"):
                refuse(kind, good | {name: odd})
        elif isinstance(good.get(name), int):
            for odd in (str(good[name]), float(good[name]), True):
                refuse(kind, good | {name: odd})


def refuse(kind: str, data: dict[str, Any]) -> None:
    with pytest.raises(InvalidEvent):
        parse(kind, data)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff", b'{"a": NaN}', b"[" * 100_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000]
)
def test_what_is_no_json_object_is_refused(data: bytes):
    with pytest.raises(InvalidEvent):
        parse("note.posted", data)


@pytest.mark.parametrize("value", [pytest.param(object(), id="an object"), 2**70, "\ud800", b"bytes", {1, 2}, float("nan")], ids=str)
def test_what_json_cannot_say_is_refused(value: object):
    with pytest.raises(InvalidEvent):
        parse("note.posted", {"a": value})


@pytest.mark.parametrize(
    "kind", ["", "note", "note.posted ", "NOTE.POSTED", "note.posted\n", "token.streamed", "x" * 10_000, "ｎote.posted"]
)
def test_an_unknown_type_is_refused_and_the_known_ones_are_named(kind: str):
    with pytest.raises(UnknownEventType) as refused:
        parse(kind, {})
    assert refused.value.extra["types"] == sorted(TYPES)
    assert refused.value.status == 422
    assert len(refused.value.detail) < 200


def test_a_refusal_names_the_field_and_does_not_repeat_what_was_sent():
    with pytest.raises(InvalidEvent) as refused:
        parse("tool.started", {"tool": "sk_live_51Habcdefghijkl is no name", "effect": "sk_live_51Habcdefghijkl"})
    assert "tool:" in refused.value.detail and "effect:" in refused.value.detail
    assert "sk_live" not in refused.value.detail


def test_an_event_cites_no_more_than_two_hundred():
    assert parse("report.published", {"cites": list(range(1, 201))}).cites[-1] == 200
    refuse("report.published", {"cites": list(range(1, 202))})
    refuse("report.published", {"cites": [0]})


def test_data_is_frozen():
    told = vocabulary.PlanSet(version=1, steps=3)
    with pytest.raises(ValidationError):
        told.steps = 4


# texts ------------------------------------------------------------------------------------------------------------------------------


def test_free_text_has_no_place_in_data():
    """Whatever somebody wrote is a payload. A field of data is a number, a choice, an id, a time, or a name without a blank in it."""
    blank = "".join(("free", chr(32), "text"))
    for kind, known in TYPES.items():
        for name in known.model_fields:
            with pytest.raises(InvalidEvent) as refused:
                parse(kind, {name: blank})
            assert f"{name}:" in refused.value.detail, f"{kind}.{name} takes any text"


@every_type
def test_only_named_texts_go_with_an_event(kind: str):
    roles = TYPES[kind].roles
    for stray in ("", "anything", "title\n", "Title", " note", "step_0", "step_100", "body|title", "x" * 1000):
        assert not roles.fullmatch(stray), f"{kind} takes {stray!r}"


def test_a_plan_carries_each_of_its_steps_and_a_note():
    assert all(vocabulary.PlanSet.roles.fullmatch(role) for role in ("step_1", "step_9", "step_10", "step_99", "note"))
    assert not vocabulary.PlanSet.roles.fullmatch("step_01")


# sentences --------------------------------------------------------------------------------------------------------------------------


@every_type
def test_a_sentence_is_made_of_the_actor_and_the_types_own_fields(kind: str):
    template = TYPES[kind].sentence
    used = {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
    assert used <= {"actor", *TYPES[kind].model_fields}
    assert all(name.isidentifier() for name in used), "no attribute or index is looked up"


@given(made_up.data(), st.text())
def test_every_event_has_its_sentence(told: Data, actor: str):
    said = vocabulary.sentence(told.type, told.model_dump(mode="json", exclude_none=True), actor)
    assert said
    assert actor in said or "{actor}" not in TYPES[told.type].sentence


def test_a_sentence_reads_what_an_older_event_lacks_as_a_dash_and_evaluates_nothing():
    assert vocabulary.sentence("tool.ended", {}, "x") == "– ended: –"
    assert vocabulary.sentence("note.posted", {}, "{actor.__class__} {0} %s") == "{actor.__class__} {0} %s noted"


def test_a_time_in_data_is_written_with_its_offset():
    waiting = vocabulary.RunWaiting(on="decision", action=uuid4(), until=datetime(2026, 11, 26, 14, 2, 11, tzinfo=UTC))
    assert waiting.model_dump(mode="json")["until"] == "2026-11-26T14:02:11Z"
