"""Runs over HTTP: started once per key, asked how they stand, listed, steered, and ended by a claim that cites the log."""

import concurrent.futures
from uuid import uuid4

import pytest

from tests.ids import without_ids
from tests.runs.conftest import begin

pytestmark = pytest.mark.both_databases


def ended(agent, run, **body):
    return agent.post(f"runs/{run['id']}/ending", json=body)


def test_the_same_key_starts_one_run(agent, house):
    key, body = str(uuid4()), {"title": "Once", "agent_version": "1"}

    def start(_: int) -> str:
        with house.client(house.cast["ours"]["agent"]) as client:
            return client.post("runs", json=body, headers={"Idempotency-Key": key}).json()["id"]

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(start, range(12)))) == 1
    other = agent.post("runs", json=body | {"arguments": {"other": 1}}, headers={"Idempotency-Key": key})
    assert other.status_code == 409 and other.json()["type"] == "urn:handrail:problem:start-reused"


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": ""}, {"Idempotency-Key": "x" * 201}, {"Idempotency-Key": "a b"}])
def test_starting_and_signalling_need_a_key(agent, start, headers):
    assert agent.post("runs", json={"title": "x", "agent_version": "1"}, headers=headers).status_code == 422
    assert agent.post(f"runs/{start()['id']}/signals", json={"kind": "cancel"}, headers=headers).status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {"agent_version": "1"},
        {"title": "  ", "agent_version": "1"},
        {"title": "x" * 201, "agent_version": "1"},
        {"title": "x", "agent_version": "1", "state": "succeeded"},
        {"title": "x", "agent_version": "1", "budgets": {"tokens": 0}},
        {"title": "x", "agent_version": "1", "scope": {"ticket": "ZN-1"}},
        {"title": "x", "agent_version": "1", "workflow": "no-such-workflow"},
        {"title": ["x"], "agent_version": "1"},
    ],
)
def test_a_start_that_is_not_whole_starts_nothing(agent, body):
    before = agent.get("runs", params={"limit": 1}).json()["runs"]
    answer = agent.post("runs", json=body, headers={"Idempotency-Key": str(uuid4())})
    assert answer.status_code == 422 and answer.headers["content-type"] == "application/problem+json"
    assert agent.get("runs", params={"limit": 1}).json()["runs"] == before


def test_an_agent_starts_its_own_runs_and_a_person_names_the_agent(house, agent):
    another = {"title": "x", "agent_version": "1", "agent": "notes"}
    assert agent.post("runs", json=another, headers={"Idempotency-Key": "k"}).status_code == 403
    run = begin(agent, scope={"ticket": ["ZN-1"]}, budgets={"tokens": 10}, note="For a test.")
    assert run["agent"]["name"] == "triage" and run["owner"]["name"] == "Priya"
    assert run["state"] == "running" and run["scope"] == {"ticket": ["ZN-1"]} and run["budgets"] == {"tokens": 10}


def test_a_run_says_how_it_stands(agent, start):
    run = start(title="Reply to 4111 1111 1111 1111")
    asked = agent.get(f"runs/{run['id']}").json()
    assert asked == run
    assert "4111" not in asked["title"]
    assert asked["ending"] is None and asked["head"] == 2
    assert agent.get(asked["links"]["events"].removeprefix("/api/v1/")).status_code == 200


def test_nothing_hidden_elsewhere_shows_in_a_scope(start, agent, house):
    """Neither to people, nor to the key that wrote it, which may be in other hands."""
    run = start(scope={"account": ["A-1", "4111 1111 1111 1111"], "email": ["marta@brightwater.example"]})
    address = f"runs/{run['id']}"
    for who in ("agent", "riley", "morgan", "otto"):
        with house.client(house.cast["ours"][who]) as client:
            listed = next(each for each in client.get("runs").json()["runs"] if each["id"] == run["id"])
            for told in (run, client.get(address).json(), listed):
                assert told["scope"]["account"][0] == "A-1" and told["scope"]["email"] == ["[e-mail address hidden]"]
                assert "4111" not in without_ids(str(told)) and "marta" not in str(told)


def test_a_scope_that_is_too_long_to_show_is_told_as_none(start):
    long = {f"kind {number} " + "é" * 80: ["\x01" * 90 + str(each) for each in range(50)] for number in range(10)}
    assert start(scope=long)["scope"] is None


def test_the_seven_questions_are_answered_over_http_too(agent, start):
    run = start()
    ended(agent, run, outcome="succeeded", report={"title": "Done", "cites": [1]})
    told = agent.get(f"runs/{run['id']}/evidence").json()
    assert len(told["answers"]) == 7 and told["head"] == 4 and told["summary"]
    assert all(one["answer"] in ("pass", "fail", "not_yet", "not_asked") and one["question"] for one in told["answers"])


def test_the_list_is_walked_once_through_while_new_runs_come(agent, start):
    mine = [start()["id"] for _ in range(7)]
    seen, page = [], agent.get("runs", params={"limit": 3}).json()
    while True:
        seen += [run["id"] for run in page["runs"]]
        start()
        if not page["next"]:
            break
        page = agent.get("runs", params={"limit": 3, "before": page["next"]}).json()
    assert len(seen) == len(set(seen)) and [pk for pk in seen if pk in mine] == mine[::-1]


@pytest.mark.parametrize("query", ["before=x", "before=eA==", "before=MjAyNl9u", "state=done", "limit=0", "limit=1000"])
def test_a_place_in_the_list_that_is_none_is_refused(agent, query):
    answer = agent.get(f"runs?{query}")
    assert answer.status_code == 422 and answer.headers["content-type"] == "application/problem+json"


def test_the_list_filters_by_state(agent, start):
    run = start()
    ended(agent, run, outcome="failed")
    assert run["id"] in [each["id"] for each in agent.get("runs", params={"state": "failed,cancelled"}).json()["runs"]]
    assert run["id"] not in [each["id"] for each in agent.get("runs", params={"state": "running"}).json()["runs"]]


def test_success_is_a_claim_that_cites_the_log(agent, start):
    run = start()
    for report in (None, {"title": "Done"}, {"title": "Done", "cites": [99]}, {"title": "Done", "cites": [0]}):
        body = {"outcome": "succeeded"} | ({"report": report} if report else {})
        assert ended(agent, run, **body).status_code == 422
    answer = ended(agent, run, outcome="succeeded", report={"title": "Done", "body": "All of it.", "cites": [1, 2]})
    assert answer.status_code == 200 and answer.json()["ending"]["state"] == "succeeded"
    lines = agent.get(f"runs/{run['id']}/events").json()
    assert [line["body"]["type"] for line in lines["events"][2:]] == ["report.published", "run.succeeded"]
    assert lines["events"][3]["body"]["data"]["report"] == lines["events"][2]["seq"] and lines["ended"]
    assert agent.get(f"runs/{run['id']}").json()["ending"]["seq"] == lines["head"]


def test_the_same_ending_again_is_answered_with_the_first_and_another_is_told_what_stands(agent, start):
    run = start()
    first = ended(agent, run, outcome="failed", detail="No access.").json()
    assert ended(agent, run, outcome="failed").json() == first
    other = ended(agent, run, outcome="succeeded", report={"title": "Done", "cites": [1]})
    assert other.status_code == 409 and other.json()["state"] == "failed" and other.json()["seq"] == first["ending"]["seq"]


def test_a_signal_says_what_became_of_it_and_which_ending_won(agent, start):
    run = start()
    key = {"Idempotency-Key": "stop-1"}
    pause = agent.post(f"runs/{run['id']}/signals", json={"kind": "pause"}, headers={"Idempotency-Key": "wait"}).json()
    assert (pause["status"], pause["reason"], pause["ending"]) == ("applied", None, None)
    first = agent.post(f"runs/{run['id']}/signals", json={"kind": "cancel", "note": "Enough."}, headers=key).json()
    assert first["status"] == "applied" and first["ending"]["state"] == "cancelled"
    assert agent.post(f"runs/{run['id']}/signals", json={"kind": "cancel", "note": "Enough."}, headers=key).json() == first
    reused = agent.post(f"runs/{run['id']}/signals", json={"kind": "pause"}, headers=key)
    assert reused.status_code == 409 and reused.json()["type"] == "urn:handrail:problem:signal-reused"
    late = agent.post(f"runs/{run['id']}/signals", json={"kind": "cancel"}, headers={"Idempotency-Key": "stop-2"}).json()
    assert (late["status"], late["reason"], late["ending"]) == ("refused", "had_already_ended", first["ending"])


def test_cancels_race_an_ending_and_all_are_told_the_one_that_won(agent, start, house):
    run = start()

    def race(n: int) -> str:
        with house.client(house.cast["ours"]["agent"]) as client:
            if n == 7:
                report = {"title": "Done", "cites": [1]}
                answer = client.post(f"runs/{run['id']}/ending", json={"outcome": "succeeded", "report": report}).json()
                return answer["ending"]["state"] if "ending" in answer else answer["state"]
            headers = {"Idempotency-Key": f"cancel-{n}"}
            return client.post(f"runs/{run['id']}/signals", json={"kind": "cancel"}, headers=headers).json()["ending"]["state"]

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        told = set(pool.map(race, range(16)))
    assert len(told) == 1
    lines = agent.get(f"runs/{run['id']}/events").json()["events"]
    endings = [line for line in lines if line["body"]["type"] in ("run.succeeded", "run.cancelled")]
    assert len(endings) == 1 and endings[0] == lines[-1] and lines[-1]["body"]["type"] == f"run.{told.pop()}"
