"""What agents tell over HTTP: all of a batch or nothing, each event once, and only what is theirs to tell."""

import base64
import concurrent.futures
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.both_databases
NOTE = {"type": "note.posted", "texts": {"note": "Looked at it."}}


def post(client: httpx.Client, run: dict[str, Any], body: Any) -> httpx.Response:
    return client.post(f"runs/{run['id']}/events", json=body)


def read(client: httpx.Client, run: dict[str, Any], **params: Any) -> dict[str, Any]:
    answer = client.get(f"runs/{run['id']}/events", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def head(client: httpx.Client, run: dict[str, Any]) -> int:
    return client.get(f"runs/{run['id']}").json()["head"]


def test_one_event_or_many_are_appended_in_their_order(agent, start):
    run = start()
    one = post(agent, run, {"id": "a", **NOTE})
    assert one.status_code == 201 and one.json() == {"accepted": [{"id": "a", "seq": 3, "duplicate": False}]}
    many = post(agent, run, [{"id": f"b{n}", **NOTE} for n in range(5)])
    assert [each["seq"] for each in many.json()["accepted"]] == [4, 5, 6, 7, 8]
    lines = read(agent, run)["events"]
    assert [line["seq"] for line in lines] == list(range(1, 9))
    assert lines[2]["body"]["actor"]["kind"] == "agent"
    assert lines[2]["texts"]["note"]["text"] == "Looked at it."


def test_a_duplicate_is_answered_with_its_first_seq(agent, start):
    run = start()
    first = post(agent, run, [{"id": "a", **NOTE}, {"id": "b", **NOTE}]).json()["accepted"]
    again = post(agent, run, [{"id": "b", **NOTE}, {"id": "c", **NOTE}, {"id": "a", **NOTE}, {"id": "c", **NOTE}])
    assert again.status_code == 201
    assert [(each["seq"], each["duplicate"]) for each in again.json()["accepted"]] == [
        (first[1]["seq"], True),
        (5, False),
        (first[0]["seq"], True),
        (5, True),
    ]
    assert post(agent, run, {"id": "a", **NOTE}).status_code == 200
    assert head(agent, run) == 5


def test_what_an_agent_says_its_models_took_counts_against_the_limits_of_its_run_once(agent, start):
    run = start(budgets={"tokens": 1000})
    told = {"model": "small", "prompt": "sort", "prompt_version": "1", "tokens_in": 300, "tokens_out": 150, "cost_micro": 2000}
    call = {"type": "model.called", "data": told}
    post(agent, run, [{"id": "a", **call}, {"id": "a", **call}])
    post(agent, run, {"id": "a", **call})
    assert agent.get(f"runs/{run['id']}").json()["used"] == {"tokens": 450, "cost_micro": 2000, "working_ms": 0}
    [accepted] = post(agent, run, {"id": "b", **call}).json()["accepted"]
    lines = read(agent, run, after=accepted["seq"] - 1)["events"]
    assert [line["body"]["type"] for line in lines] == ["model.called", "budget.warned"]
    most = {"id": "c", "type": "model.called", "data": told | {"tokens_in": 2**53 - 1, "tokens_out": 2**53 - 1}}
    assert post(agent, run, most).status_code == 201
    assert agent.get(f"runs/{run['id']}").json()["used"]["tokens"] == 2**53 - 1


def test_a_duplicate_is_answered_after_the_run_has_ended_too(agent, start):
    run = start()
    post(agent, run, {"id": "a", **NOTE})
    ended = agent.post(f"runs/{run['id']}/ending", json={"outcome": "failed", "detail": "No luck."})
    assert ended.status_code == 200
    assert post(agent, run, {"id": "a", **NOTE}).json()["accepted"] == [{"id": "a", "seq": 3, "duplicate": True}]
    refused = post(agent, run, [{"id": "a", **NOTE}, {"id": "b", **NOTE}])
    assert refused.status_code == 409 and refused.json()["type"] == "urn:handrail:problem:run-ended"


@pytest.mark.parametrize(
    "other",
    [
        {"type": "note.posted", "texts": {"note": "Something else."}},
        {"type": "milestone.reached"},
        {"type": "milestone.reached", "data": {"cites": [1]}, "texts": {}},
        {"type": "note.posted"},
    ],
)
def test_an_id_that_comes_again_with_something_else_is_refused(agent, start, other):
    run = start()
    post(agent, run, {"id": "a", **NOTE})
    for batch in ({"id": "a", **other}, [{"id": "x", **NOTE}, {"id": "a", **other}]):
        answer = post(agent, run, batch)
        assert answer.status_code == 409 and answer.json()["type"] == "urn:handrail:problem:event-reused"
    assert post(agent, run, [{"id": "z", **NOTE}, {"id": "z", **other}]).status_code == 409
    assert head(agent, run) == 3


def test_a_batch_with_one_bad_event_writes_nothing(agent, start):
    run = start()
    answer = post(agent, run, [{"id": "a", **NOTE}, {"id": "b", "type": "checkpoint.saved", "data": {"done": -1}}])
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["index"] == 1 and problem["event"] == "b" and "done" in problem["detail"]
    assert head(agent, run) == 2


@pytest.mark.parametrize(
    ("event", "route"),
    [
        ({"type": "action.decided", "data": {}}, "decisions"),
        ({"type": "run.succeeded", "data": {}}, "ending"),
        ({"type": "run.cancelled", "data": {}}, "signals"),
        ({"type": "step.completed", "data": {}}, "runs/{id}/steps"),
        ({"type": "signal.received", "data": {}}, "signals"),
        ({"type": "effect.done", "data": {}}, "outcome"),
        ({"type": "budget.exceeded", "data": {}}, "nobody"),
        ({"type": "question.answered", "data": {}}, "answers"),
    ],
)
def test_an_event_that_is_not_the_agents_is_refused_with_the_right_route(agent, start, event, route):
    run = start()
    answer = post(agent, run, [{"id": "a", **NOTE}, {"id": "b", **event}])
    problem = answer.json()
    assert answer.status_code == 403 and problem["type"] == "urn:handrail:problem:not-your-event"
    assert route in problem["route"] and problem["event"] == "b"
    assert head(agent, run) == 2


def test_an_unknown_type_is_refused_with_the_list_of_those_there_are(agent, start):
    answer = post(agent, start(), {"id": "a", "type": "token.streamed"})
    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:handrail:problem:unknown-event-type"
    assert "milestone.reached" in answer.json()["types"]


def test_an_artifact_stands_in_the_log_with_its_digest_and_version(agent, start):
    run = start()
    made = {"type": "artifact.created", "data": {"name": "reply.txt"}}
    post(agent, run, {"id": "1", **made, "texts": {"content": "Dear Marta"}})
    as_bytes = {"base64": base64.b64encode(b"a,b\n1,2\n").decode(), "media_type": "text/csv", "label": "personal"}
    post(
        agent, run, {"id": "2", "type": "artifact.created", "data": {"name": "reply.txt", "outside": True}, "texts": {"content": as_bytes}}
    )
    one, two = read(agent, run, after=2)["events"]
    assert one["body"]["data"] | {"artifact": ""} == {
        "artifact": "",
        "name": "reply.txt",
        "version": 1,
        "label": "internal",
        "media_type": "text/plain",
        "size": 10,
        "outside": False,
    }
    assert (two["body"]["data"]["version"], two["body"]["data"]["size"], two["body"]["data"]["label"]) == (2, 8, "personal")
    listed = agent.get(f"runs/{run['id']}/artifacts").json()["artifacts"]
    assert [(each["name"], each["version"], each["seq"]) for each in listed] == [("reply.txt", 1, 3), ("reply.txt", 2, 4)]
    assert listed[0]["commitment"] == one["body"]["payloads"]["content"]
    again = post(agent, run, {"id": "1", **made, "texts": {"content": "Dear Marta"}})
    assert again.json()["accepted"] == [{"id": "1", "seq": 3, "duplicate": True}]


def test_a_large_artifact_is_kept_as_its_bytes(agent, start):
    run = start()
    content = b"0123456789abcdef" * (3 * 1024 * 1024 // 16)
    for status in (201, 200):
        answer = agent.post(
            f"runs/{run['id']}/artifacts",
            params={"name": "big.bin"},
            content=content,
            headers={"Idempotency-Key": "big-1", "Content-Type": "application/octet-stream"},
        )
        assert answer.status_code == status and answer.json()["seq"] == 3
    [made] = read(agent, run, after=2)["events"]
    assert made["body"]["data"]["size"] == len(content)
    assert len(made["texts"]["content"]["text"]) < 100_000


@pytest.mark.parametrize("stray", ["artifact", "version", "size"])
def test_what_handrail_says_of_an_artifact_can_not_be_sent(agent, start, stray):
    event = {"id": "1", "type": "artifact.created", "data": {"name": "a.txt", stray: 1}, "texts": {"content": "x"}}
    answer = post(agent, start(), event)
    assert answer.status_code == 422 and stray in answer.json()["detail"]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "note.posted", "texts": {"title": "no such role"}},
        {"type": "note.posted", "texts": {"note": "x" * 70_000}},
        {"type": "note.posted", "texts": {"note": {"text": "a", "base64": "YQ=="}}},
        {"type": "note.posted", "texts": {"note": {"base64": "not base64!"}}},
        {"type": "note.posted", "texts": {"note": {"text": "a", "label": "top"}}},
        {"type": "note.posted", "caused_by": 99},
        {"type": "note.posted", "at": "2026-11-26T14:02:11"},
        {"type": "note.posted", "at": "0001-01-01T00:00:00+14:00"},
        {"type": "note.posted", "seq": 1},
        {"type": "milestone.reached", "data": {"cites": [3]}},
        {"type": "plan.set", "data": {"version": 1, "steps": 2}, "texts": {"step_1": "One"}},
        {"type": "artifact.created", "data": {"name": "a.txt"}},
        {"type": "artifact.created", "data": {"name": "../a.txt"}, "texts": {"content": "x"}},
    ],
)
def test_an_event_that_is_not_whole_is_refused(agent, start, event):
    run = start()
    answer = post(agent, run, {"id": "a", **event})
    assert answer.status_code == 422 and answer.headers["content-type"] == "application/problem+json"
    assert head(agent, run) == 2


@pytest.mark.parametrize("sender", ["", " ", "a b", "é", "x" * 121, "a\n", "a\x00"])
def test_a_senders_id_is_plain_printable_text(agent, start, sender):
    assert post(agent, start(), {"id": sender, **NOTE}).status_code == 422


def test_the_senders_clock_and_cause_are_kept_beside_ours(agent, start):
    run = start()
    post(agent, run, {"id": "a", "at": "1999-01-01T00:00:00.5+01:00", "caused_by": 1, **NOTE})
    body = read(agent, run, after=2)["events"][0]["body"]
    assert body["sender"]["at"] == "1998-12-31T23:00:00.500000Z" and body["caused_by"] == 1
    assert body["at"] > "2026"


def test_the_page_filters_by_type_and_goes_on_from_its_cursor(agent, start):
    run = start()
    post(agent, run, [{"id": f"{n}", **(NOTE if n % 2 else {"type": "milestone.reached"})} for n in range(10)])
    page = read(agent, run, types="milestone.reached", limit=3)
    assert [line["seq"] for line in page["events"]] == [3, 5, 7] and page["cursor"] == 7
    page = read(agent, run, types="milestone.reached", after=7)
    assert [line["seq"] for line in page["events"]] == [9, 11]
    page = read(agent, run, types="milestone.reached", after=11)
    assert page == {"events": [], "cursor": 12, "head": 12, "ended": False}
    assert agent.get(f"runs/{run['id']}/events", params={"types": "nonsense"}).status_code == 422


@pytest.mark.parametrize("query", ["after=-1", "after=x", "after=1.5", "limit=0", "limit=1001", "wait=31", "after=99999999999999999999"])
def test_a_cursor_that_is_none_is_refused(agent, start, query):
    answer = agent.get(f"runs/{start()['id']}/events?{query}")
    assert answer.status_code == 422 and answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("given", ["%2B2", "%202", "2.0", "2%20", "1_0", "", "%D9%A2", "0x2", "true"])
def test_a_number_in_other_clothes_is_no_cursor_of_the_log_and_none_of_an_action(agent, start, given):
    run = start()
    for path in (
        f"runs/{run['id']}/events?after={given}",
        f"runs/{run['id']}/events?wait=1&after={given}",
        f"actions/{run['id']}?asked={given}",
    ):
        answer = agent.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
        assert answer.json()["type"].endswith(":bad-cursor") and "a whole number, 0 for none" in answer.json()["detail"]


def test_long_texts_come_on_more_pages_and_none_is_lost(agent, start):
    run = start()
    for n in range(6):
        batch = [{"id": f"{n}-{i}", "type": "note.posted", "texts": {"note": f"{n}-{i} " + "long " * 12_000}} for i in range(16)]
        assert post(agent, run, batch).status_code == 201
    plans = [{"id": f"p{n}", "type": "plan.set", "data": {"version": 1, "steps": 99}} for n in range(30)]
    steps = {f"step_{n}": f"Step {n}" for n in range(1, 100)}
    post(agent, run, [plan | {"texts": steps} for plan in plans])
    seqs, page = [], read(agent, run)
    assert len(page["events"]) < 98
    while page["events"]:
        seqs += [line["seq"] for line in page["events"]]
        page = read(agent, run, after=page["cursor"])
    assert seqs == list(range(1, 2 + 96 + 30 + 1))


def test_a_cursor_past_the_head_is_told_the_head(agent, start):
    answer = agent.get(f"runs/{start()['id']}/events", params={"after": 3})
    assert answer.status_code == 416 and answer.json()["head"] == 2


def test_senders_at_the_same_time_lose_nothing_and_double_nothing(agent, start, house):
    run = start()
    events = [{"id": f"e{n}", **NOTE} for n in range(40)]

    def send(offset: int) -> list[dict[str, Any]]:
        with house.client(house.cast["ours"]["agent"]) as client:
            turned = events[offset:] + events[:offset]
            return [post(client, run, turned[n : n + 8]).json()["accepted"] for n in range(0, 40, 8)]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(send, (0, 10, 20, 30)))
    places = [{one["id"]: one["seq"] for batch in answer for one in batch} for answer in answers]
    assert all(place == places[0] for place in places) and len(set(places[0].values())) == 40
    assert head(agent, run) == 42
