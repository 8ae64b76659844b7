"""The ledger of a run's page: what it did outside, and what was undone of that, also after its end."""

from collections.abc import Iterable
from dataclasses import dataclass

from runs import lifecycle
from runs.engine import undoing
from runs.engine.undoing import Undoing
from runs.models import Run
from runs.story.shapes import Effect, Elsewhere, Part, Rich, Tool


@dataclass(frozen=True)
class Ledgered:
    """One effect, with the run that undoes it after the end of its own, if somebody asked for that."""

    effect: Effect
    later: Undoing | None = None
    may_undo: bool = False  # whether whoever looks can ask for it now
    goes_on: bool = False  # its run has not ended: until then nothing is undone by itself

    @property
    def state(self) -> str:
        return "undone" if self.later and self.later.undone else self.effect.state

    @property
    def told(self) -> Rich:
        if self.goes_on and _can_be(self.effect) and self.effect.state == "done" and not self.effect.earlier:
            return ("Can be undone once the run has ended.",)
        if self.later is None:
            return self.effect.told
        by = Elsewhere(str(self.later.run.pk), self.later.run.ref)
        if self.later.undone:
            return ("Undone by ", by, ".")
        return ("Being undone by ", by, ".") if self.later.open else ("Not undone by ", by, ". It can be asked for again.")


def ledgered(run: Run, effects: Iterable[Effect], *, may: bool) -> list[Ledgered]:
    """The effects in their order. `may`: whether whoever looks may have something undone. No query unless the run has ended."""
    found = list(effects)
    if not lifecycle.ended(run.state) or not run.workflow or not any(_can_be(effect) for effect in found):
        goes_on = run.parent_id is None and not lifecycle.ended(run.state) and run.state not in lifecycle.UNDOING
        return [Ledgered(effect, goes_on=goes_on) for effect in found]
    later = undoing.of(run)
    return [_row(effect, later.get(effect.seq), may) for effect in found]


def row_of(rows: Iterable[Ledgered], seq: int) -> Ledgered | None:
    """The row of the effect that event `seq` tells of, if there is more to say of it than that event does."""
    return next((row for row in rows if row.effect.seq == seq and (row.later or row.may_undo)), None)


def undone_since(rows: Iterable[Ledgered]) -> Rich:
    """What of it was undone after the run's end, and by which run: what its own log can’t say. Empty if nothing was."""
    parts: list[Part] = []
    for row in rows:
        if row.later and row.later.undone:
            by = Elsewhere(str(row.later.run.pk), row.later.run.ref)
            parts += ["; " if parts else "Undone since: ", row.effect.subject or Tool(row.effect.tool), ", by ", by]
    return (*parts, ".") if parts else ()


def _row(effect: Effect, later: Undoing | None, may: bool) -> Ledgered:
    asked = later is not None and (later.open or later.undone)
    return Ledgered(effect, later, may and not asked and _can_be(effect))


def _can_be(effect: Effect) -> bool:
    return effect.can_undo and effect.state in ("done", "failed")
