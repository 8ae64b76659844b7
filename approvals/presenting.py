"""What a person sees of one action: its card, and its course.

The card is what is signed. It never changes, so it is drawn once and never pushed. The course is all that does change: state, claim,
votes, outcome, the decision bar, what happens next. It is made of renditions only, so that a page, a reply and a push can share it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from uuid import UUID

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from access import rules
from access.errors import Refusal
from access.rules import Actor
from approvals import (
    asking,
    canonical,
    cards,
    changes,
    decisions,
    edit_form,
    exact,
    inbox,
    lineage,
    opening,
    stops,
    surroundings,
    unknown,
    warned,
)
from approvals.background import Background, Leg
from approvals.canonical import CanonicalAction
from approvals.cards import Card, payment, record
from approvals.changes import Changes
from approvals.course import Course, Typed, course, tool_title
from approvals.decisions import Yes
from approvals.errors import Unreadable
from approvals.inbox import Queue
from approvals.models import ProposedAction
from approvals.wanted import EVERYTHING, Wanted
from artifacts import vault
from artifacts.models import Payload
from artifacts.showing import Box
from runs.engine.tools import TOOLS

LETTER = "/message"  # the fold of a letter that was read before
WAITING = "waiting:True:"  # how the key of a course begins while the action waits
UNKNOWN = ("_unknown_head", "_unknown_note", "_tried", "_lookup", "_say", "_unknown_aside")  # what changes of an unknown outcome's page
DAMAGED = "These words can’t be read any more."
RELATED = ("policy__group", "run", "run__agent", "run__owner", "workspace", "superseded_by__editor", "claimed_by", "editor", "grant")


@dataclass(frozen=True)
class Editing:
    """The form in the place of the card. `changes` and `digest`: of the version that was looked at, if there is one."""

    fields: tuple[edit_form.Field, ...]
    changes: Changes | None = None
    digest: str = ""
    error: str = ""

    @property
    def aside(self) -> list[edit_form.Field]:
        """What stands folded: unless something in it was changed or can't be read."""
        found = [field for field in self.fields if field.aside]
        return [] if any(field.changed or field.error for field in found) else found

    @property
    def shown(self) -> list[edit_form.Field]:
        folded = self.aside
        return [field for field in self.fields if field not in folded]


@dataclass(frozen=True)
class Panel:
    """One action, open. `full` says whether the card holds the action itself or its redacted rendition."""

    course: Course
    card: Card | None
    full: bool
    subject: str
    reason: str
    tool_title: str
    run_title: str
    broken: str = ""
    changes: Changes | None = None
    in_card: bool = False  # whether the card itself says what changed
    before: ProposedAction | None = None
    refused: Refusal | None = None
    refused_strong: str = ""
    typed: Typed = Typed()
    legs: tuple[Leg, ...] = ()
    earlier: tuple[lineage.Earlier, ...] = ()
    editing: Editing | None = None
    edited_by_me: bool = False
    boxes: Mapping[int, Box] = field(default_factory=dict)  # of each attachment, what of it is hidden and may be shown

    @property
    def action(self) -> ProposedAction:
        return self.course.action

    @cached_property
    def behind(self) -> int:
        """How many arguments stand behind the fold of a letter that was read before: by who has asked about it."""
        asked = self.course.bar is not None and any(each.me and not each.about for each in self.course.exchanges)
        return _behind(self.card) if asked and self.full and self.card else 0

    @property
    def seal(self) -> str:
        """How many arguments there are, and where: all are there, or none of them as they are."""
        if self.card is None:
            return ""
        told = _summed(self.card, self.behind)
        if not self.full:
            return f"{cards.sum_of((self.card.count, 'argument'))}, drawn redacted"
        if told["folded"]:
            return f"{cards.sum_of((self.card.count, 'argument'))}: {told['shown']} shown, {told['folded']} folded, none hidden"
        return f"All {self.card.count} arguments shown, none hidden"


def find(actor: Actor, action_id: UUID, capability: str = "approvals.view") -> ProposedAction:
    """The action with all that its page reads of it. NotFound, Forbidden or NotSignedIn."""
    return rules.get(actor, ProposedAction, action_id, capability, related=RELATED)


def panel(
    action: ProposedAction,
    actor: Actor,
    *,
    typed: Typed | None = None,
    before: ProposedAction | None = None,
    said: Typed | None = None,
    editing: Editing | None = None,
) -> Panel:
    """An action as this person may see it.

    `typed`: what stands in the bar. `before`: the action that this one replaced, to show what changed. `said`: what was refused, if that
    is not what stands in the bar now. `editing`: the form that stands in the place of the card.
    """
    drawn_course = course(action, actor, typed=typed)
    before = before or _edited_from(action)
    full = isinstance(decisions.may_read(action, actor), Yes)
    subject, reason = words(action, full)
    what, broken = _what(action, full)
    if broken and drawn_course.bar:
        drawn_course = replace(drawn_course, bar=replace(drawn_course.bar, broken=broken))
    drawn_course = _with_amount(drawn_course, what)
    card = _card(action, what, full) if what else None
    differs = _changes(before, what, full) if before and what else None
    if drawn_course.bar and before and not drawn_course.bar.nth:
        drawn_course = replace(drawn_course, bar=replace(drawn_course.bar, what=f"#{action.proposed_seq:,}, not #{before.proposed_seq:,}"))
    both = record.told_apart(card, differs.by_path) if card and differs and not editing else None
    return Panel(
        course=drawn_course,
        card=both or card,
        full=full,
        subject=subject,
        reason=reason,
        tool_title=tool_title(action),
        run_title=drawn_course.run_title,
        broken=broken,
        changes=differs,
        in_card=both is not None,
        before=before,
        refused=typed.refusal if typed else None,
        refused_strong=_not_recorded(said or typed) if typed else "",
        typed=said or typed or Typed(),
        legs=_legs(action, drawn_course.background),
        earlier=lineage.earlier(action),
        editing=editing,
        edited_by_me=action.editor_id is not None and action.editor_id == actor.user_id,
        boxes=opening.boxes(action, actor),
    )


def bar(action: ProposedAction, actor: Actor, typed: Typed) -> Course:
    """The course for the bar alone, which names the amount that would move."""
    drawn = course(action, actor, typed=typed)
    armed = drawn.bar is not None and drawn.bar.mode == "armed" and action.card == "payment"
    return _with_amount(drawn, _what(action, full=True)[0]) if armed else drawn


def _with_amount(drawn: Course, what: CanonicalAction | None) -> Course:
    """Who is about to let money go reads how much beside the button."""
    armed = drawn.bar is not None and drawn.bar.mode == "armed" and drawn.missing <= 1
    words = payment.amount_of(what)[1] if armed and what and drawn.action.card == "payment" else ""
    if not words or drawn.bar is None:
        return drawn
    let = "let the agent " if drawn.action.executor == "agent" else ""
    told = replace(drawn.bar, confirm=f"Approve and {let}pay out {words}", ask_after=f"and {let}pay out {words}, once?")
    return replace(drawn, bar=told)


def _edited_from(action: ProposedAction) -> ProposedAction | None:
    """What a person edited to make this action: who decides on it must see what is theirs and what was the agent's."""
    if action.editor_id is None:
        return None
    return ProposedAction.objects.select_related(*RELATED).filter(superseded_by=action, run=action.run_id).order_by("-proposed_seq").first()


# the card --------------------------------------------------------------------------------------------------------------------------


def _what(action: ProposedAction, full: bool) -> tuple[CanonicalAction | None, str]:
    """The action to draw, and why it cannot be drawn."""
    try:
        return exact.whole(action) if full else _masked(action), ""
    except Unreadable as error:
        return None, error.detail


def _masked(action: ProposedAction) -> CanonicalAction | None:
    shown: Mapping[str, Any] = exact.masked(action, to_draw=True)
    attachments = tuple(canonical.Attachment(**each) for each in shown.get("attachments", ()))
    return CanonicalAction(
        tool=shown.get("tool", action.tool),
        tool_schema=shown.get("tool_schema", action.tool_schema),
        arguments=shown.get("arguments", {}),
        target=shown.get("target", ""),
        credential=shown.get("credential", ""),
        nonce=shown.get("nonce", ""),
        executor=action.executor,
        recipients=tuple(shown.get("recipients", ())),
        attachments=attachments,
    )


def _card(action: ProposedAction, what: CanonicalAction, full: bool) -> Card:
    return cards.card(what, surroundings.of(action, what, full=full))


def _changes(before: ProposedAction, what: CanonicalAction, full: bool) -> Changes | None:
    old, _ = _what(before, full)
    return changes.between(old, what, TOOLS.get(what.tool)) if old else None


def _legs(action: ProposedAction, around: Background) -> tuple[Leg, ...]:
    if not around.legs:
        return ()
    private, outside, _ = around.legs
    reach = cards.sum_of((around.recipients, "recipient"), (len(action.attachments), "attachment"))
    return private, outside, Leg("Sends data out", reach or tool_title(action))


def _behind(card: Card) -> int:
    """A letter and its files, but for what is warned of."""
    warned_of = card.letter_warns or any(file.warns for file in card.files)
    return 0 if card.letter is None or card.html is not None or warned_of else 1 + len(card.files)


def _summed(card: Card, behind: int) -> dict[str, int]:
    """How many arguments stand open and how many behind a fold, `behind` of them behind that of the letter."""
    return {"shown": card.shown_count - behind, "folded": card.folded_count + behind}


def sums(action: ProposedAction, reader: Actor | None = None) -> dict[str, Any]:
    """What the card of an action showed and folded, for the record of a decision: counts, the paths of the folds, the ticks asked for.

    `reader`: before whom it stood, as a page; what they have asked about it folds what they had read by then.
    """
    what, _ = _what(action, full=True)
    acks = [warn.code for warn in warned.read(action.warnings) if warn.ack]
    if what is None:
        return {"acks": acks}
    drawn = _card(action, what, full=True)
    behind = _behind(drawn) if reader and any(said.by == reader.id for said in asking.thread(action)) else 0
    paths = [
        *([LETTER] if behind else []),
        "/folded",
        "/json",
        *(file.path for file in drawn.files),
        *([drawn.html.path, f"{drawn.html.path}/links"] if drawn.html else []),
    ]
    return {**_summed(drawn, behind), "paths": paths, "acks": acks}


def _not_recorded(typed: Typed) -> str:
    words = {"armed": "Your approval was not recorded.", "reject": "Your rejection was not recorded."}
    return words.get(typed.mode, "Nothing was recorded.")


def words(action: ProposedAction, full: bool) -> tuple[str, str]:
    """What the action is called and the agent's reason: in full for who may decide, else as renditions."""
    ids = [action.subject_id, action.reason_id]
    if full:
        kept = Payload.objects.select_related("key", "erased_by").in_bulk([pk for pk in ids if pk])
        opened = {pk: _opened(each) for pk, each in kept.items()}
    else:
        opened = {pk: each.text for pk, each in vault.shown(pk for pk in ids if pk).items()}
    return opened.get(ids[0], ""), opened.get(ids[1], "") if ids[1] else ""


def _opened(kept: Payload) -> str:
    if kept.erased_at:
        return vault.tombstone(kept.erased_at, kept.erased_by.name if kept.erased_by else "")
    content = vault.opened(kept)
    return DAMAGED if content is None else content.decode("utf-8", "replace")


# pushes and what goes beside a panel ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Push:
    """What an open inbox is sent: fragments that each replace the element of their id. `key` is the state of the open action in them."""

    html: str
    queue: Queue
    key: str = ""
    frozen: tuple[stops.Freezing, ...] = ()


def push_inbox(
    actor: Actor, open_action_id: UUID | None, wanted: Wanted = EVERYTHING, *, keep: bool = True, last_key: str = "", shown: int = 0
) -> Push:
    """The queue, the count and, if it is not as `last_key` says, the course of the open action. Renditions only.

    `keep`: the open action keeps its place in the queue though it no longer waits. An action that may no longer be seen is left out.
    What is next after it is said with each queue, so that the two never name different rows.
    """
    action = rules.visible(actor, ProposedAction, "approvals.view").select_related(*RELATED).filter(pk=open_action_id).first()
    rows = inbox.queue(actor, wanted, keep=action.pk if action and keep else None, shown=shown)
    frozen = stops.now(actor)
    fragments = [beside(rows, open_action_id), _frozen_now(frozen)]
    if action is None:
        return Push("".join(fragments), rows, frozen=tuple(frozen))
    drawn = course(action, actor)
    if drawn.key != last_key:
        fragments.append(course_fragments(drawn, rows))
    elif drawn.bar is None:
        fragments.append(out_of_band(render_to_string("approvals/_next.html", _over(drawn, rows))))
    return Push("".join(fragments), rows, drawn.key, tuple(frozen))


def beside(rows: Queue, open_id: UUID | None) -> SafeString:
    """The queue and its count, each to replace what is there."""
    queue = render_to_string("approvals/_queue.html", {"queue": rows, "open_id": open_id})
    count = render_to_string("_inbox_count.html", {"inbox_count": rows.waiting})
    return mark_safe(out_of_band(queue) + out_of_band(count))  # noqa: S308


def course_fragments(drawn: Course, rows: Queue) -> str:
    """All that changes of an open action. A bar that still stands is left alone: somebody may be about to press it; but where several
    must approve, what it says depends on who has."""
    context = _over(drawn, rows)
    says_the_same = drawn.bar is not None and not drawn.bar.nth
    names = ["_status", "_outcome", "_quorum", "_thread", "_aside", *([] if says_the_same else ["_decide"])]
    return "".join(out_of_band(render_to_string(f"approvals/{name}.html", context)) for name in names)


def _over(drawn: Course, rows: Queue) -> dict[str, Any]:
    return {"course": drawn, "next_row": rows.after(drawn.action), "queue": rows, "typed": Typed()}


def push_outcome(actor: Actor, action_id: UUID, after: int) -> tuple[str, int]:
    """(HTML, seq): what makes the page of an unknown outcome, drawn at event `after`, the page as it is now. Nothing if it is the same."""
    action = find(actor, action_id)
    if action.run.seq <= after:
        return "", action.run.seq
    context = {"known": unknown.read(action, actor), "action": action}
    parts = (render_to_string(f"approvals/{name}.html", context).strip() for name in UNKNOWN)
    return "".join(out_of_band(part) for part in parts) + count(actor), action.run.seq


def count(actor: Actor) -> SafeString:
    """How many actions wait for this person, to replace what the top bar says."""
    return out_of_band(render_to_string("_inbox_count.html", {"inbox_count": inbox.waiting_count(actor)}))


def frozen_now(actor: Actor) -> SafeString:
    """What is frozen where this person is, to replace what stands under the top bar."""
    return _frozen_now(stops.now(actor))


def _frozen_now(frozen: list[stops.Freezing]) -> SafeString:
    return out_of_band(render_to_string("_frozen_now.html", {"frozen_now": frozen}))


def out_of_band(fragment: str) -> SafeString:
    """A fragment that replaces the element of its own id, wherever the answer goes."""
    tag = fragment.index("<")
    end = next(i for i, char in enumerate(fragment[tag + 1 :], tag + 1) if not char.isalnum())
    return mark_safe(f'{fragment[:end]} hx-swap-oob="morph"{fragment[end:]}')  # noqa: S308  a template's own output
