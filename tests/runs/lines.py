"""Logs for tests that need no database: wire lines as `runs.stream` gives them, of legal events only."""

from datetime import UTC, datetime, timedelta
from typing import Any

from runs import vocabulary

START = datetime(2026, 11, 26, 14, 2, tzinfo=UTC)
OWNER, RILEY, AGENT = (f"00000000-0000-7000-8000-00000000000{n}" for n in range(1, 4))
SEND, NOTE, SIGNAL = (f"00000000-0000-7000-8000-00000000001{n}" for n in range(1, 4))
DIGEST = "41b79f2ce06d" + "0" * 52
PLAN = ("Read the ticket", "Check the account", "Draft a reply", "Get approval", "Update the CRM", "Send the reply")
WHO = {
    "system": {"kind": "system", "id": "handrail"},
    "agent": {"kind": "agent", "id": AGENT},
    "owner": {"kind": "human", "id": OWNER},
    "riley": {"kind": "human", "id": RILEY},
}


def stamp(at: datetime) -> str:
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


class Log:
    """Appends legal events, a second apart unless told otherwise; `lines` are what a reader gets."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.at = START

    def add(self, kind: str, data: dict[str, Any] | None = None, *, who: str = "system", after: float = 1, **texts: Any) -> int:
        vocabulary.parse(kind, data or {})
        self.at += timedelta(seconds=after)
        seq = len(self.lines) + 1
        body = {"v": 1, "type": kind, "at": stamp(self.at), "actor": WHO[who], "data": data or {}, "payloads": {}}
        wired = {role: text if isinstance(text, dict) else words(text) for role, text in texts.items()}
        self.lines.append({"seq": seq, "hash": f"{seq:064x}", "body": body, "texts": wired})
        return seq

    def until(self, seconds: float) -> str:
        return stamp(self.at + timedelta(seconds=seconds))


def words(text: str, label: str = "internal", media_type: str = "text/plain", **more: Any) -> dict[str, Any]:
    return {"text": text, "label": label, "media_type": media_type, "size": len(text.encode())} | more


def begun(plan: tuple[str, ...] = PLAN) -> Log:
    """A run that was started and has recorded its plan."""
    log = Log()
    created = {
        "ref": "RN-7Q4K",
        "agent": AGENT,
        "agent_version": "3.2.1",
        "owner": OWNER,
        "workflow": "support-triage",
        "workflow_version": 3,
    }
    scope = words('{"ticket": ["ZN-4821"]}', media_type="application/json")
    log.add("run.created", created, who="owner", title="Ticket ZN-4821, duplicate charge", scope=scope)
    log.add("run.started", {"worker": "w1", "token": 1})
    log.add("plan.set", {"version": 1, "steps": len(plan)}, who="agent", **{f"step_{i}": step for i, step in enumerate(plan, 1)})
    return log


def read(log: Log, step: str, number: int, tool: str) -> None:
    """A step that reads."""
    log.add("step.started", {"step": step, "kind": "tool", "plan_step": number, "attempt": 1}, who="agent")
    log.add("tool.started", {"tool": tool, "effect": "read", "step": step}, who="agent", arguments=words('{"ticket_id": "ZN-4821"}'))
    log.add("tool.ended", {"tool": tool, "outcome": "ok", "ms": 900, "step": step}, who="agent", result=words("{}"))
    completed(log, step, number)


def completed(log: Log, step: str, number: int) -> None:
    log.add("step.completed", {"step": step, "plan_step": number, "ms": 950}, who="agent")
    log.add("checkpoint.saved", {"after": step, "done": number, "left": 6 - number})


def drafted() -> Log:
    """… that has read, checked and drafted."""
    log = begun()
    read(log, "read_ticket#1", 1, "read_ticket")
    artifact(log, "ticket.eml", "We’ve been charged twice for INV-20931.", label="personal", outside=True)
    read(log, "check_account#1", 2, "check_account")
    log.add("step.started", {"step": "model.draft-reply#1", "kind": "model", "plan_step": 3}, who="agent")
    called = {
        "model": "scripted",
        "scripted": True,
        "prompt": "draft-reply",
        "prompt_version": "2",
        "step": "model.draft-reply#1",
        "ms": 12,
    }
    log.add("model.called", called, who="agent", output=words("{}", "personal"))
    completed(log, "model.draft-reply#1", 3)
    artifact(log, "reply.txt", "Dear Marta, …")
    return log


def artifact(log: Log, name: str, text: str, *, label: str = "internal", outside: bool = False, version: int = 1) -> int:
    data = {
        "artifact": f"00000000-0000-7000-8000-0000000002{len(log.lines):02d}",
        "name": name,
        "version": version,
        "label": label,
        "media_type": "text/plain",
        "size": len(text),
        "outside": outside,
    }
    return log.add("artifact.created", data, who="agent", content=words(text, label))


def proposed() -> Log:
    """… that waits for a decision on an e-mail."""
    log = drafted()
    log.add("step.started", {"step": "propose.send_email#1", "kind": "propose", "plan_step": 4}, who="agent")
    propose(log, SEND, "send_email", "send", needs=1, subject="E-mail a reply to Marta Oyelaran")
    log.add("run.waiting", {"on": "decision", "action": SEND, "until": log.until(2640), "needs": 1})
    return log


def propose(log: Log, action: str, tool: str, effect: str, *, needs: int, subject: str, **more: Any) -> int:
    data = {
        "action": action,
        "digest": DIGEST,
        "tool": tool,
        "tool_schema": 1,
        "effect": effect,
        "executor": "handrail",
        "policy": NOTE,
        "policy_version": 1,
        "needs": needs,
        "until": log.until(2640),
        "recipients": 1,
    }
    canonical = '{"arguments":{"to":["marta@brightwater.example"],"subject":"Your duplicate charge","body":"Dear Marta"}}'
    return log.add("action.proposed", data, subject=subject, canonical=words(canonical, "personal", "application/json"), **more)


def approved() -> Log:
    """… that was approved and goes on."""
    log = proposed()
    decided = {"action": SEND, "digest": DIGEST, "decision": NOTE, "verdict": "approved", "round": 1}
    log.add("action.decided", decided, who="riley", after=720, reason="Checked the amount.")
    log.add("action.granted", {"action": SEND, "grant": SIGNAL, "digest": DIGEST, "until": log.until(900)})
    log.add("run.queued", {"reason": "decision"})
    log.add("run.resumed", {"reason": "claimed", "worker": "w1", "token": 2})
    log.add("action.delivered", {"action": SEND})
    completed(log, "propose.send_email#1", 4)
    return log


def rejected() -> Log:
    """… that was rejected and ended."""
    log = proposed()
    decided = {"action": SEND, "digest": DIGEST, "decision": NOTE, "verdict": "rejected", "round": 1}
    cites = [log.add("action.decided", decided, who="riley", after=720, reason="Name the amount.")]
    log.add("run.queued", {"reason": "decision"})
    log.add("run.resumed", {"reason": "claimed", "worker": "w1", "token": 2})
    completed(log, "propose.send_email#1", 4)
    report = log.add("report.published", {"cites": cites}, who="agent", title="Not sent")
    log.add("run.succeeded", {"report": report})
    return log


def perform(log: Log, action: str, tool: str, effect: str, number: int, subject: str, *, can_undo: bool) -> None:
    step = f"perform#{number - 4}"
    grant = {"action": action, "grant": SIGNAL, "digest": DIGEST}
    log.add("action.redeemed", grant | {"token": 2, "worker": "w1"})
    log.add("step.started", {"step": step, "kind": "perform", "plan_step": number}, who="agent")
    log.add("tool.started", {"tool": tool, "effect": effect, "step": step}, who="agent")
    log.add("tool.ended", {"tool": tool, "outcome": "ok", "ms": 300, "step": step}, who="agent")
    log.add("action.executed", grant)
    effect_data = {"tool": tool, "key": f"{tool}-{number}", "can_undo": can_undo, "action": action, "step": step}
    log.add("effect.done", effect_data, subject=subject)
    log.add("action.verified", grant | {"how": "digest"})
    completed(log, step, number)


def forked() -> Log:
    """A fork of such a run that had completed four steps: it drafts anew, and waits for a decision."""
    log = begun()
    plan = log.lines.pop()
    data = {"parent": NOTE, "ref": "RN-AAAA", "seq": 9, "step": "model.draft-reply#1", "taken": 2, "plan_steps": [1, 2, 3, 4]}
    log.add("run.forked", data, who="riley")
    log.lines.append(plan | {"seq": len(log.lines) + 1})
    log.add("step.started", {"step": "model.draft-reply#1", "kind": "model", "plan_step": 3}, who="agent")
    completed(log, "model.draft-reply#1", 3)
    log.add("step.started", {"step": "propose.send_email#1", "kind": "propose", "plan_step": 4}, who="agent")
    propose(log, SEND, "send_email", "send", needs=1, subject="E-mail a reply to Marta Oyelaran")
    log.add("run.waiting", {"on": "decision", "action": SEND, "until": log.until(2640), "needs": 1})
    return log


def finished() -> Log:
    """… that did everything it planned."""
    log = approved()
    log.add("step.started", {"step": "propose.add_note#1", "kind": "propose", "plan_step": 5}, who="agent")
    propose(log, NOTE, "add_note", "write", needs=0, subject="Add a note to account 00932")
    log.add("action.granted", {"action": NOTE, "grant": SIGNAL, "digest": DIGEST, "automatic": True, "until": log.until(900)})
    perform(log, NOTE, "add_note", "write", 5, "Note added to account 00932", can_undo=True)
    perform(log, SEND, "send_email", "send", 6, "E-mail sent to Marta Oyelaran", can_undo=False)
    decided = next(line["seq"] for line in log.lines if line["body"]["type"] == "action.decided")
    report = log.add("report.published", {"cites": [decided]}, who="agent", title="Answered and logged")
    log.add("run.succeeded", {"report": report})
    return log


def cancelled() -> Log:
    """… that somebody cancelled while it waited for a decision."""
    log = proposed()
    log.add("signal.received", {"signal": SIGNAL, "kind": "cancel"}, who="owner", note="Solved by phone.")
    log.add("run.cancel_requested", {"signal": SIGNAL}, who="owner", reason="Solved by phone.")
    log.add("action.withdrawn", {"action": SEND, "reason": "cancelled"})
    log.add("signal.applied", {"signal": SIGNAL, "kind": "cancel"})
    log.add("run.cancelled", {"signal": SIGNAL, "done": 0, "undone": 0, "withdrawn": 1})
    return log
