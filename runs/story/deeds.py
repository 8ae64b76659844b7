"""How exact actions and their effects outside are told, from the proposal to what can be undone."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runs.story.arguments import amounts, scalars
from runs.story.course import count
from runs.story.draft import Draft, milliseconds, tells
from runs.story.shapes import Action, At, Code, Effect, Moment, Rich, Text, Took, Tool, Who
from runs.story.wire import Line, object_of, spoken
from runs.story.work import TROUBLE

UNKNOWN = {
    "worker_lost": "its worker was lost in the middle of it",
    "deadline": "no answer came within its deadline",
    "dropped": "the connection broke before the answer came",
    "silent": "the agent never said what became of it",
}
RESOLVED = {
    "happened": "said that it happened",
    "did_not_happen": "said that it did not happen",
    "look_again": "had it looked up again",
}
AGENT_SAYS: Rich = ("The agent says so.",)
SHOWN = ("to", "cc", "bcc", "subject")  # the fields of a message that stand on its proposal


@tells("action.proposed")
def proposed(draft: Draft, line: Line) -> None:
    subject, tool = line.text("subject"), line.word("tool")
    action = Action(
        line.word("action"),
        line.seq,
        tool,
        line.word("effect"),
        subject,
        line.word("digest"),
        "proposed",
        line.count("needs"),
        line.moment("until"),
        line.at,
        executor=line.word("executor"),
    )
    draft.actions[action.id] = action
    draft.amounts[action.id] = amounts(_arguments(line))
    draft.here.asked = action.id
    reason = line.text("reason")
    _say_once(draft, reason)
    _replace_rejected(draft, line)
    unseen: Rich = ("Run by the agent; Handrail cannot see the call.",) if line.word("executor") == "agent" else ()
    row = draft.add(
        line,
        "proposal",
        (line.who, " put up an edit: ", subject or Tool(tool)) if line.who.kind == "human" else ("Proposed: ", subject or Tool(tool)),
        icon="mail" if action.effect == "send" else "tool",
        lines=tuple(each for each in ((reason,) if reason else (), unseen) if each),
        facts=proposal_facts(line),
        action=action.id,
        digest=action.digest,
        state="waiting",
        quiet=action.needs == 0,
    )
    draft.proposals[action.id] = row.first


def _replace_rejected(draft: Draft, line: Line) -> None:
    """What was rejected and is put to people anew needs no card any more: it tells its reason to who opens it."""
    for action in reversed(draft.actions.values()):
        row = draft.rows.get(draft.proposals.get(action.id, 0))
        if action.tool == line.word("tool") and action.state == "rejected" and row is not None and row.facts:
            told: Rich = ("Rejected at ", At(action.decided_seq), ", replaced by ", At(line.seq), ".")
            reasons = row.lines[:-1]
            draft.change(row.first, facts=(), lines=(told,), more="Its reason" if reasons else "", folded=reasons)
            return


def _say_once(draft: Draft, reason: Text | None) -> None:
    """A reason that the last milestone gave as well stands on the proposal alone."""
    row, said = draft.milestone
    if reason is not None and said is not None and said.text == reason.text:
        cites = draft.rows[row].lines[0][2:]
        draft.change(row, lines=(cites,) if cites else ())
        draft.milestone = 0, None


def proposal_facts(line: Line) -> tuple[tuple[str, Rich], ...]:
    """What a proposal's card says: the recipients and the short arguments of the canonical action's rendition."""
    canonical, arguments = line.text("canonical"), _arguments(line)
    label = canonical.label if canonical else ""
    given = dict(scalars(arguments, label))
    facts: list[tuple[str, Rich]] = []
    for name in SHOWN:
        value = arguments.get(name)
        if isinstance(value, list) and value:
            facts.append((spoken(name), (Text(", ".join(map(str, value)), label),)))
        elif name in given and given[name].text:
            facts.append((spoken(name), (given[name],)))
    if not facts:
        facts = [(spoken(name), (value,)) for name, value in list(given.items())[:4] if len(value.text) <= 120]
    if attached := line.count("attachments"):
        facts.append(("With", (count(attached, "attachment"),)))
    return tuple(facts)


def _arguments(line: Line) -> Mapping[str, Any]:
    given = object_of(line.text("canonical")).get("arguments")
    return given if isinstance(given, dict) else {}


def _become(draft: Draft, line: Line, state: str, **fields: Any) -> Action | None:
    """The action this event is about, in its new state; None if the log never proposed it."""
    known = draft.actions.get(line.word("action"))
    if known is None:
        return None
    draft.actions[known.id] = replace(known, state=state, **fields)
    return draft.actions[known.id]


def _settle(draft: Draft, line: Line, *told: Any, card: bool = True) -> None:
    """The proposal no longer waits. `card=False`: it became void, so its card goes."""
    row = draft.proposals.get(line.word("action"))
    fields: dict[str, Any] = {"state": ""} if card else {"state": "", "facts": ()}
    if not card and row in draft.rows and draft.rows[row].lines:  # what is void tells its reason to who opens it
        fields |= {"lines": (), "more": "Its reason", "folded": draft.rows[row].lines}
    draft.change(row, **fields)
    if told:
        draft.also(row, *told)
    for name, block in list(draft.blocks.items()):
        if block in draft.rows and draft.rows[block].action == line.word("action"):
            clear_block(draft, line, name)


def clear_block(draft: Draft, line: Line, name: str) -> None:
    """A block stops being amber; it stays in the story as something that was, with how long it was."""
    row = draft.blocks.pop(name, None)
    if row in draft.rows and draft.rows[row].kind == "block":
        was = draft.rows[row]
        first = was.title[0] if was.title and isinstance(was.title[0], str) else ""
        title = ("Was blocked for ", Took(milliseconds(was.at, line.at)), first.removeprefix("Blocked"), *was.title[1:])
        draft.change(row, kind="state", icon="", state="", minor=True, title=title, lines=())


@tells("action.superseded")
def superseded(draft: Draft, line: Line) -> None:
    _become(draft, line, "superseded")
    newer = draft.actions.get(line.word("by"))
    by: Rich = (", replaced by ", At(newer.seq)) if newer else (", replaced by a newer one",)
    _settle(draft, line, _short(draft, line), *by, card=False)
    draft.plain(line)


def _short(draft: Draft, line: Line) -> Any:
    action = draft.actions.get(line.word("action"))
    return Code(f"{action.digest[:4]} {action.digest[4:8]}" if action else "–")


@tells("action.withdrawn")
def withdrawn(draft: Draft, line: Line) -> None:
    _become(draft, line, "withdrawn")
    reason = {"agent": "by the agent", "cancelled": "because the run was cancelled"}
    reason |= {"ended": "because the run ended", "revised": "for a change of plan"}
    words = reason.get(line.word("reason"), "")
    _settle(draft, line, "Withdrawn at ", At(line.seq), f" {words}.", card=False)
    said = None if line.word("reason") == "revised" else line.text("reason")  # who asked for another plan has said why, right above
    draft.add(line, "state", (f"The request was withdrawn {words}".strip(),), icon="stop", said=said)


@tells("action.expired")
def expired(draft: Draft, line: Line) -> None:
    _become(draft, line, "expired")
    _settle(draft, line, "Expired at ", At(line.seq), ".", card=False)
    draft.add(line, "state", ("Nobody decided in time. Nothing was done",), icon="stop")


@tells("action.decided")
def decided(draft: Draft, line: Line) -> None:
    approved = line.word("verdict") == "approved"
    known = draft.actions.get(line.word("action"))
    deciders = (*(known.deciders if known else ()), line.who.id)
    _become(draft, line, "approved" if approved else "rejected", decided_at=line.at, decided_seq=line.seq, deciders=deciders)
    draft.deciders[line.word("action")] = (line.who, " at ", At(line.seq))
    digest = line.word("digest")
    same = draft.actions.get(line.word("action"))
    below: tuple[Rich, ...] = (("Digest ", Code(f"{digest[:4]} {digest[4:8]} {digest[8:12]}"), "."),) if digest else ()
    if same and same.digest != digest:
        below = (("This is not the digest that was proposed.",),)
    row = draft.add(
        line,
        "decision",
        (line.who, " approved exactly this" if approved else " rejected it"),
        icon="person",
        lines=below,
        said=line.text("reason"),
    )
    draft.decisions[line.word("action")] = row.first
    if not approved:
        draft.rejections[line.word("action")] = line.who, line.text("reason")
        _settle(draft, line, "Rejected at ", At(line.seq), f", so nothing was {'sent' if same and same.effect == 'send' else 'done'}.")
    elif same is None or same.needs <= 1:
        _settle(draft, line)


@tells("action.recalled")
def recalled(draft: Draft, line: Line) -> None:
    same = _become(draft, line, "recalled")
    nothing = f", so nothing was {'sent' if same and same.effect == 'send' else 'done'}."
    _settle(draft, line, "Recalled at ", At(line.seq), nothing, card=False)
    draft.add(line, "decision", (line.who, " recalled the approval"), icon="undo", state="undone", said=line.text("reason"))


@tells("action.escalated", "action.delegated")
def passed_on(draft: Draft, line: Line) -> None:
    to = Who("human", line.word("to"))
    title: Rich = (line.who, " handed it to ", to) if line.type == "action.delegated" else ("Nobody answered, so it went to ", to)
    draft.add(line, "decision", title, icon="person")


@tells("action.covered")
def covered(draft: Draft, line: Line) -> None:
    owner = Who("human", line.word("owner"))
    _become(draft, line, "approved", decided_at=line.at, decided_seq=line.seq)
    draft.deciders[line.word("action")] = ("a standing grant of ", owner, " at ", At(line.seq))
    draft.add(line, "decision", ("Approved by a standing grant of ", owner), icon="person", state="done")


@tells("action.granted")
def granted(draft: Draft, line: Line) -> None:
    _become(draft, line, "granted")
    draft.grants.add(line.word("grant"))
    if line.flag("automatic"):
        draft.automatic.add(line.word("action"))
    _settle(draft, line)
    until = line.moment("until")
    words = "Allowed without a person, by its policy" if line.flag("automatic") else "Granted, good for one use"
    row = draft.add(line, "state", (words, *((", until ", Moment(until)) if until else ())), quiet=True)
    draft.silent_grant = row.first if line.flag("automatic") else 0


@tells("action.delivered")
def delivered(draft: Draft, line: Line) -> None:
    known = draft.actions.get(line.word("action"))
    if known and known.state == "granted":
        _become(draft, line, "delivered")
    draft.plain(line)


@tells("action.redeemed")
def redeemed(draft: Draft, line: Line) -> None:
    action = _become(draft, line, "redeemed")
    draft.doing = ("Doing it now: ", action.subject or Tool(action.tool)) if action else ()
    draft.redeemed = action.tool if action else ""
    draft.plain(line)


@tells("action.executed")
def executed(draft: Draft, line: Line) -> None:
    action = _become(draft, line, "executed" if line.flag("ok", True) else "refused")
    draft.doing = ()
    clear_block(draft, line, f"unknown:{line.word('action')}")
    if not line.flag("ok", True):
        draft.add(
            line,
            "effect",
            ("It was not done: ", (action.subject if action else None) or "the outside refused it"),
            icon="fail",
            state="failed",
        )
    elif line.flag("found"):
        draft.add(line, "state", ("It had happened: a look-up found it",), icon="search")
    else:
        draft.plain(line)


@tells("action.verified")
def verified(draft: Draft, line: Line) -> None:
    _become(draft, line, "verified")
    how = "the outside was asked" if line.word("how") == "look_up" else "the digests are the same"
    if line.word("action") not in draft.automatic:  # of what nobody was asked about it is no comfort
        draft.verified[line.word("action")] = ("What ran is what was approved: ", how, ", ", At(line.seq), ".")
        draft.also(draft.effect_rows.get(line.word("action")), *draft.verified[line.word("action")])
    draft.plain(line)


@tells("action.unknown")
def unknown(draft: Draft, line: Line) -> None:
    action = _become(draft, line, "unknown")
    draft.doing = ()
    why = UNKNOWN.get(line.word("reason"), line.word("reason"))
    below: Rich = (action.subject, ". ") if action and action.subject else ()
    lines = ((*below, "Handrail does not repeat it before somebody knows."),)
    row = draft.add(
        line, "block", ("Blocked: outcome unknown, ", why), icon="wait", state="waiting", lines=lines, action=line.word("action")
    )
    draft.blocks[f"unknown:{line.word('action')}"] = row.first


@tells("action.resolved")
def resolved(draft: Draft, line: Line) -> None:
    outcome = line.word("outcome")
    state = {"happened": "executed", "did_not_happen": "refused"}.get(outcome, "unknown")
    _become(draft, line, state)
    if outcome != "look_again":
        clear_block(draft, line, f"unknown:{line.word('action')}")
    reference = line.text("reference")
    lines: tuple[Rich, ...] = (("Reference ", reference),) if reference else ()
    draft.add(line, "decision", (line.who, f" {RESOLVED.get(outcome, outcome)}"), icon="person", said=line.text("note"), lines=lines)


@tells("effect.done")
def effect_done(draft: Draft, line: Line) -> None:
    action, key, tool = line.word("action"), line.word("key"), line.word("tool")
    subject = line.text("subject") or (draft.actions[action].subject if action in draft.actions else None)
    known = draft.actions.get(action)
    earlier = draft.is_fork and bool(action) and key not in draft.grants
    more = {"action": action, "effect": known.effect if known else "", "earlier": earlier}
    effect = Effect(line.seq, tool, key, subject, "done", line.flag("can_undo"), **more)
    draft.effects[key] = effect
    undo: Rich = ("Key ", Code(effect.spelled_key), ". ", *effect.told) if effect.spelled_key else effect.told
    said: Rich = AGENT_SAYS if line.who.kind == "agent" else ()
    lines = tuple(each for each in (_allowed(draft, action), undo, draft.verified.get(action, ()), said) if each)
    of = {"tool": tool, "amounts": draft.amounts.get(action, ()), "earlier": earlier}
    row = draft.add(line, "effect", (subject or Tool(tool),), icon="out", state="done", lines=lines, **of)
    draft.effect_rows[key] = row.first
    if action:
        draft.effect_rows[action] = row.first


def _allowed(draft: Draft, action: str) -> Rich:
    if action in draft.automatic:
        return ("Allowed without a person, by its policy.",)
    by = draft.deciders.get(action)
    return ("Approved by ", *by, ".") if by else ()


@tells("effect.undone")
def effect_undone(draft: Draft, line: Line) -> None:
    key = line.word("key")
    if key in draft.effects:
        draft.effects[key] = replace(draft.effects[key], state="undone", undone_seq=line.seq)
    row = draft.effect_rows.get(key)
    draft.change(row, state="undone", icon="undo")
    draft.also(row, "Undone at ", At(line.seq), ".")
    subject = draft.effects[key].subject if key in draft.effects else None
    draft.add(line, "state", ("Undone: ", subject) if subject else ("Undid ", Code(key)), icon="undo", state="undone")


@tells("effect.undo_failed")
def undo_failed(draft: Draft, line: Line) -> None:
    key = line.word("key")
    if key in draft.effects:
        draft.effects[key] = replace(draft.effects[key], state="failed", undone_seq=line.seq)
    why = TROUBLE.get(line.word("reason"), line.word("reason"))
    subject = draft.effects[key].subject if key in draft.effects else None
    draft.add(line, "effect", ("Could not be undone: ", subject or Code(key)), icon="fail", state="failed", lines=((f"Because {why}.",),))
