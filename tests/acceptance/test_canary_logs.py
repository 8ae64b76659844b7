"""What real processes write, at the level that says most and with DEBUG: nothing that was sent to them."""

from pathlib import Path
from uuid import uuid4

import httpx

from tests.acceptance.triage import PATIENCE
from tests.canaries.garden import Garden, batches
from tests.runs.serving import House, headers
from tests.stack import Stack
from tests.waiting import until

ENV = {"LOG_LEVEL": "DEBUG", "DEBUG": "1", "HANDRAIL_WORKFLOWS": "tests.canaries.falling,tests.runs.workflows", "PYTHONPATH": "."}


class Talkative(House):
    """A house with workers that say all they can."""

    def __init__(self, where: Path) -> None:
        Stack.__init__(self, where, env=ENV)
        self.cast = {}


def test_no_log_of_a_real_process_has_what_was_sent_to_it(tmp_path: Path) -> None:
    garden = Garden()
    with Talkative(tmp_path) as house:
        who = house.cast["ours"]["agent"]
        with house.client(who) as agent:
            fallen = [_fall(agent, garden, name) for name in ("raise", "write", "read")]
            _ask_oddly(house, agent, garden, who)
            for run in fallen:
                until(
                    lambda run=run: agent.get(f"runs/{run}").json()["state"] in ("parked", "failed"), within=PATIENCE, what=f"{run} to fall"
                )
        said = house.output()
        said += house.manage("replay", fallen[0], check=False) + house.manage(
            "verify", garden.one("a command's argument", "path unix"), check=False
        )
    assert "ValueError" in said and "test-canary-fall" in said or "canary_read" in said or "RuntimeError" in said
    seen = list(garden.seen_in(said))
    assert not seen, "\n".join(batches(seen))


def _fall(agent: httpx.Client, garden: Garden, name: str) -> str:
    said = {key: garden.line(f"{key} of a workflow", 400) for key in ("plan", "note", "milestone", "raise")} | {
        name: garden.line(f"error of {name}", 900)
    }
    body = {"title": garden.line("title", 190), "agent_version": "1", "workflow": "test-canary-fall", "arguments": {"said": said}}
    answer = agent.post("runs", json=body, headers={"Idempotency-Key": str(uuid4())})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def _ask_oddly(house: House, agent: httpx.Client, garden: Garden, who: dict[str, str]) -> None:
    """Addresses, queries, headers, bodies and forms that are none, and a page of each kind."""
    odd = {
        "User-Agent": garden.one("user agent", "github"),
        "X-Odd": garden.one("header", "stripe"),
        "Referer": f"http://127.0.0.1/{garden.one('referer', 'npm')}",
    }
    with httpx.Client(base_url=house.base_url, headers=odd, timeout=30) as client:
        for kind in ("github", "stripe", "aws key", "email", "path unix", "card visa", "jwt", "iban dutch"):
            secret = garden.one("address", kind, "url")
            for address in (f"/r/{secret}", f"/{secret}", f"/api/v1/runs/{secret}", f"/runs?q={secret}", f"/sign-in?next={secret}"):
                client.get(address)
            client.post("/sign-in", data={"email": garden.one("e-mail of a sign-in", "email"), "password": garden.one("password", kind)})
            client.get("/api/v1/runs", headers={"Authorization": f"Bearer {garden.one('authorization', 'github')}"})
            agent.post("runs", content=b'{"title": "' + garden.one("broken body", kind).encode())
            agent.post(
                "runs",
                json={"title": 7, garden.one("key of a body", kind): 1},
                headers={"Idempotency-Key": garden.one("idempotency key", "npm")},
            )
        client.request(
            "PROPFIND", f"/{garden.one('address', 'github')}", headers={"Cookie": f"handrail_session={garden.one('session', 'github')}"}
        )
    assert headers(who)
