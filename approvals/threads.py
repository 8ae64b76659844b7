"""What was asked about an action and what the agent answered, as people see it. Made of renditions only, like all of the course."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from access import naming
from access.rules import Actor
from approvals import asking, sourcing
from approvals.asking import Said
from approvals.models import ProposedAction
from approvals.sourcing import EVENT, Claim, Source
from artifacts import vault
from artifacts.rendition import is_cut
from runs.models import Event

TEXTS = 20  # of one event, which an answer is held against: a plan may have very many


@dataclass(frozen=True)
class Exchange:
    """One question and its answer. `closed`: the action was settled before the agent answered. `about`: where the version was proposed
    that it was asked about, if that is one before this was edited.
    """

    id: UUID
    seq: int
    at: datetime
    name: str
    me: bool
    question: str
    answer: str = ""
    answer_seq: int = 0
    answered_at: datetime | None = None
    cites: tuple[int, ...] = ()
    closed: bool = False
    about: int = 0
    claims: tuple[Claim, ...] = ()  # what the answer says, held against the events that it names
    says_who: bool = False  # the first of which something was looked up: there it is said by whom

    @property
    def unsourced(self) -> int:
        """How many claims have no source."""
        return sum(claim.state in ("missing", "unsourced") for claim in self.claims)

    @property
    def named(self) -> tuple[int, ...]:
        """The events that the answer names, as many as are looked at: those that the agent cites, and those that stand in its text."""
        written = (int(seq) for seq in EVENT.findall(self.answer))
        found = dict.fromkeys((*self.cites, *(seq for seq in written if 0 < seq < self.answer_seq)))
        return tuple(found)[: sourcing.MOST_EVENTS]

    @property
    def is_open(self) -> bool:
        return not self.answer_seq and not self.closed


class Thread(tuple[Exchange, ...]):
    """What was asked about an action, oldest first."""

    __slots__ = ()

    @property
    def answered(self) -> int:
        return sum(bool(each.answer_seq) for each in self)

    @property
    def is_open(self) -> bool:
        return any(each.is_open for each in self)

    @property
    def left_alone(self) -> bool:
        """Whether all was answered that was asked about this very version, which stayed as it was."""
        return not self.is_open and any(not each.about for each in self)


def exchanges(action: ProposedAction, actor: Actor, *, waits: bool) -> Thread:
    """All that was asked about this action, and about what was edited to make it, oldest first. Opens no vault."""
    versions = _versions(action)
    told = asking.threads(action.run, versions)
    if not told:
        return Thread()
    texts = vault.shown(pk for said in told for pk in (said.payload, said.answer_payload) if pk)
    names = naming.people({said.by for said in told})
    earlier = {pk: seq for pk, seq in versions.items() if pk != action.pk}
    told = [_exchange(said, texts, names, actor, waits=waits, about=earlier.get(said.action, 0)) for said in told]
    sources = _sources(action, {seq for each in told for seq in each.named})
    checked = [_checked(each, sources) for each in told]
    first = next((at for at, each in enumerate(checked) if any(claim.state != "plain" for claim in each.claims)), -1)
    return Thread(replace(each, says_who=at == first) for at, each in enumerate(checked))


def _versions(action: ProposedAction) -> dict[UUID, int]:
    """Where this action was proposed, and each that was edited to make it. One query, none if nobody edited it."""
    found = {action.pk: action.proposed_seq}
    if action.editor_id is None:
        return found
    rows = ProposedAction.objects.filter(run=action.run_id, state="superseded", proposed_seq__lt=action.proposed_seq)
    for pk, newer, seq in rows.order_by("-proposed_seq").values_list("pk", "superseded_by", "proposed_seq"):
        if newer in found:
            found[pk] = seq
    return found


def _sources(action: ProposedAction, seqs: set[int]) -> Mapping[int, Source]:
    """What may be shown of some events of the run, of each the first texts. Two queries, none if there are none."""
    if not seqs:
        return {}
    rows = Event.objects.filter(run_month=action.run.month, run_id=action.run_id, seq__in=seqs)
    kept = {seq: [UUID(pk) for pk in payloads.values()] for seq, payloads in rows.values_list("seq", "payloads")}
    texts = vault.shown(pk for pks in kept.values() for pk in pks[:TEXTS])
    return {seq: _source([texts[pk] for pk in pks if pk in texts], more=len(pks) > TEXTS) for seq, pks in kept.items() if pks}


def _source(shown: list[vault.Shown], *, more: bool) -> Source:
    partly = more or any(each.hidden or each.erased_at or is_cut(each.text) for each in shown)
    return Source("\n".join(each.text for each in shown if not each.erased_at), partly)


def _checked(each: Exchange, sources: Mapping[int, Source]) -> Exchange:
    if not each.answer_seq:
        return each
    return replace(each, claims=sourcing.claims(each.answer, sources, upto=each.answer_seq, cites=each.cites))


def _exchange(said: Said, texts: dict[UUID, vault.Shown], names: dict[str, str], actor: Actor, *, waits: bool, about: int) -> Exchange:
    def words(pk: UUID | None) -> str:
        return "" if pk is None else texts[pk].text

    return Exchange(
        said.id,
        said.seq,
        said.at,
        names.get(said.by, "Somebody"),
        said.by == actor.id,
        words(said.payload),
        words(said.answer_payload),
        said.answer_seq,
        said.answered_at,
        said.cites,
        closed=said.is_open and (not waits or bool(about)),
        about=about,
    )
