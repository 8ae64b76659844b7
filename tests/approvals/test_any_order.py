"""Whatever people do to proposals, in whatever order and at whatever moment: each runs at most once, and only as what was approved.

Two machines of the same people: over workflows that we run, whose workers crash, and over an agent outside that redeems and reports.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db.models import Q
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

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
from tests.factories import agent_actor
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)
PEOPLE = st.sampled_from(["riley", "sam", "priya", "morgan"])  # Priya owns the run, Morgan may only look
REVIEWERS = ("riley", "sam")
TOOLS_USED = ("send_mail", "change_record", "issue_voucher")
TEXTS = st.sampled_from(["One", "Two", "Three"])
ENDED = {"succeeded", "failed", "cancelled"}
TOOL_FILE = Path(__file__).parents[2] / "examples/outside_loop/tools.json"


class Killed(BaseException):
    """A worker that is no more."""


class People(RuleBasedStateMachine):
    """Everybody who may touch what was proposed, and what must hold whoever did."""

    cast: Any = None
    runs: list[Run]

    def begin(self, quorum: int, delay: int, grouped: bool) -> None:
        sent.clear()
        self.runs, self.keys, self.settled = [], 0, {}
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

    # what people do ---------------------------------------------------------------------------------------------------------------

    @rule(who=PEOPLE, verdict=st.sampled_from(["approved", "approved", "rejected"]), old=st.booleans())
    def decide(self, who: str, verdict: str, old: bool) -> None:
        self._may_be_refused(lambda: self._decide(who, verdict, self.any if old else self.newest))

    @rule(who=PEOPLE, text=TEXTS, old=st.booleans())
    def edit(self, who: str, text: str, old: bool) -> None:
        self._may_be_refused(lambda: self._edit(who, text, self.any if old else self.newest))

    @rule(who=PEOPLE)
    def ask(self, who: str) -> None:
        action = self.newest
        self._may_be_refused(lambda: asking.ask(action, by=self._person(who), question="Why is that so?", digest=action.digest))

    @rule(first=PEOPLE, second=PEOPLE, text=TEXTS, who=st.sampled_from(REVIEWERS))
    def at_once(self, first: str, second: str, text: str, who: str) -> None:
        action = self.newest
        calls = [
            lambda: self._decide(first, "approved", action),
            lambda: self._decide(second, "rejected", action),
            lambda: self._edit(second, text, action),
            lambda: self._regroup([who]),
            chasing.escalate_due,
        ]
        self._only_refused(together(calls))

    @rule()
    def expire(self) -> None:
        self.actions.filter(state="waiting").update(expires_at=clock.now() - timedelta(seconds=1))
        decisions.expire_due()

    @rule(who=st.sampled_from(["otto", "riley"]))
    def cancel(self, who: str) -> None:
        self.keys += 1
        run = Run.objects.get(pk=self.newest.run_id)
        self._may_be_refused(lambda: signals.send(run, kind="cancel", key=f"k{self.keys}", by=self._person(who)))

    @rule(who=PEOPLE)
    def recall(self, who: str) -> None:
        self._may_be_refused(lambda: taking_back.recall(self.newest, by=self._person(who), reason="Not after all."))

    @rule(old=st.booleans())
    def withdraw(self, old: bool) -> None:
        action = self.any if old else self.newest
        self._may_be_refused(lambda: taking_back.withdraw(action, by=agent_actor(self.cast.agent), reason="No longer wanted."))

    @rule(what=st.sampled_from(["agent", "tool", "workspace"]), who=st.sampled_from(["ada", "otto"]))
    def freeze(self, what: str, who: str) -> None:
        target = {"agent": {"agent_id": self.cast.agent.pk}, "tool": {"tool": self.newest.tool}}.get(what, {})
        freezes.freeze(self.cast.workspace.pk, what=what, by=self._person(who), reason="Stop.", **target)

    @rule()
    def lift(self) -> None:
        for frozen in freezes.standing()[:1]:
            freezes.lift(frozen, by=self._person("otto"), reason="Go on.")

    @rule(who=st.sampled_from(REVIEWERS))
    def nobody_answers(self, who: str) -> None:
        """It is claimed or not, and time goes by."""
        self._may_be_refused(lambda: decisions.claim(self.newest, by=self._person(who)))
        self.actions.filter(state="waiting").update(proposed_at=clock.now() - timedelta(hours=2), claimed_until=None)
        together([chasing.escalate_due, chasing.escalate_due, chasing.remind_due])

    @rule(people=st.sets(st.sampled_from(REVIEWERS), max_size=2))
    def regroup(self, people: set[str]) -> None:
        self._may_be_refused(lambda: self._regroup(sorted(people)))

    @rule(who=st.sampled_from(REVIEWERS), budget=st.integers(1, 2))
    def approve_the_like(self, who: str, budget: int) -> None:
        owner = self._person(who)
        of = standing_grants.wanted(self.cast.workspace.pk, tool=self.newest.tool, asks=[], budget=budget, lasts=timedelta(hours=1))
        standing_grants.make(of, by=owner, shown=standing_grants.token(of, owner))

    @rule()
    def revoke(self) -> None:
        for grant in standing_grants.standing(self.cast.workspace.pk)[:1]:
            standing_grants.revoke(grant, by=self._person("ada"))

    @rule()
    def let_the_time_to_recall_pass(self) -> None:
        past = clock.now() - timedelta(seconds=1)
        Grant.objects.filter(action__run__in=self.runs, held_until__gt=past).update(held_until=past)
        Run.objects.filter(pk__in=[run.pk for run in self.runs], state="waiting", wake_at__isnull=False).update(wake_at=past)
        sweep.sweep()

    @rule()
    def somebody_says_what_happened(self) -> None:
        """Otto looks outside, and says what is so."""
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
        for message in sent:
            grant = Grant.objects.select_related("action__policy", "action__run__agent").get(pk=message["key"])
            assert grant.voided_at is None and (grant.held_until is None or grant.held_until <= grant.redeemed_at)
            assert grant.action.state == "approved" and grant.action.digest == grant.digest
            assert self._is_what_was_approved(message, exact.read(grant.action).arguments)
            assert self._satisfied(grant.action), "its policy was not satisfied"

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
        people = [getattr(self.cast, name).pk for name in REVIEWERS]
        return groups.make(self.cast.workspace.pk, name=f"Finance {uuid4()}", members=people, by=None)

    def _regroup(self, names: Iterable[str]) -> None:
        """Who is in the group, against what a rule asks of it too: the rules of before are those that what waits was judged by."""
        if self.group is None:
            return
        now = ReviewerGroup.objects.get(pk=self.group.pk)
        for name in TOOLS_USED if groups.rules_of(now) else ():
            policy.set_rule(
                self.cast.workspace.pk, name, by=None, name="Outside e-mail", outcome="reviewers", quorum=self.quorum, group=None
            )
        people = [getattr(self.cast, name).pk for name in names]
        why = {"by": self._person("ada"), "why": "They moved.", "base": now.version}
        groups.change(now, name=now.name, members=people, closed=False, **why)

    def _decide(self, who: str, verdict: str, action: ProposedAction) -> object:
        return decisions.decide(action, reviewer=self._person(who), verdict=verdict, digest=action.digest, reason="Not like this.")

    def _edit(self, who: str, text: str, action: ProposedAction) -> object:
        field = {"send_mail": "subject", "change_record": "note", "issue_voucher": "note"}[action.tool]
        arguments = dict(exact.read(action).arguments) | {field: text}
        return editing.edit(action, by=self._person(who), arguments=arguments, digest=action.digest)

    def _person(self, who: str) -> Any:
        return person(getattr(self.cast, who).pk)

    def _may_be_refused(self, call: Callable[[], object]) -> None:
        with suppress(Refusal, RunEnded):
            call()

    def _only_refused(self, outcomes: Iterable[object]) -> None:
        for outcome in outcomes:
            assert not isinstance(outcome, Exception) or isinstance(outcome, Refusal | RunEnded), outcome


class Channel(People):
    """Runs that each propose one e-mail or one change of a record, and the workers that take them on."""

    most_in_a_run, most_waiting = 1, 1

    @initialize(quorum=st.integers(1, 2), delay=st.sampled_from([0, 60]), grouped=st.booleans(), mail=st.booleans())
    def start(self, quorum: int, delay: int, grouped: bool, mail: bool) -> None:
        self.begin(quorum, delay, grouped)
        self.propose(mail)

    @precondition(lambda self: len(self.runs) < 3 and not freezes.standing())
    @rule(mail=st.booleans())
    def propose(self, mail: bool) -> None:
        """Another run; what is alike may be approved beforehand by now, and then it does not wait."""
        with suppress(AssertionError):
            (propose_mail if mail else propose_change)(self.cast)
        self.runs = list(Run.objects.exclude(pk__in=self._before))

    @rule()
    def walk(self) -> None:
        for run in self.runs:
            Proposed(run, None).walk()

    @rule(who=PEOPLE, freezing=st.booleans())
    def stop_at_once(self, who: str, freezing: bool) -> None:
        """Whatever stops it, while a worker is just about to run it."""
        stop = self.freeze_all if freezing else lambda: taking_back.recall(self.newest, by=self._person(who), reason="Not after all.")
        self._only_refused(together([stop, *[Proposed(run, None).walk for run in self.runs]]))

    def freeze_all(self) -> None:
        freezes.freeze(self.cast.workspace.pk, what="workspace", by=self._person("ada"), reason="Stop.")

    @rule(where=st.sampled_from(["approved", "redeemed", "called"]))
    def crash(self, where: str) -> None:
        """A worker is killed before it redeems, before it calls, or after; another comes once its lease is over."""

        def die(name: str) -> None:
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

    def teardown(self) -> None:
        if self._begun:
            self.walk()
            self.each_runs_at_most_once_and_only_as_what_was_approved()

    def begin(self, quorum: int, delay: int, grouped: bool) -> None:
        self._before = list(Run.objects.values_list("pk", flat=True))
        super().begin(quorum, delay, grouped)

    def _is_what_was_approved(self, message: Any, arguments: Any) -> bool:
        return all(message[name] == arguments[name] for name in ("to", "body", "record", "fields") if name in message)


class Outside(People):
    """An agent outside, in a run of its own: two holders of one key, who propose, redeem by digest, run, report or stay silent."""

    most_in_a_run, most_waiting = 4, 4
    HOLDERS = st.sampled_from(["holder-number-one", "holder-number-two"])

    @initialize(quorum=st.integers(1, 2), delay=st.sampled_from([0, 60]), grouped=st.booleans())
    def start(self, quorum: int, delay: int, grouped: bool) -> None:
        self.begin(quorum, delay, grouped)
        self.agent = agent_actor(self.cast.agent)
        about: dict[str, Any] = {"title": "A late parcel", "agent_version": "1", "scope": {"customer": ["ACC-1"]}}
        self.runs = [starting.start(agent=self.cast.agent, owner=self.cast.priya, by=self.agent, **about)]
        self.propose("1.00")

    @rule(amount=st.sampled_from(["1.00", "2.00", "3.00", "4.00"]))
    def propose(self, amount: str) -> None:
        given = {"customer": "ACC-1", "amount": amount}
        self._may_be_refused(
            lambda: outside.propose(self.runs[0], by=self.agent, key=amount, tool="issue_voucher", version=1, arguments=given)
        )

    @rule(holder=HOLDERS, old=st.booleans(), forged=st.booleans())
    def redeem(self, holder: str, old: bool, forged: bool) -> None:
        action = self.any if old else self.newest
        self._may_be_refused(lambda: self._redeem(action, holder, "0" * 64 if forged else action.digest))

    @rule(who=st.sampled_from(["freeze", "recall", "cancel"]))
    def redeem_at_once(self, who: str) -> None:
        action, run = self.newest, Run.objects.get(pk=self.runs[0].pk)
        stops = {
            "freeze": lambda: freezes.freeze(self.cast.workspace.pk, what="workspace", by=self._person("ada"), reason="Stop."),
            "recall": lambda: taking_back.recall(action, by=self._person("sam"), reason="Not after all."),
            "cancel": lambda: signals.send(run, kind="cancel", key=str(uuid4()), by=self._person("otto")),
        }
        holders = [lambda h=h: self._redeem(action, h, action.digest) for h in ("holder-number-one", "holder-number-two")]
        self._only_refused(together([*holders, stops[who]]))

    @rule(holder=HOLDERS, old=st.booleans(), failed=st.booleans())
    def report(self, holder: str, old: bool, failed: bool) -> None:
        """Who holds it says what became of it. That it failed is said only of what was not run."""
        action = self.any if old else self.newest
        ran = any(each["digest"] == action.digest for each in sent)
        outcome = "failed" if failed and not ran else "executed"
        self._may_be_refused(lambda: outside.report(action, by=self.agent, holder=holder, outcome=outcome))

    @rule()
    def silence(self) -> None:
        Grant.objects.filter(action__run__in=self.runs, report_by__isnull=False).update(report_by=clock.now() - timedelta(seconds=1))
        together([outside.silent_due, outside.silent_due])

    def _redeem(self, action: ProposedAction, holder: str, digest: str) -> object:
        taken = outside.redeem(action, by=self.agent, digest=digest, holder=holder)
        if not taken.again:
            sent.append({"key": str(taken.grant_id), "digest": taken.digest, "exact": taken.exact})
        return taken

    def _is_what_was_approved(self, message: Any, arguments: Any) -> bool:
        return canonical.parse_json(message["exact"].encode())["arguments"] == arguments

    def teardown(self) -> None:
        if self._begun:
            self.each_runs_at_most_once_and_only_as_what_was_approved()


def test_whatever_happens_it_runs_at_most_once_as_it_was_approved(cast) -> None:
    run_state_machine_as_test(type("Told", (Channel,), {"cast": cast}), settings=quick(15, 14))


def test_whatever_happens_an_agent_outside_redeems_at_most_once_what_was_approved(cast, monkeypatch) -> None:
    for tool in declaring.declare(TOOL_FILE.read_bytes()):
        monkeypatch.setitem(TOOLS, tool.name, tool)
    run_state_machine_as_test(type("Told", (Outside,), {"cast": cast}), settings=quick(12, 14))


def quick(examples: int, steps: int) -> settings:
    return settings(max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck))
