"""The demo's story as a test tells it: somebody starts a triage, somebody decides, and the desk says what happened outside."""

import json
import os
import re
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import httpx

from tests.stack import ROOT, Stack
from tests.waiting import until

TICKETS = ROOT / "examples" / "support_triage" / "tickets"
PATIENCE = 100.0  # seconds; a bound for what takes one or two on an idle machine, with a worker that may still be starting
ANSWER = 150.0  # seconds; for a page that itself waits until a run has come so far, as the demo's "Try it" does, twice a minute at most


@dataclass
class Person:
    """Somebody signed in at the demo, without a browser."""

    stack: Stack
    name: str
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.http = httpx.Client(base_url=self.stack.base_url, follow_redirects=True, timeout=ANSWER, trust_env=False)
        page = self.http.get("/sign-in").text
        button = re.search(rf'name="as" value="([^"]+)">(?:(?!</button>).)*{self.name}', page, re.DOTALL)
        assert button, f"nobody called {self.name} is offered\n{page[-3000:]}"
        self.post("/sign-in/as", {"as": button[1]})
        self.post("/confirm", {"hr_with": "demo", "hr_to": "/healthz", "hr_method": "get"})  # who it is, for what has a high risk

    def __enter__(self) -> "Person":
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def post(self, path: str, data: dict[str, Any]) -> httpx.Response:
        """Post a form, with the token that the server demands of browsers."""
        token = next(cookie.value for cookie in self.http.cookies.jar if cookie.name.endswith("csrf"))
        return self.http.post(path, data=data, headers={"X-CSRFToken": token})

    def decide(self, action: dict[str, Any], verdict: str, reason: str = "", digest: str = "") -> httpx.Response:
        data = {"verdict": verdict, "digest": digest or action["digest"], "reason": reason}
        return self.post(f"/actions/{UUID(str(action['id']))}/decision", data)


@dataclass
class Triage:
    """One run of support triage in a stack, and what the database and the desk say of it."""

    stack: Stack
    ref: str

    @classmethod
    def start(cls, stack: Stack, ticket: str = "duplicate-charge.eml", *, again: bool = False) -> "Triage":
        printed = stack.manage("triage", str(TICKETS / ticket), *(["--again"] if again else []))
        return cls(stack, printed.split()[0])

    @property
    def row(self) -> dict[str, Any]:
        return self.stack.query("SELECT * FROM runs_run WHERE ref = %s", self.ref)[0]

    @property
    def id(self) -> UUID:
        return UUID(str(self.row["id"]))

    @property
    def state(self) -> str:
        return self.row["state"]

    @property
    def waiting(self) -> dict[str, Any]:
        """What it waits for, as it stands at one moment; nothing while it goes on."""
        waiting = self.row["waiting"]
        return json.loads(waiting) if isinstance(waiting, str) else waiting

    def wait_for(self, *states: str, within: float = PATIENCE) -> str:
        def there() -> str | None:
            state = self.state
            return state if state in states else None

        return until(
            there, within=within, what=lambda: f"{self.ref} to be {' or '.join(states)}, not {self.state}\n{self.stack.output()[-5000:]}"
        )

    def wait_until_it_waits(self, on: str, *, without: str = "") -> None:
        """Until what it waits for is this, and, if a word is given, has none of that."""

        def does() -> bool:
            waiting = self.waiting  # looked at once: by the next look the run may go on again
            return waiting.get("on") == on and without not in waiting

        until(does, within=PATIENCE, what=lambda: f"{self.ref} to wait for {on}, not {self.row}\n{self.stack.output()[-5000:]}")

    def actions(self, tool: str = "send_email") -> list[dict[str, Any]]:
        return self.stack.query(
            "SELECT * FROM approvals_proposedaction WHERE run_id = %s AND tool = %s ORDER BY proposed_at", self.id, tool
        )

    def waiting_action(self) -> dict[str, Any]:
        self.wait_for("waiting")
        return until(
            lambda: next((action for action in self.actions() if action["state"] == "waiting"), None),
            within=PATIENCE,
            what="an action to decide on",
        )

    def grant(self, action: dict[str, Any]) -> dict[str, Any]:
        return self.stack.query("SELECT * FROM approvals_grant WHERE action_id = %s", UUID(str(action["id"])))[0]

    def types(self) -> list[str]:
        return [row["type"] for row in self.stack.query("SELECT type FROM runs_event WHERE run_id = %s ORDER BY seq", self.id)]

    def told(self, type_: str) -> list[dict[str, Any]]:
        """The data of its events of a type, in order."""
        rows = self.stack.query("SELECT body FROM runs_event WHERE run_id = %s AND type = %s ORDER BY seq", self.id, type_)
        return [json.loads(row["body"])["data"] for row in rows]

    def bodies(self, type_: str) -> str:
        """The bodies of all its events of a type, one after another."""
        rows = self.stack.query("SELECT body FROM runs_event WHERE run_id = %s AND type = %s ORDER BY seq", self.id, type_)
        return "".join(row["body"] for row in rows)

    def lease(self) -> dict[str, Any]:
        return self.stack.query("SELECT * FROM runs_lease WHERE run_id = %s", self.id)[0]

    def token_of(self, pid: int) -> int:
        """The fencing token under which a worker has worked on it last, also one that was overtaken since."""
        taken = self.told("run.started") + self.told("run.resumed")
        return max(each["token"] for each in taken if each["worker"] == f"w-{pid}")

    def messages(self) -> list[EmailMessage]:
        """What reached the outside of this run's letters; one that came twice is there twice."""
        ours = {f"<{self.nonce(action)}@fernhill.example>" for action in self.actions()}
        return [message for message in mailbox(self.stack) if message["Message-ID"] in ours]

    def nonce(self, action: dict[str, Any]) -> UUID:
        return uuid5(self.id, action["step"])

    def stored_action(self, tool: str = "send_email") -> dict[str, Any]:
        """The newest exact action of a tool, opened from the vault."""
        pk = UUID(str(self.actions(tool)[-1]["id"]))
        code = (
            "from approvals import exact; from approvals.models import ProposedAction; "
            f"print(exact.stored_bytes(ProposedAction.objects.get(pk='{pk}')).decode())"
        )
        return json.loads(self.stack.manage("shell", "-v0", "-c", code))

    def grant_key(self, tool: str) -> str:
        """The idempotency key under which a tool's effect is known outside."""
        return str(UUID(str(self.grant(self.actions(tool)[-1])["id"])))

    def workers(self) -> set[str]:
        """Everybody who ever held the lease, as the log names them."""
        rows = self.stack.query("SELECT body FROM runs_event WHERE run_id = %s AND type IN ('run.started', 'run.resumed')", self.id)
        return {json.loads(row["body"])["data"]["worker"] for row in rows}

    def verify(self) -> str:
        return self.stack.manage("verify", self.ref)


def mailbox(stack: Stack) -> list[EmailMessage]:
    """Every message that reached the outside, parsed."""
    with httpx.Client(base_url=stack.desk_url, trust_env=False) as desk:
        mails = desk.get("/mail").json()["mail"]
        return [message_from_bytes(desk.get(f"/mail/{m['number']}/raw").content, policy=policy.default) for m in mails]


def ledger(stack: Stack, kind: str = "") -> list[dict[str, Any]]:
    """Every effect the desk saw: `asked` how often, `done` how often."""
    effects = httpx.get(f"{stack.desk_url}/ledger", trust_env=False).json()["effects"]
    return [effect for effect in effects if not kind or effect["kind"] == kind]


def arm(directory: Path, point: str) -> None:
    """Let the next worker that reaches `point` stop there."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / point).touch()


def set_clock(file: Path, **by: float) -> None:
    """Move the clock of every process to so much after now, at once: nobody reads half of it."""
    draft = file.with_suffix(".new")
    draft.write_text(str(timedelta(**by).total_seconds()))
    draft.replace(file)


def stopped_at(directory: Path, point: str) -> int:
    """The pid of the worker that stands still at `point`."""

    def pid() -> int | None:
        found = list(directory.glob(f"{point}.*"))
        return int(found[0].suffix[1:]) if found else None

    return until(pid, within=PATIENCE, what=f"a worker to reach {point}")


def wake_all(directory: Path) -> None:
    """Let every worker go on that still stands at a point, so that a failed test leaves none behind."""
    for marker in directory.glob("*.*"):
        with suppress(ProcessLookupError):
            os.kill(int(marker.suffix[1:]), signal.SIGCONT)
        marker.unlink()
