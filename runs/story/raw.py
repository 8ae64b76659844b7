"""One event in one sentence, as the raw log lists it: in people's words, and without its actor, who has a column of their own."""

from collections.abc import Callable, Mapping

from runs.story.arguments import short_arguments
from runs.story.course import FAILED, PARKED, QUEUED, cancelled_words, count
from runs.story.deeds import RESOLVED, UNKNOWN
from runs.story.draft import awaited, sentence
from runs.story.people import BLOCKED, BUDGETS, CHOICES, REFUSED, SIGNALS, STOPPED, amount, chosen
from runs.story.shapes import Code, Elsewhere, Rich, Step, Took, Tool, Who
from runs.story.wire import Line
from runs.story.work import TROUBLE, ended_step, model_failed, started_step, switched_model, who_answered

Tools = Mapping[str, str]  # step → the tool that it uses, as the lines around tell it


def told(line: Line, tools: Tools) -> Rich:
    """What the event says. What has no words of its own here is told by its closed template."""
    return _TELLS.get(line.type.partition(".")[0], _nothing)(line, tools) or _template(line)


def tools_of(line: Line) -> dict[str, str]:
    """The tool of the step that this event is about, if it names both."""
    step, tool = line.word("step"), line.word("tool")
    return {step: tool} if step and tool and line.type == "tool.started" else {}


def _nothing(line: Line, tools: Tools) -> Rich:
    return ()


def _template(line: Line) -> Rich:
    whole = sentence(line)
    words = "".join(part for part in whole if isinstance(part, str)).strip(" :")
    return (words[:1].upper() + words[1:] if whole and isinstance(whole[0], Who) else words,)


def _run(line: Line, tools: Tools) -> Rich:
    reason = line.word("reason")
    match line.type:
        case "run.queued":
            return (QUEUED.get(reason, "The run goes on"),)
        case "run.waiting":
            return (f"Waiting for {awaited(line.word('on'), line.moment('until'))}",)
        case "run.resumed" if reason == "lease_expired":
            return ("Its worker was lost. Another went on from the last completed step",)
        case "run.forked":
            return ("Forked from ", Elsewhere(line.word("parent"), line.word("ref"), line.count("seq")))
        case "run.parked":
            return (f"Stuck: {PARKED.get(reason, reason)}",)
        case "run.failed" if reason == "given_up":
            return ("Failed: an operator ended it",)  # undone before or not: the line alone does not tell
        case "run.failed":
            return (f"Failed: {FAILED.get(reason, reason)}",)
        case "run.compensating":
            return (f"Undoing {count(line.count('effects'), 'effect')}, the last one first",)
        case "run.cancelled":
            return (f"Cancelled. {cancelled_words(line.count('done'), line.count('undone'), line.count('withdrawn'))}",)
    return ()


def _plan(line: Line, tools: Tools) -> Rich:
    steps = count(line.count("steps"), "step")
    return (f"Plan recorded, {steps}" if line.count("version", 1) == 1 else f"Plan changed, version {line.count('version')}: {steps}",)


def _checkpoint(line: Line, tools: Tools) -> Rich:
    done, left = line.count("done"), line.count("left")
    return (f"Checkpoint: {count(done, 'step')} done, {left} left",) if done or left else ()


def _step(line: Line, tools: Tools) -> Rich:
    step = Step(line.word("step"), tools.get(line.word("step"), ""))
    attempt = line.count("attempt", 1)
    match line.type:
        case "step.started":
            return started_step(line, step)
        case "step.completed":
            return ended_step(line, step)
        case "step.failed":
            return (step, f": attempt {attempt} failed, {TROUBLE.get(line.word('error'), line.word('error'))}")
        case "step.retrying":
            return (step, f": attempt {attempt} begins in ", Took(line.count("wait_ms")))
    return ()


def _tool(line: Line, tools: Tools) -> Rich:
    tool = Tool(line.word("tool"))
    if line.type == "tool.started":
        given = next(short_arguments(line.text("arguments")), ())
        return (tool, *((", ", *given) if given else ()))
    took: Rich = (", ", Took(line.count("ms"))) if line.count("ms") >= 50 else ()  # what is less would be “0 s”
    match line.word("outcome"):
        case "ok":
            return (tool, ": answered", *took)
        case "unknown":
            return (tool, ": nobody knows whether it happened", *took)
    return (tool, f": failed, {TROUBLE.get(line.word('error'), 'it gave no answer')}", *took)


def _model(line: Line, tools: Tools) -> Rich:
    if line.type != "model.called":
        return switched_model(line)
    if line.word("error"):
        return model_failed(line)
    did = "failed to answer" if line.word("finish") == "error" else "answered"
    return (f"{who_answered(line)} {did}: ", Step(f"model.{line.word('prompt')}"))


def _action(line: Line, tools: Tools) -> Rich:
    reason = line.word("reason")
    match line.type:
        case "action.proposed":
            return ("Proposed",) if line.text("subject") else ("Proposed: ", Tool(line.word("tool")))
        case "action.decided":
            return ("Approved exactly this",) if line.word("verdict") == "approved" else ("Rejected it",)
        case "action.granted" if line.flag("automatic"):
            return ("Allowed without a person, by its policy",)
        case "action.executed" if not line.flag("ok", True):
            return ("It was not done",)
        case "action.executed":
            return ("It had happened: a look-up found it",) if line.flag("found") else ("Done",)
        case "action.unknown":
            return (f"Outcome unknown: {UNKNOWN.get(reason, reason)}",)
        case "action.resolved":
            words = RESOLVED.get(line.word("outcome"), line.word("outcome"))
            return (words[:1].upper() + words[1:],)
    return ()


def _signal(line: Line, tools: Tools) -> Rich:
    kind = SIGNALS.get(line.word("kind"), line.word("kind"))
    match line.type:
        case "signal.received":
            return (kind[:1].upper() + kind[1:],)
        case "signal.refused":
            return (f"Refused: {REFUSED.get(line.word('reason'), line.word('reason'))}",)
    return ()


def _trouble(line: Line, tools: Tools) -> Rich:
    reason = line.word("reason")
    match line.type:
        case "block.raised":
            return (STOPPED.get(reason) or BLOCKED.get(reason, "Blocked"),)
        case "deadletter.entered":
            return (f"Failed for good: {TROUBLE.get(reason, reason)}",)
        case "deadletter.resolved":
            choice = CHOICES.get(line.word("choice"), line.word("choice"))
            return (choice[:1].upper() + choice[1:], *chosen(line))
    return ()


def _budget(line: Line, tools: Tools) -> Rich:
    if line.type not in ("budget.warned", "budget.exceeded"):
        return ()
    name = line.word("budget")
    used, limit = amount(name, line.count("used")), amount(name, line.count("limit"))
    word = BUDGETS.get(name, name)
    return (f"{'Over the' if line.type == 'budget.exceeded' else 'Near the'} limit of {word}: {used} of {limit}",)


def _effect(line: Line, tools: Tools) -> Rich:
    match line.type:
        case "effect.done":
            return ("Done outside",) if line.text("subject") else ("Done outside: ", Tool(line.word("tool")))
        case "effect.undone":
            return ("Undone: ", Code(line.word("key")))
        case "effect.undo_failed":
            why = TROUBLE.get(line.word("reason"), line.word("reason"))
            return ("Could not be undone: ", Code(line.word("key")), f", {why}")
    return ()


_TELLS: Mapping[str, Callable[[Line, Tools], Rich]] = {
    "run": _run,
    "plan": _plan,
    "checkpoint": _checkpoint,
    "step": _step,
    "tool": _tool,
    "model": _model,
    "action": _action,
    "signal": _signal,
    "block": _trouble,
    "deadletter": _trouble,
    "budget": _budget,
    "effect": _effect,
}
