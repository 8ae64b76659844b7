"""Trying: what a draft of the rules would have said about the last 1,000 proposed actions, beside what the rules in force say about them.

Both are asked about each action as it was when it was proposed. Nothing is recorded and nothing happens; subjects are renditions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.core import signing
from django.db.models import Q

from access import rules
from access.rules import Actor
from approvals import cases, policy
from approvals.figures import number
from approvals.models import Policy, ProposedAction
from approvals.policy import Judgement
from artifacts import vault
from artifacts.redaction import plain
from runs.engine.tools import TOOLS

LOOKED_AT = 1000
GOOD_FOR = 3600  # seconds in which what was tried may be saved
_OF_ARGUMENTS = frozenset(["argument", "every", "amount"])
_COUNT = ("No reviewer", "One reviewer", "Two reviewers", "Three reviewers", "Four reviewers")


@dataclass(frozen=True)
class Differs:
    """One past action about which the draft says something else. `fewer`: fewer people would have been asked, or none.

    `others`: as many, but of another group.
    """

    id: UUID
    run_id: UUID
    ref: str
    subject: str
    tool: str
    before: str
    after: str
    fewer: bool
    others: bool = False
    called: str = ""  # its run's title, a rendition


@dataclass(frozen=True)
class Tried:
    """What a try gave. `of`: how many actions were judged; `left_out`: proposed before what the rules ask about was kept, or erased."""

    of: int
    left_out: int
    differs: tuple[Differs, ...]
    since: datetime | None

    @property
    def fewer(self) -> int:
        return sum(each.fewer for each in self.differs)

    @property
    def others(self) -> int:
        return sum(each.others for each in self.differs)

    @property
    def more(self) -> int:
        return len(self.differs) - self.fewer - self.others

    @property
    def same(self) -> int:
        return self.of - len(self.differs)

    @property
    def shares(self) -> tuple[int, int, int]:
        """Same, more and fewer as parts of 1,000, for a bar; what is there at all is at least seen."""
        more, fewer = (max(count * 1000 // self.of, 4 * bool(count)) if self.of else 0 for count in (self.more, self.fewer))
        return 1000 - more - fewer, more, fewer


def last(
    workspace_id: UUID, tool: str = "", *, related: tuple[str, ...] = ("run__agent",), within: Q | None = None, most: int = LOOKED_AT
) -> list[ProposedAction]:
    """The newest actions that an agent proposed, with what the rules ask about; `within`: of these alone. One query."""
    actions = ProposedAction.objects.filter(within or Q(), workspace_id=workspace_id, editor=None).select_related(*related)
    return list((actions.filter(tool=tool) if tool else actions).order_by("-proposed_at")[:most])


def tried(workspace_id: UUID, draft: Sequence[Policy]) -> Tried:
    """Judge the last actions by the draft and by what is in force. Eight queries at most."""
    current, actions = policy.rules(workspace_id), last(workspace_id)
    known = cases.read(actions, arguments=asks_arguments([*current, *draft]))
    found: list[tuple[ProposedAction, Judgement, Judgement]] = []
    for action in actions:
        if action.pk in known:
            before, after = policy.judge(current, known[action.pk]), policy.judge(draft, known[action.pk])
            if said(before) != said(after):
                found.append((action, before, after))
    words = vault.shown(pk for action, *_ in found for pk in (action.subject_id, action.run.title_id))
    differs = tuple(_differs(action, before, after, words) for action, before, after in found)
    return Tried(len(known), len(actions) - len(known), differs, actions[-1].proposed_at if actions else None)


def rows(actions: Sequence[ProposedAction]) -> tuple[Differs, ...]:
    """Past actions, to be listed."""
    words = vault.shown(pk for action in actions for pk in (action.subject_id, action.run.title_id))
    return tuple(_row(action, words, "", "", fewer=True) for action in actions)


def shown_to(actor: Actor, found: Sequence[Differs]) -> Sequence[Differs]:
    """Those that may be listed to this person. How many there are they are told of all. A query only for whose own teams count."""
    if not actor.narrowed("approvals.view"):
        return found
    seen = set(
        rules.visible(actor, ProposedAction, "approvals.view").filter(pk__in=[each.id for each in found]).values_list("pk", flat=True)
    )
    return [each for each in found if each.id in seen]


def said(judgement: Judgement) -> str:
    """“Automatic”, “One reviewer”, “Two of Finance”, “Never”."""
    if judgement.outcome == "reviewers" and judgement.rule is not None and judgement.rule.group is not None:
        return f"{number(judgement.needs)} of {judgement.rule.group.name}"
    if judgement.outcome == "reviewers":
        return _COUNT[judgement.needs] if judgement.needs < len(_COUNT) else f"{judgement.needs} reviewers"
    return "Automatic" if judgement.outcome == "automatic" else "Never"


def token(workspace_id: UUID, draft: Sequence[Policy], *, base: int, by: Actor) -> str:
    """Says that this person was shown a try of exactly this draft against this version."""
    return signing.dumps(_named(workspace_id, draft, base, by), salt="policy-tried")


def was_shown(text: str, workspace_id: UUID, draft: Sequence[Policy], *, base: int, by: Actor) -> bool:
    try:
        return signing.loads(text, salt="policy-tried", max_age=GOOD_FOR) == _named(workspace_id, draft, base, by)
    except signing.BadSignature:
        return False


def _named(workspace_id: UUID, draft: Sequence[Policy], base: int, by: Actor) -> list[object]:
    return [str(workspace_id), policy.digest(draft), base, by.id]


def asks_arguments(rules: Sequence[Policy]) -> bool:
    return any(each["what"] in _OF_ARGUMENTS for rule in rules for each in rule.conditions)


def _differs(action: ProposedAction, before: Judgement, after: Judgement, words: dict[UUID, vault.Shown]) -> Differs:
    was, would = _weight(before), _weight(after)
    return _row(action, words, said(before), said(after), fewer=would < was, others=would == was)


def _row(action: ProposedAction, words: dict[UUID, vault.Shown], before: str, after: str, *, fewer: bool, others: bool = False) -> Differs:
    subject = plain(words[action.subject_id].text) if action.subject_id in words else ""
    title = TOOLS[action.tool].title if action.tool in TOOLS else action.tool
    called = words[action.run.title_id].text if action.run.title_id in words else ""
    return Differs(action.pk, action.run_id, action.run.ref, subject or title, title, before, after, fewer, others, called)


def _weight(judgement: Judgement) -> float:
    """How much stands in the way."""
    return {"automatic": 0.0, "reviewers": float(judgement.needs), "never": float("inf")}[judgement.outcome]
