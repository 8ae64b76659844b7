"""Trying one action: what it would need now, who could decide, and what the rules would say without the one that matched.

Nothing is run, kept or counted. It asks what the gate asks, in the same order and of the same files, about a run that is only imagined; so
whatever depends on one run alone is not known here: its scope, what was proposed in it before, and what a tool would look up outside.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from access import rules
from access.errors import BadInput
from access.ids import uuid7
from access.models import Agent, User
from approvals import canonical, cases, conditions, decisions, exact, freezes, gate, inspection, limits, policy, standing_grants, trying
from approvals.canonical import CanonicalAction
from approvals.conditions import Case, Taint
from approvals.models import Policy, ProposedAction
from approvals.policy import Judgement
from config import clock
from runs.engine.gates import Proposal
from runs.engine.tools import TOOLS, InvalidArguments, Tool
from runs.models import Run

Outcome = Literal["refused", "frozen", "automatic", "covered", "reviewers"]
AFFECTED = timedelta(days=7)
PATTERN = re.compile(r"String should match pattern '.*?'(?=;|$)")


class CantTry(BadInput):
    """This can't be tried."""

    what_next = "Nothing was run. Mend what is said here."


@dataclass(frozen=True)
class Wanted:
    """What is to be tried. `read_private`, `read_untrusted`: what the run has read before; the tool's own reading comes to it."""

    agent: Agent
    tool: str
    arguments: Mapping[str, Any]
    read_private: bool = False
    read_untrusted: bool = False
    planned: bool = True
    owner: User | None = None  # of the run; the agent's, if nobody is named
    past: ProposedAction | None = None  # whose arguments and files these are


@dataclass(frozen=True)
class Traced:
    """One rule on the way, and what it said: matched | unclear | reached (it did not match) | later (it would) | passed (it would not)."""

    rule: Policy
    said: Literal["matched", "unclear", "reached", "later", "passed"]


@dataclass(frozen=True)
class Without:
    """What would be so without the rule that matched. `affected`: how many actions of the last days it would have changed."""

    rule: Policy
    judgement: Judgement
    affected: int


@dataclass(frozen=True)
class Simulated:
    """What the action would meet now. `why`: a whole sentence. `locks`: why it could not be approved, whoever decides."""

    outcome: Outcome
    needs: int = 0
    rule: Policy | None = None
    why: str = ""
    tainted: bool = False
    locks: tuple[str, ...] = ()
    warnings: int = 0
    able: tuple[User, ...] = ()
    unable: tuple[tuple[User, str], ...] = ()
    trace: tuple[Traced, ...] = ()
    asked: tuple[tuple[Policy, ...], Case] | None = None  # which rules were asked, about what


def simulate(wanted: Wanted) -> Simulated:
    """Ask the rules in force about it. CantTry if its arguments are not those of the tool."""
    tool = TOOLS.get(wanted.tool)
    if tool is None:
        return Simulated("refused", why=f"{wanted.tool} is not registered in this workspace.")
    run, proposal = _imagined(wanted), _proposal(wanted, tool)
    what = _exact(proposal)
    case = cases.of(run, tool, what, _taint(wanted, tool))
    current = policy.rules(run.workspace_id)
    judgement = policy.judge(current, case)
    found = _asked(run, proposal, what, case, judgement)
    trace = tuple(_traced(current, case, judgement))
    return Simulated(**found, rule=judgement.rule, trace=trace, asked=(tuple(current), case))


def without(found: Simulated) -> Without | None:
    """The rules without the one that matched, asked about this and about what was proposed in the last days. Three queries at most."""
    if found.rule is None or found.asked is None:
        return None
    current, case = found.asked
    rest = [rule for rule in current if rule is not found.rule]
    return Without(found.rule, policy.judge(rest, case), _affected(found.rule, current, rest))


def _asked(run: Run, proposal: Proposal, what: CanonicalAction, case: Case, judgement: Judgement) -> dict[str, Any]:
    """As `gate.propose` and `gate.put_up` go on from a judgement."""
    rule, tool = judgement.rule, proposal.tool
    if rule is None:
        return {"outcome": "refused", "why": f"No rule covers {tool.title}, so it is refused."}
    if judgement.outcome == "never":
        return {"outcome": "refused", "why": gate.NEVER[judgement.why].format(rule=rule.name, tool=tool.name)}
    frozen = freezes.of(run.workspace_id, run.agent_id, tool.name)
    if judgement.outcome == "automatic" and frozen:
        return {"outcome": "frozen", "why": freezes.sentence(frozen)}
    action = _as_put_up(run, proposal, what, rule)
    told = {"locks": _locks(action), "warnings": len(action.warnings), "tainted": judgement.because_tainted}
    if judgement.outcome == "automatic" and not action.locked and not (beyond := limits.beyond_rule(rule, what)):
        return told | {"outcome": "automatic", "why": "It would be granted at once, and nobody is asked."}
    covering = [] if frozen else standing_grants.covering(run, judgement, case)
    if covered := next(standing_grants.fit(covering, action, what), None):
        return told | {"outcome": "covered", "why": f"A standing grant of {covered.owner.name} covers it, so nobody is asked now."}
    needs = max(judgement.needs, rule.needs)
    why = _why_a_person(judgement, action, beyond if judgement.outcome == "automatic" and not action.locked else "")
    if frozen:
        why = f"{why} {freezes.sentence(frozen)} Until that ends nobody can approve it.".strip()
    able = decisions.who_may(action)
    return told | {"outcome": "reviewers", "needs": needs, "why": why, "able": tuple(able), "unable": tuple(_unable(action, able))}


def _imagined(wanted: Wanted) -> Run:
    """The run in which it would be proposed. Never saved."""
    agent = wanted.agent
    past = wanted.past.run if wanted.past else None
    starter = {"starter_kind": past.starter_kind, "starter_id": past.starter_id} if past else {"starter_kind": "system", "starter_id": ""}
    owner = wanted.owner or (past.owner if past else agent.owner)
    team = past.team_id if past else agent.team_id
    return Run(
        workspace_id=agent.workspace_id, team_id=team, agent=agent, owner=owner, plans=int(wanted.planned), workflow="imagined", **starter
    )


def _proposal(wanted: Wanted, tool: Tool) -> Proposal:
    nonce = str(uuid7())
    if wanted.past is not None:
        return gate.proposed(wanted.past.pk)
    if odd := sorted(wanted.arguments.keys() - tool.arguments.model_fields.keys()):
        raise CantTry(f"{tool.title} takes no “{odd[0][:40]}”.")
    try:
        complete = tool.checked(**wanted.arguments)
    except InvalidArguments as error:
        # who tries is no program: a regular expression says nothing to them
        wrong = PATTERN.sub("not in the form that it takes", str(error).removeprefix(f"{tool.name}: "))
        raise CantTry(f"These are not its arguments. {wrong}.") from None
    return Proposal(tool, tool.prepare(complete, nonce) if tool.prepare else complete, "", nonce)


def _exact(proposal: Proposal) -> CanonicalAction:
    try:
        return exact.build(proposal)
    except canonical.NotCanonical as error:
        raise CantTry(str(error)) from None


def _taint(wanted: Wanted, tool: Tool) -> Taint:
    return Taint(wanted.read_private or tool.reads_private, wanted.read_untrusted or tool.reads_untrusted, tool.sends_out)


def _as_put_up(run: Run, proposal: Proposal, what: CanonicalAction, rule: Policy) -> ProposedAction:
    """The action's row as it would be. Never saved."""
    warnings = inspection.inspect(what, facts=gate.facts(run, proposal, what))
    return ProposedAction(
        workspace_id=run.workspace_id,
        run=run,
        tool=proposal.tool.name,
        policy=rule,
        warnings=[warning.as_json() for warning in warnings],
        locked=any(warning.severity == inspection.LOCK for warning in warnings),
        judged_on={},
    )


def _locks(action: ProposedAction) -> tuple[str, ...]:
    said = [inspection.words(each["code"], each["params"]) for each in action.warnings if each["severity"] == inspection.LOCK]
    return tuple(dict.fromkeys(f"{each.strong} {each.text}".strip() for each in said))


def _why_a_person(judgement: Judgement, action: ProposedAction, beyond: str) -> str:
    if judgement.because_tainted:
        return "The run has read private data and outside text, and this would send: a person decides, whatever the rule says."
    if judgement.outcome == "automatic" and action.locked:
        return "The rule asks nobody, but there is a warning that a person must look at."
    return f"{beyond} So a person decides." if beyond else ""


def _unable(action: ProposedAction, able: Sequence[User]) -> list[tuple[User, str]]:
    """Who may decide in general, and on this could not; and why."""
    run, group = action.run, action.policy.group
    others = [user for user in rules.holders(action.workspace_id, "approvals.decide", run.team_id) if user not in able]
    return [(user, _part(run, user) or f"{group.name if group else 'the group'} decides, and they are not in it") for user in others]


def _part(run: Run, user: User) -> str:
    if user.pk == run.agent.owner_id:
        return "they own the agent"
    if user.pk == run.owner_id:
        return "they own the run"
    return "they started the run" if run.starter_kind == "human" and run.starter_id == str(user.pk) else ""


def _traced(current: Sequence[Policy], case: Case, judgement: Judgement) -> list[Traced]:
    """The rules of this tool, in their order."""
    found: list[Traced] = []
    reached = True
    for rule in current:
        if rule.tool not in ("", case.tool):
            continue
        holds = conditions.all_hold(rule.conditions, case)
        if reached and judgement.rule is rule:
            found.append(Traced(rule, "matched" if holds == "yes" else "unclear"))
            reached = False
        else:
            found.append(Traced(rule, "reached" if reached else "passed" if holds == "no" else "later"))
    return found


def _affected(rule: Policy, current: Sequence[Policy], rest: Sequence[Policy]) -> int:
    since = clock.now() - AFFECTED
    actions = [each for each in trying.last(rule.workspace_id, rule.tool) if each.proposed_at >= since]
    known = cases.read(actions, arguments=trying.asks_arguments(current))
    return sum(trying.said(policy.judge(current, case)) != trying.said(policy.judge(rest, case)) for case in known.values())
