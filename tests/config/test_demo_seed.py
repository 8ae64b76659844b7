"""`manage.py demo_seed`: the demo's people, agent and policies; in the demo only, and as often as one likes."""

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command

from access import demo
from access.models import Agent, Membership, Role, User, Workspace
from access.rules import ROLES, can, holders, person
from approvals import policy
from approvals.demo import BACK_OFFICE
from approvals.models import PolicySet
from config.management.commands.demo_runs import MESSAGES
from config.management.commands.demo_seed import AGENTS

pytestmark = pytest.mark.django_db
SEEDED = ("access", "approvals")


@pytest.fixture
def in_the_demo(settings):
    settings.DEMO = True


def seed() -> None:
    call_command("demo_seed")


def rows() -> dict[str, list[tuple]]:
    """Everything that is in the database, by table."""
    models = [model for app in SEEDED for model in apps.get_app_config(app).get_models()]
    return {model._meta.db_table: sorted(model.objects.values_list(), key=repr) for model in models}


def test_the_demo_has_its_people_with_their_roles(in_the_demo):
    seed()
    fernhill = Workspace.objects.get()
    assert (fernhill.slug, fernhill.name, fernhill.mail_domains) == ("fernhill", "Fernhill", ["fernhill.example"])
    assert {role.name: set(role.capabilities) for role in Role.objects.all()} == {name: set(held) for name, held in ROLES.items()}
    offered = [(one.name.split()[0], one.role) for one in demo.people()]
    assert offered[:2] == [("Riley", "reviewer"), ("Sam", "reviewer")]
    assert {("Morgan", "manager"), ("Otto", "operator"), ("Ada", "admin")} <= set(offered)


def test_riley_and_sam_may_decide_on_what_the_agents_of_others_propose(in_the_demo):
    seed()
    assert {agent.name: agent.owner.name for agent in Agent.objects.all()} == AGENTS and len(set(AGENTS.values())) > 3
    agent = Agent.objects.get(name="support-triage")
    deciders = holders(agent.workspace_id, "approvals.decide")
    assert [user.name.split()[0] for user in deciders] == ["Riley", "Sam"]
    assert not {owner.pk for owner in User.objects.filter(agents__isnull=False)} & {user.pk for user in deciders}
    assert not set(AGENTS.values()) & {one.name for one in demo.people()}, "nobody is offered to look around as who owns an agent"
    assert policy.in_force(agent.workspace_id, "send_email").outcome == "reviewers"
    assert policy.in_force(agent.workspace_id, "update_crm").outcome == "automatic"
    rules = [policy.in_force(agent.workspace_id, tool) for tool in BACK_OFFICE]
    assert {(rule.outcome, rule.quorum) for rule in rules} == {("reviewers", 1)}


def test_the_policy_of_the_demo_has_no_history_of_its_making(in_the_demo):
    seed()
    assert sorted(PolicySet.objects.values_list("version", flat=True)) == [1, 2], "the rules, and those that are asked first"


def test_some_rules_ask_a_group_and_the_deadlines_are_of_many_kinds(in_the_demo):
    seed()
    fernhill = Workspace.objects.get()
    rules = {tool: policy.in_force(fernhill.pk, tool) for tool in BACK_OFFICE}
    assert {rule.group.name if rule.group else "" for rule in rules.values()} == {"", "Finance", "Operations"}
    assert len({rule.expires_after for rule in rules.values()}) > 4


def test_letters_of_the_demo_have_as_long_as_their_rules_say(in_the_demo):
    seed()
    letters = [rule for rule in policy.rules(Workspace.objects.get().pk) if rule.tool == "send_email"]
    hours = [rule.expires_after.total_seconds() / 3600 for rule in letters]
    assert hours == [2, 12, 8, 4] and not letters[-1].conditions, "what no rule of its own is about has four hours"
    senders = " ".join(ticket.read_text("latin-1") for ticket in MESSAGES["support-triage"].glob("*.eml"))
    asked = [rule.conditions[0]["value"] for rule in letters[:-1]]
    assert [value for value in asked if value not in senders] == [], "each is about somebody or something that the tickets name"


def test_mail_to_the_people_of_the_demo_is_addressed_in_plain_letters(in_the_demo):
    seed()
    assert User.objects.get(name="Tomás Ruiz").email == "tomas@fernhill.example"


def test_nobody_of_the_demo_has_a_password(in_the_demo):
    seed()
    assert not [user for user in User.objects.all() if user.has_usable_password()]


def test_seeding_again_changes_nothing(in_the_demo):
    seed()
    before = rows()
    seed()
    assert rows() == before


def test_seeding_again_leaves_what_somebody_changed(in_the_demo):
    seed()
    fernhill = Workspace.objects.get()
    User.objects.filter(email="riley@fernhill.example").update(name="Riley Parker")
    Role.objects.filter(name="manager").update(capabilities=["runs.view"])
    Membership.objects.filter(user__email="sam@fernhill.example").update(role=fernhill.roles.get(name="operator"))
    policy.set_rule(fernhill.pk, "update_crm", name="Ask first", outcome="reviewers", by=None)
    before = rows()
    seed()
    assert rows() == before
    sam = person(User.objects.get(email="sam@fernhill.example").pk)
    assert can(sam, "runs.start", fernhill.pk) and not can(sam, "approvals.decide", fernhill.pk)


def test_outside_the_demo_nothing_is_put_in(settings):
    settings.DEMO = False
    with pytest.raises(CommandError, match="not the demo"):
        seed()
    assert User.objects.count() == Workspace.objects.count() == 0
