"""One world in which canaries are planted in everything that takes text: by agents, reviewers, operators, admins and the outside."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any
from uuid import uuid4

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from access import keys
from access.rules import SYSTEM, person
from approvals import policy
from approvals.models import ProposedAction
from approvals.notifications import webhooks as notices
from runs import standard_webhooks, starting, vocabulary, webhooks
from runs.engine import executor
from runs.models import Run
from runs.vocabulary import AGENT
from tests.approvals.lettering import propose_letter
from tests.approvals.mailing import MAIL, propose_mail
from tests.artifacts.files import as_pdf
from tests.canaries import falling
from tests.canaries.garden import Garden
from tests.cast import Cast

LABELS = ("public", "internal", "personal", "secret")


@dataclass(frozen=True)
class Output:
    """What came out: where, to whom, and what went in with the same request and so may be given back to who typed it."""

    where: str
    who: str
    body: bytes
    typed: frozenset[str] = frozenset()


@dataclass
class World:
    cast: Cast
    garden: Garden = field(default_factory=Garden)
    outputs: list[Output] = field(default_factory=list)
    runs: dict[str, Run] = field(default_factory=dict)
    actions: dict[str, ProposedAction] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = {name: keys.make(agent, name="test", by=SYSTEM)[1] for name, agent in (("agent", self.cast.agent),)}

    def client(self, who: str) -> Client:
        if who in self.tokens:
            return Client(headers={"Authorization": f"Bearer {self.tokens[who]}"}, raise_request_exception=False)
        client = Client(raise_request_exception=False)
        if who != "nobody":
            client.force_login(getattr(self.cast, who))
        return client

    def post(self, who: str, path: str, body: Any, *, page: bool = False, **headers: str) -> Any:
        """Send it, and keep the answer with what comes out."""
        headers = {"Idempotency-Key": f"k{uuid4()}"} | headers
        more = {} if page else {"content_type": "application/json"}
        answer = self.client(who).post(path if page else f"/api/v1/{path}", body, headers=headers, **more)
        self.keep(f"POST {path}", who, answer, typed=page)
        return answer

    def keep(self, where: str, who: str, answer: Any, *, typed: bool = False) -> None:
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        heads = "\n".join(f"{name}: {value}" for name, value in answer.headers.items() if name not in ("Set-Cookie",))
        places = frozenset({where}) if typed else frozenset()
        self.outputs.append(Output(f"{where} → {answer.status_code}", who, heads.encode() + b"\n\n" + body, places))
        if answer.status_code >= 400:
            self.refused.append(f"{where} → {answer.status_code} {body[:200]!r}")

    # --- agents outside

    def tell(self, run: Run, type_: str, data: Mapping[str, Any], texts: Mapping[str, Any], id: str = "") -> Any:
        return self.post("agent", f"runs/{run.pk}/events", {"id": id or str(uuid4()), "type": type_, "data": data, "texts": texts})


def planted(cast: Cast, *, hook: str = "") -> World:
    """All of it. `hook`: where Sam's notifications are posted to."""
    world = World(cast)
    if hook:
        world.garden.remember("secret of a webhook, secret", notices.set_up(cast.workspace.pk, by=person(cast.sam.pk), url=hook))
    for plant in (
        _outside_run,
        _events,
        _artifacts,
        _in_parts,
        _names,
        _steps,
        _mails,
        _letter,
        _troubles,
        _webhook,
        _ticket,
        _admin,
        _decisions,
        _steering,
    ):
        plant(world)
    return world


def _outside_run(world: World) -> None:
    g = world.garden
    body = {
        "title": g.line("run title", 190),
        "agent_version": "1",
        "note": g.line("run note", 1500),
        "arguments": {
            "a": g.line("run arguments, personal", 1500),
            "deep": [{"er": g.one("run arguments, personal", dress="json in a string")}],
        },
        "scope": {"email": [g.one("run scope, personal", "email"), "x"], "ticket": [g.one("run scope, personal", "github")]},
    }
    started = world.post("agent", "runs", body)
    world.runs["outside"] = Run.objects.get(pk=started.json()["id"])


DATA: Mapping[str, dict[str, Any]] = {
    "plan.set": {"version": 1, "steps": 2},
    "tool.started": {"tool": "read_mail", "call": "c1"},
    "tool.ended": {"tool": "read_mail", "outcome": "error", "call": "c1", "error": "error"},
    "model.called": {"model": "big", "prompt": "draft", "prompt_version": "1"},
    "model.switched": {"was": "big", "to": "small", "reason": "timeout"},
    "block.raised": {"block": "b1", "reason": "access"},
    "block.cleared": {"block": "b1"},
}


def _roles(type_: str) -> list[str]:
    return [role.replace("[1-9][0-9]?", "1") for role in vocabulary.TYPES[type_].roles.pattern.split("|") if role not in ("", "(?!)")]


def _events(world: World) -> None:
    """Every type that an agent may write, every text that it may carry, in JSON and plain, under each label."""
    g, run = world.garden, world.runs["outside"]
    for type_, known in vocabulary.TYPES.items():
        if AGENT not in known.writers or type_ == "artifact.created":
            continue
        for at, label in enumerate(LABELS):
            place = f"{type_} text, {label}"
            texts: dict[str, Any] = {}
            for role in _roles(type_):
                if at % 2:
                    said = json.dumps(
                        {
                            "a": g.line(place, 900),
                            g.one(place): 1,
                            "p": json.loads(g.one(place, "prompt")),
                            "h": json.loads(g.one(place, "hook body")),
                            "i": json.loads(g.one(place, "internal score")),
                        }
                    )
                    texts[role] = {"text": said, "label": label, "media_type": "application/json"}
                else:
                    texts[role] = {"text": g.line(place, 2500), "label": label}
            world.tell(run, type_, DATA.get(type_, {}), texts)


def _artifacts(world: World) -> None:
    """Every kind in every dress, as a file of each media type."""
    g, run = world.garden, world.runs["outside"]

    def message(place: str) -> bytes:
        made = EmailMessage()
        made["From"], made["To"] = g.one(place, "email"), "help@fernhill.example"
        made["Subject"] = g.line(place, 150).replace("\n", " ")
        made["X-Api-Key"] = g.one(place, "github")
        made.set_content(g.dossier(place))
        made.add_alternative(f"<p>{g.line(place, 900)}</p>", subtype="html")
        made.add_attachment(g.dossier(place).encode(), maintype="text", subtype="plain", filename="notes.txt")
        return bytes(made)

    files: list[tuple[str, str, str, Any]] = [
        ("notes.txt", "text/plain", "internal", lambda place: g.dossier(place, ["plain", "split"])),
        (
            "page.html",
            "text/html",
            "public",
            lambda place: f"<h1>{g.one(place)}</h1><p>{g.dossier(place, ['entities', 'plain'])}</p><!-- {g.one(place)} -->",
        ),
        (
            "table.csv",
            "text/csv",
            "personal",
            lambda place: (
                "a,b\n"
                + "\n".join(
                    f'{n},"{g.one(place, kind)}"'
                    for n, kind in enumerate(("email", "phone plus", "card visa", "iban dutch", "path unix", "jwt"))
                )
            ),
        ),
        (
            "data.json",
            "application/json",
            "personal",
            lambda place: json.dumps(
                {
                    "said": g.dossier(place),
                    "deep": g.one(place, "stripe", "json in a string"),
                    **json.loads(g.one(place, "email", "key")),
                    **json.loads(g.one(place, "jwt", "key")),
                    **json.loads(g.one(place, "prompt")),
                }
            ),
        ),
        ("mail.eml", "message/rfc822", "personal", message),
        ("scan.pdf", "application/pdf", "public", lambda place: as_pdf([[g.one(place, "card visa"), g.one(place, "github")]])),
        ("odd.bin", "application/octet-stream", "public", lambda place: g.one(place, "github")),
        ("prompt.txt", "text/x-prompt", "public", lambda place: g.line(place, 500)),
        ("more.md", "text/markdown", "internal", lambda place: "# " + g.dossier(place, ["base64", "url"])),
        (
            "rows.ndjson",
            "application/x-ndjson",
            "internal",
            lambda place: "\n".join(json.dumps({"a": g.line(place, 300)}) for _ in range(8)),
        ),
        ("long.txt", "text/plain", "internal", lambda place: "word " * 13_100 + g.dossier(place)),
    ]
    client = world.client("agent")
    for name, kind, label, made in files:
        for version in (1, 2) if kind in ("text/plain", "text/csv") else (1,):
            content = made(f"artifact {name}, {label}")
            address = f"/api/v1/runs/{run.pk}/artifacts?name={name}&label={label}&outside=true"
            answer = client.post(address, content, content_type=kind, headers={"Idempotency-Key": f"{name}{version}"})
            world.keep(f"POST {address}", "agent", answer)


def _in_parts(world: World) -> None:
    """A file that comes by an upload that goes on where it broke off, with what is refused on the way."""
    g, run = world.garden, world.runs["outside"]
    client, place = world.client("agent"), "artifact parts.txt, personal"
    content = f"{g.dossier(place)}\n{json.dumps({'email': g.one(place, 'email')})}".encode()
    begun = world.post(
        "agent", f"runs/{run.pk}/uploads", {"name": "parts.txt", "size": len(content), "label": "personal", "media_type": "text/plain"}
    )
    at = f"/api/v1/uploads/{begun.json()['id']}"
    for offset in (7, 0):  # the first does not fit what came so far
        answer = client.patch(at, content, content_type="application/octet-stream", headers={"Upload-Offset": str(offset)})
        world.keep(f"PATCH {at}", "agent", answer)
    world.post("agent", f"{at.removeprefix('/api/v1/')}/finish", {"sha256": g.one("sum of an upload", "npm")})
    done = world.post("agent", f"{at.removeprefix('/api/v1/')}/finish", {"sha256": hashlib.sha256(content).hexdigest()})
    assert done.status_code == 201, done.content


def _names(world: World) -> None:
    """Where a name of ours is asked for: ids, versions, tools, keys, file names, headers, queries, paths."""
    g, run = world.garden, world.runs["outside"]
    token = ["github", "stripe", "aws key", "npm", "iban dutch", "card visa", "jwt"]

    def bare(place: str, at: int = 0) -> str:
        return g.one(place, token[at % len(token)]).replace(" ", "")

    for at in range(3):
        world.tell(run, "note.posted", {}, {"note": "x"}, id=bare("event id", at))
        world.tell(run, "tool.started", {"tool": bare("tool name", at), "call": bare("call", at + 1)}, {})
        world.tell(
            run,
            "model.called",
            {
                "model": bare("model", at),
                "prompt": bare("prompt name", at + 1),
                "prompt_version": bare("prompt version", at + 2),
                "endpoint": bare("endpoint", at),
            },
            {},
        )
        world.tell(run, "block.raised", {"block": bare("block name", at), "reason": "other"}, {})
        world.tell(run, bare("event type", at), {}, {})
        world.tell(run, "note.posted", {bare("data key", at): bare("data value", at)}, {bare("role", at): "x"})
        world.tell(run, "note.posted", {}, {"note": {"text": "x", "media_type": f"text/{bare('media type', 2).lower()}"}})
        world.post("agent", "runs", {"title": "Another", "agent_version": bare("agent version", at)})
        world.post("agent", "runs", {"title": "Another", "agent_version": "1", "workflow": bare("workflow", at), bare("body key", at): 1})
        world.post("agent", "runs", {"title": "Another", "agent_version": "1", "agent": bare("agent", at)})
        world.post("agent", "runs", {"title": f"Keyed {at}", "agent_version": "1"}, **{"Idempotency-Key": bare("start key", at)})
        world.post("agent", f"runs/{run.pk}/signals", {"kind": "context", "note": "x"}, **{"Idempotency-Key": bare("signal key", at)})
        world.post(
            "agent",
            f"runs/{run.pk}/actions",
            {"tool": bare("proposed tool", at), "tool_schema": 1, "arguments": {"a": bare("unregistered arguments, personal", at)}},
        )
        for who in ("agent", "riley", "nobody") if at == 0 else ():
            client = world.client(who)
            secret = bare("asked address", at)
            for address in (
                f"/r/{secret}",
                f"/{secret}",
                f"/api/v1/{secret}",
                f"/api/v1/runs/{secret}",
                f"/runs?q={secret}",
                f"/runs/{run.pk}/events?type={secret}&q={secret}",
                f"/api/v1/runs?state={secret}&before={secret}",
                f"/api/v1/runs/{run.pk}/events?types={secret}",
                f"/static/{secret}",
                f"/inbox?who={secret}",
                f"/artifacts/{secret}",
                f"/runs/{run.pk}/compare?with={secret}&other={secret}",
                f"/sign-in?next=/{secret}",
            ):
                world.keep(
                    f"GET {address}",
                    who,
                    client.get(
                        address,
                        headers={
                            "User-Agent": bare("user agent", at),
                            "X-Odd": bare("header", at),
                            "Referer": f"https://handrail.test/{bare('referer', at)}",
                            "Cookie": f"theme={bare('cookie', at)}",
                        },
                    ),
                    typed=True,
                )
                world.outputs[-1] = Output(
                    world.outputs[-1].where,
                    who,
                    world.outputs[-1].body,
                    frozenset({"asked address"} if not address.startswith("/api") else ()),
                )
        answer = Client().get("/api/v1/runs", headers={"Authorization": f"Bearer {bare('authorization', at)}"})
        world.keep("GET runs with a key that is none", "nobody", answer)
    for name in (f"{bare('file name')}.txt", f"{bare('file name', 5)}.csv"):
        answer = world.client("agent").post(
            f"/api/v1/runs/{run.pk}/artifacts?name={name}",
            "x",
            content_type="text/plain",
            headers={"Idempotency-Key": bare("artifact key", 1)},
        )
        world.keep("POST artifact with a name", "agent", answer)
    broken = ['{"a": "' + bare("broken body"), json.dumps({"title": 1, "note": [bare("wrong body")], "scope": bare("wrong body", 1)})]
    for body in broken:
        answer = world.client("agent").post("/api/v1/runs", body, content_type="application/json", headers={"Idempotency-Key": "b"})
        world.keep("POST a body that is none", "agent", answer)


def _steps(world: World) -> None:
    """A run that was claimed, and told step by step."""
    g = world.garden
    made = world.post("agent", "runs", {"title": "In steps", "agent_version": "1"})
    run = world.runs["steps"] = Run.objects.get(pk=made.json()["id"])
    token = world.post("agent", f"runs/{run.pk}/lease", {"holder": "holder-1", "seconds": 60}).json()["lease"]["token"]
    step = {"token": token, "input": "0" * 64}
    world.post("agent", f"runs/{run.pk}/steps", step | {"key": g.one("step key", "npm")})
    for key, outcome in (
        ("a#1", {"outcome": "completed", "result": {"text": g.line("step result", 900)}}),
        ("b#1", {"outcome": "failed", "detail": g.line("step detail, personal", 900)}),
    ):
        world.post("agent", f"runs/{run.pk}/steps", step | {"key": key})
        world.post("agent", f"runs/{run.pk}/steps/outcome", {"token": token, "key": key} | outcome)
    world.post(
        "agent", f"runs/{run.pk}/ending", {"outcome": "failed", "detail": g.line("ending detail", 900)}, **{"Handrail-Token": str(token)}
    )
    held = world.post("agent", "runs", {"title": "Held", "agent_version": "1"}).json()["id"]
    world.post("agent", f"runs/{held}/lease", {"holder": g.one("lease holder", "github")})
    world.runs["held"] = Run.objects.get(pk=held)
    again = Run.objects.get(pk=world.post("agent", "runs", {"title": "Reported", "agent_version": "1"}).json()["id"])
    world.runs["reported"] = again
    report = {"title": g.line("report title", 190), "body": g.line("report body", 2000)}
    world.post("agent", f"runs/{again.pk}/ending", {"outcome": "succeeded", "report": report})


def _mails(world: World) -> None:
    """Actions of a workflow: one that waits, one that was decided, one edited and asked about."""
    g, cast = world.garden, world.cast
    for name in ("open", "rejected", "approved", "asked"):
        place = f"arguments of the {name} action, personal"
        mail = MAIL | {
            "subject": g.line(place, 190).replace("\n", " "),
            "body": g.dossier(place) if name == "open" else g.line(place, 2000),
            "cc": [g.one(place, "email")],
        }
        proposed = propose_mail(
            cast, file=g.line("payments.csv of an action, personal", 900), title=g.line("title of a mailing run", 190), **mail
        )
        world.runs[name], world.actions[name] = proposed.run, proposed.action


def _letter(world: World) -> None:
    g = world.garden
    place = "arguments of the letter, personal"
    files = [
        ("a.pdf", "application/pdf", as_pdf([[g.one("file of the letter, personal", "card visa")]])),
        ("b.html", "text/html", g.line("file of the letter, personal", 500).encode()),
    ]
    made = propose_letter(world.cast, html=f"<p>{g.line(place, 900)}</p>", files=files, body=g.line(place, 900))
    world.runs["letter"], world.actions["letter"] = made.run, made.action


def _troubles(world: World) -> None:
    """Tools and workflows that raise what they were told."""
    g, cast = world.garden, world.cast
    policy.set_rule(cast.workspace.pk, "canary_fall", name="Falls", outcome="automatic", by=None)
    for name in ("write", "read", "raise"):
        said = {key: g.line(f"{key} of a falling workflow", 300) for key in ("plan", "note", "milestone", "raise")}
        said |= {name: g.line(f"error of a {name}", 900)}
        run = starting.start(
            agent=cast.agent,
            owner=cast.priya,
            by=person(cast.priya.pk),
            title=f"Falling at {name}",
            workflow=falling.NAME,
            arguments={"said": said},
            scope={},
        )
        for _ in range(6):
            executor.execute(run.pk)
        world.runs[f"fallen {name}"] = run


def _webhook(world: World) -> None:
    g = world.garden
    source, secret = webhooks.make_source(world.cast.agent, "shop", by=SYSTEM)
    from config import clock

    for id_, body in (
        ("msg_1", json.dumps({"type": "x", "data": g.line("webhook body, personal", 900)}).encode()),
        (g.one("webhook id", "github"), b"{}"),
        ("msg_3", g.one("webhook body, personal").encode()),
    ):
        stamp = int(clock.now().timestamp())
        signed = {
            "webhook-id": id_,
            "webhook-timestamp": str(stamp),
            "webhook-signature": standard_webhooks.signature(secret, id_, stamp, body),
        }
        answer = Client().post(
            f"/api/v1/webhooks/{source.pk}",
            body,
            content_type="application/json",
            headers=signed | {"X-Odd": g.one("webhook header", "stripe")},
        )
        world.keep("POST webhook", "nobody", answer)
    world.garden.remember("secret of a webhook source", secret)


def _ticket(world: World) -> None:
    """A message that an operator uploads and looks at."""
    g, place = world.garden, "uploaded ticket"
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = g.one(place, "email"), "support@fernhill.example", g.line(place, 150).replace("\n", " ")
    made.set_content(g.dossier(place))
    agent = f"{world.cast.agent.pk}/support-triage"
    sent = {"agent": agent, "source": "file", "ticket": SimpleUploadedFile(f"{g.one('name of an upload', 'github')}.eml", bytes(made))}
    answer = world.post("otto", "/runs/new", sent, page=True)
    if answer.status_code == 302:
        world.keep("GET the uploaded ticket", "otto", world.client("otto").get(answer.headers["Location"]))
    world.post("otto", "/runs/new", {"agent": agent, "source": "text", "text": g.line("POST /runs/new", 500)}, page=True)


def _admin(world: World) -> None:
    """Names and reasons that admins and reviewers give."""
    g, cast = world.garden, world.cast
    world.post(
        "ada",
        "/groups/new",
        {"name": g.line("POST /groups/new", 60), "member": str(cast.riley.pk), "why": g.line("POST /groups/new", 400)},
        page=True,
    )
    world.post("ada", "/groups/new", {"name": "Finance", "member": str(cast.riley.pk), "why": g.line("POST /groups/new", 400)}, page=True)
    world.post("otto", "freezes", {"what": "tool", "tool": "change_record", "reason": g.line("reason of a freeze", 400)})
    world.post("otto", "freezes", {"what": "tool", "tool": g.one("frozen tool", "npm"), "reason": "x"})
    base = policy.newest(cast.workspace.pk)
    policy.put_in_force(
        cast.workspace.pk,
        policy.rules(cast.workspace.pk),
        by=person(cast.ada.pk),
        why=g.line("reason of a policy", 400),
        base=base.version if base else 0,
    )
    rule = {
        "key": str(uuid4()),
        "place": "1",
        "name": g.line("POST /policies/rule", 100),
        "need": "one",
        "quorum": "2",
        "expires": "14400",
        "lasts": "3600",
        "zone": "UTC",
        "do": "try",
    }
    world.post("ada", "/policies/rule", rule | {"why": g.line("POST /policies/rule", 200)}, page=True)


def _decisions(world: World) -> None:
    g, actions = world.garden, world.actions
    rejected, approved, asked = (actions[name] for name in ("rejected", "approved", "asked"))
    world.post(
        "riley",
        f"actions/{rejected.pk}/decisions",
        {"verdict": "rejected", "digest": rejected.digest, "reason": g.line("reason of a rejection", 900)},
    )
    _acknowledged(world, approved)
    world.post("riley", f"actions/{asked.pk}/questions", {"digest": asked.digest, "question": g.line("question, personal", 400)})
    world.post(
        "riley",
        f"actions/{asked.pk}/decisions",
        {"verdict": "approved", "digest": "0" * 64, "acks": [g.one("ack", "github")], "seen": {"opened": [g.one("seen", "github")]}},
    )
    for name in ("rejected", "approved"):
        executor.execute(world.runs[name].pk)


def _acknowledged(world: World, action: ProposedAction) -> None:
    codes = [warning.get("code", "") for warning in action.warnings if isinstance(warning, dict)]
    world.post(
        "sam",
        f"actions/{action.pk}/decisions",
        {"verdict": "approved", "digest": action.digest, "reason": world.garden.line("reason of an approval", 400), "acks": codes},
    )


def _steering(world: World) -> None:
    g, run = world.garden, world.runs["outside"]
    world.post("otto", f"runs/{run.pk}/signals", {"kind": "context", "note": g.line("note of a signal", 900)})
    world.post("otto", f"runs/{run.pk}/signals", {"kind": "cancel", "note": g.line("note of a cancel", 900)})
    world.post("otto", f"runs/{world.runs['open'].pk}/signals", {"kind": "context", "note": g.line("note of a signal", 900)})
    world.post("otto", f"runs/{world.runs['open'].pk}/updates", {"budgets": {"steps": 500}, "note": g.line("note of limits", 900)})
    fallen = world.runs["fallen raise"]
    told = world.client("otto").get(f"/api/v1/runs/{fallen.pk}/recovery").json()
    if told["parked"]:
        world.post(
            "otto",
            f"runs/{fallen.pk}/recovery",
            {"choice": "give_up", "parked": told["parked"]["seq"], "note": g.line("note of a recovery", 900)},
        )
    world.post("otto", f"runs/{world.runs['rejected'].pk}/forks", {"note": g.line("note of a fork", 900)})
