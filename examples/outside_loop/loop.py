"""An agent outside Handrail: one plain loop over HTTP that imports nothing of Handrail, and runs its approved calls itself.

It is scripted: where a model would choose, it does what `SCRIPT` says. Its outside world is a file, `done.jsonl`, one line for each call.
    python loop.py http://127.0.0.1:8000        with the agent's key in HANDRAIL_KEY
"""

import argparse
import hashlib
import json
import os
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

SCRIPT = [
    {
        "tool": "issue_voucher",
        "arguments": {"customer": "ACC-2043", "amount": "40.00", "currency": "EUR", "note": "Sorry for the late delivery."},
        "reason": "The parcel of ACC-2043 came nine days late; our promise is a voucher of €40.",
    },
    {
        "tool": "post_notice",
        "arguments": {
            "channel": "status page",
            "headline": "Deliveries are late",
            "text": "Parcels of this week come up to nine days late.",
        },
        "reason": "Others may wait for their parcels as well.",
    },
]
ANSWER = "I am a scripted example and know no more than the reason I gave. Decide by what is on the page."


class Refused(Exception):
    """Handrail said no; its own words say what that means and what to do."""


class Agent:
    """One run, and what this process needs to take part in it."""

    def __init__(self, base: str, key: str, name: str, slow: float, done: Path) -> None:
        self.api = httpx.Client(base_url=f"{base}/api/v1", headers={"Authorization": f"Bearer {key}"}, timeout=45)
        self.slow, self.done, self.name = slow, done, name
        self.run = self.post("runs", {"title": "A late parcel (scripted)", "agent_version": "1", "scope": {"customer": ["ACC-2043"]}}, name)

    def post(self, path: str, body: object, key: str = "") -> dict:
        """Send it until it is answered: every request here may be repeated. A refusal is raised with Handrail's own words."""
        for attempt in range(8):
            try:
                answer = self.api.post(path, json=body, headers={"Idempotency-Key": key} if key else {})
            except httpx.TransportError:
                time.sleep(min(2**attempt / 4, 10))
                continue
            if answer.status_code < 500:
                return checked(answer)
            time.sleep(min(2**attempt / 4, 10))
        raise SystemExit(f"No answer from Handrail to POST {path}.")

    def tell(self, *events: dict) -> list[int]:
        return [one["seq"] for one in self.post(f"runs/{self.run['id']}/events", list(events))["accepted"]]

    def wait_for(self, action: dict) -> dict:
        """The action once it is decided; follows an edit to what takes its place, and answers what is asked meanwhile."""
        asked = 0
        while action["state"] in ("waiting", "superseded"):
            if action["state"] == "superseded":
                print(f"{action['tool']['name']}: edited; going on with the edit")
            path = f"actions/{action['superseded_by'] or action['id']}"
            action = checked(self.api.get(path, params={"wait": 30, "asked": asked}))
            for question in action["questions"]:
                print(f"{action['tool']['name']}: asked “{question['question']}”")
                self.post(f"actions/{action['id']}/answers", {"question": question["id"], "answer": ANSWER})
                asked = question["seq"]
        return action

    def use(self, number: int) -> int | None:
        """Propose one call of the script, wait, and run it if it was approved. Gives the event to cite, or None if nothing was done."""
        call = SCRIPT[number]
        body = call | {"tool_schema": 1}
        action = self.post(f"runs/{self.run['id']}/actions", body, f"call-{number}")["action"]
        print(f"{call['tool']}: proposed, {action['digest'][:12]}", flush=True)
        action = self.wait_for(action)
        if action["state"] != "approved":
            print(f"{call['tool']}: {action['state']}. {action['rejection'] or ''}".rstrip(), flush=True)
            return None
        about_to_run = action["exact"]  # the bytes that were approved, whoever wrote them: what runs is read from them and nothing else
        holder = str(uuid.uuid4())  # of this process alone: another one that runs the same script can't redeem it as well
        digest = hashlib.sha256(about_to_run.encode()).hexdigest()
        try:
            taken = self.post(f"actions/{action['id']}/redemption", {"digest": digest, "holder": holder})["redemption"]
        except Refused as refused:
            print(f"{call['tool']}: not run. {refused}", flush=True)
            return None
        print(f"{call['tool']}: redeemed", flush=True)
        facts = self.call(taken["idempotency_key"], json.loads(about_to_run))
        self.post(f"actions/{action['id']}/outcome", {"holder": holder, "outcome": "executed", "facts": facts})
        print(f"{call['tool']}: done and reported", flush=True)
        [seq] = self.tell({"id": f"done-{number}", "type": "note.posted", "texts": {"note": f"{call['tool']} is done."}})
        return seq

    def call(self, key: str, exact: dict) -> dict:
        """The call itself, which Handrail cannot see: here it takes a while and then writes a line."""
        time.sleep(self.slow)
        with self.done.open("a") as file:
            file.write(json.dumps({"key": key, "tool": exact["tool"], "arguments": exact["arguments"]}) + "\n")
        return {"file": self.done.name, "key": key}

    def work(self) -> None:
        print(f"{self.run['ref']}: a scripted agent; nothing here is decided by a model", flush=True)
        plan = {"step_1": "Offer what was promised", "step_2": "Tell others"}
        self.tell({"id": "plan", "type": "plan.set", "data": {"version": 1, "steps": 2}, "texts": plan})
        with ThreadPoolExecutor() as pool:  # both at once: each waits for its own decision
            cites = [seq for seq in pool.map(self.use, range(len(SCRIPT))) if seq]
        if not cites:
            print(self.post(f"runs/{self.run['id']}/ending", {"outcome": "failed", "detail": "Nothing was approved."})["ending"]["state"])
            return
        report = {"title": f"{len(cites)} of {len(SCRIPT)} calls were approved and done", "cites": cites}
        print(self.post(f"runs/{self.run['id']}/ending", {"outcome": "succeeded", "report": report})["ending"]["state"], flush=True)


def checked(answer: httpx.Response) -> dict:
    if answer.status_code >= 400:
        problem = answer.json()
        raise Refused(f"{problem['title']} {problem['detail']} {problem.get('what_next', '')}")
    return answer.json()


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("url")
    given.add_argument("--name", default=str(uuid.uuid4()), help="of the run: the same name again goes on with the same run")
    given.add_argument("--slow", type=float, default=1.0, help="seconds that each call takes")
    given.add_argument("--done", type=Path, default=Path("done.jsonl"), help="the file that is this example's outside world")
    chosen = given.parse_args()
    if not os.environ.get("HANDRAIL_KEY"):
        sys.exit("Put the agent's key into HANDRAIL_KEY: manage.py agentkey outside-loop prints one.")
    try:
        Agent(chosen.url.rstrip("/"), os.environ["HANDRAIL_KEY"], chosen.name, chosen.slow, chosen.done).work()
    except Refused as refused:
        sys.exit(str(refused))
