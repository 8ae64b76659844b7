"""Where a fork of a run can begin, what of its input can be changed there, and which runs were forked from one another."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from access import rows, rules
from access.errors import BadInput
from access.rules import Actor
from artifacts import vault
from runs.engine import forking, workflow
from runs.engine.forking import Recorded
from runs.engine.journal import result_of
from runs.models import JournalEntry, Run
from runs.story.shapes import Rich, Step, Text
from runs.story.wire import object_of
from runs.story.work import answerer

SHOWN = 60  # steps that a page offers: of very many, the newest
DID = {"step": "Used a tool", "child": "Started a run of its own"}
BECAME = {"Approved": "People approved it", "Expired": "Nobody decided in time", "Withdrawn": "It was withdrawn"}
FREE = "Its policy allowed it; nobody was asked"


@dataclass(frozen=True)
class Field:
    """One name of a step's input. `shown`: what it was, as everybody sees it; empty if all of it is hidden."""

    name: str
    shown: str
    recorded: Any  # what it was; never shown
    typed: str = ""  # what somebody typed for it, for a form that comes back

    @property
    def hint(self) -> str:
        """How something else is written."""
        if isinstance(self.recorded, str):
            return "Text"
        return "One a line" if _is_texts(self.recorded) else "JSON"


@dataclass(frozen=True)
class Place:
    """Where a fork can begin: at this step, which is done anew; or at the start if it is none."""

    step: str
    title: Rich
    says: str
    fields: tuple[Field, ...] = ()
    open: bool = False  # it is not completed yet

    @property
    def changed(self) -> bool:
        return any(field.typed for field in self.fields)

    def with_typed(self, typed: Mapping[str, str]) -> "Place":
        """With what a form has for its fields: under edit|step|name."""
        return replace(self, fields=tuple(replace(each, typed=typed.get(f"edit|{self.step}|{each.name}", "")) for each in self.fields))

    def edits(self) -> dict[str, Any]:
        """What was typed, as values. What was left empty stays as it was. BadInput if it can't be read."""
        return {field.name: _read(field, field.typed) for field in self.fields if field.typed.strip()}


def places(run: Run, also: str = "") -> list[Place]:
    """The start, and each step with which a fork can begin, in order; of very many the newest, and `also`.

    A fixed number of queries, but for the forks it stems from.
    """
    known = workflow.loaded(run.workflow, run.workflow_version)
    begin = Place("", ("The start",), "Nothing is taken over. What was done outside keeps its key where it is done the same again.")
    if known is None:
        return []
    entries = [entry for entry in forking.entries_of(run) if entry.kind in forking.FROM]
    entries = [entry for number, entry in enumerate(entries, SHOWN - len(entries)) if number >= 0 or entry.step == also]
    inputs = forking.recorded_inputs(run, entries)
    shown = vault.shown([recorded.payload.pk for recorded in inputs.values()] + ([run.input_id] if run.input_id else []))
    if run.input is not None:
        given = orjson.loads(vault.opened(run.input) or b"{}")
        fields = _fields(forking.takes(known), given, _renditions(shown.get(run.input_id)))
        begin = Place(begin.step, begin.title, begin.says, fields)
    free = forking.allowed_without(run) if any(entry.kind == "propose" for entry in entries) else set()
    return [begin, *(_place(entry, inputs.get(entry.step), shown, free) for entry in entries)]


def _place(entry: JournalEntry, recorded: Recorded | None, shown: Mapping[Any, vault.Shown], free: Collection[str]) -> Place:
    fields: tuple[Field, ...] = ()
    if recorded is not None:
        payload = recorded.payload
        asked, told = orjson.loads(vault.opened(payload) or b"{}"), _renditions(shown.get(payload.pk))
        if entry.kind == "propose":
            asked, told = asked.get("arguments", {}), told.get("arguments", {})
        fields = _fields(forking.changeable(entry, asked), asked, told if isinstance(told, dict) else {})
    title, says = (Step(entry.step),), DID.get(entry.kind, "")
    if entry.kind == "model":
        who = answerer(scripted=bool(recorded and recorded.scripted), played=bool(recorded and recorded.played))
        says = f"{who} answered" if entry.state == "done" else f"{who} was asked"
    elif entry.kind == "propose":
        says = _became(entry, free)
        title = title if says == FREE else ("Ask for approval: ", *title)  # what it does comes later, and is no place of its own
    return Place(entry.step, title, says, fields, entry.state != "done")


def _became(entry: JournalEntry, free: Collection[str]) -> str:
    """What became of an action that was put up."""
    if entry.state != "done":
        return "People are asked" if entry.action_id else "Nobody was asked"
    kept = result_of(entry)
    if kept["action"] in free:
        return FREE
    return BECAME.get(kept["word"], "Another plan was asked for" if kept["word"] == "Revised" else "A reviewer rejected it")


def _fields(names: Sequence[str], recorded: Mapping[str, Any], shown: Mapping[str, Any]) -> tuple[Field, ...]:
    return tuple(Field(name, _words(shown.get(name)), recorded.get(name)) for name in names)


def _renditions(text: vault.Shown | None) -> dict[str, Any]:
    """What may be shown of an input, by name; nothing of one that is hidden as a whole, as a prompt is."""
    return object_of(Text(text.text, text.label, text.media_type)) if text and not text.erased_at else {}


def _words(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return "\n".join(value) if _is_texts(value) and value else orjson.dumps(value).decode()


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _read(field: Field, text: str) -> Any:
    text = text.replace("\r\n", "\n")
    if isinstance(field.recorded, str):
        return text
    if _is_texts(field.recorded) and not text.lstrip().startswith("["):
        return [line.strip() for line in text.split("\n") if line.strip()]
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise BadInput(f'“{field.name}” is no text: write it as JSON, such as 12, true or {{"name": "value"}}.') from None


@dataclass(frozen=True)
class Kin:
    """The runs next to this one: from which it was forked, what was forked from it, and whose work it does a part of."""

    parent: Run | None
    forks: tuple[Run, ...]
    part_of: Run | None = None

    def __bool__(self) -> bool:
        return self.parent is not None or self.part_of is not None or bool(self.forks)


def kin(run: Run, actor: Actor) -> Kin:
    """Those of them that this actor may see. No query for a run that has no fork, is none and is no part of another."""
    seen = rules.visible(actor, Run, "runs.view").select_related("title", "agent", "owner")
    part_of = rows.only(seen.filter(pk=run.parent_id)) if run.parent_id else None
    if run.lineage is None:
        return Kin(None, (), part_of)
    runs = list(seen.filter(lineage=run.lineage).order_by("created_at"))
    parent = next((each for each in runs if each.pk == run.forked_from_id), None)
    return Kin(parent, tuple(each for each in runs if each.forked_from_id == run.pk), part_of)
