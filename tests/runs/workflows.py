"""Small workflows and tools whose outside world is a list, for tests of the engine in one process."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from runs.engine.models import script
from runs.engine.retry import Retry
from runs.engine.tools import Absent, AnswerLost, Arguments, Call, Declined, Found, Unavailable, Unsure, tool
from runs.engine.workflow import Arrived, Channel, Intake, Revised, workflow


@dataclass
class World:
    """What happened outside, in order; and what goes wrong next."""

    done: list[tuple[str, str, Any]] = field(default_factory=list)
    reads: int = 0
    faults: list[Exception | None] = field(default_factory=list)
    drop_answer: bool = False
    turns: list[dict[str, Any]] = field(default_factory=list)  # what a scripted model chooses
    told: list[dict[str, Any]] = field(default_factory=list)  # what it was told last
    undo_faults: list[Exception] = field(default_factory=list)
    blind: bool = False  # look-ups tell nothing

    def fail_next(self, *errors: Exception) -> None:
        self.faults.extend(errors)


world = World()


def reset() -> World:
    world.__init__()
    return world


@tool(effect="read", title="Look", retry=Retry(attempts=3, first=0), touches=lambda a: {"thing": [a["thing"]]})
def look(call: Call, thing: str) -> dict[str, Any]:
    world.reads += 1
    if world.faults and (fault := world.faults.pop(0)) is not None:
        raise fault
    return {"thing": thing, "looks": world.reads}


def find(call: Call, arguments: Arguments) -> Found | Absent | Unsure:
    if world.blind:
        return Unsure("blind")
    return next((Found({"said": text}) for key, _, text in world.done if key == call.key), Absent())


@tool(
    effect="send", title="Say it", lookup=find, recipients=lambda a: a["to"], sends_out=True, deadline=2, retry=Retry(attempts=3, first=0)
)
def say(call: Call, to: list[str], text: str) -> dict[str, Any]:
    if world.faults:
        raise world.faults.pop(0)
    call.last_check()
    world.done.append((call.key, "say", text))
    if world.drop_answer:
        world.drop_answer = False
        raise AnswerLost("dropped")
    return {"said": text}


@tool(effect="write", title="Note it", honours_key=True, lookup=find)
def note_it(call: Call, text: str) -> dict[str, Any]:
    if world.faults:
        raise world.faults.pop(0)
    if not any(key == call.key for key, _, _ in world.done):
        world.done.append((call.key, "note", text))
    return {"noted": text}


@tool(effect="write", title="Forbidden")
def never_registered(call: Call, text: str) -> None:
    world.done.append((call.key, "never", text))


@tool(effect="write", title="Take it away", honours_key=True, lookup=find, retry=Retry(attempts=2, first=0))
def take_away(call: Call, text: str) -> dict[str, Any]:
    if world.undo_faults:
        raise world.undo_faults.pop(0)
    if not any(key == call.key for key, _, _ in world.done):
        world.done.append((call.key, "took away", text))
    return {"text": text}


@tool(effect="write", title="Put it there", honours_key=True, lookup=find, compensate="take_away")
def put(call: Call, text: str) -> dict[str, Any]:
    if world.faults:
        raise world.faults.pop(0)
    if not any(key == call.key for key, _, _ in world.done):
        world.done.append((call.key, "put", text))
    return {"text": text}


@script("phrase", version="1", title="Phrase it")
def phrase(*, thing: str) -> dict[str, Any]:
    return {"text": f"There is {thing}."}


@workflow("test-talk", version=1, title="Talk", plan=("Look", "Phrase it", "Get approval", "Note it", "Say it"))
def talk(run: Channel, thing: str) -> None:
    run.plan("Look", "Phrase it", "Get approval", "Note it", "Say it")
    seen = run.step(look, thing)
    phrased = run.ask_model("phrase", thing=seen.thing)
    kept = run.artifact("text.txt", phrased.text)
    answer = run.propose(say, to=["a@example.org"], text=phrased.text, reason="Somebody asked.")
    if not answer.approved:
        run.report("Not said", body=getattr(answer, "reason", ""), cites=[answer])
        return
    run.step(note_it, phrased.text)
    run.perform(answer)
    run.report("Said", cites=[answer, kept])


@workflow("test-citing-too-soon", version=1)
def citing_too_soon(run: Channel) -> None:
    answer = run.propose(say, to=["a@example.org"], text="Tea.")
    run.report("Said", cites=[run.done(answer)])


@workflow("test-steered", version=1, title="Steered", reads=("context", "revise"))
def steered(run: Channel, thing: str) -> None:
    run.plan("Phrase it", "Get approval", "Say it")
    notes: list[str] = []
    while True:
        notes += run.context()
        text = " ".join([run.ask_model("phrase", thing=thing).text, *notes])
        answer = run.propose(say, to=["a@example.org"], text=text)
        if not isinstance(answer, Revised):
            break
        notes.append(answer.note)
    if answer.approved:
        run.perform(answer)
    run.report("Said" if answer.approved else "Not said", cites=[answer])


@workflow("test-steered-twice", version=1, reads=("revise",))
def steered_twice(run: Channel) -> None:
    run.plan("Note it", "Say it")
    run.step(note_it, "first")
    notes: list[str] = []
    while isinstance(answer := run.propose(say, to=["a@example.org"], text=" ".join(["Tea.", *notes])), Revised):
        notes.append(answer.note)
    if answer.approved:
        run.perform(answer)


@workflow("test-undone", version=1, title="Undone")
def undone(run: Channel) -> None:
    run.plan("Put it there", "Get approval", "Say it")
    run.step(put, "first")
    run.step(note_it, "stays")
    run.step(put, "second")
    answer = run.propose(say, to=["a@example.org"], text="Both are there.")
    if answer.approved:
        run.perform(answer)
    run.report("Said" if answer.approved else "Not said", cites=[answer])


@workflow("test-unregistered", version=1)
def unregistered(run: Channel) -> None:
    run.plan("Forbidden")
    run.step(never_registered, "x")


@workflow("test-parent", version=1)
def parent(run: Channel, thing: str, scope: dict[str, list[str]] | None = None) -> None:
    run.plan("Delegate")
    came = run.child("test-talk", title="A part of it", scope=scope, thing=thing)
    run.report(f"The child {came.state}", body=came.report.title if came.report else "")


@workflow("test-puts", version=1)
def puts(run: Channel) -> None:
    run.step(put, "of the child")


@workflow("test-parent-puts", version=1)
def parent_puts(run: Channel) -> None:
    run.step(put, "before")
    run.child("test-puts", title="A part of it")
    run.step(put, "after")
    run.propose(say, to=["a@example.org"], text="All are there.")


@workflow("test-numbers", version=1)
def numbers(run: Channel) -> None:
    answer = run.propose(say, to=["a@example.org"], text=f"{run.uuid()} {run.random().random()}")
    run.perform(answer)


@workflow("test-steps-say", version=1)
def steps_say(run: Channel) -> None:
    run.step(say, ["a@example.org"], "Now.")


def put_and_note(run: Channel, text: str) -> str:
    run.step(put, text)
    return run.step(note_it, text)["noted"]


def ask_to_say(run: Channel, text: str) -> str:
    answer = run.propose(say, to=["a@example.org"], text=text)
    return run.perform(answer)["said"] if answer.approved else "nothing"


@workflow("test-at-once", version=1)
def at_once(run: Channel, say_too: list[str]) -> None:
    run.plan("Look", "Say it")
    branches = [run.later(look, "tea"), run.later(look, thing="coffee"), run.later(put_and_note, "both")]
    seen, other, noted, *said = run.parallel(*branches, *(run.later(ask_to_say, text) for text in say_too))
    run.step(put, "after")
    run.report(" ".join([seen.thing, other.thing, noted, *said]))


def told_that(run: Channel) -> str:
    return run.wait_for("desk", match={"type": "changed"}).body.data.now


def asks_and_is_told(run: Channel) -> list[str]:
    return run.parallel(run.later(ask_to_say, "inner"), run.later(told_that))


@workflow("test-branches-of-branches", version=1)
def branches_of_branches(run: Channel) -> None:
    run.parallel(run.later(asks_and_is_told), run.later(ask_to_say, "outer"))


@workflow("test-asks", version=1)
def asks(run: Channel) -> None:
    run.plan("Ask")
    run.report(run.ask("Coffee or tea?"))


@script("choose", version="1", title="Choose")
def choose(*, turn: int, said: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    world.told = said
    return world.turns[turn - 1] if turn <= len(world.turns) else {"done": {}}


@workflow("test-agent", version=1)
def an_agent(run: Channel) -> None:
    run.plan("Choose")
    came = run.agent("choose", tools=[look, note_it, say], until=lambda done: "answer" in done, turns=10)
    run.report(came["answer"])


@workflow("test-later", version=1)
def later(run: Channel) -> None:
    run.plan("Wait")
    run.sleep(3600)
    run.report("Later")


def on_webhook(body: Mapping[str, Any]) -> Intake | None:
    if body.get("type") == "fail":
        raise RuntimeError("a mistake in the workflow's own code")
    return Intake({"thing": body["thing"]}, f"Hooked by {body['thing']}", {}) if body.get("type") == "begin" else None


@workflow("test-hooked", version=1, webhook=on_webhook)
def hooked(run: Channel, thing: str) -> None:
    run.plan("Wait")
    came = run.wait_for("desk", match={"type": "changed", "data.thing": thing}, timeout=timedelta(hours=1), title="Wait")
    if isinstance(came, Arrived):
        run.report(f"It is {came.body.data.now}", cites=[came])
    else:
        run.report("Nothing came")


@workflow("test-told", version=1, reads=("context",))
def is_told(run: Channel) -> None:
    run.plan("Wait")
    run.report(" ".join(run.wait_for("signal").body.notes))


@workflow("test-looks", version=1, reads=("context",))
def looks(run: Channel, thing: str) -> None:
    run.plan("Look", "Phrase it", "Say it")
    seen = run.step(look, thing)
    run.context()
    phrased = run.ask_model("phrase", thing=seen.thing)
    run.artifact("text.txt", phrased.text)
    run.step(look, thing)
    answer = run.propose(say, to=["a@example.org"], text=phrased.text)
    if answer.approved:
        run.perform(answer)
    run.report("Said", cites=[answer])


@workflow("test-raises", version=1)
def raises(run: Channel) -> None:
    run.plan("Look")
    raise RuntimeError("a secret in an exception: sk-live-1234567890abcdef")


__all__ = ["AnswerLost", "Declined", "Unavailable", "reset", "world"]
