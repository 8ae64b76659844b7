"""How the run's own course is told: started, waiting, gone on, ended."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import orjson

from runs.story.draft import Draft, Waiting, awaited, milliseconds, sentence, tells
from runs.story.shapes import At, Code, Effect, Elsewhere, Moment, Part, Rich, Step, Text, Told, Took, Tool
from runs.story.wire import Line, object_of, spoken

PARKED = {
    "code_changed": "the workflow’s code changed, and this step would do something else now",
    "retries_exhausted": "a step of it failed for good",
    "error": "the workflow failed",
    "refused": "an action it needs was refused",
    "expired": "nobody decided in time on an action it needs",
    "out_of_scope": "it wanted to touch something outside its scope",
    "workflow_missing": "its workflow is not loaded",
    "silent": "it went silent",
    "undo_failed": "something it did outside could not be undone",
    "agent_stopped": "its agent did not come to an end",
}
FAILED = {
    "error": "the workflow failed",
    "refused": "an action it needs was refused",
    "given_up": "an operator gave it up",
    "undone": "an operator had it undone",  # given up too, as the log has it, once all that could be was undone
    "agent": "the agent said so",
}
QUEUED = {
    "decision": "A decision was made, so the run goes on",
    "answer": "An answer came, so the run goes on",
    "timer": "The time has come, so the run goes on",
    "signal": "A signal came, so the run goes on",
    "budget": "The budget was changed, so the run goes on",
    "outcome": "The outcome is known, so the run goes on",
    "recovered": "It is tried again",
    "yielded": "The run goes on in a moment",
    "webhook": "A webhook came, so the run goes on",
    "child": "The run it waited for has ended, so it goes on",
}

NAMED = 8  # effects that a cancelled run names
HELD = ("waiting", "paused", "cancelling")
HEARD = {  # of a run that an agent outside works on
    "decision": "Nothing waits for people any more",
    "heard": "Its agent was heard of again",
    "signal": "It is held no more, so its agent goes on",
}


@tells("run.created")
def created(draft: Draft, line: Line) -> None:
    draft.move("queued", line)
    draft.began = Told(
        line.seq,
        line.at,
        line.who,
        line.word("owner"),
        line.word("agent"),
        line.word("agent_version"),
        line.word("ref"),
        line.text("title"),
    )
    draft.add(line, "state", (line.who, " started the run"), lines=tuple(_scope(line.text("scope"))), said=line.text("note"))


def _scope(text: Text | None) -> Iterator[Rich]:
    """What the run may touch: “Scope: ticket ZN-4821; account 00932”, a list: no stop stands alone behind what is hidden."""
    touched = object_of(text)
    if touched:
        things = (f"{kind} {', '.join(map(str, ids)) if isinstance(ids, list) else ids}" for kind, ids in touched.items())
        yield ("Scope: ", Text("; ".join(things), text.label if text else ""))
    elif text and (text.erased or not text.text.startswith("{")):
        yield ("Scope: ", text)
    elif text:
        yield ("Scope: nothing but what its tools read without one.",)


@tells("run.started")
def started(draft: Draft, line: Line) -> None:
    draft.move("running", line)
    if draft.began and draft.seq == draft.began.seq + 1:
        draft.change(draft.began.seq, last=line.seq)
    else:
        draft.plain(line)


@tells("run.resumed")
def resumed(draft: Draft, line: Line) -> None:
    reason = line.word("reason")
    if reason in HEARD or draft.state not in HELD:  # a process of an agent outside that takes it over changes nothing about that
        draft.move("running", line)
    if reason in HEARD:
        draft.add(line, "state", (HEARD[reason],), quiet=reason != "heard" or _was_silent(draft, line))
    elif reason == "lease_expired":
        title = ("Its worker was lost. Another went on from the last completed step",)
        draft.add(line, "state", title, icon="warn", state="waiting")
    else:
        draft.plain(line)


@tells("run.queued")
def queued(draft: Draft, line: Line) -> None:
    draft.move("queued", line)
    reason = line.word("reason")
    title = (QUEUED.get(reason, "The run goes on"),)
    draft.add(line, "state", title, quiet=True)


@tells("run.waiting")
def waiting(draft: Draft, line: Line) -> None:
    draft.move("waiting", line)
    on, action, until = line.word("on"), line.word("action"), line.moment("until")
    blocked = (
        any(draft.rows[row].kind == "block" and draft.rows[row].action == action for row in draft.blocks.values()) if action else False
    )
    lines: tuple[Rich, ...] = (("Expires " if on == "decision" else "Until ", Moment(until), "."),) if until else ()
    needs = line.count("needs")
    draft.add(line, "block", (_waits(on, needs, until),), icon="wait", state="waiting", lines=lines, action=action, quiet=blocked)
    draft.waiting = Waiting(on, line.at, line.seq, action, until, needs, line.word("source"))


def _waits(on: str, needs: int, until: datetime | None) -> str:
    if on == "decision" and needs > 1:
        return f"Waiting for {needs} reviewers"
    return f"Waiting for {'a reviewer' if on == 'decision' else awaited(on, until)}"


@tells("run.paused")
def paused(draft: Draft, line: Line) -> None:
    draft.move("paused", line, (line.who, " paused the run"))
    draft.add(line, "signal", (line.who, " paused the run"), icon="pause", quiet=line.word("signal") in draft.signals)


@tells("run.stalled")
def stalled(draft: Draft, line: Line) -> None:
    since = line.moment("since")
    draft.move("stalled", line, ("Nothing was heard of it since ", Moment(since), ".") if since else ())
    row = draft.add(line, "block", ("The agent went silent",), icon="fail", state="failed", lines=(draft.why,) if draft.why else ())
    draft.silent = (row.first, since or line.at)


def _was_silent(draft: Draft, line: Line) -> bool:
    """Whether the row that said “went silent” now says how long it was; it is no trouble any more."""
    row, since = draft.silent
    if row not in draft.rows:
        return False
    title: Rich = ("The agent was silent for ", Took(milliseconds(since, line.at)))
    draft.change(row, kind="state", icon="", state="", minor=True, title=title, lines=())
    draft.silent = (0, line.at)
    return True


@tells("run.parked")
def parked(draft: Draft, line: Line) -> None:
    why, detail = (PARKED.get(line.word("reason"), line.word("reason")),), line.text("detail")
    draft.move("parked", line, why, detail)
    draft.trouble(line.word("step") if line.word("reason") == "retries_exhausted" else "")
    draft.undoing = False
    # the tries right above it end with what failed
    tried = line.word("reason") == "retries_exhausted" and any(draft.rows[row].tries for row in draft.stretches[-1].rows[-1:])
    lines: tuple[Rich, ...] = (("A person must choose how it goes on.",),) if tried else ((detail,),) if detail else ()
    draft.add(line, "block", ("Stuck: ", *why), icon="fail", state="failed", lines=lines)


@tells("run.cancel_requested")
def cancel_requested(draft: Draft, line: Line) -> None:
    known = draft.signals.get(line.word("signal"))
    said = line.text("reason")
    row = draft.add(line, "signal", (line.who, " asked to cancel the run"), icon="person", said=said, quiet=known is not None)
    draft.signals.setdefault(line.word("signal"), row.first)


@tells("run.cancelling")
def cancelling(draft: Draft, line: Line) -> None:
    draft.move("cancelling", line)
    draft.add(line, "state", sentence(line), icon="undo")


@tells("run.compensating")
def compensating(draft: Draft, line: Line) -> None:
    draft.move("compensating", line)
    draft.undoing = True
    if draft.here.failed:  # the undoing, which is told in it, does not mend it
        draft.close(line.at, line.seq, "failed")
    effects = line.count("effects")
    draft.add(line, "state", (f"Undoing {count(effects, 'effect')}, the last one first",), icon="undo")


@tells("child.started")
def child_started(draft: Draft, line: Line) -> None:
    title: Rich = ("Started a run of its own, ", Code(line.word("ref")))
    draft.add(line, "state", title, icon="fork", lines=(("It works on its part, and this run waits for it.",),))


@tells("child.ended")
def child_ended(draft: Draft, line: Line) -> None:
    words = {"succeeded": "is done", "failed": "failed", "cancelled": "was cancelled"}
    state = line.word("state")
    title = (f"The run it had started {words.get(state, state)}",)
    draft.add(line, "state", title, icon="fork", state="failed" if state == "failed" else "")


@tells("run.forked")
def forked(draft: Draft, line: Line) -> None:
    taken, edits, step = line.count("taken"), line.text("input"), line.word("step")
    lines: list[Rich] = [
        (f"Took over {count(taken, 'completed step')}; none of them is done again." if taken else "Nothing is taken over: it begins anew.",)
    ]
    if step:
        lines.append(("Done anew from “", Step(step), "” on, with other input:" if edits else "” on."))
    elif edits:
        lines.append(("With other input:",))
    lines += changed_input(edits)
    draft.is_fork = True
    draft.taken_over = frozenset(line.seqs("plan_steps"))
    parent = Elsewhere(line.word("parent"), line.word("ref"), line.count("seq"))
    draft.add(line, "decision", (line.who, " forked it from ", parent), icon="fork", said=line.text("note"), lines=tuple(lines))


def changed_input(edits: Text | None) -> Iterator[Rich]:
    """What was changed, name by name: “wishes: Offer a credit note.”"""
    named = object_of(edits)
    for name, value in named.items():
        values = value if isinstance(value, list) and all(isinstance(each, str) for each in value) else [value]
        words = ", ".join(each if isinstance(each, str) else orjson.dumps(each).decode() for each in values)
        yield Text(spoken(name), edits.label if edits else ""), ": ", Text(words, edits.label if edits else "")
    if edits and not named:
        yield (edits,)


@tells("run.succeeded")
def succeeded(draft: Draft, line: Line) -> None:
    _end(draft, line, "succeeded")
    report = line.count("report")
    lines: tuple[Rich, ...] = (("Its report is ", At(report), "."),) if report else ()
    if draft.came_to_nothing:
        draft.add(line, "effect", ("Ended, nothing done",), icon="stop", state="cancelled", lines=lines)
    else:
        draft.add(line, "effect", ("Done",), icon="done", state="done", lines=lines)


@tells("run.failed")
def failed(draft: Draft, line: Line) -> None:
    why, detail = (failed_words(line.word("reason"), undoing=draft.undoing),), line.text("detail")
    draft.close(line.at, line.seq, "failed")
    _end(draft, line, "failed", why, detail)
    draft.add(line, "effect", ("Failed: ", *why), icon="fail", state="failed", lines=((detail,),) if detail else ())


def failed_words(reason: str, *, undoing: bool) -> str:
    """Why a run failed. `undoing`: it ended while it was being undone, which an operator had chosen."""
    return FAILED.get("undone" if undoing and reason == "given_up" else reason, reason)


@tells("run.cancelled")
def cancelled(draft: Draft, line: Line) -> None:
    draft.close(line.at, line.seq, "cancelled")
    told = _left_behind(draft, line)
    _end(draft, line, "cancelled", told)
    draft.add(line, "effect", ("Cancelled",), icon="stop", state="cancelled", lines=(told,))
    draft.change(draft.signals.get(line.word("signal")), lines=(("Ended the run at ", At(line.seq), "."),))


def _end(draft: Draft, line: Line, state: str, why: Rich = (), text: Text | None = None) -> None:
    draft.move(state, line, why, text)
    draft.ended_at = line.at
    draft.open_end(line)


def _left_behind(draft: Draft, line: Line) -> Rich:
    """What a cancelled run leaves behind, by name; counted where child runs did some of it, or it is much."""
    done, undone, withdrawn = line.count("done"), line.count("undone"), line.count("withdrawn")
    put_back = [effect for effect in draft.effects.values() if effect.state == "undone"]
    stays = [effect for effect in draft.effects.values() if effect.state != "undone"]
    if (len(stays), len(put_back)) != (done, undone) or not 0 < done + undone <= NAMED:
        return (cancelled_words(done, undone, withdrawn),)
    parts = [*_named("Done outside, and stays: ", stays), *_named("Undone: ", put_back)]
    requests = f"{count(withdrawn, 'request')} {'was' if withdrawn == 1 else 'were'} withdrawn." if withdrawn else ""
    return (*parts, requests) if requests else (*parts[:-1], ".")


def _named(word: str, effects: Sequence[Effect]) -> Iterator[Part]:
    for index, effect in enumerate(effects):
        yield from ("; " if index else word, effect.subject or Tool(effect.tool))
    if effects:
        yield ". "


def cancelled_words(done: int, undone: int, withdrawn: int) -> str:
    """What a cancelled run leaves behind, in a sentence."""
    stays = (
        f"{count(done, 'thing')} had been done outside and {'stays' if done == 1 else 'stay'}"
        if done
        else "Nothing outside was left changed"
    )
    put_back = f", {count(undone, 'thing')} {'was' if undone == 1 else 'were'} put back" if undone else ""
    requests = f", {count(withdrawn, 'request')} {'was' if withdrawn == 1 else 'were'} withdrawn" if withdrawn else ""
    return f"{stays}{put_back}{requests}."


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
