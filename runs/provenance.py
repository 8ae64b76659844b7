"""Where an artifact came from, and where it went: read from the log, for an artifact that no event names is no evidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from access.errors import NotFound
from runs import presenting, reading, timeline
from runs.models import Run
from runs.story.shapes import Action, At, Item, Made, Rich, Story, Who

SOURCES = 8  # earlier things that are listed


@dataclass(frozen=True)
class Source:
    """Something that was there when the artifact was made."""

    icon: str
    title: Rich
    made: Made | None
    seq: int

    @property
    def link(self) -> Rich:
        return (At(self.seq),)


@dataclass(frozen=True)
class Version:
    """A version of the artifact, and when it was made."""

    made: Made
    at: datetime
    newest: bool


@dataclass(frozen=True)
class Around:
    """An artifact in its run's log."""

    made: Made
    at: datetime
    who: Who
    versions: tuple[Version, ...]
    sources: tuple[Source, ...]
    actions: tuple[Action, ...]
    names: Mapping[str, str]

    @property
    def link(self) -> Rich:
        return (At(self.made.seq),)

    @property
    def by(self) -> Rich:
        return (self.who,)


def around(run: Run, artifact_id: UUID) -> Around:
    """NotFound if no event of the run made it."""
    told = reading.lines(run)
    story = timeline.fold(told)
    made = next((each for each in story.artifacts if each.id == str(artifact_id)), None)
    if made is None:
        raise NotFound
    body = told[made.seq - 1]["body"]
    return Around(
        made=made,
        at=_item(story, made.seq).at,
        who=Who(body["actor"]["kind"], body["actor"]["id"]),
        versions=tuple(_versions(story, made.name)),
        sources=tuple(_sources(story, made.seq))[-SOURCES:],
        actions=_actions(story, made),
        names=presenting.names_in(told, run),
    )


def _item(story: Story, seq: int) -> Item:
    return next(item for section in story.sections for item in section.items if item.first <= seq <= item.last)


def _versions(story: Story, name: str) -> list[Version]:
    """The newest first."""
    made = [each for each in reversed(story.artifacts) if each.name == name]
    return [Version(each, _item(story, each.seq).at, newest=each is made[0]) for each in made]


def _sources(story: Story, before: int) -> list[Source]:
    """Artifacts, and people's words, from before it was made."""
    made = {each.seq: each for each in story.artifacts}
    found = []
    for section in story.sections:
        for item in section.items:
            if item.last >= before:
                continue
            if item.kind == "artifact":
                found.append(Source("file", item.title[:1], made.get(item.first), item.first))
            elif item.kind == "signal" and item.said:
                found.append(Source("person", item.title, None, item.first))
    return found


def _actions(story: Story, made: Made) -> tuple[Action, ...]:
    """The actions proposed after it, that may carry it; up to the next version of it."""
    later = [each.seq for each in story.artifacts if each.name == made.name and each.seq > made.seq]
    upto = min(later, default=story.seq + 1)
    return tuple(action for action in story.actions if made.seq < action.seq < upto and action.needs)
