"""What a person sees of one run. The same fragments serve the page, the reply to a form and the push, so a test compares their bytes.

`fragments(run, actor)` draws all of them; `pushing.push(run_id, actor, after)` those that may differ for who has read up to `after`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from access import naming, rules, wording
from access.models import User
from access.rules import Actor
from runs import evidence, glances, lifecycle, limits, questions, reading, signals, steering
from runs.engine import gates, providers, workflow
from runs.evidence import Answer
from runs.ledgered import Ledgered, ledgered
from runs.meters import Meter, meters_of, no_price
from runs.models import Glance, Run
from runs.places import Kin, kin
from runs.steering import Choice
from runs.story import overview, rows, titles
from runs.story.shapes import Action, Effect, Made, Story, Text, Who
from runs.webhook_models import WebhookWait

RELATED = ("agent", "owner", "title", "team")
# name → template; the id in the page is run-<name>
FRAGMENTS: Mapping[str, str] = {
    "head": "runs/_header.html",
    "plan": "runs/_plan_strip.html",
    "now": "runs/_now.html",
    "timeline": "runs/_timeline.html",
    "steer": "runs/_steer.html",
    "effects": "runs/_effects.html",
    "checks": "runs/_checks.html",
    "artifacts": "runs/_artifacts.html",
    "dock": "runs/_dock.html",
    "cancel": "runs/_cancel_will.html",
}


@dataclass(frozen=True)
class Mine:
    """What this person can do next about the run."""

    word: str
    action: str
    primary: bool = True
    until: datetime | None = None
    since: datetime | None = None
    page: str = "approvals:action"
    place: str = ""  # on that page

    @property
    def url(self) -> str:
        return reverse(self.page, args=(self.action,) if self.action else ()) + self.place


@dataclass
class View:
    """One run as one person sees it, at the event the row was read at."""

    run: Run
    actor: Actor
    story: Story
    checks: tuple[Answer, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    at: int = 0  # the event that the run is looked at at; 0 is now
    q: str = ""  # what is looked for in it: marked where it stands
    hits: tuple[int, ...] = ()  # the events that hold it
    glance: Glance | None = None  # of a long run: up to where this person had it before them

    @cached_property
    def seen(self) -> int:
        """The last event that is not new to this person; 0 where nothing is, because nobody knows or all of it would be."""
        return self.glance.seq if self.glance and self.glance.seq < self.story.seq else 0

    @cached_property
    def new_at(self) -> int:
        """The first event of the first row that is new."""
        return rows.first_new(self.story, self.seen)

    @cached_property
    def step_names(self) -> Mapping[str, Text | None]:
        """What the steps are called, by section: of a long run without the words that all of them begin with."""
        steps = [section for section in self.story.sections if section.kind == "step"]
        titles = [section.title for section in steps]
        return dict(zip([section.key for section in steps], overview.apart(titles) if self.long else titles, strict=True))

    @property
    def news_count(self) -> int:
        return self.story.seq - self.seen

    @property
    def long(self) -> bool:
        return overview.is_long(self.story)

    @property
    def live(self) -> bool:
        return not lifecycle.ended(self.run.state)

    @cached_property
    def own(self) -> frozenset[str]:
        """Those to whom the run is their own: they never decide in it."""
        starter = {self.run.starter_id} if self.run.starter_kind == "human" else set()
        return frozenset({str(self.run.owner_id), str(self.run.agent.owner_id)} | starter)

    @cached_property
    def deciders(self) -> list[User]:
        """Who may give what the run waits for, by name."""
        decision = self.story.now.waits_for == "decision"
        if not decision and not self.unknown:
            return []
        apart = self.own if decision else self.part
        holders = self._able("approvals.decide" if decision else "runs.recover")
        if decision and (group := gates.group_of(self.story.now.action)):
            holders = [person for person in holders if person.pk in group.people]
        return [person for person in holders if str(person.pk) not in apart]

    @property
    def unknown(self) -> bool:
        """Whether a person must say what became of an action."""
        return self.waiting is not None and self.waiting.state == "unknown"

    @cached_property
    def part(self) -> frozenset[str]:
        """Those who took part in the action that the run waits for: they never say what became of it."""
        return frozenset({str(self.run.owner_id), str(self.run.agent.owner_id), *(self.waiting.deciders if self.waiting else ())})

    @cached_property
    def steerers(self) -> list[str]:
        return [person.name for person in self._able("runs.steer")] if self.live else []

    @property
    def deciders_told(self) -> str:
        """Riley Stone or Sam Okoro can decide."""
        names = [("You" if str(person.pk) == self.actor.id else person.name) for person in self.deciders]
        may = "decide" if self.story.now.waits_for == "decision" else "say what happened"
        return f"{wording.listed(names, 'or', most=wording.MOST)} can {may}."

    @property
    def raisers_told(self) -> str:
        """Who may raise the limit that is used up: Ada Lindqvist or you can raise it."""
        if self.run.state != "waiting" or self.story.now.waits_for != "budget":
            return ""
        holders = self._able("runs.steer")
        names = [person.name for person in holders if str(person.pk) != self.actor.id]
        named = wording.listed([*names, *(["you"] if len(names) < len(holders) else [])], "or", most=wording.MOST)
        return f"{named[:1].upper()}{named[1:]} can raise it." if named else "Nobody here may raise it."

    @property
    def recoverers_told(self) -> str:
        """Who helps a stuck run on: Otto Brandt looks after it."""
        if self.run.state != "parked":
            return ""
        if self.run.handed_to is not None:
            return "You look after it." if str(self.run.handed_to_id) == self.actor.id else f"{self.run.handed_to.name} looks after it."
        names = [person.name for person in self._able("runs.recover") if str(person.pk) != self.actor.id]
        named = wording.listed([*names, *(["you"] if self.can("runs.recover") else [])], "or", most=wording.MOST)
        return f"{named[:1].upper()}{named[1:]} can choose." if named else "Nobody here may choose."

    @property
    def steerers_told(self) -> str:
        return f"{wording.listed(self.steerers, 'or', most=wording.MOST)} can steer it."

    @property
    def state_words(self) -> str:
        """The words of the state where a page says more than the state's own: “Waiting for a reviewer”."""
        if self.long and self.run.state == "running":
            return overview.word_of(overview.open_step(self.story))
        if self.run.state == "waiting":
            return WAITING_WORDS.get(self.story.now.waits_for, "")
        if self.run.state == "cancelling" and self.run.waiting.get("on") == "outcome":  # nothing is undone before that is known
            return "Waiting for an outcome"
        return NOTHING_DONE if self.state_key == "rejected" else ""

    @property
    def state_key(self) -> str:
        """What the state is coloured by: a run that was allowed nothing is over, and not in the green of something done."""
        done = any(effect.state == "done" for effect in self.story.effects)
        return "rejected" if self.run.state == "succeeded" and self.story.now.refused and not done else self.run.state

    @property
    def current(self) -> int:
        """The step of the plan that is open; 0 if none is."""
        open_ = [section.number for section in self.story.sections if section.kind == "step" and section.opened and not section.ended]
        return open_[-1] if open_ and self.live else 0

    @property
    def cancelling(self) -> bool:
        return self.run.state in ("cancelling", "compensating")

    @cached_property
    def stuck_cancelled(self) -> bool:
        """It was cancelled, and got stuck on the way to its end: there is nothing more to cancel."""
        return self.run.state == "parked" and signals.is_cancelled(self.run.pk)

    @property
    def sees_actions(self) -> bool:
        return self.can("approvals.view")

    @property
    def sees_events(self) -> bool:
        return self.can("runs.events")

    def can(self, capability: str) -> bool:
        return rules.can(self.actor, capability, self.run.workspace_id, self.run.team_id)

    def _able(self, capability: str) -> list[User]:
        return rules.holders(self.run.workspace_id, capability, self.run.team_id)

    @property
    def may_steer(self) -> bool:
        return self.live and self.can("runs.steer")

    @cached_property
    def kin(self) -> Kin:
        return kin(self.run, self.actor)

    @property
    def may_fork(self) -> bool:
        return bool(self.run.workflow) and self.can("runs.start")

    @property
    def steering(self) -> list[Choice]:
        """The signals that this person may send now."""
        return steering.choices(self.run) if self.may_steer else []

    @property
    def may_decide(self) -> bool:
        return any(str(person.pk) == self.actor.id for person in self.deciders)

    @cached_property
    def waiting(self) -> Action | None:
        """The action that the run waits for, or of which somebody must say what became: without that it can't end."""
        about = next((action for action in self.story.actions if action.id == self.story.now.action), None)
        asks = self.cancelling or (about is None and self.live and not self.run.workflow)  # an agent outside need not wait for it
        return next((action for action in self.story.actions if action.state == "unknown"), None) if asks else about

    @property
    def mine(self) -> Mine | None:
        now = self.story.now
        if self.run.state == "parked" and self.can("runs.recover"):
            return Mine("Choose how it goes on", "", page="runs:recovery", place=f"#case-{self.run.pk}")
        if self.waiting is None or not self.can("approvals.view"):
            return None
        if now.waits_for == "decision" and self.may_decide:
            mail = self.waiting.effect == "send"
            return Mine("Review the e-mail" if mail else "Review the action", now.action, True, now.until, now.since)
        if self.unknown:
            word = "Say what happened" if self.may_decide else "Read what was tried"
            return Mine(word, self.waiting.id, self.may_decide, page="approvals:outcome")
        one = titles.one_of(self.waiting.tool).removeprefix("one ")
        return Mine(f"Read the {one}", now.action, primary=False) if now.waits_for == "decision" else None

    @cached_property
    def sender(self) -> workflow.Link | None:
        """Where a person has the webhook sent that it waits for, if its workflow knows."""
        if self.run.state != "waiting" or self.story.now.waits_for != "webhook":
            return None
        known = workflow.loaded(self.run.workflow, self.run.workflow_version)
        open_ = WebhookWait.objects.filter(run=self.run.pk, closed_at=None).order_by("pk") if known and known.where else ()
        return next((found for wait in open_ if (found := workflow.link(known, wait.match))), None)

    @cached_property
    def asked(self) -> questions.Open | None:
        """What the run asks, if this person may answer."""
        return questions.asked(self.run) if self.may_steer else None

    @property
    def limits(self) -> dict[str, str]:
        """The limits as the form for them says them."""
        return limits.shown(self.run.budgets)

    @cached_property
    def meters(self) -> list[Meter]:
        return meters_of(self.run, unpriced=bool(self.story.usage.unpriced), without_price=self.without_price)

    @property
    def without_price(self) -> list[str]:
        """Models without a price that it may ask yet."""
        return providers.unpriced() if self.run.workflow and self.run.ended_at is None else []

    @property
    def no_price(self) -> str:
        return no_price(self.without_price)

    @property
    def artifacts(self) -> list[Made]:
        """The newest version of each, the newest first."""
        newest = {made.name: made for made in self.story.artifacts}
        return sorted(newest.values(), key=lambda made: -made.seq)

    @cached_property
    def ledger(self) -> list[Ledgered]:
        return ledgered(self.run, self.story.effects, may=self.can("runs.recover"))

    @property
    def undo_asked_every(self) -> int:
        """Every how many seconds an open page of an ended run asks what became of undoing, 0 for never: no push tells of that."""
        if self.live:
            return 0
        if any(row.later and row.later.open for row in self.ledger):
            return UNDOING_EVERY
        return UNDO_EVERY if any(row.may_undo for row in self.ledger) else 0

    @property
    def effects_told(self) -> str:
        """2 done, 1 undone, 1 waiting."""
        counts: dict[str, int] = {}
        for effect in self.ledger:
            word = LEDGER_WORDS.get(effect.state, effect.state)
            counts[word] = counts.get(word, 0) + 1
        return ", ".join(f"{number} {word}" for word, number in counts.items())

    @property
    def checks_told(self) -> str:
        return evidence.summary(self.checks)

    @property
    def will_be_undone(self) -> list[Effect]:
        """What cancelling undoes, in that order."""
        return [effect for effect in reversed(self.story.effects) if self._can_undo(effect)]

    @property
    def will_stay(self) -> list[Effect]:
        return [effect for effect in self.story.effects if effect.state in ("done", "failed") and not self._can_undo(effect)]

    def _can_undo(self, effect: Effect) -> bool:
        return bool(self.run.workflow) and effect.can_undo and effect.state in ("done", "failed")

    @property
    def under_way(self) -> list[Effect]:
        return [effect for effect in self.story.effects if effect.state in ("running", "unknown")]

    @property
    def never_done(self) -> list[Effect]:
        return [effect for effect in self.story.effects if effect.state in ("waiting", "granted")]


UNDOING_EVERY, UNDO_EVERY = 5, 60  # seconds: while an undo is under way, and while somebody may yet ask for one
NOTHING_DONE = "Ended, nothing done"
WAITING_WORDS = {
    "decision": "Waiting for a reviewer",
    "answer": "Waiting for an answer",
    "budget": "Waiting for a budget",
    "timer": "Waiting for its time",
    "webhook": "Waiting for a webhook",
    "outcome": "Waiting for the outcome",
    "retry": "Waiting to try again",
    "unfreezing": "Frozen",
    "signal": "Waiting for context",
    "child": "Waiting for its child run",
}
LEDGER_WORDS = {"granted": "approved", "running": "under way", "unknown": "unknown", "failed": "not undone"}


def view(run: Run, actor: Actor, told: reading.Told | None = None, *, at: int = 0, q: str = "") -> View:
    """The run's log, folded, and the names in it. `at`: the event around which it is drawn; one beyond the log is now."""
    told = told or reading.told(run)
    glance = glances.of(run.pk, actor) if overview.is_long(told.story) else None
    return View(run, actor, told.story, told.answers, names_in(told.lines, run), at if at <= told.story.seq else 0, q, glance=glance)


def names_in(lines: Iterable[Mapping[str, object]], run: Run) -> dict[str, str]:
    """The names that the people of some lines have now. One query."""
    ids = {str(run.owner_id)}
    for line in lines:
        body: Mapping[str, dict[str, str]] = line["body"]  # type: ignore[assignment]
        if body["actor"]["kind"] == "human":
            ids.add(body["actor"]["id"])
        if to := body["data"].get("to"):
            ids.add(to)
    return naming.people(ids)


def name_of(who: Who, names: Mapping[str, str], run: Run) -> str:
    """What somebody is called now."""
    if who.kind == "agent":
        return run.agent.name if who.id == str(run.agent_id) else "An agent"
    if who.kind == "human":
        return names.get(who.id, "Somebody")
    return "Handrail"


def title_of(run: Run) -> str:
    """The rendition of a run's title; what it is called if that was erased."""
    return run.called


# Fragments ----------------------------------------------------------------------------------------------------------------------------


def fragments(run: Run, actor: Actor) -> dict[str, SafeString]:
    """All parts of the run's page that change, by name. `run` comes with RELATED."""
    return drawn(view(run, actor))


def drawn(seen: View) -> dict[str, SafeString]:
    return {name: draw(name, seen) for name in FRAGMENTS}


def draw(name: str, seen: View) -> SafeString:
    return render(FRAGMENTS[name], seen)


def render(template: str, seen: View, **more: object) -> SafeString:
    """A template of a run's page."""
    return mark_safe(render_to_string(template, {"view": seen, "run": seen.run, "story": seen.story, **more}).strip())  # noqa: S308
