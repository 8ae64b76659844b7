"""Whatever is wrong with a request, the answer is an RFC 9457 problem, and nothing has changed."""

import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from artifacts.rendition import WORDS

NOTE = {"id": "a", "type": "note.posted", "texts": {"note": "Looked at it."}}


def is_problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text[:300]
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status and problem["title"] and problem["detail"] and problem["type"].startswith("urn:handrail:problem:")
    return problem


def head(client: httpx.Client, run: dict[str, Any]) -> int:
    return client.get(f"runs/{run['id']}").json()["head"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"null", 422),
        (b'"text"', 422),
        (b"[]", 422),
        (b"[[]]", 422),
        (b'{"id":"a","id":"b","type":"note.posted"}', 400),
        (b'{"id":"a","type":"checkpoint.saved","data":{"done":NaN}}', 400),
        (b'{"id":"a","type":"checkpoint.saved","data":{"done":1e999}}', 400),
        (b'{"id":"a","type":"checkpoint.saved","data":{"done":9007199254740993}}', 400),
        (b'{"id":"a","type":"note.posted","texts":{"note":"\\ud800"}}', 422),
        (b'{"id":"a","type":"note.posted","texts":{"note":"\xff\xfe"}}', 400),
        (b"[" * 200 + b"]" * 200, 400),
        (b"[" * 100_000, 400),
        (b"\x00" * 10, 400),
        (json.dumps(NOTE).encode("utf-16"), 400),
        (json.dumps(NOTE).encode() + b"{}", 400),
        (json.dumps([NOTE | {"id": str(n)} for n in range(1001)]).encode(), 422),
        (json.dumps(NOTE | {"id": "x" * 1_100_000}).encode(), 413),
    ],
    ids=range(19),
)
def test_a_body_that_means_nothing_or_too_much_changes_nothing(agent, start, body, status):
    run = start()
    is_problem(agent.post(f"runs/{run['id']}/events", content=body, headers={"Content-Type": "application/json"}), status)
    assert head(agent, run) == 2


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        {},
    ],
)
def test_a_body_of_another_kind_is_refused(agent, start, headers):
    run = start()
    is_problem(agent.post(f"runs/{run['id']}/events", content=json.dumps(NOTE).encode(), headers=headers), 415)
    assert head(agent, run) == 2


def test_a_body_over_every_limit_is_refused_whether_announced_or_not(agent, start):
    run = start()
    piece = b" " * 1_000_000

    def pieces() -> Any:
        for _ in range(13):
            yield piece

    json_type = {"Content-Type": "application/json"}
    assert agent.post(f"runs/{run['id']}/events", content=piece * 13, headers=json_type).status_code == 413
    assert agent.post(f"runs/{run['id']}/events", content=pieces(), headers=json_type).status_code == 413
    assert head(agent, run) == 2


def test_a_half_sent_body_changes_nothing_and_holds_nobody_up(agent, start, house):
    run = start()
    token = house.cast["ours"]["agent"]["token"]
    lines = [f"POST /api/v1/runs/{run['id']}/events HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}"]
    lines += ["Content-Type: application/json", "Content-Length: 1000", "", json.dumps(NOTE)]
    halves = [socket.create_connection(("127.0.0.1", house.port)) for _ in range(20)]
    for half in halves:
        half.sendall("\r\n".join(lines).encode())
    assert agent.post(f"runs/{run['id']}/events", json=NOTE | {"id": "b"}).status_code == 201
    for half in halves:
        half.close()
    assert head(agent, run) == 3


def test_nobody_is_told_401_and_a_wrong_key_is_nobody(house, start):
    run = f"runs/{start()['id']}"
    for headers in ({}, {"Authorization": "Bearer hr_wrong"}, {"Authorization": "Basic eA=="}, {"Authorization": "Bearer"}):
        with house.client() as client:
            for method, path in (("GET", "runs"), ("POST", "runs"), ("GET", run), ("GET", f"{run}/events?wait=5")):
                answer = client.request(method, path, headers=headers)
                is_problem(answer, 401)
                assert answer.headers["www-authenticate"] == "Bearer"


def test_a_key_beside_a_cookie_speaks_alone(house, start):
    run = start()
    both = {"Authorization": "Bearer hr_wrong", "Cookie": house.cast["ours"]["morgan"]["cookie"]}
    is_problem(httpx.get(f"{house.base_url}/api/v1/runs/{run['id']}", headers=both), 401)


def test_another_workspaces_run_looks_like_none(house, start):
    run, nowhere = start(), "01890000-0000-7000-8000-000000000000"
    for who in ("agent", "riley", "morgan"):
        with house.client(house.cast["theirs"][who]) as client:
            for path in ("", "/events", "/events?wait=5", "/artifacts"):
                theirs = is_problem(client.get(f"runs/{run['id']}{path}"), 404)
                assert theirs == is_problem(client.get(f"runs/{nowhere}{path}"), 404)
                assert theirs == is_problem(client.get(f"runs/not-an-id{path}"), 404)
    with house.client(house.cast["theirs"]["agent"]) as client:
        is_problem(client.post(f"runs/{run['id']}/events", json=NOTE), 404)
        is_problem(client.post(f"runs/{run['id']}/ending", json={"outcome": "failed"}), 404)
        is_problem(client.post(f"runs/{run['id']}/signals", json={"kind": "cancel"}, headers={"Idempotency-Key": "k"}), 404)


def test_another_agents_run_is_not_there_for_an_agent(house, start):
    run = start()
    with house.client(house.cast["ours"]["colleague"]) as client:
        is_problem(client.get(f"runs/{run['id']}"), 404)
        is_problem(client.post(f"runs/{run['id']}/events", json=NOTE), 404)
        assert run["id"] not in [each["id"] for each in client.get("runs").json()["runs"]]


def test_people_read_what_their_role_lets_them_and_write_no_events(house, agent, start):
    run = start()
    for who in ("riley", "morgan", "otto"):
        with house.client(house.cast["ours"][who]) as client:
            assert client.get(f"runs/{run['id']}").status_code == 200
            assert client.get(f"runs/{run['id']}/events").json()["head"] == 2
            is_problem(client.post(f"runs/{run['id']}/events", json=NOTE), 403)
    assert head(agent, run) == 2


def test_a_session_may_not_steer_without_the_pages_token(house, agent, start):
    run = start()
    with house.client(house.cast["ours"]["otto"]) as otto:
        problem = is_problem(otto.post(f"runs/{run['id']}/signals", json={"kind": "cancel"}, headers={"Idempotency-Key": "k"}), 403)
        assert problem["type"] == "urn:handrail:problem:forged-request"
        elsewhere = {"Idempotency-Key": "k", "Origin": "https://evil.example"}
        is_problem(otto.post(f"runs/{run['id']}/signals", json={"kind": "cancel"}, headers=elsewhere), 403)
        token = "x" * 32
        own = {"Idempotency-Key": "k", "X-CSRFToken": token, "Cookie": f"{house.cast['ours']['otto']['cookie']}; handrail_csrf={token}"}
        assert otto.post(f"runs/{run['id']}/signals", json={"kind": "cancel"}, headers=own).json()["status"] == "applied"


def test_a_reviewer_may_not_steer_and_is_told_the_right_that_is_missing(house, start):
    token = "x" * 32
    riley = house.cast["ours"]["riley"]
    headers = {"Idempotency-Key": "k", "X-CSRFToken": token, "Cookie": f"{riley['cookie']}; handrail_csrf={token}"}
    with house.client(riley) as client:
        problem = is_problem(client.post(f"runs/{start()['id']}/signals", json={"kind": "cancel"}, headers=headers), 403)
    assert problem["capability"] == "runs.steer"


def test_an_agent_never_decides(house, agent):
    body = {"verdict": "approved", "digest": "0" * 64}
    problem = is_problem(agent.post("actions/01890000-0000-7000-8000-000000000000/decisions", json=body), 403)
    assert problem["type"] == "urn:handrail:problem:people-decide"
    is_problem(agent.get("actions/01890000-0000-7000-8000-000000000000"), 404)


def test_what_the_framework_refuses_is_a_problem_too(agent, house):
    is_problem(agent.get("no/such/address"), 404)
    answer = agent.put("runs")
    is_problem(answer, 405)
    assert set(answer.headers["allow"].split(", ")) == {"GET", "POST"}
    is_problem(agent.get("runs", headers={"Host": "evil.example"}), 400)


def test_the_description_of_the_api_is_there_and_names_every_address(agent):
    described = agent.get("openapi.json").json()
    assert "/api/v1/runs/{run_id}/events" in described["paths"]
    assert described["paths"]["/api/v1/runs/{run_id}/events"]["post"]["requestBody"]


def test_an_ending_that_is_not_an_agents_to_claim_is_refused(agent, start):
    is_problem(agent.post(f"runs/{start()['id']}/ending", json={"outcome": "cancelled"}), 422)


def test_the_description_is_for_who_is_known_and_names_every_mark_of_a_redacted_text(agent, house):
    with house.client() as nobody:
        is_problem(nobody.get("openapi.json"), 401)
        assert nobody.get("docs").status_code == 404
    guide = (Path(__file__).parents[2] / "docs/api.md").read_text()
    for told in (agent.get("openapi.json").json()["info"]["description"], guide):
        assert [kind for kind in WORDS if f"⟦{kind}⟧" not in told] == []
        assert all(mark in told for mark in ("⟦u202e⟧", "⟦+99⟧", "⟦⟦"))
