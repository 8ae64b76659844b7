"""Editing: a reviewer changes what would be done.

An edit is a new action with a digest of its own, judged by its tool's rule as if the agent had proposed it, which supersedes the one that
was edited. Approvals of the old one do not count for it, and nothing of an edit is granted without a person.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from access import audit
from access.rows import only
from access.rules import Actor
from approvals import canonical, cases, decisions, edit_form, exact, gate, policy
from approvals.canonical import CanonicalAction
from approvals.errors import EditRefused, NothingChanged
from approvals.models import ProposedAction
from runs import log
from runs.engine import effects, looking
from runs.engine.gates import Proposal
from runs.engine.tools import TOOLS, Tool, ToolError
from runs.log import Held
from runs.vocabulary import ActionSuperseded

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Version:
    """What an edit would make of an action, before anything is recorded."""

    what: CanonicalAction
    digest: str


@dataclass(frozen=True)
class Edited:
    """The action that an edit made. `again`: it was made already, and this was a repeat of it."""

    action: ProposedAction
    again: bool


def form(action: ProposedAction) -> tuple[edit_form.Field, ...]:
    """A field for each argument, as proposed. EditRefused if its tool is not here any more, Unreadable if its bytes are not its own."""
    return edit_form.fields(_tool(action), exact.whole(action).arguments)


def version(action: ProposedAction, arguments: Mapping[str, Any]) -> Version:
    """The exact action with these arguments. EditRefused if they do not fit the tool; NothingChanged if they are the same."""
    wanted = _version(_proposal(action, arguments))
    if wanted.digest == action.digest:
        raise NothingChanged
    return wanted


def beyond(action: ProposedAction, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """What the action would touch with these arguments that is not in its run's scope. EditRefused if they do not fit the tool."""
    touched = _tool(action).touches(_proposal(action, arguments).arguments)
    return tuple(pk for kind, ids in touched.items() for pk in ids if pk not in action.run.scope.get(kind, ()))


def edit(action: ProposedAction, *, by: Actor, arguments: Mapping[str, Any], digest: str) -> Edited:
    """Put these arguments up for decision instead of the ones with this digest."""
    proposal = _proposal(action, arguments)
    wanted = _version(proposal)
    if first := _same_again(action, wanted.digest, by):
        return Edited(first, again=True)
    decisions.check_open(action, by, digest)  # before the outside is asked; what counts is the same under the lock
    proposal = replace(proposal, looked=looking.look(proposal.tool, proposal.arguments, run_id=action.run_id, step=proposal.step))
    with log.holding(action.run_id) as run:
        action = decisions.locked(action.pk)
        if first := _same_again(action, wanted.digest, by):
            return Edited(first, again=True)
        decisions.check_open(action, by, digest)
        newer = _put_up(run, action, by, proposal, wanted)
        seq = run.append(ActionSuperseded(action=action.pk, by=newer.pk), actor=log.ENGINE, caused_by=newer.proposed_seq)
        decisions.supersede(run, action, newer, seq=seq)
        told = {"newer": str(newer.pk), "digest": newer.digest, "seq": newer.proposed_seq}
        audit.record(by, "action_edited", workspace_id=action.workspace_id, subject=("action", action.pk), **told)
    return Edited(newer, again=False)


def may_edit(action: ProposedAction) -> bool:
    """Whether its arguments can be edited at all: the tool is loaded here and takes the schema that was proposed."""
    tool = TOOLS.get(action.tool)
    return tool is not None and tool.schema_version == action.tool_schema


def _tool(action: ProposedAction) -> Tool:
    if not may_edit(action):
        raise EditRefused("Its tool is not loaded here in the version that was proposed.")
    return TOOLS[action.tool]


def _proposal(action: ProposedAction, arguments: Mapping[str, Any]) -> Proposal:
    """What the agent proposed, with these arguments. What the tool itself fills in stays as it is."""
    tool, what = _tool(action), exact.whole(action)
    kept = {name: what.arguments[name] for name in tool.fixed if name in what.arguments}
    return replace(gate.proposed(action.pk), arguments=_checked(tool, dict(arguments) | kept, what.nonce))


def _version(proposal: Proposal) -> Version:
    try:
        what = exact.build(proposal)
        return Version(what, canonical.digest(what))
    except canonical.NotCanonical as error:
        raise EditRefused(str(error)) from error


def _checked(tool: Tool, arguments: dict[str, Any], nonce: str) -> dict[str, Any]:
    try:
        checked = tool.checked(**arguments)
        checked = tool.prepare(checked, nonce) if tool.prepare else checked
        tool.recipients(checked)
        tool.touches(checked)
        tool.describe(checked)
    except ToolError as error:
        raise EditRefused(str(error).removeprefix(f"{tool.name}: ")) from error
    except Exception as error:  # whatever the tool's own code raises over it, it can't be run like this
        logger.exception("a tool could not read an edit", extra={"tool": tool.name})
        raise EditRefused("The tool can’t read these arguments.") from error
    return checked


def _put_up(run: Held, action: ProposedAction, by: Actor, proposal: Proposal, wanted: Version) -> ProposedAction:
    tool, digest = proposal.tool, wanted.digest
    if digest == action.digest:
        raise NothingChanged
    if earlier := only(ProposedAction.objects.filter(run_id=run.row.pk, digest=digest)):
        raise EditRefused(f"This is word for word what was proposed as #{earlier.proposed_seq:,}, and that was {earlier.state}.")
    if outside := effects.outside_scope(run.row, tool, proposal.arguments):
        raise EditRefused(f"It would touch {outside}, outside this run’s scope.")
    case = cases.of(run.row, tool, wanted.what, gate.taint_of(run.row, tool))
    judgement = policy.judge(policy.rules(run.row.workspace_id), case)
    if judgement.rule is None or judgement.outcome == "never":
        raise EditRefused("Its policy does not allow this.")
    return gate.put_up(run, proposal, wanted.what, digest, judgement.rule, judgement, case=case, editor=by)


def _same_again(action: ProposedAction, digest: str, by: Actor) -> ProposedAction | None:
    """The first of two edits that say the same: a double click, a replayed form."""
    newer = action.superseded_by
    same = newer is not None and newer.digest == digest and newer.editor_id == by.user_id
    return newer if same else None
