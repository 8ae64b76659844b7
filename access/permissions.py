"""Rights in words: what the page of permissions and the page of a role say of each. Pure, but for what `reach` counts."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar
from uuid import UUID

from django.db.models import Model

from access import reach, rules, wording
from access.models import Role
from access.rules import Actor

READ = ("access.manage", "policies.manage", "audit.view")  # one of these, to see the page of permissions
M = TypeVar("M", bound=Model)
R = TypeVar("R")


def found(actor: Actor, model: type[M], pk: object, capability: str | None, *, related: tuple[str, ...] = ()) -> M:
    """A thing of that page, if this person holds the capability where it is; to read it, one of those that open the page. Else NotFound."""
    for each in (capability,) if capability else READ:
        if actor.workspaces(each) and rules.visible(actor, model, each).filter(pk=pk).exists():
            return rules.get(actor, model, pk, each, related=related)
    reader = next((each for each in READ if actor.workspaces(each)), READ[0])
    return rules.get(actor, model, pk, capability or reader, related=related)


@dataclass(frozen=True)
class Right:
    """A capability as people read it. `could`: the rest of “24 people could …”; {runs}, {actions}, {artifacts} are counted."""

    capability: str
    title: str
    about: str
    could: str
    more: str = ""

    @property
    def own(self) -> str:
        """The same for the person's own teams alone, as a role has it; empty if there is no such thing."""
        return self.capability + rules.TEAM if self.capability in rules.SCOPED else ""


@dataclass(frozen=True)
class Group(Generic[R]):
    """Rights that are drawn together, each as the page needs it. `never`: what no role may ever, drawn with them; most have none."""

    name: str
    rights: Sequence[R]
    never: str = ""


@dataclass(frozen=True)
class Cell:
    """What one role has of one right: a tick, a dash, or words. `level`: how far it reaches, as `level` says."""

    level: int
    words: str = ""

    @property
    def held(self) -> bool:
        return self.level > 0


@dataclass(frozen=True)
class Effect:
    """What it means that one right is another's than it was: of nobody's runs, of the own teams' or of everywhere."""

    title: str
    was: str
    will: str
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
    Right(
        "payloads.erase", "Erase payloads for good", "The content and its key; the log keeps that it was there", "erase payloads for good"
    ),
)
NEVER = "Decide on a run they own"  # fixed for every role: the gate holds it
GROUPS = (Group("See", SEE), Group("Decide", DECIDE, NEVER), Group("Act", ACT))
LEVELS = ("No", "Own team", "Everywhere")
# what a right opens, where it does so in the own teams alone
OWN = {"runs": "the runs of their own teams", "actions": "the actions of their own teams", "artifacts": "the artifacts of their own teams"}
# what the page of permissions folds away: who needs it looks for it
SELDOM = frozenset(("approvals.view", "artifacts.view", "audit.view", "approvals.freeze", "redaction.manage", "payloads.erase"))


def groups() -> list[Group[Right]]:
    """The rights that people can have, in the order in which they are drawn. One that has no words here yet is drawn with the last."""
    known = {right.capability for group in GROUPS for right in group.rights}
    rest = [_unnamed(each) for each in rules.CAPABILITIES if each in rules.PEOPLES and each not in known]
    found = [[each for each in group.rights if each.capability in rules.PEOPLES] for group in GROUPS]
    found[-1] += rest
    return [replace(group, rights=rights) for group, rights in zip(GROUPS, found, strict=True)]


def moved(now: Collection[str], then: Collection[str]) -> list[Right]:
    """The rights that a change moves."""
    return [each for group in groups() for each in group.rights if level(each.capability, now) != level(each.capability, then)]


def stays(now: Collection[str], moved: Collection[Right]) -> list[Group[tuple[Right, str]]]:
    """What a role may do and a change leaves alone, in its groups, and how far it reaches. What it may not is not listed."""
    found = [(group, [(each, _reaches(each.capability, now)) for each in group.rights if each not in moved]) for group in groups()]
    return [Group(of.name, kept, of.never) for of, rights in found if (kept := [(each, words) for each, words in rights if words])]


def _reaches(capability: str, holds: Collection[str]) -> str:
    return cell(capability, holds).words or (LEVELS[2] if level(capability, holds) else "")


def right(held: str) -> Right:
    """A right as a role has it: one for the own teams alone says so in its title."""
    capability = held.removesuffix(rules.TEAM)
    found = next((each for group in groups() for each in group.rights if each.capability == capability), _unnamed(capability))
    return found if held == capability else replace(found, title=f"{found.title}, own team")


def level(capability: str, holds: Collection[str]) -> int:
    """How far it reaches: 0 not at all, 1 in the own teams, 2 everywhere. `LEVELS` has the words."""
    return 2 if capability in holds else 1 if capability + rules.TEAM in holds else 0


def cell(capability: str, holds: Collection[str], *, second: bool = False) -> Cell:
    """`second`: changes of roles take a second admin here."""
    if capability == "access.manage" and capability in holds and second:
        return Cell(2, "Needs a second admin")
    reaches = level(capability, holds)
    if capability == "reveal.personal" and not reaches and level("approvals.decide", holds):
        return Cell(0, "Open action only")
    return Cell(reaches, LEVELS[1] if reaches == 1 else "")


def effects(workspace_id: UUID, people: int, more: Sequence[str], less: Sequence[str]) -> list[Effect]:
    """What a change would mean to those who hold the role, with numbers."""
    moved = moves(more, less)
    counted = reach.said(workspace_id, {what for each, *_ in moved for what in re.findall(r"{(\w+)}", each.could)})
    return [Effect(each.title, LEVELS[was], LEVELS[will], _sentence(each, people, was, will, counted)) for each, was, will in moved]


def width(more: Collection[str], less: Collection[str]) -> str:
    """“Widens access”, “Narrows access”, or both."""
    moved = moves(more, less)
    widens, narrows = (any(will > was for _, was, will in moved), any(will < was for _, was, will in moved))
    return "Widens and narrows access" if widens and narrows else "Widens access" if widens else "Narrows access" if narrows else ""


def moves(more: Collection[str], less: Collection[str]) -> list[tuple[Right, int, int]]:
    """Each right that reaches another way, how far it did and how far it will; those first that reach further."""
    names = list(dict.fromkeys(each.removesuffix(rules.TEAM) for each in (*more, *less)))
    moved = [(right(each), level(each, less), level(each, more)) for each in names]
    return sorted(moved, key=lambda each: each[1] > each[2])


def labels(holds: Collection[str]) -> list[tuple[str, str, str, str]]:
    """What a role sees of each label: label, what it sees, what it may reveal, for how long."""
    internal = ("All of it, without a reason", "While the page is open") if "reveal.internal" in holds else ("", "")
    personal = ("", "")
    if level("reveal.internal", holds) == 1:
        internal = ("In their own teams, without a reason", "While the page is open")
    if reaches := level("reveal.personal", holds):
        personal = ("Anywhere, with a reason" if reaches == 2 else "On their own teams’ runs, with a reason"), "10 minutes"
    elif level("approvals.decide", holds):
        personal = "On an action they decide on, with a reason", "10 minutes"
    return [
        ("public", "The value", "Nothing is hidden", ""),
        ("internal", "All but what is hidden", *internal),
        ("personal", "That there is one", *personal),
        ("secret", "That there is one", "Nobody can", ""),
    ]


def reveals(roles: Iterable[Role]) -> list[tuple[str, str, str, str]]:
    """The labels of a workspace: label, to whom it is shown, who may reveal it, for how long."""
    kept = [(role.name, rules.held_by(role)) for role in roles]
    all_of = {
        each: [name if reaches == 2 else f"{name} of the team" for name, holds in kept if (reaches := level(each, holds))]
        for each in ("reveal.internal", "reveal.personal")
    }
    internal, personal = (_either(all_of[each]) for each in ("reveal.internal", "reveal.personal"))
    who = "Who decides on the action, with a reason" + (f"; {personal} anywhere" if personal else "")
    return [
        ("public", "Everyone here", "Nothing is hidden", ""),
        ("internal", "Who sees the run, redacted", internal or "Nobody", "While the page is open"),
        ("personal", "Nobody by default", who, "10 minutes"),
        ("secret", "Nobody", "Nobody. It has no Reveal.", ""),
    ]


def _sentence(of: Right, people: int, was: int, will: int, counted: dict[str, str]) -> str:
    could = of.could.format_map(OWN if will == 1 else counted)
    if will == 1 and could == of.could:
        could = f"{could}, in their own teams"
    could = f"{could}, and no longer elsewhere" if will and will < was else could if will else f"no longer {could}"
    if not people:
        return f"Nobody holds it yet. Whoever does could {could}."
    said = f"{'1 person' if people == 1 else f'{people} people'} could {could}."
    return f"{said} {of.more}" if of.more and will > was else said


def _unnamed(capability: str) -> Right:
    words = rules.CAPABILITIES.get(capability, capability)
    return Right(capability, words, "", words[:1].lower() + words[1:])


def _either(names: Sequence[str]) -> str:
    shown = [name.capitalize() if at == 0 else name for at, name in enumerate(names)]
    return wording.listed(shown)
