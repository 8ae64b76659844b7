"""The story of a run: a pure fold of its log, at any sequence number.

`fold(lines)` takes parsed lines of `runs.stream` and gives a `Story`: plan, timeline, effects, artifacts, usage and the sentence of the
moment. It asks no database and no clock, so the same lines always give the same story, however they are cut into pieces.
"""

from collections.abc import Iterable, Mapping
from typing import Any

# the tellers register themselves with `draft`
from runs.story import course, deeds, made, people, work  # noqa: F401
from runs.story.draft import TELLERS, Draft
from runs.story.now import now_of
from runs.story.outline import effects_of, plan_of, sections_of
from runs.story.shapes import Story
from runs.story.wire import read


class Fold:
    """A story that is still being told. `feed` it lines in order; `story()` is what they tell so far."""

    def __init__(self) -> None:
        self._draft = Draft()

    def feed(self, lines: Iterable[Mapping[str, Any]], upto: int | None = None) -> "Fold":
        """Take in the lines after those it has, at most up to event `upto`. A line it has already is passed over."""
        for line in lines:
            if upto is not None and line["seq"] > upto:
                break
            if line["seq"] > self._draft.seq:
                self._tell(line)
        return self

    def _tell(self, raw: Mapping[str, Any]) -> None:
        line, draft = read(raw), self._draft
        draft.seq, draft.head, draft.last_at = line.seq, line.hash, line.at
        TELLERS.get(line.type, Draft.plain)(draft, line)

    def story(self) -> Story:
        draft = self._draft
        return Story(
            seq=draft.seq,
            state=draft.state,
            since=draft.since,
            last_at=draft.last_at,
            ended_at=draft.ended_at,
            began=draft.began,
            plan=plan_of(draft),
            sections=sections_of(draft),
            now=now_of(draft),
            actions=tuple(draft.actions.values()),
            effects=effects_of(draft),
            artifacts=tuple(draft.artifacts),
            usage=draft.usage,
            head=draft.head,
        )


def fold(lines: Iterable[Mapping[str, Any]], upto: int | None = None) -> Story:
    """The story that some lines tell, from event 1, in order; with `upto` as it stood at that event."""
    return Fold().feed(lines, upto).story()
