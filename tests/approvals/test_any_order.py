"""Whatever people do to a proposal, in whatever order and at whatever moment: it runs at most once, and only as what was approved."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db.models import Q
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from access.errors import Refusal
from access.rules import person
from approvals import asking, decisions, editing, exact, freezes, policy, taking_back
from approvals.models import Decision, Grant, ProposedAction
from config import clock
from runs import signals
from runs.engine import sweep
from runs.errors import RunEnded
from runs.models import Event, Run
from tests.approvals.mailing import propose_mail, sent
from tests.factories import agent_actor
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)
PEOPLE = st.sampled_from(["riley", "sam", "priya", "morgan"])  # Priya owns the run, Morgan may only look
SUBJECTS = st.sampled_from(["One", "Two", "Three"])
ENDED = {"succeeded", "failed", "cancelled"}


class Channel(RuleBasedStateMachine):
    """One run that proposes one e-mail, and everybody who may touch it."""

    cast = None

    @initialize(quorum=st.integers(1, 2), delay=st.sampled_from([0, 60]))
    def propose(self, quorum: int, delay: int) -> None:
        sent.clear()
        for frozen in freezes.standing():  # of the example before
            freezes.lift(frozen, by=self._person("otto"), reason="Go on.")
        rule = {"name": "Outside e-mail", "outcome": "reviewers", "quorum": quorum, "recall_delay": timedelta(seconds=delay)}
        for name in ("send_mail", "change_record"):
            policy.set_rule(self.cast.workspace.pk, name, by=None, **rule)
        self.quorum = quorum
        self.proposed = propose_mail(self.cast)
        self.keys = 0

    @property
    def newest(self) -> ProposedAction:
        return ProposedAction.objects.filter(run=self.proposed.run).order_by("-proposed_seq")[0]

    @property
    def any(self) -> ProposedAction:
        return ProposedAction.objects.filter(run=self.proposed.run).order_by("proposed_seq")[0]

    @rule(who=PEOPLE, verdict=st.sampled_from(["approved", "rejected"]), old=st.booleans())
    def decide(self, who: str, verdict: str, old: bool) -> None:
        self._may_be_refused(lambda: self._decide(who, verdict, self.any if old else self.newest))

    @rule(who=PEOPLE, subject=SUBJECTS, old=st.booleans())
    def edit(self, who: str, subject: str, old: bool) -> None:
        self._may_be_refused(lambda: self._edit(who, subject, self.any if old else self.newest))

    @rule(who=PEOPLE)
    def ask(self, who: str) -> None:
        action = self.newest
        self._may_be_refused(lambda: asking.ask(action, by=self._person(who), question="Why is that so?", digest=action.digest))

    @rule(first=PEOPLE, second=PEOPLE, subject=SUBJECTS)
    def at_once(self, first: str, second: str, subject: str) -> None:
        action = self.newest
        calls = [
            lambda: self._decide(first, "approved", action),
            lambda: self._decide(second, "rejected", action),
            lambda: self._edit(second, subject, action),
        ]
        for outcome in together(calls):
            assert not isinstance(outcome, Exception) or isinstance(outcome, Refusal), outcome

    @rule()
    def expire(self) -> None:
        ProposedAction.objects.filter(run=self.proposed.run, state="waiting").update(expires_at=clock.now() - timedelta(seconds=1))
        decisions.expire_due()

    @rule(who=st.sampled_from(["otto", "riley"]))
    def cancel(self, who: str) -> None:
        self.keys += 1
        run = Run.objects.get(pk=self.proposed.run.pk)
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
        target = {"agent": {"agent_id": self.cast.agent.pk}, "tool": {"tool": "send_mail"}}.get(what, {})
        freezes.freeze(self.cast.workspace.pk, what=what, by=self._person(who), reason="Stop.", **target)

    @rule()
    def lift(self) -> None:
        for frozen in freezes.standing()[:1]:
            freezes.lift(frozen, by=self._person("otto"), reason="Go on.")

    @rule()
    def let_the_time_to_recall_pass(self) -> None:
        past = clock.now() - timedelta(seconds=1)
        Grant.objects.filter(action__run=self.proposed.run, held_until__gt=past).update(held_until=past)
        Run.objects.filter(pk=self.proposed.run.pk, state="waiting", waiting__on="timer").update(wake_at=past)
        sweep.sweep()

    @rule(who=PEOPLE, freezing=st.booleans())
    def stop_at_once(self, who: str, freezing: bool) -> None:
        """Whatever stops it, while a worker is just about to run it."""
        stop = self.freeze_all if freezing else lambda: taking_back.recall(self.newest, by=self._person(who), reason="Not after all.")
        for outcome in together([stop, self.proposed.walk]):
            assert not isinstance(outcome, Exception) or isinstance(outcome, Refusal), outcome

    def freeze_all(self) -> None:
        freezes.freeze(self.cast.workspace.pk, what="workspace", by=self._person("ada"), reason="Stop.")

    @rule()
    def walk(self) -> None:
        self.proposed.walk()

    @invariant()
    def nothing_is_granted_or_redeemed_while_frozen(self) -> None:
        if not hasattr(self, "proposed"):
            return
        for frozen in freezes.standing():
            late = Q(granted_at__gt=frozen.since) | Q(redeemed_at__gt=frozen.since)
            assert not Grant.objects.filter(late, action__run=self.proposed.run).exists(), "let through while frozen"

    @invariant()
    def it_runs_at_most_once_and_only_as_what_was_approved(self) -> None:
        if not hasattr(self, "proposed"):
            return
        assert len(sent) <= 1, "it was sent twice"
        for message in sent:
            grant = Grant.objects.select_related("action").get(pk=message["key"])
            assert grant.voided_at is None and (grant.held_until is None or grant.held_until <= grant.redeemed_at)
            votes = Decision.objects.filter(action=grant.action, digest=grant.digest, verdict="approved")
            people = {vote.reviewer_id for vote in votes}
            assert len(people) >= self.quorum and grant.action.editor_id not in people
            assert message["body"] == exact.read(grant.action).arguments["body"]
            assert grant.action.state == "approved" and grant.action.digest == grant.digest

    @invariant()
    def one_proposal_is_open_and_what_is_settled_stays(self) -> None:
        if not hasattr(self, "proposed"):
            return
        states = dict(ProposedAction.objects.filter(run=self.proposed.run).values_list("pk", "state"))
        assert Counter(states.values())["waiting"] <= 1
        for pk, before in getattr(self, "settled", {}).items():
            assert states[pk] == before or (before == "approved" and states[pk] in ("withdrawn", "recalled")), "a settled action moved"
        self.settled = {pk: state for pk, state in states.items() if state != "waiting"}

    @invariant()
    def an_ended_run_has_one_ending_last(self) -> None:
        if not hasattr(self, "proposed"):
            return
        run = Run.objects.get(pk=self.proposed.run.pk)
        types = list(Event.objects.filter(run_id=run.pk).order_by("seq").values_list("type", flat=True))
        endings = [each for each in types if each in {f"run.{state}" for state in ENDED}]
        assert (endings == [types[-1]]) if run.state in ENDED else not endings

    def teardown(self) -> None:
        if hasattr(self, "proposed"):
            self.proposed.walk()
            self.it_runs_at_most_once_and_only_as_what_was_approved()

    def _decide(self, who: str, verdict: str, action: ProposedAction) -> object:
        return decisions.decide(action, reviewer=self._person(who), verdict=verdict, digest=action.digest, reason="Not like this.")

    def _edit(self, who: str, subject: str, action: ProposedAction) -> object:
        arguments = dict(exact.read(action).arguments) | {"subject": subject}
        return editing.edit(action, by=self._person(who), arguments=arguments, digest=action.digest)

    def _person(self, who: str) -> object:
        return person(getattr(self.cast, who).pk)

    def _may_be_refused(self, call: Callable[[], object]) -> None:
        with suppress(Refusal, RunEnded):
            call()


def test_whatever_happens_it_runs_at_most_once_as_it_was_approved(cast) -> None:
    machine = type("Told", (Channel,), {"cast": cast})
    quick = settings(max_examples=15, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(machine, settings=quick)
