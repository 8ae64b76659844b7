"""How the agent's work is told: plans, steps, tools, models, milestones, checkpoints, reports."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from runs import vocabulary
from runs.story.arguments import amounts, short_arguments
from runs.story.course import count
from runs.story.draft import Draft, tells
from runs.story.shapes import At, Changed, Code, Item, Part, Rich, Step, Tag, Text, Took, Tool, Try
from runs.story.wire import Line, object_of, spoken

TROUBLE = {
    "timeout": "no answer in time",
    "refused": "it was refused",
    "unavailable": "it was not available",
    "invalid": "the answer did not fit",
    "not_found": "it was not there",
    "out_of_scope": "it is outside the run’s scope",
    "limit": "a limit was reached",
    "error": "it failed",
}
TOLD: Rich = ("Told by the agent; Handrail did not see it.",)  # of a step of an agent outside


@tells("plan.set")
def plan_set(draft: Draft, line: Line) -> None:
    steps = [line.text(f"step_{number}") or Text() for number in range(1, line.count("steps") + 1)]
    before, again = draft.plan, draft.plan_seq > 0
    draft.plan, draft.plan_seq, draft.plan_version = steps, line.seq, line.count("version", 1)
    note = line.text("note")
    changes = [pair for pair in zip_longest(before, steps) if _words(pair[0]) != _words(pair[1])] if again else []
    draft.add(
        line,
        "plan",
        (f"Plan changed, version {draft.plan_version}" if again else f"Plan recorded: {count(len(steps), 'step')}",),
        icon="list",
        lines=((note,),) if note else (),
        more=f"{count(len(changes), 'step')} changed" if changes else "",
        folded=tuple((Changed(*pair),) for pair in changes),
    )


def _words(text: Text | None) -> str | None:
    return None if text is None else text.text


@tells("step.started")
def step_started(draft: Draft, line: Line) -> None:
    step, number = line.word("step"), line.count("plan_step")
    if number:
        draft.open_step(number, line)
    draft.attempts[step] = line.count("attempt", 1), line.seq
    known = draft.tools.get(step)
    told = line.flag("told")
    here = known is not None and draft.home[known] is draft.here  # else it is done anew, and what was told before stays as it was
    if here and draft.rows[known].kind == "tool" and (told or line.word("kind") in ("tool", "model", "perform")):
        draft.change(known, last=line.seq)  # another attempt at the same step
        return
    draft.step_tools[step] = draft.redeemed if line.word("kind") == "perform" else ""
    more = {"lines": (TOLD,)} if told else {"quiet": True}
    row = draft.add(line, "tool", started_step(line, Step(step, draft.step_tools[step])), **more)
    draft.tools[step] = row.first


# by kind of step; who answers for a model, it or a script, its call says
BEGINS = {
    "propose": "Asks for approval: ",
    "perform": "Does what was approved: ",
    "model": "Asks for: ",
    "child": "Starts a run of its own: ",
    "parallel": "Does at once: ",
    "wait": "Waits for ",
}
# by how its name begins
ENDS = {
    "propose": "Got its answer: ",
    "perform": "Did what was approved: ",
    "model": "Answered: ",
    "child": "Its own run ended: ",
    "parallel": "Did at once: ",
    "wait": "Waited for ",
}


def started_step(line: Line, step: Step) -> Rich:
    """That a step begins, by the title of what it does."""
    attempt = line.count("attempt", 1)
    return (BEGINS.get(line.word("kind"), "Started: "), step, *((f", attempt {attempt}",) if attempt > 1 else ()))


def ended_step(line: Line, step: Step) -> Rich:
    took: Rich = (", ", Took(line.count("ms"))) if line.count("ms") >= 50 else ()
    return (ENDS.get(step.name.rpartition("/")[2].partition("#")[0].partition(".")[0], "Done: "), step, *took)


@tells("step.completed")
def step_completed(draft: Draft, line: Line) -> None:
    step = Step(line.word("step"), draft.step_tools.get(line.word("step"), ""))
    if line.flag("told"):
        draft.usage = replace(draft.usage, step_ms=draft.usage.step_ms + line.count("ms"))
    if line.flag("told") and (row := _row_of(draft, line)) is not None:
        draft.change(row.first, last=line.seq, title=ended_step(line, step), state="")
    else:
        draft.add(line, "state", ended_step(line, step), quiet=True)
    if draft.here.kind == "step" and line.count("plan_step", draft.here.number) == draft.here.number:
        draft.close(line.at, line.seq)


@tells("step.failed")
def step_failed(draft: Draft, line: Line) -> None:
    draft.trouble()
    row = _row_of(draft, line)
    told: Rich = (line.text("detail") or TROUBLE.get(line.word("error"), line.word("error")),)
    if row is None:
        draft.add(line, "tool", ("Step failed: ", Step(line.word("step"))), icon="fail", state="failed", lines=(told,))
        return
    if row.tries and line.word("step").rpartition("/")[2].startswith("model."):  # each call is told already
        draft.change(row.first, last=line.seq, state="failed", quiet=False)
        return
    began = draft.attempts.get(line.word("step"), (1, 0))[1]
    tries = tuple(each for each in row.tries if each.seq < began)  # what its tool told of this attempt is told again, in full
    failed = Try(_number(draft, line, tries), line.seq, False, told)
    draft.change(row.first, last=line.seq, state="failed", quiet=False, tries=(*tries, failed))


def _number(draft: Draft, line: Line, tries: tuple[Try, ...]) -> int:
    """Which attempt at its step this is. They are counted anew for a run that was stuck and is tried again, and here go on."""
    return max(draft.attempts.get(line.word("step"), (1, 0))[0], tries[-1].number + 1 if tries else 1)


@tells("tool.started")
def tool_started(draft: Draft, line: Line) -> None:
    tool, effect = line.word("tool"), line.word("effect") or "read"
    draft.doing = ("Using ", Tool(tool))
    given = tuple(short_arguments(line.text("arguments")))
    row = _row_of(draft, line)
    fields = {"title": (Tool(tool),), "lines": given, "quiet": effect != "read", "icon": "", "tool": tool}
    fields["amounts"] = amounts(object_of(line.text("arguments")))
    if row is not None and row.kind == "tool" and not _ended(row):
        draft.change(row.first, last=line.seq, **(fields | {"quiet": fields["quiet"] and not row.tries}))  # what failed stays seen
        return
    row = draft.add(line, "tool", **fields)
    for key in (line.word("step"), line.word("call")):
        if key:
            draft.tools[key] = row.first


@tells("tool.ended")
def tool_ended(draft: Draft, line: Line) -> None:
    draft.doing = ()
    if line.who.kind == "system" and line.word("call").startswith(vocabulary.LOOK_UP):
        _looked_up(draft, line)
        return
    draft.usage = replace(draft.usage, tool_ms=draft.usage.tool_ms + line.count("ms"))
    tool, outcome, row = line.word("tool"), line.word("outcome"), _row_of(draft, line)
    if row is None or row.kind != "tool":
        row = draft.add(line, "tool", (Tool(tool),))
    number = _number(draft, line, row.tries)
    took: tuple[Part, ...] = (" (after ", Took(line.count("ms")), ")") if line.count("ms") else ()
    if outcome == "ok":
        once: Rich = (", under the same key",) if line.word("step").rpartition("/")[2].startswith("perform#") else ()
        tries = (*row.tries, Try(number, line.seq, True, (Took(line.count("ms")), *once))) if row.tries else ()
        draft.change(row.first, last=line.seq, state="", tries=tries)
        return
    detail = line.text("detail")
    why: Rich = (detail,) if detail else ("nobody knows whether it happened",) if outcome == "unknown" else ()
    if detail and took:  # what somebody wrote as a sentence goes on
        why = (replace(detail, text=detail.text.rstrip().rstrip(".")),)
    known = "" if line.word("error") == "error" else TROUBLE.get(line.word("error"), "")  # that it failed, its state says
    told = (*(why or ((known,) if known else ())), *took)
    state = "waiting" if outcome == "unknown" else "failed"
    draft.change(row.first, last=line.seq, state=state, quiet=False, tries=(*row.tries, Try(number, line.seq, False, told)))


def _looked_up(draft: Draft, line: Line) -> None:
    """Handrail asked the outside what became of a call whose answer was lost."""
    draft.usage = replace(draft.usage, tool_ms=draft.usage.tool_ms + line.count("ms"))
    absent = line.word("error") == "not_found"
    found = "it tells nothing" if line.word("outcome") == "unknown" else "not there" if absent else "found"
    row, told, times = draft.looked
    if told == found and all(draft.rows[each].quiet for each in draft.here.rows if each > row) and row in draft.here.rows:
        draft.looked = (row, found, times + 1)
        draft.change(row, last=line.seq, title=(f"Looked up what became of it, {times + 1} times: {found}",))
        return
    row = draft.add(line, "tool", (f"Looked up what became of it: {found}",), minor=True).first
    draft.looked = (row, found, 1)


def _row_of(draft: Draft, line: Line) -> Item | None:
    """The row of the step or call that this event belongs to; for a tool told without either, the last open row of that tool."""
    for key in (line.word("call"), line.word("step")):
        if key and key in draft.tools:
            return draft.rows[draft.tools[key]]
    if line.word("call") or line.word("step"):
        return None
    under_way = draft.here.under_way.get(Tool(line.word("tool")))
    return draft.rows[max(under_way)] if under_way else None


def _ended(row: Item) -> bool:
    return row.title[:1] not in _BEGUN and row.is_over


_BEGUN = {(words,) for words in (*BEGINS.values(), "Started: ")}
BEGUN_OR_DONE = {("Started: ",), ("Done: ",)}


@tells("model.called")
def model_called(draft: Draft, line: Line) -> None:
    draft.doing = ()
    used = draft.usage
    draft.usage = replace(
        used,
        tokens=used.tokens + _tokens(line),
        cost_micro=used.cost_micro + line.count("cost_micro"),
        unpriced=used.unpriced + line.flag("cost_unknown"),
        model_ms=used.model_ms + line.count("ms"),
    )
    row = draft.rows.get(draft.tools.get(line.word("step"), 0))
    if row is None or row.kind != "tool":
        row = draft.add(line, "tool", _model_title(line))
    if line.word("error"):
        tries = (*row.tries, Try(len(row.tries) + 1, line.seq, False, model_failed(line)))
        draft.change(row.first, last=line.seq, state="failed", quiet=False, tries=tries)
        return
    failed = line.word("finish") in ("error", "length")
    fields = {"title": _model_title(line), "lines": tuple(_model_lines(line)), "quiet": False}
    if row.tries:
        fields["tries"] = (*row.tries, Try(len(row.tries) + 1, line.seq, not failed, (Code(line.word("model")), *_after(line))))
    draft.change(row.first, last=line.seq, state="failed" if failed else "", icon="fail" if failed else "", **fields)


def _tokens(line: Line) -> int:
    return line.count("tokens_in") + line.count("tokens_out")


# why a model gave no answer that could be used
NO_ANSWER = TROUBLE | {
    "refused": "it refused",
    "limit": "a limit was reached",
    "invalid": "its answer did not fit",
    "not_found": "there is no such model",
}


def model_failed(line: Line) -> Rich:
    """Why a call gave nothing, and what it cost all the same."""
    key = line.count("key")
    why = NO_ANSWER.get(line.word("error"), line.word("error"))
    if line.word("finish") == "length":
        why = "its answer was cut off at its limit"
    elif line.word("error") == "refused" and key:
        why = f"the {ordinal(key)} key was refused"
    spent = f", {_tokens(line):,} tokens" if _tokens(line) else ""
    return (Code(line.word("model")), f": {why}{spent}", *_after(line))


def _after(line: Line) -> Rich:
    return (" after ", Took(line.count("ms"))) if line.count("ms") >= 50 else ()


def ordinal(number: int) -> str:
    words = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
    return words[number - 1] if 0 < number <= len(words) else f"{number}th"


def _model_title(line: Line) -> Rich:
    asked = spoken(line.word("prompt")).lower() or "a prompt"
    if line.word("finish") == "error":
        return (f"{who_answered(line)} failed to answer: {asked}",)
    scripted: Rich = (" ", Tag("Scripted, no model")) if line.flag("scripted") else ()
    played: Rich = (" ", Tag("Played by a script")) if line.word("endpoint") == "played" else ()
    did = "chose what comes next" if line.word("finish") == "tool" else f"wrote: {asked}"
    return (f"{who_answered(line)} {did}", *scripted, *played)


def who_answered(line: Line) -> str:
    """Who answered as a model: one, a script in its place, or the one that the demo's own provider plays."""
    return answerer(scripted=line.flag("scripted"), played=line.word("endpoint") == "played")


def answerer(*, scripted: bool, played: bool) -> str:
    return "A script" if scripted else "The demo’s model" if played else "The model"


def _model_lines(line: Line) -> Iterator[Rich]:
    cut = ", cut off at its limit" if line.word("finish") == "length" else ""
    about = "about " if line.flag("estimated") else ""
    spent = f", {about}{_tokens(line):,} tokens" if _tokens(line) else ""
    cost = ", cost unknown" if line.flag("cost_unknown") else ""
    took: Rich = (", ", Took(line.count("ms"))) if line.count("ms") >= 50 else ()
    number = line.word("prompt_version")
    version: Rich = ("prompt version ", number if number.isdecimal() else Code(number), f"{spent}{cost}{cut}", *took)
    if line.flag("scripted"):  # the title says so
        yield ("By fixed rules, ", *version)
    else:
        key = f" with its {ordinal(line.count('key'))} key" if line.count("key") > 1 else ""
        yield (Code(line.word("version") or line.word("model")), f"{key}, ", *version)
    if fitted := " and ".join(_fitted(line)):
        yield (f"To fit, {fitted}.",)


def _fitted(line: Line) -> Iterator[str]:
    """What a model was not told, so that the rest fits."""
    left_out, shortened = line.count("left_out"), line.count("shortened")
    if left_out:
        yield f"{count(left_out, 'earlier result')} {'was' if left_out == 1 else 'were'} left out"
    if shortened:
        yield f"{count(shortened, 'text')} {'was' if shortened == 1 else 'were'} cut"


@tells("model.switched")
def model_switched(draft: Draft, line: Line) -> None:
    draft.add(line, "tool", switched_model(line), icon="warn", state="waiting")


def switched_model(line: Line) -> Rich:
    """Went on with small instead of large: a limit was reached. Or with another key of the same model."""
    if line.count("key"):
        was = ordinal(line.count("was_key"))
        return (f"Went on with the {ordinal(line.count('key'))} key of ", Code(line.word("to")), f": the {was} was refused")
    why = NO_ANSWER.get(line.word("reason"), line.word("reason"))
    elsewhere = " at the fallback" if line.word("endpoint") == "fallback" else ""
    return ("Went on with ", Code(line.word("to")), f"{elsewhere} instead of ", Code(line.word("was")), f": {why}")


@tells("milestone.reached")
def milestone(draft: Draft, line: Line) -> None:
    detail, cites = line.text("detail"), cited(line.seqs("cites"))
    below: Rich = (*((detail, " ") if detail else ()), *cites)
    title = line.text("title")
    row = draft.add(line, "milestone", (title if title else "Milestone reached",), icon="flag", lines=(below,) if below else ())
    draft.milestone = row.first, detail


@tells("checkpoint.saved")
def checkpoint(draft: Draft, line: Line) -> None:
    told = tuple((f"{word}: ", text) for word, text in (("Done", line.text("done")), ("Left", line.text("left"))) if text)
    done, left = line.count("done"), line.count("left")
    more = f"{done} done, {left} left" if told else ""
    if line.word("after").startswith("undo-"):
        title = (f"Checkpoint: {left} left to undo",)
    else:
        title = ("Checkpoint",) if more or not (done or left) else (f"Checkpoint: {count(done, 'step')} done, {left} left",)
    # what has no words of its own says nothing that the steps around it do not
    draft.add(line, "checkpoint", title, minor=True, more=more, folded=told, quiet=not told)


@tells("note.posted")
def note(draft: Draft, line: Line) -> None:
    draft.add(line, "note", (line.who, " noted"), icon="ask", said=line.text("note"))


@tells("report.published")
def report(draft: Draft, line: Line) -> None:
    if draft.here.kind == "step" and draft.here.ended is not None:
        draft.open_end(line)
    title, cites = line.text("title"), cited(line.seqs("cites"))
    draft.report = title
    lines = (cites,) if cites else (("It cites nothing.",),)
    draft.add(line, "milestone", ("Report", *((": ", title) if title else ())), icon="flag", lines=lines, said=line.text("body"))


def cited(seqs: tuple[int, ...]) -> Rich:
    """“Cites #15 and #31.”"""
    if not seqs:
        return ()
    parts: list[Part] = ["Cites "]
    for index, seq in enumerate(seqs):
        parts += [" and " if index and index == len(seqs) - 1 else ", " if index else "", At(seq)]
    return tuple(part for part in (*parts, ".") if part != "")
