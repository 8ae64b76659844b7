"""A run's log as parsed lines, and what is told from them. Thin: it reads, `timeline` and `evidence` tell."""

import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any
from uuid import UUID

import orjson

from artifacts.models import Artifact
from runs import evidence, stream, timeline
from runs.evidence import Answer
from runs.models import Event, Run
from runs.story.shapes import Story
from runs.timeline import Fold

Lines = list[dict[str, Any]]
KEPT = 5.0  # seconds; a text that was erased is pushed no longer than that
RUNS_KEPT = 32


@dataclass(frozen=True)
class Told:
    """A run's lines up to one event, and what they tell."""

    lines: Lines
    story: Story
    answers: tuple[Answer, ...]
    read_at: float  # when the first of its lines was read, by the monotonic clock


def told(run: Run) -> Told:
    """All that the log tells up to where `run` was read. Nothing that came since, so that row and log agree."""
    return _tell(run, lines(run), time.monotonic())


def told_lately(run: Run) -> Told:
    """The same for a push: many viewers of a long run share one reading, and only what is new is read and told."""
    with _lock:
        kept = _kept.setdefault(run.pk, _Kept())
        _kept.move_to_end(run.pk)
        while len(_kept) > RUNS_KEPT:
            _kept.popitem(last=False)
    with kept.lock:
        return kept.upto(run)


class _Kept:
    """What a run has told lately, and the story that is still being told. `lock`: of several viewers one reads, and the others get it."""

    def __init__(self) -> None:
        self.lock, self._fold = Lock(), Fold()
        self._told: Told | None = None

    def upto(self, run: Run) -> Told:
        last = self._told
        if last is not None and len(last.lines) > run.seq:  # who looked at the run before others read on
            return told(run)
        if last is None or time.monotonic() - last.read_at > KEPT:
            self._fold, last = Fold(), Told([], Fold().story(), (), time.monotonic())
        elif len(last.lines) == run.seq:
            return last
        more = list(_pages(run.pk, len(last.lines), run.seq))
        found, story = [*last.lines, *more], self._fold.feed(more).story()
        self._told = Told(found, story, evidence.answers(found, loose=loose_artifacts(run)), last.read_at)
        return self._told


_kept: OrderedDict[UUID, _Kept] = OrderedDict()
_lock = Lock()


def _tell(run: Run, found: Lines, read_at: float) -> Told:
    return Told(found, timeline.fold(found), evidence.answers(found, loose=loose_artifacts(run)), read_at)


def lines(run: Run) -> Lines:
    """The log up to where `run` was read, as parsed wire lines."""
    return list(_pages(run.pk, 0, run.seq))


def _pages(run_id: UUID, after: int, head: int) -> Iterator[dict[str, Any]]:
    while after < head:
        page = stream.read(run_id, after=after)
        for raw, seq in zip(page.lines, page.seqs, strict=True):
            if seq > head:
                return
            yield orjson.loads(raw)
        if not page.seqs:
            return
        after = page.cursor


def story(run: Run) -> Story:
    """The run as its log tells it."""
    return timeline.fold(lines(run))


def answers(run: Run) -> tuple[Answer, ...]:
    """The seven questions about a run, from its log."""
    return evidence.answers(lines(run), loose=loose_artifacts(run))


def loose_artifacts(run: Run) -> list[str]:
    """Names of artifacts of a run that no event made: they can't be shown as evidence."""
    named = Event.objects.filter(run_month=run.month, run_id=run.pk, artifact__isnull=False).values("artifact")
    loose = Artifact.objects.filter(run_id=run.pk).exclude(pk__in=named)
    return [f"{name} v{version}" for name, version in loose.values_list("name", "version")]
