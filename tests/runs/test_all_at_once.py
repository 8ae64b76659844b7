"""Whatever is asked of a run at once, by people, workers and the sweep: it comes to one ending, and nothing happens twice."""

import random
from collections.abc import Callable
from datetime import timedelta

import pytest

from access.rules import person
from approvals import decisions, policy
from approvals.models import Grant, ProposedAction
from config import clock
from runs import recovery, signals, updates
from runs.engine import executor, sweep
from runs.models import Run, Signal
from runs.verification import Whole, verify
from tests.approvals.test_many_deciders import at_once
from tests.runs import workflows
from tests.runs.test_engine import start

pytestmark = pytest.mark.django_db(transaction=True)
Calls = list[Callable[[], object]]


def sending(cast, run: Run, kind: str, key: str) -> Callable[[], object]:
    otto, note = person(cast.otto.pk), f"Note {key}." if kind in signals.WITH_A_NOTE else ""
    return lambda: signals.send(run, kind=kind, key=f"{kind}-{key}", by=otto, note=note)


def deciding(user) -> Callable[[], object]:
    def decide() -> None:
        action = ProposedAction.objects.filter(state="waiting").first()
        if action is not None:
            decisions.decide(action, reviewer=person(user.pk), verdict="approved", digest=action.digest)

    return decide


def recovering(cast, run: Run, choice: str) -> Callable[[], object]:
    def choose() -> None:
        where = recovery.parking(Run.objects.get(pk=run.pk))
        if where is not None:
            recovery.choose(run, choice, at=where.seq, by=person(cast.otto.pk))

    return choose


def asked(cast, run: Run, turn: int, chance: random.Random) -> Calls:
    """Some of everything, in any order; at the third turn also cancels."""
    calls: Calls = []
    for each in (run, *Run.objects.filter(parent=run)):
        for number in range(4):
            calls += [sending(cast, each, kind, f"{turn}{number}") for kind in ("pause", "resume")]
            calls += [lambda pk=each.pk: executor.execute(pk), sweep.sweep]
    calls += [sending(cast, run, kind, str(turn)) for kind in signals.WITH_A_NOTE]
    calls += [deciding(cast.riley), deciding(cast.sam), recovering(cast, run, "retry"), recovering(cast, run, "give_up")]
    calls.append(lambda: updates.set_budgets(run, {"steps": chance.choice([2, 50])}, by=person(cast.otto.pk)))
    if turn == 2:
        calls += [sending(cast, run, "cancel", str(number)) for number in range(3)]
    chance.shuffle(calls)
    return calls


def come_to_rest() -> None:
    """What timers, quarantines and workers would do in an hour."""
    before = clock.now() - timedelta(hours=1)
    for _ in range(20):
        Grant.objects.filter(redeemed_at__isnull=False, outcome__in=("none", "unknown")).update(redeemed_at=before)
        Run.objects.exclude(wake_at=None).update(wake_at=before)
        sweep.sweep()
        going = list(Run.objects.filter(ended_at=None).values_list("pk", flat=True))
        if not going:
            return
        for pk in going:
            executor.execute(pk)


@pytest.mark.parametrize("workflow", ["test-steered", "test-undone", "test-parent"])
def test_everything_at_once_leaves_one_ending_and_nothing_done_twice(cast, workflow):
    world, chance = workflows.reset(), random.Random(workflow)
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    for tool in ("put", "note_it", "take_away"):
        policy.set_rule(cast.workspace.pk, tool, name="Notes", outcome="automatic", by=None)
    run = start(cast, workflow, {} if workflow == "test-undone" else {"thing": "tea"})
    executor.execute(run.pk)
    for turn in range(3):
        at_once(asked(cast, run, turn, chance))
    come_to_rest()
    runs = list(Run.objects.all())
    assert all(each.ended_at for each in runs) and all(isinstance(verify(each), Whole) for each in runs)
    assert not Signal.objects.filter(status__in=["accepted", "delivered"]).exists()
    keys = [key for key, _, _ in world.done]
    assert len(keys) == len(set(keys)) == Grant.objects.filter(outcome="executed").count()
    run.refresh_from_db()
    if run.state == "cancelled":
        there = [[text for _, what, text in world.done if what == word] for word in ("put", "took away")]
        assert sorted(there[0]) == sorted(there[1])
