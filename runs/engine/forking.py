"""Forking: another run goes on from a point of this one, with what was completed up to there, and with changed input if somebody wants.

The fork has a log of its own. It takes over the journal entries of completed steps, so that it asks for none of them again; `run.forked`
says of which run and up to which event, and is what they are cited by. What was approved and not used is not taken over: grants never
survive a fork. What was done outside and is done in both with the same input keeps its key (`lineage`, and `gates.redeem`).
"""

import hashlib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from uuid import UUID

import orjson

from access.errors import BadInput, Refusal
from access.rules import Actor
from artifacts import vault
from artifacts.models import Artifact, Payload
from artifacts.redaction import beginning
from runs import log, starting
from runs.engine import budget, family, journal, ledger, workflow
from runs.engine.journal import result_of
from runs.engine.tools import TOOLS, InvalidArguments, Tool
from runs.lifecycle import UNDOING
from runs.log import Held, Text
from runs.models import Event, JournalEntry, Run
from runs.vocabulary import RunForked, parse

FROM = ("step", "model", "propose", "child")  # kinds of steps with which a fork can begin
INPUTS = {"step": ("tool.started", "arguments"), "model": ("model.called", "input"), "propose": ("action.proposed", "canonical")}
CITED = ("propose", "wait")  # what these gave names the event that says so
READ = (*CITED, "plan", "artifact")  # whose results are looked into
MAX_NOTE, MAX_EDITS = 2000, 64 * 1024


class NotForkable(Refusal):
    """This run can't be forked now."""

    what_next: ClassVar[str] = "Nothing was started."


class ForkReused(Refusal):
    """This key was used for another fork."""

    what_next: ClassVar[str] = "Nothing was started. Give each fork a key of its own, and send it again only with what it said."


@dataclass(frozen=True)
class Cut:
    """What a fork takes over: up to which event of the parent, which completed steps, and the one that is done anew if one is named."""

    seq: int
    taken: tuple[JournalEntry, ...]
    first: JournalEntry | None = None


MAX_NAMES = 120
FORKED = re.compile(rf", (with other [\w ]{{1,{MAX_NAMES}}}|forked after #\d+)$")  # how a fork's own title ends


def fork(parent: Run, *, by: Actor, key: str, step: str = "", at: int = 0, edits: Mapping[str, Any] | None = None, note: str = "") -> Run:
    """A run that goes on from a point of `parent`, queued for a worker. The same `key` again gives the run that it started.

    `step` is done anew, and what came after it; or all that was completed up to event `at` is taken over; with neither, all that is
    completed now. `edits`: name → value, of the input of that step, or of the run's own if no step is named: then it begins anew.
    NotForkable, ForkReused or BadInput.
    """
    changed = dict(edits or {})
    _check_asked(step, at, changed, note)
    with log.holding(parent.pk) as held:  # so that its journal stands still while it is read
        row, start_key = held.row, _start_key(parent, key, [step, at, changed, note])
        if earlier := _earlier(row, start_key):
            return earlier
        known = _forkable(row)
        cut = _cut(row, step, at, whole=not changed)
        _check_edits(row, known, cut.first, changed)
        if cut.first and cut.first.edits:  # what an earlier fork changed of this step, and this one does not, stays changed
            changed = orjson.loads(vault.open_bytes(cut.first.edits)) | changed
        kept = _payload(row, orjson.dumps(changed)) if changed else None
        made = starting.start_fork(
            row,
            title=_title(row, changed, cut),
            given=_input(row, {} if cut.first else changed),
            version=known.version,
            budgets=_left(row, cut),
            by=by,
            key=start_key,
            more=partial(_take_over, parent=row, cut=cut, edits=kept, by=by, note=note.strip()),
        )
        if row.lineage is None:
            held.change(lineage=row.pk)
    return made


def _title(row: Run, changed: Mapping[str, Any], cut: Cut) -> str:
    """What the fork is called: as its parent, and by what is different, so that they are told apart in a list. A long name gives way."""
    called = (vault.opened(row.title) or b"").decode() or f"Run {row.ref}"
    called = FORKED.sub("", called) if row.forked_from_id else called
    names = " and ".join(name.replace("_", " ").replace("-", " ").strip() for name in changed)[:MAX_NAMES]
    differs = f", with other {names}" if names else f", forked after #{cut.seq}"
    return beginning(called, starting.MAX_TITLE - len(differs)) + differs


def entries_of(run: Run) -> list[JournalEntry]:
    """The journal of a run without its undoing, in order, with those results that are looked into."""
    rows = [each for each in JournalEntry.objects.filter(run_id=run.pk).order_by("position") if not ledger.is_undo(each.step)]
    read = Payload.objects.select_related("key").in_bulk([each.result_id for each in rows if each.kind in READ and each.result_id])
    for entry in rows:
        if entry.result_id in read:
            entry.result = read[entry.result_id]
    return rows


def begins_with(entries: Sequence[JournalEntry], step: str) -> JournalEntry | None:
    """The step with which a fork from `step` begins: of what does an approved action, the step that proposes it."""
    entry = next((entry for entry in entries if entry.step == step), None)
    if entry is not None and entry.kind == "perform":
        proposing = (each for each in entries if each.kind == "propose" and each.state == "done")
        return next((each for each in proposing if result_of(each)["action"] == str(entry.action_id)), None)
    return entry if entry is not None and entry.kind in FROM else None


def _check_asked(step: str, at: int, edits: Mapping[str, Any], note: str) -> None:
    if step and at:
        raise BadInput("Name a step that is done anew, or an event up to which all is taken over; not both.")
    if edits and at > 1:
        raise BadInput("Changed input is that of a step, or that of the run, which begins anew then: name the step, or no place.")
    if len(note) > MAX_NOTE or len(orjson.dumps(edits)) > MAX_EDITS:
        raise BadInput(f"A note has at most {MAX_NOTE} characters, and changed input {MAX_EDITS} bytes.")


def _start_key(parent: Run, key: str, asked: Any) -> str:
    marks = (hashlib.sha256(text).hexdigest()[:32] for text in (key.encode(), orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)))
    return ":".join(["fork", str(parent.pk), *marks])


def _earlier(parent: Run, start_key: str) -> Run | None:
    """The fork that this key made. Under the parent's lock, so that two at once make one."""
    made = Run.objects.filter(forked_from=parent.pk, start_key__startswith=start_key.rpartition(":")[0] + ":").first()
    if made is not None and made.start_key != start_key:
        raise ForkReused(f"It made {made.ref}, from another place or with other input.", run=str(made.pk))
    return made


def why_not(run: Run) -> str:
    """Why a run can't be forked now, in a sentence; empty if it can be."""
    if not run.workflow:
        return "An agent outside works on it, and what it did stands in no journal of ours."
    if run.state in UNDOING:
        return "It is being undone. Fork it when that has ended."
    if workflow.loaded(run.workflow, run.workflow_version) is None:
        return f"{run.workflow} version {run.workflow_version} is not loaded here."
    if spent := budget.over(run.budgets, budget.used(run)):
        return f"Its limit of {spent.budget.replace('_', ' ')} is used up, and a fork gets what is left. Raise it first."
    return ""


def _forkable(run: Run) -> workflow.Workflow:
    known = workflow.loaded(run.workflow, run.workflow_version)
    if why := why_not(run):
        raise NotForkable(why, state=run.state)
    assert known is not None
    return known


# what is taken over -----------------------------------------------------------------------------------------------------------------


def _cut(run: Run, step: str, at: int, *, whole: bool) -> Cut:
    entries = entries_of(run)
    if step:
        first = begins_with(entries, step)
        if first is None:
            raise BadInput("A fork can't begin with this step.", steps=[entry.step for entry in entries if entry.kind in FROM][:100])
        before = [entry for entry in entries if entry.position < first.position]
        taken = tuple(_standing(run, before))
        return Cut(_before(run, first, taken), taken, first)
    at = at or (run.seq if whole else 1)
    if at > run.seq:
        raise BadInput(f"Its log goes to event {run.seq}.", head=run.seq)
    return Cut(at, tuple(_standing(run, [entry for entry in entries if entry.seq <= at])))


def _standing(run: Run, entries: Sequence[JournalEntry]) -> Iterator[JournalEntry]:
    """The completed ones, but for approvals that nobody has used, and for what was done and then undone."""
    undone, by_parent = _undone(run)
    done = [entry for entry in entries if entry.state == "done"]
    used = {str(entry.action_id) for entry in done if entry.kind == "perform" and entry.action_id not in undone}
    for entry in done:
        if entry.kind == "perform" and entry.action_id in undone:
            continue
        if entry.kind == "child" and entry.step in by_parent:
            continue
        if entry.kind == "propose" and (kept := result_of(entry))["word"] == "Approved" and kept["action"] not in used:
            continue
        yield entry


def _undone(run: Run) -> tuple[set[UUID | None], set[str]]:
    """What was undone in any run of the lineage: the actions, and the steps that started runs of which some was.

    What several did under one key, any of them may have undone.
    """
    kin = list(Run.objects.filter(lineage=run.lineage)) if run.lineage else [run]
    done = [(each, effect) for each in kin for effect in ledger.family_effects(each)]
    keys = {effect.key for _, effect in done if effect.undone}
    gone = [(each, effect) for each, effect in done if effect.key in keys]
    steps = {step for each in kin for step in ledger.starts(each, {effect.path[0] for by, effect in gone if by is each and effect.path})}
    return {effect.action for _, effect in gone}, steps


def _before(run: Run, first: JournalEntry, taken: Sequence[JournalEntry]) -> int:
    """The last event before this step began."""
    told = Event.objects.filter(run_month=run.month, run_id=run.pk, type="step.started").order_by("seq").values_list("seq", "body")
    begun = next((seq for seq, body in told.iterator() if orjson.loads(body)["data"]["step"] == first.step), 0)
    return max(begun - 1, 1) if begun else max((entry.seq for entry in taken), default=1)


def _take_over(held: Held, *, parent: Run, cut: Cut, edits: Payload | None, by: Actor, note: str) -> None:
    """Write into the fork's log and journal what it has of its parent, in the transaction that makes it."""
    steps = sum(entry.kind in journal.STEPS for entry in cut.taken)
    later = _changed_before(parent, cut) if cut.first or not edits else []
    data = RunForked(
        parent=parent.pk,
        ref=parent.ref,
        seq=cut.seq,
        step=cut.first.step if cut.first else None,
        taken=steps,
        plan_steps=_plan_steps(parent, cut),
    )
    texts: dict[str, Text | Payload] = ({"input": edits} if edits else {}) | ({"note": Text(note)} if note else {})
    seq = held.append(data, actor=by, texts=texts)
    held.change(forked_from=parent, forked_seq=cut.seq, lineage=parent.lineage or parent.pk)
    held.change(steps=steps + (1 if edits and cut.first else 0) + len(later), tools=sorted(family.tools_used(parent)))
    seqs, results = dict.fromkeys((entry.step for entry in cut.taken), seq), {}
    plan = next((entry for entry in reversed(cut.taken) if entry.kind == "plan"), None)
    retold = _events(parent, [entry for entry in cut.taken if entry.kind == "artifact" or entry is plan])
    for entry in cut.taken:
        if entry.seq in retold and (entry.kind == "artifact" or entry is plan):
            seqs[entry.step], gave = _tell_again(held, entry, retold[entry.seq], caused_by=seq)
            results[entry.step] = _payload(parent, orjson.dumps(gave))
        elif entry.kind in CITED:
            results[entry.step] = _payload(parent, orjson.dumps(result_of(entry) | {"seq": seq}))
    journal.take_over(held.row.pk, cut.taken, seqs, results)
    if edits and cut.first:
        journal.ask_otherwise(held.row.pk, cut.first, edits)
    for entry in later:
        journal.ask_otherwise(held.row.pk, entry, entry.edits)


def _changed_before(parent: Run, cut: Cut) -> list[JournalEntry]:
    """The steps that an earlier fork changed and that are not taken over: they are asked as it said."""
    here = {entry.step for entry in cut.taken} | ({cut.first.step} if cut.first else set())
    return [entry for entry in entries_of(parent) if entry.edits_id and entry.step not in here]


def _plan_steps(parent: Run, cut: Cut) -> tuple[int, ...]:
    """The steps of the plan that what is taken over had completed; of a fork also those that it had taken over itself."""
    taken = {entry.step for entry in cut.taken}
    told = Event.objects.filter(run_month=parent.month, run_id=parent.pk, type__in=("step.completed", "run.forked")).order_by("seq")
    found: set[int] = set()
    for kind, body in told.values_list("type", "body"):
        data = orjson.loads(body)["data"]
        if kind == "run.forked":
            found |= set(data.get("plan_steps", ())) if taken else set()
        elif data["step"] in taken and data.get("plan_step"):
            found.add(data["plan_step"])
    return tuple(sorted(found))


Retold = tuple[str, Mapping[str, Any], Mapping[str, Payload]]


def _events(parent: Run, entries: Sequence[JournalEntry]) -> dict[int, Retold]:
    """What the parent's log tells of these: type, data and payloads by role."""
    told = Event.objects.filter(run_month=parent.month, run_id=parent.pk, seq__in=[entry.seq for entry in entries])
    rows = list(told.values_list("seq", "type", "body", "payloads"))
    kept = Payload.objects.in_bulk({pk for *_, payloads in rows for pk in payloads.values()})
    return {
        seq: (type_, orjson.loads(body)["data"], {role: kept[UUID(pk)] for role, pk in payloads.items()})
        for seq, type_, body, payloads in rows
    }


def _tell_again(held: Held, entry: JournalEntry, told: Retold, *, caused_by: int) -> tuple[int, dict[str, Any]]:
    """The plan, and each artifact as one of this run's own, with the same bytes: what the story and its evidence stand on."""
    (type_, data, payloads), run = told, held.row
    agent = Actor("agent", str(run.agent_id))
    if entry.kind == "plan":
        return (seq := held.append(parse(type_, data), actor=agent, texts=payloads, caused_by=caused_by)), {"seq": seq}
    made = Artifact.objects.create(
        workspace_id=run.workspace_id, run_id=run.pk, name=data["name"], version=data["version"], payload=payloads["content"]
    )
    again = parse(type_, dict(data) | {"artifact": str(made.pk)})
    seq = held.append(again, actor=agent, texts=payloads, artifact=made, caused_by=caused_by)
    return seq, result_of(entry) | {"id": str(made.pk), "seq": seq}


def _payload(run: Run, content: bytes) -> Payload:
    return vault.keep(run.workspace_id, content, label="personal", media_type="application/json")


def _left(parent: Run, cut: Cut) -> dict[str, int]:
    """What is left of the parent's limits. Steps that are taken over count in both."""
    so_far = budget.used(parent)
    left = {name: parent.budgets[name] - so_far[name] for name in budget.NAMES if parent.budgets.get(name)}
    if "steps" in left:
        left["steps"] += sum(entry.kind in journal.STEPS for entry in cut.taken)
    return left


# changed input ----------------------------------------------------------------------------------------------------------------------


def _input(parent: Run, edits: Mapping[str, Any]) -> bytes:
    given = orjson.loads(vault.open_bytes(parent.input)) if parent.input else {}
    return orjson.dumps(given | edits, option=orjson.OPT_SORT_KEYS)


def _check_edits(run: Run, known: workflow.Workflow, first: JournalEntry | None, edits: Mapping[str, Any]) -> None:
    """BadInput if the input of the step, or of the run, has no such names, or the values do not fit."""
    if not edits:
        return
    if first is not None and first.kind not in INPUTS:
        raise BadInput("The input of this step can't be changed.")
    recorded = recorded_input(run, first) if first else None
    names = takes(known) if first is None else set(changeable(first, recorded[0]) if recorded else ())
    if first is not None and recorded is None:
        raise BadInput("Nothing is recorded of what this step was asked, so there is nothing to change.")
    if unknown := sorted(set(edits) - set(names)):
        raise BadInput(f"Its input has no “{unknown[0][:60]}”.", known=sorted(names))
    if first is not None and recorded and (tool := tool_of(first)):
        try:
            tool.checked(**(recorded[0] | edits))
        except InvalidArguments as error:
            raise BadInput(str(error)) from None


def takes(known: workflow.Workflow) -> tuple[str, ...]:
    """The names of a workflow's arguments."""
    return tuple(inspect.signature(known.function).parameters)[1:]


def tool_of(entry: JournalEntry) -> Tool | None:
    """The tool that a step uses, or proposes to use."""
    name = entry.step.rpartition("/")[2].partition("#")[0].removeprefix("propose.")
    return TOOLS.get(name) if entry.kind in ("step", "propose") else None


def changeable(entry: JournalEntry, recorded: Mapping[str, Any]) -> list[str]:
    """The names of a step's input that somebody can change: not those that its tool fills in."""
    tool = tool_of(entry)
    return [name for name in recorded if tool is None or name not in tool.fixed]


def recorded_input(run: Run, entry: JournalEntry) -> tuple[dict[str, Any], Payload] | None:
    """What a step was asked, by name, and the payload it stands in; None if it was not asked yet. For the engine: not redacted."""
    recorded = recorded_inputs(run, [entry]).get(entry.step)
    if recorded is None:
        return None
    asked = orjson.loads(vault.opened(recorded.payload) or b"{}")
    return dict(asked.get("arguments", {}) if entry.kind == "propose" else asked), recorded.payload


@dataclass(frozen=True)
class Recorded:
    """Where it stands what a step was asked. `scripted`, `played`: no model answered, but a script, or the one that is played."""

    payload: Payload
    scripted: bool = False
    played: bool = False


def recorded_inputs(run: Run, entries: Sequence[JournalEntry]) -> dict[str, Recorded]:
    """What steps were asked last, by step. In a fork it stands also in the logs of those that it was forked from."""
    wanted = {entry.step: INPUTS[entry.kind] for entry in entries if entry.kind in INPUTS}
    found: dict[str, tuple[str, bool, bool]] = {}
    at: Run | None = run
    while at is not None and len(found) < len(wanted):
        told = Event.objects.filter(run_month=at.month, run_id=at.pk, type__in={kind for kind, _ in wanted.values()}).order_by("-seq")
        for kind, body, payloads in told.values_list("type", "body", "payloads").iterator():
            if len(found) == len(wanted):
                break
            data = orjson.loads(body)["data"]
            step = data.get("step")
            if step in wanted and step not in found and wanted[step][0] == kind and wanted[step][1] in payloads:
                found[step] = payloads[wanted[step][1]], data.get("scripted", False), data.get("endpoint") == "played"
        at = at.forked_from
    kept = Payload.objects.select_related("key").in_bulk(pk for pk, *_ in found.values())
    return {step: Recorded(kept[UUID(pk)], *by) for step, (pk, *by) in found.items()}


def allowed_without(run: Run) -> set[str]:
    """The actions that a policy allowed without a person, of this run and of those that it was forked from."""
    found: set[str] = set()
    at: Run | None = run
    while at is not None:
        told = Event.objects.filter(run_month=at.month, run_id=at.pk, type="action.granted").values_list("body", flat=True)
        found |= {data["action"] for data in (orjson.loads(body)["data"] for body in told) if data.get("automatic")}
        at = at.forked_from
    return found
