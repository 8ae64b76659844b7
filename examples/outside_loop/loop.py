"""An agent outside Handrail: one plain loop over HTTP that imports nothing of Handrail, and runs its approved calls itself.

It is scripted: where a model would choose, it does what `SCRIPT` says. Its outside world is a file, `done.jsonl`, one line for each thing
that it did there. It holds its run by a lease and tells each step: started again under the same `--name`, here or elsewhere, it goes on
where it, or another process, stopped.
    python loop.py http://127.0.0.1:8000        with the agent's key in HANDRAIL_KEY
"""

import argparse
import hashlib
import json
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
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
    """Handrail said no; its own words say what that means and what to do. `kind`: which no it was."""

    def __init__(self, problem: dict) -> None:
        self.kind = problem["type"].rpartition(":")[2]
        super().__init__(f"{problem['title']} {problem['detail']} {problem.get('what_next', '')}".rstrip())


class Agent:
    """One run, and what this process needs to take part in it."""

    def __init__(self, base: str, key: str, name: str, *, slow: float, look: float, done: Path, lease: int) -> None:
        self.api = httpx.Client(base_url=f"{base}/api/v1", headers={"Authorization": f"Bearer {key}"}, timeout=45)
        self.slow, self.look, self.done, self.name, self.lease = slow, look, done, name, lease
        self.holder = f"{socket.gethostname()[:40]}:{os.getpid()}:{uuid.uuid4().hex[:8]}"  # made up anew by each process
        self.run = self.post("runs", {"title": "A late parcel (scripted)", "agent_version": "1", "scope": {"customer": ["ACC-2043"]}}, name)
        self.token = self.claim()
        threading.Thread(target=self.beat, daemon=True).start()

    def claim(self) -> int:
        """Take the run, once nobody else holds it. The token goes with every write, so that whoever comes after shuts this one out."""
        while True:
            try:
                taken = self.post(f"runs/{self.run['id']}/lease", {"holder": self.holder, "seconds": self.lease})["lease"]
            except Refused as refused:
                if refused.kind != "held-by-another-process":
                    raise
                time.sleep(0.5)
                continue
            if taken["held_before_by"]:
                print(f"going on with what {taken['held_before_by']} began", flush=True)
            self.api.headers["Handrail-Token"] = str(taken["token"])
            return taken["token"]

    def beat(self) -> None:
        """Three times in each lease, so that one lost answer does not lose the run. Whoever lost it stops at its next write."""
        while True:
            time.sleep(self.lease / 3)
            try:
                body = {"token": self.token, "seconds": self.lease}
                if self.api.put(f"runs/{self.run['id']}/lease", json=body).status_code == 409:
                    return
            except httpx.TransportError:
                continue

    def step(self, key: str, given: object, work: Callable[[str], dict], plan_step: int) -> dict:
        """What `work` gives, or gave before in whichever process. It is handed a key for its own calls, the same at each attempt."""
        commitment = hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()
        asked = {"token": self.token, "key": key, "input": commitment, "plan_step": plan_step}
        begun = self.post(f"runs/{self.run['id']}/steps", asked)["step"]
        if begun["state"] == "done":
            print(f"{key}: done before", flush=True)
            return json.loads(begun["result"]["text"])
        gave = work(begun["idempotency_key"])
        result = {"text": json.dumps(gave), "media_type": "application/json"}
        said = {"token": self.token, "key": key, "outcome": "completed", "result": result}
        self.post(f"runs/{self.run['id']}/steps/outcome", said)
        return gave

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

    def find_parcel(self, key: str) -> dict:
        """The agent's own work, of which nobody has to decide: here it takes a while."""
        print("find_parcel: looking", flush=True)
        time.sleep(self.look)
        self.write({"looked": key})
        return {"days_late": 9}

    def use(self, number: int) -> int | None:
        """One call of the script, as a step. Gives the event to cite, or None if nothing was done."""
        call = SCRIPT[number]
        return self.step(call["tool"], call, lambda _: {"seq": self.call_once(call, number)}, plan_step=number + 2)["seq"]

    def call_once(self, call: dict, number: int) -> int | None:
        """Propose one call, wait, and run it if it was approved."""
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
        self.write({"key": key, "tool": exact["tool"], "arguments": exact["arguments"]})
        return {"file": self.done.name, "key": key}

    def write(self, line: dict) -> None:
        with self.done.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def work(self) -> None:
        print(f"{self.run['ref']}: a scripted agent; nothing here is decided by a model", flush=True)
        plan = {"step_1": "Find the parcel", "step_2": "Offer what was promised", "step_3": "Tell others"}
        self.tell({"id": "plan", "type": "plan.set", "data": {"version": 1, "steps": 3}, "texts": plan})
        late = self.step("find_parcel", {"customer": "ACC-2043"}, self.find_parcel, plan_step=1)
        print(f"find_parcel: {late['days_late']} days late", flush=True)
        with ThreadPoolExecutor() as pool:  # both at once: each waits for its own decision
            cites = [seq for seq in pool.map(self.use, range(len(SCRIPT))) if seq]
        if not cites:
            print(self.post(f"runs/{self.run['id']}/ending", {"outcome": "failed", "detail": "Nothing was approved."})["ending"]["state"])
            return
        report = {"title": f"{len(cites)} of {len(SCRIPT)} calls were approved and done", "cites": cites}
        print(self.post(f"runs/{self.run['id']}/ending", {"outcome": "succeeded", "report": report})["ending"]["state"], flush=True)


def checked(answer: httpx.Response) -> dict:
    if answer.status_code >= 400:
        raise Refused(answer.json())
    return answer.json()


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("url")
    given.add_argument("--name", default=str(uuid.uuid4()), help="of the run: the same name again goes on with the same run")
    given.add_argument("--slow", type=float, default=1.0, help="seconds that each call takes")
    given.add_argument("--look", type=float, default=1.0, help="seconds that finding the parcel takes")
    given.add_argument("--done", type=Path, default=Path("done.jsonl"), help="the file that is this example's outside world")
    given.add_argument("--lease", type=int, default=15, help="seconds of silence after which another process may take over")
    chosen = given.parse_args()
    if not os.environ.get("HANDRAIL_KEY"):
        sys.exit("Put the agent's key into HANDRAIL_KEY: manage.py agentkey outside-loop prints one.")
    try:
        options = {"slow": chosen.slow, "look": chosen.look, "done": chosen.done, "lease": chosen.lease}
        Agent(chosen.url.rstrip("/"), os.environ["HANDRAIL_KEY"], chosen.name, **options).work()
    except Refused as refused:
        sys.exit(str(refused))
