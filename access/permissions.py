"""Rights in words: what the page of permissions and the page of a role say of each. Pure, but for what `reach` counts."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from access import reach, rules
from access.models import Role


@dataclass(frozen=True)
class Right:
    """A capability as people read it. `could`: the rest of “24 people could …”; {runs}, {actions}, {artifacts} are counted."""

    capability: str
    title: str
    about: str
    could: str
    more: str = ""


@dataclass(frozen=True)
class Cell:
    """What one role has of one right: a tick, a dash, or words."""

    held: bool
    words: str = ""


@dataclass(frozen=True)
class Effect:
    """What one right that comes or goes means."""

    title: str
    gained: bool
    sentence: str


SEE = (
    Right("runs.view", "Runs and evidence", "Timeline, effects, checks, reports", "see {runs} and what they did"),
    Right(
        "runs.events",
        "Raw events",
        "Every event with its payload reference",
        "read the event lists of {runs}",
        "Payloads stay hidden by label.",
    ),
    Right("approvals.view", "Proposed actions", "What waits and what was decided, as redacted", "see {actions}, as redacted"),
    Right("artifacts.view", "Artifacts", "As redacted", "open {artifacts}, as redacted"),
    Right("reveal.internal", "Reveal internal values", "Without a reason; each time is recorded", "reveal internal values"),
    Right(
        "reveal.personal",
        "Reveal personal data, with a reason",
        "Anywhere, and not only on an action they decide on; each time is recorded",
        "reveal personal data anywhere, with a reason",
    ),
    Right("audit.view", "Access log", "Who changed, revealed and was refused what", "read who changed, revealed and was refused what"),
)
DECIDE = (
    Right(
        "approvals.decide",
        "Approve, edit, reject, ask",
        "Sees every argument of an action they decide on",
        "decide on proposed actions and see all of their arguments",
        "Nobody decides on a run they own or started, or on what their own agent proposed.",
    ),
)
ACT = (
    Right("runs.start", "Start runs", "Also forks of them", "start runs"),
    Right("runs.steer", "Steer, cancel and undo", "Context, revise, pause, resume, cancel, undo", "steer, cancel and undo {runs}"),
    Right(
        "runs.recover", "Say what happened", "When an outcome is unknown; recover stuck runs", "say what happened and recover stuck runs"
    ),
    Right(
        "approvals.freeze",
        "Freeze and unfreeze",
        "An agent, a tool or the workspace",
        "freeze and unfreeze agents, tools and the workspace",
    ),
    Right("policies.manage", "Change approval policies", "Which action needs whom", "change what using a tool takes"),
    Right("access.manage", "Change people and roles", "Also agents, keys and webhook sources", "change who may do what"),
    Right("redaction.manage", "Change what is hidden", "Redaction policies", "change what is hidden"),
    Right("payloads.erase", "Erase payloads for good", "Bytes, key and rendition", "erase payloads for good"),
)
GROUPS = (("See", SEE), ("Decide", DECIDE), ("Act", ACT))
NEVER = "Decide on a run they own"  # fixed for every role: the gate holds it


def groups() -> list[tuple[str, list[Right]]]:
    """The rights that people can have, in the order in which they are drawn. One that has no words here yet is drawn with the house's."""
    known = {right.capability for _, rights in GROUPS for right in rights}
    rest = [_unnamed(each) for each in rules.CAPABILITIES if each in rules.PEOPLES and each not in known]
    return [
        (name, [each for each in rights if each.capability in rules.PEOPLES] + (rest if name == "Act" else [])) for name, rights in GROUPS
    ]


def right(capability: str) -> Right:
    return next((each for _, rights in groups() for each in rights if each.capability == capability), _unnamed(capability))


def cell(capability: str, holds: Collection[str], *, second: bool = False) -> Cell:
    """`second`: changes of roles take a second admin here."""
    if capability == "access.manage" and capability in holds and second:
        return Cell(True, "Needs a second admin")
    if capability == "reveal.personal" and capability not in holds and "approvals.decide" in holds:
        return Cell(False, "Open action only")
    return Cell(capability in holds)


def effects(workspace_id: UUID, people: int, more: Sequence[str], less: Sequence[str]) -> list[Effect]:
    """What a change would mean to those who hold the role, with numbers."""
    gained = [(right(each), True) for each in more] + [(right(each), False) for each in less]
    counted = reach.said(workspace_id, {what for each, _ in gained for what in re.findall(r"{(\w+)}", each.could)})
    return [Effect(each.title, gains, _sentence(each, people, gains, counted)) for each, gains in gained]


def width(more: Collection[str], less: Collection[str]) -> str:
    """“Widens access”, “Narrows access”, or both."""
    return "Widens and narrows access" if more and less else "Widens access" if more else "Narrows access" if less else ""


def labels(holds: Collection[str]) -> list[tuple[str, str, str, str]]:
    """What a role sees of each label: label, what it sees, what it may reveal, for how long."""
    internal = ("All of it, without a reason", "While the page is open") if "reveal.internal" in holds else ("", "")
    personal = ("", "")
    if "reveal.personal" in holds:
        personal = "Anywhere, with a reason", "10 minutes"
    elif "approvals.decide" in holds:
        personal = "On an action they decide on, with a reason", "10 minutes"
    return [
        ("public", "The value", "Nothing is hidden", ""),
        ("internal", "What the detectors leave of it", *internal),
        ("personal", "That there is one", *personal),
        ("secret", "That there is one", "Nobody can", ""),
    ]


def reveals(roles: Iterable[Role]) -> list[tuple[str, str, str, str]]:
    """The labels of a workspace: label, to whom it is shown, who may reveal it, for how long."""
    all_of = {each: [role.name for role in roles if each in rules.held_by(role)] for each in ("reveal.internal", "reveal.personal")}
    internal, personal = (_either(all_of[each]) for each in ("reveal.internal", "reveal.personal"))
    who = "Who decides on the open action it belongs to, with a reason" + (f"; {personal} anywhere" if personal else "")
    return [
        ("public", "Everyone here", "Nothing is hidden", ""),
        ("internal", "Who sees the run, as redacted", f"{internal}, no reason needed" if internal else "Nobody", "While the page is open"),
        ("personal", "Nobody by default", who, "10 minutes"),
        ("secret", "Nobody", "Nobody. It has no Reveal.", ""),
    ]


def _sentence(of: Right, people: int, gains: bool, counted: dict[str, str]) -> str:
    could = of.could.format_map(counted)
    if not people:
        return f"Nobody holds it yet. Whoever does could {could if gains else f'no longer {could}'}."
    who = "1 person" if people == 1 else f"{people} people"
    said = f"{who} could {could}." if gains else f"{who} could no longer {could}."
    return f"{said} {of.more}" if of.more and gains else said


def _unnamed(capability: str) -> Right:
    words = rules.CAPABILITIES.get(capability, capability)
    return Right(capability, words, "", words[:1].lower() + words[1:])


def _either(names: Sequence[str]) -> str:
    shown = [name.capitalize() if at == 0 else name for at, name in enumerate(names)]
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
