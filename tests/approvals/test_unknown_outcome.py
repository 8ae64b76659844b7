"""What became of an action whose answer was lost: who may say so, what is refused, and what then stands."""

from datetime import timedelta

import orjson
import pytest

from access.errors import Forbidden
from access.models import Membership, Role, User
from access.rules import ROLES, Actor, person
from approvals import decisions, execution, policy
from approvals.errors import BeingLookedUp, NoteNeeded, NotUnknown, NotYours, ReferenceNeeded
from approvals.models import Grant, ProposedAction
from artifacts import vault
from config import clock
from runs import signals, starting
from runs.engine import executor, sweep
from runs.models import Event, JournalEntry, Run
from tests.runs import workflows
from tests.runs.workflows import World

pytestmark = pytest.mark.django_db(transaction=True)


class Unknown:
    """A run whose last answer was lost and whose look-ups tell nothing: it waits for a person."""

    def __init__(self, cast, outside: World) -> None:
        self.cast, self.outside = cast, outside
        policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
        policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
        by = person(cast.otto.pk)  # who starts a run may still say what happened in it
        self.run = starting.start(
            agent=cast.agent,
            owner=cast.agent.owner,
            by=by,
            title="A talk",
            workflow="test-talk",
            arguments={"thing": "tea"},
            scope={"thing": ["tea"]},
        )
        executor.execute(self.run.pk)
        self.action = self.approve()
        outside.drop_answer = outside.blind = True
        self.walk_until_asked()

    def approve(self) -> ProposedAction:
        action = ProposedAction.objects.get(run=self.run, state="waiting")
        decisions.decide(action, reviewer=person(self.cast.riley.pk), verdict="approved", digest=action.digest)
        return action

    def walk_until_asked(self) -> None:
        for _ in range(4):
            Run.objects.filter(pk=self.run.pk, wake_at__isnull=False).update(wake_at=clock.now())
            sweep.sweep()
            self.walk()
        assert self.grant.outcome == "unknown"

    def walk(self) -> str:
        word = executor.execute(self.run.pk)
        self.run.refresh_from_db()
        return word

    @property
    def grant(self) -> Grant:
        return Grant.objects.get(action=self.action)

    def say(self, outcome, who=None, note="It is in the outbox.", reference="42"):
        by = person((who or self.cast.otto).pk)
        return execution.resolve(self.action, by=by, outcome=outcome, note=note, reference=reference)

    def said(self) -> int:
        return Event.objects.filter(run_id=self.run.pk, type="action.resolved").count()

    def log(self, *types: str) -> list[dict]:
        bodies = Event.objects.filter(run_id=self.run.pk, type__in=types).order_by("seq").values_list("body", flat=True)
        return [orjson.loads(body)["data"] for body in bodies]


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def unknown(cast, outside) -> Unknown:
    return Unknown(cast, outside)


# who may say ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["riley", "sam", "morgan", "ada", "priya", "olga"])
def test_only_who_holds_the_right_may_say(cast, unknown, name):
    with pytest.raises(NotYours):
        unknown.say("happened", getattr(cast, name))
    assert unknown.grant.outcome == "unknown" and unknown.said() == 0


def test_who_decided_or_owns_may_not_say_even_with_the_right(cast, unknown):
    for user, part in ((cast.riley, "decided on this action"), (cast.priya, "own the agent")):
        give_the_right(user)
        with pytest.raises(NotYours, match=part):
            unknown.say("happened", user)
    assert unknown.said() == 0
    # Morgan and Sam hold the same roles as those two, and had no part in it
    assert [user.name for user in execution.who_may_resolve(unknown.action)] == ["Morgan", "Otto", "Sam"]


def give_the_right(user: User) -> None:
    """Everybody with the same role has it then."""
    role = Membership.objects.get(user=user).role
    Role.objects.filter(pk=role.pk).update(capabilities=sorted({*ROLES[role.name], "runs.recover"}))


def test_an_agent_may_not_say(cast, unknown):
    by = Actor("agent", str(cast.agent.pk), grants={cast.workspace.pk: frozenset({"runs.recover"})})
    with pytest.raises(Forbidden):
        execution.resolve(unknown.action, by=by, outcome="happened", note="I did it.", reference="1")


# what it takes ----------------------------------------------------------------------------------------------------------------------


def test_what_was_seen_is_needed_and_a_reference_for_what_happened(unknown):
    for outcome in ("happened", "did_not_happen"):
        with pytest.raises(NoteNeeded):
            unknown.say(outcome, note="  ")
    with pytest.raises(ReferenceNeeded):
        unknown.say("happened", reference=" ")
    assert unknown.said() == 0 and unknown.grant.outcome == "unknown"


def test_it_happened_is_recorded_with_its_reference_and_never_done_again(unknown, outside):
    unknown.say("happened")
    assert unknown.walk() == "succeeded"
    assert [what for _, what, _ in outside.done] == ["note", "say"]
    grant = unknown.grant
    assert grant.outcome == "executed" and orjson.loads(vault.open_bytes(grant.receipt)) == {"reference": "42"}
    (done,) = [each for each in unknown.log("effect.done") if each["tool"] == "say"]
    assert (done["key"], done["action"]) == (str(grant.pk), str(unknown.action.pk))


def test_the_same_said_twice_is_said_once_and_anything_else_is_told_what_stands(cast, unknown):
    first = unknown.say("happened")
    again = unknown.say("happened")
    assert (again.seq, again.again) == (first.seq, True) and unknown.said() == 1
    with pytest.raises(NotUnknown) as refused:
        unknown.say("did_not_happen")
    assert refused.value.detail == "Otto said that it happened."
    assert refused.value.extra["said"] == "happened" and refused.value.extra["seq"] == first.seq
    give_the_right(cast.sam)
    with pytest.raises(NotUnknown):
        unknown.say("happened", cast.sam)


def test_what_is_not_unknown_cannot_be_said(cast, outside):
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    by = person(cast.otto.pk)
    run = starting.start(
        agent=cast.agent,
        owner=cast.agent.owner,
        by=by,
        title="A",
        workflow="test-talk",
        arguments={"thing": "tea"},
        scope={"thing": ["tea"]},
    )
    executor.execute(run.pk)
    action = ProposedAction.objects.get(run=run)
    with pytest.raises(NotUnknown, match="It was never run: it is waiting"):
        execution.resolve(action, by=by, outcome="did_not_happen", note="Nothing there.")


# looking again ----------------------------------------------------------------------------------------------------------------------


def test_each_look_up_is_in_the_log(unknown):
    looks = [each for each in unknown.log("tool.ended") if str(each.get("call", "")).startswith("look-up:")]
    assert [look["outcome"] for look in looks] == ["unknown"] * 3
    assert {look["call"] for look in looks} == {f"look-up:{unknown.grant.pk}"}
    assert unknown.log("action.unknown")[0]["reason"] == "dropped"


def test_looking_again_needs_no_proof_and_finds_what_can_be_found(unknown, outside):
    unknown.say("look_again", note="", reference="")
    assert unknown.walk() == "waiting" and unknown.grant.outcome == "unknown"
    assert len(unknown.log("action.unknown")) == 1
    outside.blind = False
    unknown.say("look_again", note="", reference="")
    assert unknown.walk() == "succeeded"
    assert [what for _, what, _ in outside.done] == ["note", "say"]
    assert unknown.log("action.executed")[-1]["found"] is True


def test_nothing_is_said_while_it_is_being_looked_up(cast, unknown):
    unknown.say("look_again")
    with pytest.raises(BeingLookedUp):
        unknown.say("did_not_happen")
    assert unknown.say("look_again").again
    assert unknown.said() == 1


def never_arrived(unknown: Unknown) -> None:
    """The outside surely does not have it, and is past the time in which it could still come."""
    unknown.outside.blind = False
    unknown.outside.done = [each for each in unknown.outside.done if each[1] != "say"]
    Grant.objects.filter(action=unknown.action).update(redeemed_at=clock.now() - timedelta(minutes=1))


def test_what_a_look_up_surely_does_not_find_is_done_under_the_same_key(unknown, outside):
    never_arrived(unknown)
    unknown.say("look_again")
    assert unknown.walk() == "succeeded"
    assert [key for key, what, _ in outside.done if what == "say"] == [str(unknown.grant.pk)]


def test_after_many_attempts_only_a_person_goes_on(unknown, outside):
    never_arrived(unknown)
    JournalEntry.objects.filter(run=unknown.run, kind="perform", state="started").update(attempts=20)
    unknown.say("look_again")
    assert unknown.walk() == "waiting"
    assert [what for _, what, _ in outside.done] == ["note"]


# while it is being cancelled --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outcome", "then"), [("happened", "executed"), ("did_not_happen", "failed")])
def test_a_cancelled_run_ends_with_what_a_person_says(cast, unknown, outside, outcome, then):
    assert signals.send(unknown.run, kind="cancel", key="1", by=person(cast.otto.pk)).status == "delivered"
    unknown.say(outcome)
    unknown.run.refresh_from_db()
    assert (unknown.run.state, unknown.grant.outcome) == ("cancelled", then)
    assert unknown.log("run.cancelled")[0]["done"] == (2 if outcome == "happened" else 1)


def test_a_cancelled_run_is_looked_up_again_when_asked_and_sends_nothing(cast, unknown, outside):
    signals.send(unknown.run, kind="cancel", key="1", by=person(cast.otto.pk))
    assert unknown.walk() == "cancelling" and unknown.run.wake_at > clock.now()
    outside.blind = False
    unknown.say("look_again")
    unknown.run.refresh_from_db()
    assert unknown.run.wake_at <= clock.now()
    unknown.walk()
    assert unknown.run.state == "cancelled" and unknown.grant.outcome == "executed"
    assert [what for _, what, _ in outside.done] == ["note", "say"]
