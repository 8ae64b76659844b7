"""Whatever people do to proposals, in whatever order and at whatever moment: each runs at most once, and only as what was approved.

Two machines of the same people: over workflows that we run, whose workers crash, and over an agent outside that redeems and reports.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db.models import Q
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from access.errors import Refusal
from access.rules import person
from approvals import (
    asking,
    canonical,
    decisions,
    editing,
    exact,
    execution,
    freezes,
    groups,
    outside,
    policy,
    standing_grants,
    taking_back,
)
from approvals.models import Decision, Grant, GroupVersion, ProposedAction, ReviewerGroup, StandingGrant, StandingUse
from approvals.notifications import chasing
from approvals.notifications.models import Escalation
from config import clock
from runs import signals, starting
from runs.engine import executor, lease, points, sweep
from runs.engine import outside as declaring
from runs.engine.tools import TOOLS
from runs.errors import RunEnded
from runs.models import Event, Lease, Run
from tests.approvals.mailing import Proposed, propose_change, propose_mail, sent
from tests.cast import member
from tests.factories import agent_actor
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)
REVIEWERS, EVERYBODY = ("riley", "sam", "tess"), ("riley", "sam", "tess", "priya", "morgan")  # Priya owns the run, Morgan may only look
QUORUM, GROUPED = st.sampled_from([2, 2, 1]), st.sampled_from([True, True, False])
TOOLS_USED = ("send_mail", "change_record", "issue_voucher")
ENDED = {"succeeded", "failed", "cancelled"}
TOOL_FILE = Path(__file__).parents[2] / "examples/outside_loop/tools.json"


# what happens, and how often beside the others
BY_PEOPLE = {"approve": 7, "decide_on_any": 2, "meddle": 2, "at_once": 1, "freeze": 2, "nobody_answers": 1, "one_leaves": 3}
BY_PEOPLE |= {"all_are_back": 1, "approve_the_like": 2, "go_on": 3}
BY_WORKERS = {"propose": 4, "walk": 3, "stop_at_once": 1, "crash": 2}
BY_AGENTS = {"propose": 3, "redeem": 6, "redeem_any": 2, "redeem_at_once": 1, "report": 2, "silence": 1}


@dataclass(frozen=True)
class It:
    """One thing that happens."""

    what: str
    who: str
    other: str
    reviewer: str
    text: str
    n: int
    flag: bool
    more: bool


def things(*often: Mapping[str, int]) -> st.SearchStrategy[It]:
    names = [name for each in often for name, times in each.items() for _ in range(times)]
    people = st.sampled_from(EVERYBODY)
    texts, numbers = st.sampled_from(["One", "Two", "Three"]), st.integers(0, 11)
    return st.builds(It, st.sampled_from(names), people, people, st.sampled_from(REVIEWERS), texts, numbers, st.booleans(), st.booleans())


class Killed(BaseException):
    """A worker that is no more."""


class People(RuleBasedStateMachine):
    """Everybody who may touch what was proposed, and what must hold whoever did."""

    cast: Any = None
    tess: Any = None  # a third who may decide, so that two are left of a group that one leaves
    runs: list[Run]

    def begin(self, quorum: int, delay: int, grouped: bool) -> None:
        sent.clear()
        self.runs, self.settled = [], {}
        for frozen in freezes.standing():  # of the example before
            freezes.lift(frozen, by=self._person("otto"), reason="Go on.")
        for grant in standing_grants.standing(self.cast.workspace.pk):
            standing_grants.revoke(grant, by=self._person("ada"))
        for step in chasing.steps(self.cast.workspace.pk):
            chasing.remove_step(step, by=self._person("ada"))
        self.group = self._group() if grouped else None
        asks = {
            "name": "Outside e-mail",
            "outcome": "reviewers",
            "quorum": quorum,
            "recall_delay": timedelta(seconds=delay),
            "group": self.group,
        }
        for name in TOOLS_USED:
            policy.set_rule(self.cast.workspace.pk, name, by=None, **asks)
        chasing.add_step(self.cast.workspace.pk, after=timedelta(hours=1), to=self.cast.sam.pk, by=self._person("ada"))
        self.quorum = quorum

    @property
    def actions(self) -> Any:
        return ProposedAction.objects.filter(run__in=[run.pk for run in self.runs])

    @property
    def newest(self) -> ProposedAction:
        return self.actions.order_by("-pk")[0]

    @property
    def any(self) -> ProposedAction:
        return self.actions.order_by("pk")[0]

    def happen(self, it: "It") -> None:
        """One thing, as drawn. Rules of their own would be chosen by Hypothesis as often each, and most would only stop the others."""
        getattr(self, it.what)(it)

    # what people do ---------------------------------------------------------------------------------------------------------------

    def approve(self, it: "It") -> None:
        self._may_be_refused(lambda: self._decide(it.reviewer, "approved", self.newest))

    def decide_on_any(self, it: "It") -> None:
        self._may_be_refused(lambda: self._decide(it.who, "approved" if it.more else "rejected", self.any if it.flag else self.newest))

    def meddle(self, it: "It") -> None:
        action, by = self.newest, self._person(it.who)
        does: list[Callable[[], object]] = [
            lambda: self._edit(it.reviewer, it.text, action),
            lambda: asking.ask(action, by=by, question="Why is that so?", digest=action.digest),
            lambda: decisions.claim(action, by=by),
            lambda: taking_back.withdraw(action, by=agent_actor(self.cast.agent), reason="No longer wanted."),
            lambda: taking_back.recall(action, by=by, reason="Not after all."),
            lambda: signals.send(action.run, kind="cancel", key=str(uuid4()), by=self._person("otto")),
            self._expire,
        ]
        self._may_be_refused(does[it.n % len(does)])

    def at_once(self, it: "It") -> None:
        action = self.newest
        calls = [
            lambda: self._decide(it.reviewer, "approved", action),
            lambda: self._edit(it.other, it.text, action) if it.more else self._decide(it.other, "rejected", action),
            lambda: self._without(it.reviewer),
            chasing.escalate_due,
        ]
        self._only_refused(together(calls))

    def freeze(self, it: "It") -> None:
        agent, tool = {"what": "agent", "agent_id": self.cast.agent.pk}, {"what": "tool", "tool": self.newest.tool}
        given = [agent, tool, {"what": "workspace"}][it.n % 3]
        freezes.freeze(self.cast.workspace.pk, by=self._person("otto"), reason="Stop.", **given)

    def nobody_answers(self, it: "It") -> None:
        """Time goes by, and at that moment somebody takes it on."""
        self.actions.filter(state="waiting").update(proposed_at=clock.now() - timedelta(hours=2), claimed_until=None)
        calls = [chasing.escalate_due, chasing.remind_due, lambda: decisions.claim(self.newest, by=self._person(it.reviewer))]
        self._only_refused(together(calls))

    def one_leaves(self, it: "It") -> None:
        """Most often who has just approved what still waits."""
        said = Decision.objects.filter(action=self.newest, action__state="waiting").order_by("-seq").first()
        who = next((name for name in REVIEWERS if said and self._user(name).pk == said.reviewer_id), it.reviewer)
        self._may_be_refused(lambda: self._without(it.reviewer if it.n == 0 else who))

    def all_are_back(self, it: "It") -> None:
        self._may_be_refused(lambda: self._regroup(REVIEWERS))

    def approve_the_like(self, it: "It") -> None:
        for grant in standing_grants.standing(self.cast.workspace.pk)[: it.n % 2]:
            standing_grants.revoke(grant, by=self._person("ada"))
        owner = self._person(it.reviewer)
        of = standing_grants.wanted(self.cast.workspace.pk, tool=self.newest.tool, asks=[], budget=1 + it.more, lasts=timedelta(hours=1))
        standing_grants.make(of, by=owner, shown=standing_grants.token(of, owner))

    def go_on(self, it: "It") -> None:
        """What is frozen is let go, the time to recall is over, and Otto says of what is unknown what is so."""
        for frozen in freezes.standing():
            freezes.lift(frozen, by=self._person("otto"), reason="Go on.")
        past = clock.now() - timedelta(seconds=1)
        Grant.objects.filter(action__run__in=self.runs, held_until__gt=past).update(held_until=past)
        Run.objects.filter(pk__in=[run.pk for run in self.runs], state="waiting", wake_at__isnull=False).update(wake_at=past)
        sweep.sweep()
        for grant in Grant.objects.filter(action__run__in=self.runs, outcome="unknown").select_related("action"):
            happened = any(each["key"] == str(grant.pk) for each in sent)
            said = {"outcome": "happened", "reference": "42"} if happened else {"outcome": "did_not_happen"}
            self._may_be_refused(lambda g=grant, s=said: execution.resolve(g.action, by=self._person("otto"), note="I looked.", **s))

    # what must hold ---------------------------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_granted_or_redeemed_while_frozen(self) -> None:
        for frozen in freezes.standing() if self._begun else ():
            late = Q(granted_at__gt=frozen.since) | Q(redeemed_at__gt=frozen.since)
            stopped = {"tool": {"action__tool": frozen.tool}}.get(frozen.what, {})
            assert not Grant.objects.filter(late, action__run__in=self.runs, **stopped).exists(), "let through while frozen"

    @invariant()
    def each_runs_at_most_once_and_only_as_what_was_approved(self) -> None:
        if not self._begun:
            return
        ran = Counter(message["key"] for message in sent)
        assert not [key for key, times in ran.items() if times > 1], "it was done twice"
        per_run = Counter(Grant.objects.filter(pk__in=ran).values_list("action__run", flat=True))
        assert all(times <= self.most_in_a_run for times in per_run.values()), "a run did it twice"
        for grant in Grant.objects.filter(action__run__in=self.runs).select_related("action__policy__group"):
            assert grant.digest == grant.action.digest and self._satisfied(grant.action), "granted by fewer than its policy asks"
        for message in sent:
            grant = Grant.objects.select_related("action__policy", "action__run__agent").get(pk=message["key"])
            assert grant.voided_at is None and (grant.held_until is None or grant.held_until <= grant.redeemed_at)
            assert grant.action.state == "approved" and self._is_what_was_approved(message, exact.read(grant.action).arguments)

    @invariant()
    def what_was_said_and_what_is_settled_stays(self) -> None:
        if not self._begun:
            return
        states = dict(self.actions.values_list("pk", "state"))
        waiting = Counter(self.actions.filter(state="waiting").values_list("run", flat=True))
        assert all(count <= self.most_waiting for count in waiting.values())
        for pk, before in self.settled.items():
            assert states[pk] == before or (before == "approved" and states[pk] in ("withdrawn", "recalled")), "a settled action moved"
        self.settled = {pk: state for pk, state in states.items() if state != "waiting"}
        said = {(each.pk, each.verdict, each.digest) for each in Decision.objects.filter(action__run__in=self.runs)}
        assert getattr(self, "said", set()) <= said, "a decision was lost or changed"
        self.said = said
        for pk, state in states.items():
            verdicts = {verdict for decision, verdict, _ in said if Decision.objects.get(pk=decision).action_id == pk}
            assert state != "rejected" or "rejected" in verdicts
        goes = Escalation.objects.filter(action__run__in=self.runs)
        assert all(each.action.policy.group_id is None or self._was_in(each.to_id) for each in goes.select_related("action__policy"))

    @invariant()
    def no_standing_grant_covers_more_than_it_may(self) -> None:
        for grant in StandingGrant.objects.all() if self._begun else ():
            uses = list(StandingUse.objects.filter(grant=grant).select_related("action"))
            assert len(uses) == grant.used <= grant.budget
            assert all(use.digest == use.action.digest and use.action.editor_id is None for use in uses)

    @invariant()
    def an_ended_run_has_one_ending_last(self) -> None:
        for run in Run.objects.filter(pk__in=[run.pk for run in self.runs]) if self._begun else ():
            types = list(Event.objects.filter(run_id=run.pk).order_by("seq").values_list("type", flat=True))
            endings = [each for each in types if each in {f"run.{state}" for state in ENDED}]
            assert (endings == [types[-1]]) if run.state in ENDED else not endings
            grants = Grant.objects.filter(action__run=run)
            assert types.count("action.granted") == grants.count()
            assert run.state not in ENDED or not grants.filter(redeemed_at__isnull=False, outcome__in=("none", "unknown")).exists()

    # how ---------------------------------------------------------------------------------------------------------------------------

    @property
    def _begun(self) -> bool:
        return bool(getattr(self, "runs", None))

    def _satisfied(self, action: ProposedAction) -> bool:
        """By the record alone: so many people of the group, from when they approved until the last of them did, or one standing grant."""
        use = StandingUse.objects.filter(action=action).select_related("grant").first()
        if use is not None:
            asked_one = action.policy.quorum == 1 and use.digest == action.digest and use.number <= use.grant.budget
            return asked_one and (action.policy.group is None or self._was_in(use.grant.owner_id))
        votes = list(Decision.objects.filter(action=action, digest=action.digest, verdict="approved"))
        last = max((vote.group_version or 0 for vote in votes), default=0)
        people = {vote.reviewer_id for vote in votes if self._stayed(vote, last, action.policy.group)}
        mine = {action.editor_id, self.cast.priya.pk}
        return len(people) >= action.policy.quorum and not people & mine

    def _stayed(self, vote: Decision, last: int, group: ReviewerGroup | None) -> bool:
        if group is None:
            return vote.group_version is None
        between = GroupVersion.objects.filter(group=group, version__range=(vote.group_version or 0, last))
        return bool(vote.group_version) and all(str(vote.reviewer_id) in each.members for each in between)

    def _was_in(self, user_id: Any) -> bool:
        return any(str(user_id) in each.members for each in GroupVersion.objects.filter(group=self.group))

    def _group(self) -> ReviewerGroup:
        people = [self._user(name).pk for name in REVIEWERS]
        return groups.make(self.cast.workspace.pk, name=f"Finance {uuid4()}", members=people, by=None)

    def _without(self, who: str) -> None:
        self._regroup([name for name in REVIEWERS if name != who])

    def _regroup(self, names: Iterable[str]) -> None:
        if self.group is not None:
            now = ReviewerGroup.objects.get(pk=self.group.pk)
            people, why = [self._user(name).pk for name in names], {"by": self._person("ada"), "why": "They moved.", "base": now.version}
            groups.change(now, name=now.name, members=people, closed=False, **why)

    def _expire(self) -> None:
        self.actions.filter(state="waiting").update(expires_at=clock.now() - timedelta(seconds=1))
        decisions.expire_due()

    def _decide(self, who: str, verdict: str, action: ProposedAction) -> object:
        return decisions.decide(action, reviewer=self._person(who), verdict=verdict, digest=action.digest, reason="Not like this.")

    def _edit(self, who: str, text: str, action: ProposedAction) -> object:
        field = {"send_mail": "subject", "change_record": "note", "issue_voucher": "note"}[action.tool]
        arguments = dict(exact.read(action).arguments) | {field: text}
        return editing.edit(action, by=self._person(who), arguments=arguments, digest=action.digest)

    def _person(self, who: str) -> Any:
        return person(self._user(who).pk)

    def _user(self, who: str) -> Any:
        return self.tess if who == "tess" else getattr(self.cast, who)

    def _may_be_refused(self, call: Callable[[], object]) -> None:
        with suppress(Refusal, RunEnded):
            call()

    def _only_refused(self, outcomes: Iterable[object]) -> None:
        for outcome in outcomes:
            assert not isinstance(outcome, Exception) or isinstance(outcome, Refusal | RunEnded), outcome


class Channel(People):
    """Runs that each propose one e-mail or one change of a record, and the workers that take them on."""

    most_in_a_run, most_waiting = 1, 1

    @initialize(quorum=QUORUM, delay=st.sampled_from([0, 60]), grouped=GROUPED)
    def start(self, quorum: int, delay: int, grouped: bool) -> None:
        self.before = list(Run.objects.values_list("pk", flat=True))
        self.begin(quorum, delay, grouped)
        self._propose(propose_mail)

    @rule(it=things(BY_PEOPLE, BY_WORKERS))
    def happens(self, it: It) -> None:
        self.happen(it)

    def propose(self, it: It) -> None:
        """Another run; what is alike may be approved beforehand by now, and then it does not wait."""
        if len(self.runs) < 8 and not freezes.standing() and not self.actions.filter(state="waiting").exists():
            self._propose(propose_mail if it.flag else propose_change)

    def walk(self, it: It) -> None:
        for run in self.runs:
            Proposed(run, None).walk()

    def stop_at_once(self, it: It) -> None:
        """Whatever stops it, while a worker is just about to run it."""
        freeze = partial(freezes.freeze, self.cast.workspace.pk, what="workspace", by=self._person("ada"), reason="Stop.")
        stop = freeze if it.flag else lambda: taking_back.recall(self.newest, by=self._person(it.reviewer), reason="Not after all.")
        self._only_refused(together([stop, *[Proposed(run, None).walk for run in self.runs]]))

    def crash(self, it: It) -> None:
        """A worker is killed before it redeems, before it calls, or after; another comes once its lease is over."""
        where = ("approved", "redeemed", "called")[it.n % 3]

        def die(name: str, *_: object) -> None:
            if name.startswith(where):
                raise Killed

        reached, release = points.reached, lease.release
        points.reached, lease.release = die, lambda held: None
        try:
            for run in self.runs:
                with suppress(Killed):
                    executor.execute(run.pk)
        finally:
            points.reached, lease.release = reached, release
        Lease.objects.filter(run__in=self.runs).update(until=clock.now() - timedelta(seconds=1))

    def _propose(self, makes: Callable[..., object]) -> None:
        with suppress(AssertionError):  # it was let go at once
            makes(self.cast)
        self.runs = list(Run.objects.exclude(pk__in=self.before))

    def _is_what_was_approved(self, message: Any, arguments: Any) -> bool:
        return all(message[name] == arguments[name] for name in ("to", "body", "record", "fields") if name in message)

    def teardown(self) -> None:
        for run in getattr(self, "runs", ()):
            Proposed(run, None).walk()
        self.each_runs_at_most_once_and_only_as_what_was_approved()


class Outside(People):
    """An agent outside, in a run of its own: two holders of one key, who propose, redeem by digest, run, report or stay silent."""

    most_in_a_run, most_waiting = 12, 12
    HOLDERS = ("holder-number-one", "holder-number-two")

    @initialize(quorum=QUORUM, delay=st.sampled_from([0, 60]), grouped=GROUPED)
    def start(self, quorum: int, delay: int, grouped: bool) -> None:
        self.begin(quorum, delay, grouped)
        self.agent = agent_actor(self.cast.agent)
        self._start()
        self._propose(0)

    @rule(it=things(BY_PEOPLE, BY_AGENTS))
    def happens(self, it: It) -> None:
        self.happen(it)

    def propose(self, it: It) -> None:
        self._propose(it.n)

    def redeem(self, it: It) -> None:
        self._may_be_refused(lambda: self._redeem(self.newest, self.HOLDERS[it.flag], self.newest.digest))

    def redeem_any(self, it: It) -> None:
        action = self.any if it.flag else self.newest
        self._may_be_refused(lambda: self._redeem(action, self.HOLDERS[it.n % 2], "0" * 64 if it.more else action.digest))

    def redeem_at_once(self, it: It) -> None:
        action = self.newest
        stops: list[Callable[[], object]] = [
            lambda: freezes.freeze(self.cast.workspace.pk, what="workspace", by=self._person("ada"), reason="Stop."),
            lambda: taking_back.recall(action, by=self._person("sam"), reason="Not after all."),
            lambda: signals.send(action.run, kind="cancel", key=str(uuid4()), by=self._person("otto")),
        ]
        holders = [lambda h=holder: self._redeem(action, h, action.digest) for holder in self.HOLDERS]
        self._only_refused(together([*holders, stops[it.n % 3]]))

    def report(self, it: It) -> None:
        """Who holds it says what became of it. That it failed is said only of what was not run."""
        action = self.any if it.more else self.newest
        ran = any(each["digest"] == action.digest for each in sent)
        outcome = "failed" if it.n % 2 and not ran else "executed"
        self._may_be_refused(lambda: outside.report(action, by=self.agent, holder=self.HOLDERS[it.flag], outcome=outcome))

    def silence(self, it: It) -> None:
        Grant.objects.filter(action__run__in=self.runs, report_by__isnull=False).update(report_by=clock.now() - timedelta(seconds=1))
        together([outside.silent_due, outside.silent_due])

    def _start(self) -> None:
        about: dict[str, Any] = {"title": "A late parcel", "agent_version": "1", "scope": {"customer": ["ACC-1"]}}
        self.runs.append(starting.start(agent=self.cast.agent, owner=self.cast.priya, by=self.agent, **about))

    def _propose(self, number: int) -> None:
        """In a new run, if the last one is over."""
        if Run.objects.get(pk=self.runs[-1].pk).state != "running":
            self._start()
        given = {"customer": "ACC-1", "amount": f"{number + 1}.00"}
        more: dict[str, Any] = {"key": str(number), "tool": "issue_voucher", "version": 1, "arguments": given}
        self._may_be_refused(lambda: outside.propose(self.runs[-1], by=self.agent, **more))

    def _redeem(self, action: ProposedAction, holder: str, digest: str) -> object:
        taken = outside.redeem(action, by=self.agent, digest=digest, holder=holder)
        if not taken.again:
            sent.append({"key": str(taken.grant_id), "digest": taken.digest, "exact": taken.exact})
        return taken

    def _is_what_was_approved(self, message: Any, arguments: Any) -> bool:
        return canonical.parse_json(message["exact"])["arguments"] == arguments


def test_whatever_happens_it_runs_at_most_once_as_it_was_approved(cast) -> None:
    run_state_machine_as_test(
        type("Told", (Channel,), {"cast": cast, "tess": member(cast.workspace, "tess", "reviewer")}), settings=quick(20, 20)
    )


def test_whatever_happens_an_agent_outside_redeems_at_most_once_what_was_approved(cast, monkeypatch) -> None:
    for tool in declaring.declare(TOOL_FILE.read_bytes()):
        monkeypatch.setitem(TOOLS, tool.name, tool)
    run_state_machine_as_test(
        type("Told", (Outside,), {"cast": cast, "tess": member(cast.workspace, "tess", "reviewer")}), settings=quick(20, 20)
    )


def quick(examples: int, steps: int) -> settings:
    """Without making a failure small: that takes minutes, and what happened is printed as it is."""
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    checks = list(HealthCheck)
    return settings(max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=checks, phases=phases)
