"""A policy is kept in versions: each save is a new one, and each action keeps the one it was judged by."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from access import append_only
from access.ids import uuid7
from access.models import AuditEntry
from access.rules import person
from approvals import asked_for, decisions, demo, history, policy
from approvals.gate import taint_of
from approvals.models import AskedFor, Grant, Policy, PolicySet, ProposedAction
from approvals.policy import PolicyChanged, WhyNeeded
from config import clock
from runs import starting
from runs.engine import executor
from runs.engine.tools import TOOLS, Call, tool
from runs.models import Event, Run
from tests.approvals.mailing import propose_change, propose_mail
from tests.factories import make_run
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)
TIMES = {"expires_after": timedelta(hours=1), "grant_lasts": timedelta(hours=1)}


def save(cast: Any, *rules: Policy, base: int | None = None, why: str = "Because of ZN-4710.") -> PolicySet:
    before = policy.newest(cast.workspace.pk)
    base = base if base is not None else before.version if before else 0
    return policy.put_in_force(cast.workspace.pk, rules, by=person(cast.ada.pk), why=why, base=base)


def rule(cast: Any, outcome: str, tool: str = "change_record", *asks: dict[str, str], **more: Any) -> Policy:
    return policy.rule(cast.workspace.pk, name=f"{outcome} {tool}", tool=tool, outcome=outcome, conditions=list(asks), **TIMES | more)


def changing(cast: Any, **change: Any) -> Run:
    """A run that proposes the change of a record, as far as it gets."""
    given = {"record": "ACC-1", "fields": {"city": "Gdynia"}} | change
    by = person(cast.agent.owner_id)
    about: dict[str, Any] = {"title": "A change", "agent_version": "1", "workflow": "test-changing", "arguments": {"change": given}}
    run = starting.start(agent=cast.agent, owner=cast.agent.owner, by=by, scope={}, **about)
    executor.execute(run.pk)
    return Run.objects.get(pk=run.pk)


def test_each_action_and_decision_keeps_the_version_it_was_judged_by(cast):
    proposed = propose_mail(cast)
    first = proposed.action.policy
    made = save(cast, rule(cast, "reviewers", "send_mail", quorum=2), rule(cast, "reviewers"))
    decisions.decide(proposed.action, reviewer=person(cast.riley.pk), verdict="approved", digest=proposed.action.digest)
    action = proposed.again()
    assert action.state == "approved", "one was enough when it was put up"
    assert action.policy == first == action.decisions.get().policy and first.version < made.version
    assert propose_mail(cast, subject="Another").action.policy.version == made.version
    entry = AuditEntry.objects.get(verb="policy_saved")
    assert (entry.actor_id, entry.data["version"]) == (str(cast.ada.pk), made.version)


def test_a_save_names_the_version_it_was_made_from_and_of_two_at_once_one_stands(cast):
    save(cast, rule(cast, "reviewers"))
    with pytest.raises(WhyNeeded):
        save(cast, rule(cast, "never"), why=" x ")
    with pytest.raises(PolicyChanged):
        save(cast, rule(cast, "never"), base=0)
    said = together([partial(save, cast, rule(cast, "never"), base=1) for _ in range(5)])
    assert sorted(type(each).__name__ for each in said) == ["PolicyChanged"] * 4 + ["PolicySet"]
    assert policy.newest(cast.workspace.pk).version == 2 and [each.outcome for each in policy.rules(cast.workspace.pk)] == ["never"]


def test_an_older_version_saved_again_says_the_same(cast):
    first = save(cast, rule(cast, "reviewers"), rule(cast, "automatic", "send_mail"))
    save(cast, rule(cast, "never"))
    again = save(cast, *Policy.objects.filter(policy_set=first).order_by("position"))
    assert again.digest == first.digest and again.version == 3
    assert [each.key for each in policy.rules(cast.workspace.pk)] == [each.key for each in first.rules.order_by("position")]


def test_a_rule_about_an_argument_is_kept_when_something_is_proposed(cast):
    force = {"what": "argument", "path": "$.force", "test": "is", "value": "true"}
    save(cast, rule(cast, "never", "change_record", force), rule(cast, "automatic"))
    assert changing(cast).state == "succeeded"
    stopped = changing(cast, force=True)
    assert stopped.state == "parked" and not ProposedAction.objects.filter(run=stopped).exists()


def test_what_a_tool_itself_reads_is_a_leg_too(cast):
    run = make_run(cast)
    run.workflow = "test-mailing"  # what an agent outside reads is not seen, and always counts
    assert not taint_of(run, TOOLS["send_mail"]).lethal, "it has read nothing"
    assert taint_of(run, replace(TOOLS["send_mail"], reads_private=True, reads_untrusted=True)).lethal


def test_a_tool_that_sends_also_sends_out_unless_it_says_otherwise():
    def post_it(call: Call) -> None: ...

    try:
        assert tool(effect="send", title="Post it")(post_it).sends_out
        assert not tool(effect="send", title="Post it", sends_out=False)(post_it).sends_out
    finally:
        TOOLS.pop("post_it", None)


def test_a_plan_may_be_asked_for_before_the_first_tool(cast):
    save(cast, rule(cast, "automatic", plan_first=True))
    assert changing(cast).state == "succeeded", "this workflow sets its plan first"
    assert ProposedAction.objects.get().judged_on["planned"]


def test_a_rule_lets_go_only_so_many_a_day_and_a_person_goes_on(cast):
    save(cast, rule(cast, "automatic", a_day=2))
    assert [changing(cast, record=f"ACC-{n}").state for n in range(4)] == ["succeeded"] * 2 + ["waiting"] * 2
    save(cast, *policy.rules(cast.workspace.pk))  # another version of the same rule counts on
    assert changing(cast, record="ACC-9").state == "waiting"
    assert Grant.objects.count() == 2
    waiting = ProposedAction.objects.filter(state="waiting").first()
    decisions.decide(waiting, reviewer=person(cast.riley.pk), verdict="approved", digest=waiting.digest)
    assert Grant.objects.count() == 3


def test_of_many_at_once_a_rule_lets_go_only_as_many_as_its_day_takes(cast):
    save(cast, rule(cast, "automatic", a_day=3))
    ended = together([partial(changing, cast, record=f"ACC-{n}") for n in range(6)])
    assert sorted(run.state for run in ended) == ["succeeded"] * 3 + ["waiting"] * 3


def test_what_no_rule_covers_is_refused_and_told_to_the_admins(cast):
    save(cast, rule(cast, "automatic", "send_mail"))
    for _ in range(2):
        run = changing(cast)
        assert run.state == "parked" and Event.objects.filter(run_id=run.pk, type="block.raised").exists()
    asked = AskedFor.objects.get()
    assert (asked.tool, asked.times, asked.last_run, asked.agent) == ("change_record", 2, run, cast.agent)


def test_an_agent_that_makes_up_names_fills_no_table(cast, monkeypatch):
    monkeypatch.setattr(asked_for, "KEPT", 3)
    run = propose_change(cast).run
    for n in range(5):
        with transaction.atomic():
            asked_for.note(run, f"made_up_{n}")
    assert AskedFor.objects.count() == 3


def test_the_migration_carries_the_rules_over_and_can_be_taken_back(cast):
    """What can't be said without conditions is refused after it was taken back, and not allowed."""
    try:
        old = _migrated("0005_agents_outside")
        for tool, version, outcome in [("send_mail", 1, "automatic"), ("send_mail", 2, "reviewers"), ("note_it", 1, "automatic")]:
            times = {"expires_after": timedelta(hours=1), "grant_lasts": timedelta(hours=1)}
            given = {"workspace_id": cast.workspace.pk, "name": tool, "tool": tool, "version": version, "outcome": outcome}
            old.objects.create(id=uuid7(), **given, **times)
        _migrated(None)
        rules = {each.tool: each for each in policy.rules(cast.workspace.pk)}
        assert {tool: each.outcome for tool, each in rules.items()} == {"send_mail": "reviewers", "note_it": "automatic"}
        assert Policy.objects.filter(tool="send_mail", policy_set=None).get().key == rules["send_mail"].key
        asks = {"what": "effect", "test": "is", "value": "send"}
        save(cast, policy.changed(rules["send_mail"], conditions=[asks]), policy.changed(rules["note_it"], outcome="never"))
        old = _migrated("0005_agents_outside")
        newest = {row["tool"]: row["outcome"] for row in old.objects.order_by("version").values("tool", "outcome")}
        assert newest["note_it"] == "never" and "send_mail" not in newest
    finally:
        _migrated(None)
        append_only.install()


def _migrated(to: str | None) -> Any:
    """The database as it is at this migration of approvals; None for the newest. Gives the Policy of then."""
    walk = MigrationExecutor(connection)
    targets = [("approvals", to)] if to else walk.loader.graph.leaf_nodes()
    return walk.migrate(targets).apps.get_model("approvals", "Policy")


def test_setting_the_demo_up_again_puts_back_no_rule_that_was_taken_out(cast):
    demo.policies(cast.workspace)
    save(cast)
    demo.policies(cast.workspace)
    assert policy.rules(cast.workspace.pk) == []


def test_a_day_of_a_rule_begins_at_midnight_where_it_says(cast, monkeypatch):
    noon = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
    began = {"UTC": datetime(2026, 11, 30, tzinfo=UTC), "Pacific/Kiritimati": datetime(2026, 11, 30, 10, 0, tzinfo=UTC)}
    for zone, midnight in began.items():
        assert history.midnight(noon, zone) == midnight
    assert history.midnight(noon, "Nowhere/At_All") == began["UTC"]
    save(cast, rule(cast, "automatic", a_day=1, day_zone="Pacific/Kiritimati"))
    monkeypatch.setattr(clock, "now", lambda: noon - timedelta(hours=3))
    assert changing(cast).state == "succeeded"
    monkeypatch.setattr(clock, "now", lambda: noon)
    assert changing(cast, record="ACC-2").state == "succeeded", "a new day has begun there"
    assert changing(cast, record="ACC-3").state == "waiting"
