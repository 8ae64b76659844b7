"""How signals, questions, blocks, budgets and dead letters are told."""

from runs.story.deeds import clear_block
from runs.story.draft import Draft, tells
from runs.story.shapes import At, Code, Moment, Rich, Step, Who
from runs.story.wire import Line
from runs.story.work import TROUBLE, cited

SIGNALS = {
    "cancel": "asked to cancel the run",
    "pause": "asked to pause the run",
    "resume": "asked to go on",
    "revise": "asked for a change of plan",
    "context": "added context",
}
REFUSED = {
    "not_yet": "Handrail can’t do that yet",
    "not_in_this_state": "the run was in no state for it",
    "invalid": "it was not valid",
    "not_supported": "its workflow takes no such signal",
    "too_many": "the agent has not read the ones before it",
    "never_read": "the run ended before the agent came to read it",
}
BLOCKED = {
    "decision": "Blocked: needs a decision",
    "answer": "Blocked: needs an answer",
    "access": "Blocked: needs access it does not have",
    "frozen": "Blocked: this is frozen",
    "other": "Blocked",
}
STOPPED = {
    "unregistered": "Refused: nobody has registered this tool",
    "never": "Refused: the policy never allows this",
    "out_of_scope": "Refused: this is outside the run’s scope",
    "digest_mismatch": "Refused: what was about to run is not what was approved",
}
BUDGETS = {"tokens": "tokens", "cost_micro": "cost", "working_ms": "working time", "steps": "steps"}
CHOICES = {
    "retry": "chose to try again",
    "compensate": "chose to undo what was done",
    "hand_over": "handed it to ",
    "give_up": "gave it up",
}


@tells("signal.received")
def received(draft: Draft, line: Line) -> None:
    kind = line.word("kind")
    row = draft.add(line, "signal", (line.who, f" {SIGNALS.get(kind, kind)}"), icon="person", said=line.text("note"))
    draft.signals[line.word("signal")] = row.first


@tells("signal.applied")
def applied(draft: Draft, line: Line) -> None:
    draft.also(draft.signals.get(line.word("signal")), "Taken up at ", At(line.seq), ".")
    draft.plain(line)


@tells("signal.refused")
def refused(draft: Draft, line: Line) -> None:
    why = REFUSED.get(line.word("reason"), line.word("reason"))
    known = draft.signals.get(line.word("signal"))
    draft.also(known, "Refused at ", At(line.seq), f": {why}.")
    draft.add(line, "signal", (f"A signal was refused: {why}",), icon="stop", quiet=known is not None)


@tells("question.asked")
def asked(draft: Draft, line: Line) -> None:
    draft.add(line, "signal", (line.who, " asked"), icon="ask", said=line.text("question"))


@tells("question.answered")
def answered(draft: Draft, line: Line) -> None:
    cites = cited(line.seqs("cites"))
    draft.add(line, "signal", (line.who, " answered"), icon="ask", said=line.text("answer"), lines=(cites,) if cites else ())


@tells("block.raised")
def raised(draft: Draft, line: Line) -> None:
    reason, detail, action = line.word("reason"), line.text("detail"), line.word("action")
    lines: list[Rich] = [(detail,)] if detail else []
    if reason in STOPPED:
        draft.add(line, "block", (STOPPED[reason],), icon="fail", state="failed", lines=tuple(lines), action=action)
        return
    until = draft.actions[action].until if action in draft.actions else None
    if until:
        lines.append(("Expires ", Moment(until), "."))
    row = draft.add(line, "block", (BLOCKED.get(reason, "Blocked"),), icon="wait", state="waiting", lines=tuple(lines), action=action)
    draft.blocks[line.word("block")] = row.first


@tells("block.cleared")
def cleared(draft: Draft, line: Line) -> None:
    clear_block(draft, line, line.word("block"))
    draft.plain(line)


@tells("budget.warned", "budget.exceeded")
def budget(draft: Draft, line: Line) -> None:
    name, over = line.word("budget"), line.type == "budget.exceeded"
    used, limit = amount(name, line.count("used")), amount(name, line.count("limit"))
    word = BUDGETS.get(name, name)
    title = f"Over the limit of {word}: {used} of {limit}" if over else f"The limit of {word} is near: {used} of {limit}"
    if over:
        draft.spent = (f"It has used {used} of {limit} {word}." if name in ("tokens", "steps") else f"It has used {used} of {limit}.",)
    draft.add(line, "block" if over else "state", (title,), icon="warn", state="failed" if over else "waiting")


@tells("budget.changed")
def budget_changed(draft: Draft, line: Line) -> None:
    limits = [f"{BUDGETS[name]} {amount(name, line.count(name))}" for name in BUDGETS if line.count(name)]
    lines: tuple[Rich, ...] = ((f"Now: {', '.join(limits)}." if limits else "It has none now.",),)
    draft.add(line, "decision", (line.who, " set the limits of the run"), icon="person", said=line.text("note"), lines=lines)


def amount(budget: str, number: int) -> str:
    """A number of a budget for people: €1.92, 11 min, 184,000."""
    if budget == "cost_micro":
        return f"€{number / 1_000_000:,.2f}"
    if budget == "working_ms":
        return f"{number / 60_000:,.0f} min" if number >= 60_000 else f"{number / 1000:,.0f} s"
    return f"{number:,}"


@tells("deadletter.entered")
def dead_letter(draft: Draft, line: Line) -> None:
    detail = line.text("detail")
    why = TROUBLE.get(line.word("reason"), line.word("reason"))
    draft.add(line, "block", (f"Failed for good: {why}",), icon="fail", state="failed", lines=((detail,),) if detail else ())


@tells("deadletter.resolved")
def dead_letter_resolved(draft: Draft, line: Line) -> None:
    choice = line.word("choice")
    title = (line.who, f" {CHOICES.get(choice, choice)}", *chosen(line))
    draft.add(line, "decision", title, icon="person", said=line.text("note"))


def chosen(line: Line) -> Rich:
    """To whom a stuck run was handed, or from where it is tried again."""
    to: Rich = (Who("human", line.word("to")),) if line.word("to") else ()
    return (*to, *((", from “", Step(line.word("step")), "” on") if line.word("step") else ()))


@tells("webhook.received")
def webhook(draft: Draft, line: Line) -> None:
    draft.add(line, "state", ("A webhook came from ", Code(line.word("source"))))
