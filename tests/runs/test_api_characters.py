"""Text that is none (a NUL, half a surrogate pair) is refused at the border of the API, whatever it is in, and the refusal says where."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from access import keys
from access.rules import SYSTEM
from config.api import api
from runs.models import Event, Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
NUL, HALF = "a\0b", "a\ud800b"
START = {"title": "Look", "agent_version": "1"}
EVENT = {"id": "a", "type": "note.posted"}
PLACES: list[tuple[str, Any, str]] = [
    ("runs", START | {"title": NUL}, "body.title"),
    ("runs", START | {"agent": NUL}, "body.agent"),
    ("runs", START | {"agent_version": NUL}, "body.agent_version"),
    ("runs", START | {"workflow": NUL}, "body.workflow"),
    ("runs", START | {"note": HALF}, "body.note"),
    ("runs", START | {"scope": {"email": ["x", NUL]}}, "body.scope.email.1"),
    ("runs", START | {"scope": {NUL: ["x"]}}, "body.scope.a\N{SYMBOL FOR NULL}b"),
    ("runs", START | {"arguments": {"deep": [{"er": HALF}]}}, "body.arguments.deep.0.er"),
    ("runs", START | {"arguments": {"texts": {"note": NUL}}}, "body.arguments.texts.note"),
    ("runs/{run_id}/events", EVENT | {"id": NUL}, "body.id"),
    ("runs/{run_id}/events", EVENT | {"data": {"tool": NUL}}, "body.data.tool"),
    ("runs/{run_id}/events", EVENT | {"texts": {NUL: "x"}}, "body.texts.a\N{SYMBOL FOR NULL}b"),
    ("runs/{run_id}/events", EVENT | {"texts": {"note": HALF}}, "body.texts.note"),
    ("runs/{run_id}/events", EVENT | {"texts": {"note": {"text": "x", "media_type": NUL}}}, "body.texts.note.media_type"),
    ("runs/{run_id}/events", [EVENT, EVENT | {"type": NUL}], "body.1.type"),
    ("runs/{run_id}/signals", {"kind": "cancel", "note": NUL}, "body.note"),
    ("runs/{run_id}/ending", {"outcome": "failed", "detail": NUL}, "body.detail"),
    ("runs/{run_id}/lease", {"holder": NUL}, "body.holder"),
    ("runs/{run_id}/steps", {"token": 1, "key": NUL, "input": "0" * 64}, "body.key"),
    ("runs/{run_id}/steps", {"token": 1, "key": "a", "input": NUL}, "body.input"),
    ("runs/{run_id}/steps/outcome", {"token": 1, "key": "a", "outcome": "failed", "detail": HALF}, "body.detail"),
    ("runs/{run_id}/steps/outcome", {"token": 1, "key": "a", "outcome": "completed", "result": {"text": NUL}}, "body.result.text"),
    ("runs/{run_id}/updates", {"budgets": {"steps": 1}, "note": NUL}, "body.note"),
    ("runs/{run_id}/answers", {"question": "0" * 36, "text": NUL}, "body.text"),
    ("runs/{run_id}/answers", {"question": NUL, "text": "x"}, "body.question"),
    ("runs/{run_id}/recovery", {"choice": "retry", "parked": 1, "note": HALF}, "body.note"),
    ("runs/{run_id}/recovery", {"choice": "retry", "parked": 1, "step": NUL}, "body.step"),
    ("runs/{run_id}/undos", {"effect": 1, "reason": HALF}, "body.reason"),
    ("runs/{run_id}/forks", {"step": NUL}, "body.step"),
    ("runs/{run_id}/forks", {"note": HALF}, "body.note"),
    ("runs/{run_id}/forks", {"input": {"deep": [NUL]}}, "body.input.deep.0"),
    ("runs/{run_id}/uploads", {"name": NUL, "size": 1}, "body.name"),
    ("runs/{run_id}/uploads", {"name": "a", "size": 1, "media_type": NUL}, "body.media_type"),
    ("uploads/{upload_id}/finish", {"sha256": NUL}, "body.sha256"),
    ("runs/{run_id}/recovery", {"choice": "retry", "parked": 1, "to": NUL}, "body.to"),
    ("actions/{action_id}/decisions", {"verdict": "approved", "digest": "0" * 64, "reason": NUL}, "body.reason"),
    ("actions/{action_id}/decisions", {"verdict": "approved", "digest": "0" * 64, "acks": [NUL]}, "body.acks.0"),
    ("actions/{action_id}/decisions", {"verdict": "approved", "digest": "0" * 64, "seen": {"opened": [NUL]}}, "body.seen.opened.0"),
    ("actions/{action_id}/edits", {"digest": "0" * 64, "arguments": {"to": [NUL]}}, "body.arguments.to.0"),
    ("actions/{action_id}/questions", {"digest": "0" * 64, "question": HALF}, "body.question"),
    ("actions/{action_id}/recall", {"reason": NUL}, "body.reason"),
    ("actions/{action_id}/withdrawal", {"reason": HALF}, "body.reason"),
    ("payloads/{payload_id}/reveals", {"place": NUL}, "body.place"),
    ("payloads/{payload_id}/reveals", {"reason": NUL}, "body.reason"),
    ("payloads/{payload_id}/reveals", {"details": HALF}, "body.details"),
    ("agents", {"name": NUL}, "body.name"),
    ("agents", {"name": "a", "owner": HALF}, "body.owner"),
    ("agents/{agent_id}/keys", {"name": NUL}, "body.name"),
    ("agents/{agent_id}/keys", {"name": "a", "tools": [NUL]}, "body.tools.0"),
    ("agents/{agent_id}/keys", {"name": "a", "workflows": [HALF]}, "body.workflows.0"),
    ("agents/{agent_id}/keys", {"name": "a", "rights": [NUL]}, "body.rights.0"),
    ("agents/{agent_id}/keys/{key_id}/rotations", {"days": NUL}, "body.days"),
    ("redaction-policies", {"path": NUL, "why": "x", "version": 0}, "body.path"),
    ("redaction-policies", {"path": "$.a", "tool": HALF, "why": "x", "version": 0}, "body.tool"),
    ("redaction-policies/{policy_id}/withdrawal", {"why": NUL, "version": 0}, "body.why"),
    ("freezes", {"what": "tool", "tool": NUL, "reason": "x"}, "body.tool"),
    ("freezes", {"what": "workspace", "reason": HALF}, "body.reason"),
    ("freezes/{freeze_id}/lifting", {"reason": NUL}, "body.reason"),
    ("actions/{action_id}/resolution", {"outcome": "happened", "reference": NUL}, "body.reference"),
    ("runs/{run_id}/actions", {"tool": NUL, "tool_schema": 1, "arguments": {}}, "body.tool"),
    ("runs/{run_id}/actions", {"tool": "a", "tool_schema": 1, "arguments": {"to": [HALF]}}, "body.arguments.to.0"),
    ("runs/{run_id}/actions", {"tool": "a", "tool_schema": 1, "arguments": {}, "reason": NUL}, "body.reason"),
    ("actions/{action_id}/answers", {"question": "0" * 32, "answer": NUL}, "body.answer"),
    ("actions/{action_id}/redemption", {"digest": "0" * 64, "holder": NUL}, "body.holder"),
    ("actions/{action_id}/outcome", {"holder": "a" * 16, "outcome": "failed", "detail": HALF}, "body.detail"),
    ("actions/{action_id}/outcome", {"holder": "a" * 16, "outcome": "failed", "facts": {"a": NUL}}, "body.facts.a"),
]


@pytest.fixture
def agent(cast) -> Client:
    _, token = keys.make(cast.agent, name="test", by=SYSTEM)
    return Client(headers={"Authorization": f"Bearer {token}", "Idempotency-Key": "a"})


@pytest.fixture
def run(agent) -> str:
    return agent.post("/api/v1/runs", START, content_type="application/json").json()["id"]


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in api.get_openapi_schema(path_prefix="/api/v1/")["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def names(answer: Any, at: str) -> None:
    assert answer.status_code == 422, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert at in [each["at"] for each in answer.json()["errors"]] and at in answer.json()["detail"]


def test_every_body_that_the_api_reads_has_its_place_in_the_table() -> None:
    taken = {path.removeprefix("/api/v1/") for _, path, operation in operations() if "requestBody" in operation}
    assert taken == {path for path, *_ in PLACES}


@pytest.mark.parametrize(("path", "body", "at"), PLACES, ids=[f"{path} {at}" for path, _, at in PLACES])
def test_a_body_with_text_that_is_none_is_refused_and_the_place_is_named(agent, run, path, body, at) -> None:
    written = Event.objects.count()
    address = path
    for blank in ("run_id", "action_id", "freeze_id", "payload_id"):
        address = address.replace(f"{{{blank}}}", run)
    names(agent.post(f"/api/v1/{address}", body, content_type="application/json"), at)
    assert (Run.objects.count(), Event.objects.count()) == (1, written)


def test_every_address_with_text_that_is_none_is_refused_and_the_parameter_is_named(agent, run) -> None:
    seen = 0
    for method, path, operation in operations():
        for parameter in operation.get("parameters", []):
            name, where = parameter["name"], parameter["in"]
            address = path.replace(f"{{{name}}}", "a%00b")
            for blank in ("run_id", "action_id", "freeze_id", "payload_id"):
                address = address.replace(f"{{{blank}}}", run)
            query = f"?{name}=a%00b" if where == "query" else ""
            if where != "header":  # no server lets a NUL through in a header
                names(getattr(agent, method)(address + query), f"{where}.{name}")
                seen += 1
    assert seen > 15


@pytest.mark.both_databases
def test_what_an_event_says_is_kept_whatever_it_holds(agent, run) -> None:
    given = EVENT | {"texts": {"note": NUL}}
    for body in (given, [given | {"id": "b", "texts": {"note": {"text": NUL}}}]):
        assert agent.post(f"/api/v1/runs/{run}/events", body, content_type="application/json").status_code == 201


@pytest.mark.both_databases
def test_a_page_at_an_address_with_a_nul_is_not_there(cast, client) -> None:
    client.force_login(cast.riley)
    assert client.get("/r/a%00b").status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "at"),
    [
        ("runs", START | {"title": ""}, "body.title"),
        ("runs", {"agent_version": "1"}, "body.title"),
        ("runs", START | {"made_up": 1}, "body.made_up"),
        ("runs", START | {"budgets": {"tokens": 0}}, "body.budgets.tokens"),
        ("runs", START | {"scope": {"email": [""]}}, "body.scope.email.0"),
        ("runs", [], "body"),
        ("runs/{run_id}/events", {"type": "note.posted"}, "body.id"),
        ("runs/{run_id}/events", [EVENT, {"id": "b"}], "body.1.type"),
        ("runs/{run_id}/events", EVENT | {"texts": {"note": {"txet": "x"}}}, "body.texts.note.txet"),
        ("runs/{run_id}/ending", {"outcome": "failed", "report": {"title": ""}}, "body.report.title"),
    ],
)
def test_what_is_wrong_is_named_as_the_sender_wrote_it(agent, run, path, body, at) -> None:
    names(agent.post(f"/api/v1/{path.replace('{run_id}', run)}", body, content_type="application/json"), at)


def test_a_body_with_very_much_that_is_wrong_is_told_a_part_of_it(agent) -> None:
    body = START | {f"k{i}": 1 for i in range(20_000)}
    answer = agent.post("/api/v1/runs", body, content_type="application/json")
    assert answer.status_code == 422
    assert len(answer.json()["errors"]) == 100
