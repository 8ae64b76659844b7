"""A run's log as parsed lines, and what is told from them. Thin: it reads, `timeline` and `evidence` tell."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import orjson

from artifacts.models import Artifact
from runs import evidence, stream, timeline
from runs.evidence import Answer
from runs.models import Event, Run
from runs.story.shapes import Story

Lines = list[dict[str, Any]]


def lines(run: Run) -> Lines:
    """The log up to where `run` was read, as parsed wire lines. Nothing that came since, so that row and log agree."""
    return list(_pages(run.pk, run.seq))


def _pages(run_id: UUID, head: int) -> Iterator[dict[str, Any]]:
    after = 0
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


def answers(run: Run, told: Lines | None = None) -> tuple[Answer, ...]:
    """The seven questions about a run. `told`: its lines, if they were read already."""
    return evidence.answers(lines(run) if told is None else told, loose=loose_artifacts(run))


def loose_artifacts(run: Run) -> list[str]:
    """Names of artifacts of a run that no event made: they can't be shown as evidence."""
    named = Event.objects.filter(run_month=run.month, run_id=run.pk, artifact__isnull=False).values("artifact")
    loose = Artifact.objects.filter(run_id=run.pk).exclude(pk__in=named)
    return [f"{name} v{version}" for name, version in loose.values_list("name", "version")]
