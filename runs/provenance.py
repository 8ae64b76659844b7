"""Where an artifact came from, and where it went: read from the log, for an artifact that no event names is no evidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from access.errors import NotFound
from runs import presenting, reading, timeline
from runs.models import Run
from runs.story.shapes import Action, At, Item, Made, Rich, Story, Who

SOURCES, LISTED = 8, 4  # earlier things that are told, and as many as are listed without a fold


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
    """A version of the artifact, when it was made, and the actions that carry it."""

    made: Made
    at: datetime
    newest: bool
    actions: tuple[Action, ...] = ()

    @property
    def sent(self) -> Action | None:
        """The action with which it went out, if it did."""
        return next((action for action in self.actions if action.state in ("executed", "verified")), None)

    @property
    def attached(self) -> Action | None:
        """The last action that carries it."""
        return self.actions[-1] if self.actions else None


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

    @property
    def earlier(self) -> Version | None:
        """The version before this one."""
        return next((each for each in self.versions if each.made.seq < self.made.seq), None)

    @property
    def folded(self) -> tuple[Source, ...]:
        """What lies between the first two of its sources and the last, where those are many."""
        return self.sources[2:-1] if len(self.sources) > LISTED else ()

    @property
    def because(self) -> Source | None:
        """What somebody said last, between the two."""
        after = self.earlier.made.seq if self.earlier else self.made.seq
        return next((each for each in reversed(self.sources) if each.icon == "person" and each.seq > after), None)


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
        versions=tuple(_versions(story, made.name, told)),
        sources=tuple(_sources(story, made))[-SOURCES:],
        actions=_carriers(story, made, told) or _actions(story, made),
        names=presenting.names_in(told, run),
    )


def _item(story: Story, seq: int) -> Item:
    return next(item for section in story.sections for item in section.items if item.first <= seq <= item.last)


def _versions(story: Story, name: str, told: reading.Lines) -> list[Version]:
    """The newest first."""
    made = [each for each in reversed(story.artifacts) if each.name == name]
    return [Version(each, _item(story, each.seq).at, each is made[0], _carriers(story, each, told)) for each in made]


def _carriers(story: Story, made: Made, told: reading.Lines) -> tuple[Action, ...]:
    """The actions that carry it: an exact action names each of its files by the commitment to its bytes, as the log has it."""
    commitment = told[made.seq - 1]["body"].get("payloads", {}).get("content", "")
    exact = ((action, told[action.seq - 1]["texts"].get("canonical", {}).get("text", "")) for action in story.actions)
    return tuple(action for action, text in exact if commitment and f'"{commitment}"' in text)


def _sources(story: Story, of: Made) -> list[Source]:
    """Artifacts, and people's words, from before it was made. Its own earlier versions are listed as such."""
    made = {each.seq: each for each in story.artifacts}
    found = []
    for section in story.sections:
        for item in section.items:
            if item.last >= of.seq:
                continue
            if item.kind == "artifact" and (item.first not in made or made[item.first].name != of.name):
                found.append(Source("file", item.title[:1], made.get(item.first), item.first))
            elif item.kind == "signal" and item.said:
                found.append(Source("person", item.title, None, item.first))
    return found


def _actions(story: Story, made: Made) -> tuple[Action, ...]:
    """The actions proposed after it, that may carry it; up to the next version of it."""
    later = [each.seq for each in story.artifacts if each.name == made.name and each.seq > made.seq]
    upto = min(later, default=story.seq + 1)
    return tuple(action for action in story.actions if made.seq < action.seq < upto and action.needs)
