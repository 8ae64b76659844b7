"""Approvals as the engine's gate: every write and send of a workflow comes through here."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from access.models import Workspace
from access.rows import only
from access.rules import Actor
from approvals import (
    asked_for,
    asking,
    canonical,
    cases,
    contacts,
    decisions,
    exact,
    execution,
    freezes,
    grants,
    groups,
    history,
    inspection,
    limits,
    looked,
    policy,
    standing_grants,
    taking_back,
)
from approvals.canonical import CanonicalAction
from approvals.errors import Unreadable
from approvals.models import Decision, Grant, Policy, ProposedAction
from approvals.policy import Case, Judgement, Taint
from artifacts import redaction_policies, vault
from artifacts.models import Payload
from config import clock
from runs import log
from runs.engine import family, gates
from runs.engine.gates import Answer, Attached, Proposal, Redemption, Refused
from runs.engine.tools import TOOLS, Tool
from runs.errors import InFlight
from runs.log import Held
from runs.models import Run
from runs.vocabulary import ActionDelivered, ActionProposed

SAME_COUNTED = 1000
RISKS = {"read": 1, "write": 1, "send": 2}
NEVER = {
    "never": "The policy “{rule}” never allows {tool}.",
    "unclear": "The policy “{rule}” can’t tell whether it is about this: what it compares can’t be read for certain.",
    "no_plan": "The policy “{rule}” asks for a plan before {tool}, and this run has recorded none.",
    "no_group": "The policy “{rule}” asks a group that is closed, so nobody may decide.",
}
RISKS_BY_CARD = {"payment": 2, "sql": 2, "command": 2}


class ApprovalGate:
    """Answers the engine's questions. Deny by default."""

    def propose(self, held: Held, proposal: Proposal) -> Answer | Refused | gates.Frozen:
        tool = proposal.tool
        what = exact.build(proposal)
        case = cases.of(held.row, tool, what, taint_of(held.row, tool))
        judgement = policy.judge(policy.rules(held.row.workspace_id) if tool.name in TOOLS else (), case)
        if judgement.rule is None:
            asked_for.note(held.row, tool.name)
            return Refused("unregistered", f"{tool.name} is not registered in this workspace.")
        if judgement.outcome == "never":
            return Refused("never", NEVER[judgement.why].format(rule=judgement.rule.name, tool=tool.name))
        if judgement.outcome == "automatic" and (frozen := self.frozen(held, tool.name)):
            return frozen  # it would be granted at once; what a person decides on may be put up, for that grants nothing
        digest = canonical.digest(what)
        known = only(ProposedAction.objects.filter(run_id=held.row.pk, digest=digest))
        action = known or put_up(held, proposal, what, digest, judgement.rule, judgement, case=case)
        return self.answer(action.pk)

    def answer(self, action_id: UUID) -> Answer:
        actions = ProposedAction.objects.select_related("policy__group", "superseded_by", "grant")
        action = actions.get(pk=action_id)
        while action.state == "superseded" and action.superseded_by is not None:
            action = actions.get(pk=action.superseded_by_id)
        told = action.pk, action.tool, action.settled_seq or action.proposed_seq
        match action.state:
            case "waiting":
                return gates.Waiting(*told, until=action.expires_at, needs=_needed(action))
            case "approved" if taking_back.can_be_recalled(action.grant):
                return gates.Recallable(*told, until=action.grant.held_until)
            case "approved":
                return gates.Approved(*told)
            case "recalled":
                return gates.Rejected(*told, reason=taking_back.reason_of(action))
            case "rejected":
                return gates.Rejected(*told, reason=_reason(action))
            case "expired":
                return gates.Expired(*told)
            case _:
                return gates.Withdrawn(*told)

    def groups(self, action_ids: Iterable[UUID]) -> dict[UUID, gates.Group]:
        return {pk: gates.Group(*found) for pk, found in groups.of_actions(action_ids).items()}

    def proposed(self, action_id: UUID) -> Proposal:
        return proposed(action_id)

    def questions(self, action_id: UUID) -> list[gates.Question]:
        return asking.open_questions(ProposedAction.objects.select_related("run").get(pk=action_id))

    def deliver(self, held: Held, action_id: UUID) -> None:
        if Grant.objects.filter(action_id=action_id, delivered_at=None, voided_at=None).update(delivered_at=clock.now()):
            held.append(ActionDelivered(action=action_id), actor=log.ENGINE)

    def frozen(self, held: Held, tool: str) -> gates.Frozen | None:
        found = freezes.in_the_way(held.row, tool)
        return gates.Frozen(tool, found.reason, found.until) if found else None

    def withdraw(self, held: Held, action_id: UUID, *, by: Actor, reason: str) -> Answer:
        """Withdraw what waits, or whatever took its place; gives what stands then."""
        action = decisions.locked(self.answer(action_id).action_id)
        if action.state == "waiting":
            taking_back.withdraw_held(held, action, by=by, reason=reason)
        return self.answer(action.pk)

    def withdrawn(self, run_id: UUID) -> int:
        """How many of a run's actions were withdrawn because it was cancelled."""
        return ProposedAction.objects.filter(run_id=run_id, state="withdrawn", closed_why=None).count()

    def withdraw_waiting(self, held: Held, *, by: Actor, note: Payload | None) -> int:
        """Withdraw what nobody has decided on yet: its run plans anew. Gives how many."""
        return decisions.withdraw_waiting(held, by=by, note=note)

    def tell_agent_outside(self, held: Held) -> None:
        """The run that an agent outside works on waits for the next of what it has put up, or for none."""
        decisions.tell_agent_outside(held)

    def redeem(self, held: Held, action_id: UUID, *, token: int, worker: str) -> Redemption | gates.Spent | gates.NotGranted | gates.Frozen:
        return execution.redeem(held, action_id, token=token, worker=worker)

    def executed(self, held: Held, redemption: Redemption, *, result: Any, label: str, found: bool) -> int:
        return execution.executed(held, redemption, result=result, label=label, found=found)

    def failed(self, held: Held, redemption: Redemption, *, detail: str) -> int:
        return execution.failed(held, redemption, detail=detail)

    def unknown(self, held: Held, redemption: Redemption, *, reason: Any) -> int:
        return execution.unknown(held, redemption, reason=reason)

    def ask_what_became(self, held: Held, action_id: UUID) -> int:
        """Have a person say what became of an action that was redeemed and can't be looked up."""
        return execution.ask_what_became(held, action_id)

    def in_flight(self, run_id: UUID) -> list[UUID]:
        return execution.in_flight(run_id)

    def loose_ends(self, run_ids: Sequence[UUID]) -> Mapping[UUID, list[gates.LooseEnd]]:
        return execution.loose_ends(run_ids)

    def unknown_in(self) -> QuerySet[Any]:
        """The ids of the runs in which something was done of which nobody knows what became."""
        return Grant.objects.filter(outcome="unknown").values("action__run_id")

    def withdraw_open(self, held: Held, *, reason: Any) -> int:
        return decisions.withdraw_open(held, reason=reason)


def register() -> None:
    """At start-up: from now on effects pass here, and a run does not end with one in flight."""
    gates.register(ApprovalGate())
    if refuse_ending not in log.ending_guards:
        log.ending_guards.append(refuse_ending)


def refuse_ending(held: Held) -> None:
    """A run can't end while an action is redeemed and its outcome is not known."""
    if execution.in_flight(held.row.pk):
        raise InFlight


def proposed(action_id: UUID) -> Proposal:
    """What was proposed, to propose it anew, or edited."""
    action = ProposedAction.objects.select_related("reason__key").get(pk=action_id)
    what = exact.read(action)
    payloads = {str(payload.pk): payload for payload in Payload.objects.select_related("key").filter(pk__in=action.attachments)}
    files = [Attached(a.name, a.media_type, payloads[pk]) for a, pk in zip(what.attachments, action.attachments, strict=True)]
    reason = (vault.opened(action.reason) or b"").decode() if action.reason else ""
    return Proposal(TOOLS[action.tool], what.arguments, action.step, what.nonce, files, reason)


def taint_of(run: Run, tool: Tool) -> Taint:
    """What the run has read so far, from its log, and this tool would read, and whether it sends. An agent outside reads unseen: both.

    What one run of a family has read, each of them has: a child is given words of its parent, and a parent those of its child. What was
    forked from a run has read what that has.
    """
    if not run.workflow:
        return Taint(True, True, tool.sends_out)
    used = [tool, *(TOOLS[name] for name in family.tools_used(run) if name in TOOLS)]  # itself too: it may read and send in one call
    return Taint(any(t.reads_private for t in used), any(t.reads_untrusted for t in used), tool.sends_out)


def put_up(
    held: Held,
    proposal: Proposal,
    what: CanonicalAction,
    digest: str,
    rule: Policy,
    judgement: Judgement,
    *,
    case: Case,
    editor: Actor | None = None,
) -> ProposedAction:
    """Keep the exact action and say so in the log. A rule or a standing grant lets it go at once, unless a person edited it."""
    found = standing_grants.covering(held.row, judgement, case) if editor is None else []
    if judgement.outcome == "automatic" or found:
        limits.hold(held.row.workspace_id, proposal.tool, rule)  # first: what is granted at once is counted with all that is by now
    with redaction_policies.about(ActionProposed.type, proposal.tool.name):
        action = _kept(held, proposal, what, digest, rule)
    action.editor_id, action.judged_on = editor.user_id if editor else None, cases.kept(case)
    automatic = judgement.outcome == "automatic" and not action.locked and editor is None and not limits.beyond_rule(rule, what)
    used = standing_grants.spend(found, action, what)
    needs = 0 if automatic or used else max(judgement.needs, rule.needs)
    texts = {"subject": action.subject, "canonical": action.canonical} | ({"reason": action.reason} if action.reason else {})
    texts |= looked.kept(held.row.workspace_id, proposal.looked, label=_at_least_personal(proposal.tool.label))
    by = editor or Actor("agent", str(held.row.agent_id))
    action.proposed_seq = held.append(_told(action, what, needs), actor=by, texts=texts)
    if automatic:
        action.state, action.settled_at, action.settled_seq = "approved", clock.now(), action.proposed_seq
    action.save(force_insert=True)
    if used:
        standing_grants.record(held, action, used)
    if action.state == "approved":
        grants.give(held, action, automatic=automatic)
    return action


def _kept(held: Held, proposal: Proposal, what: CanonicalAction, digest: str, rule: Policy) -> ProposedAction:
    """The action's row, not saved yet, with its bytes and words in the vault and what inspection found."""
    tool, run = proposal.tool, held.row
    warnings = inspection.inspect(what, facts=facts(run, proposal, what))
    label = _at_least_personal(tool.label)
    return ProposedAction(
        workspace_id=run.workspace_id,
        run=run,
        tool=tool.name,
        tool_schema=tool.schema_version,
        effect=tool.effect,
        card=tool.card,
        executor=tool.executor,
        digest=digest,
        sameness=exact.sameness(what, run.pk),
        canonical=vault.keep(run.workspace_id, canonical.canonical_bytes(what), label=label, media_type="application/json"),
        attachments=[str(attached.payload.pk) for attached in proposal.attachments],
        subject=vault.keep(run.workspace_id, tool.describe(proposal.arguments), label=tool.label),
        reason=vault.keep(run.workspace_id, proposal.reason, label=tool.label) if proposal.reason else None,
        step=proposal.step,
        policy=rule,
        risk=_risk(tool, warnings),
        warnings=[warning.as_json() for warning in warnings],
        locked=any(warning.severity == "lock" for warning in warnings),
        expires_at=clock.now() + rule.expires_after,
    )


def _told(action: ProposedAction, what: CanonicalAction, needs: int) -> ActionProposed:
    return ActionProposed(
        action=action.pk,
        digest=action.digest,
        tool=action.tool,
        tool_schema=action.tool_schema,
        effect=action.effect,
        executor=action.executor,
        policy=action.policy_id,
        policy_version=action.policy.version,
        needs=needs,
        until=action.expires_at,
        recipients=len(what.recipients),
        attachments=len(what.attachments),
        step=action.step or None,
    )


def facts(run: Run, proposal: Proposal, what: CanonicalAction) -> inspection.Facts:
    """What is known here: whose addresses are inside, who was written to before, and the same thing proposed before in this run."""
    workspace_id = run.workspace_id
    same = _same_before(run.pk, what)
    hosts = inspection.names_hosts(what)
    return inspection.Facts(
        internal_domains=frozenset(Workspace.objects.values_list("mail_domains", flat=True).get(pk=workspace_id)),
        known_addresses=frozenset(address for address, times in contacts.written_to(workspace_id, what.recipients).items() if times),
        known_domains=contacts.domains(workspace_id) if hosts else frozenset(),
        contents={a.payload.commitment: vault.open_bytes(a.payload) for a in proposal.attachments},
        executed_same=sum(1 for action in same if action.state == "approved" and action.grant.outcome == "executed"),
        rejected_same=sum(1 for action in same if action.state == "rejected"),
        kind=proposal.tool.card,
        dialect=proposal.tool.dialect,
        looked=proposal.looked,
        **_paid(workspace_id, proposal.tool, what),
    )


def _paid(workspace_id: UUID, tool: Tool, what: CanonicalAction) -> dict[str, Any]:
    """Of a payment, or whatever else has a limit: this limit, and what the tool paid before."""
    if tool.card != "payment" and tool.limit is None:
        return {}
    before = history.of(workspace_id, what)
    today = before.today.get(tool.limit.currency, Decimal()) if tool.limit else Decimal()
    return {"limit": tool.limit, "paid_today": today, "paid_before": before.times}


def _same_before(run_id: UUID, what: CanonicalAction) -> list[ProposedAction]:
    """Settled actions of this run that are the same but for their nonce, SAME_COUNTED at most."""
    same = exact.sameness(what, run_id)
    earlier = ProposedAction.objects.select_related("grant").filter(run_id=run_id, state__in=("approved", "rejected"))
    found = earlier.filter(sameness__in=(same, exact.NOT_KEPT), tool=what.tool).order_by("proposed_at")[:SAME_COUNTED]
    return [action for action in found if (action.sameness or _sameness(action)) == same]


def _sameness(action: ProposedAction) -> str:
    """Empty of what can't be read any more: one damaged action must not keep every later one from being proposed."""
    try:
        return exact.sameness(exact.whole(action), action.run_id)
    except Unreadable:
        return ""


def _risk(tool: Tool, warnings: Sequence[inspection.Warning]) -> int:
    grave = any(warning.severity in ("warn", "lock") for warning in warnings)
    return min(max(RISKS[tool.effect], RISKS_BY_CARD.get(tool.card, 1)) + grave, 3)


def _at_least_personal(label: str) -> str:
    return "personal" if label in ("public", "internal") else label


def _needed(action: ProposedAction) -> int:
    return max(action.policy.needs - decisions.approvals(action), 0)


def _reason(action: ProposedAction) -> str:
    """What the reviewer wrote, for the agent: in full, for it must act on it."""
    decision = Decision.objects.filter(action=action, verdict="rejected").select_related("reason__key").order_by("-decided_at").first()
    return (vault.opened(decision.reason) or b"").decode() if decision and decision.reason else ""
