"""Keys of agents and provisioners: for a part of what agents may do, until a day, rotated with an overlap, revoked at once, shown once."""

import json
from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client

from access import keys, rules
from access.keys import AgentRefused, KeyOver, KeyRefused, KeyShown
from access.models import Agent, AgentKey, AuditEntry, ProvisionerKey
from access.rules import AGENT_CAPABILITIES, SYSTEM, OutOfScope
from config import clock
from tests import proving
from tests.factories import actor, bearer, make_run
from tests.together import together

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def later(monkeypatch):
    passed, now = [timedelta()], clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + passed[0])

    def later(**by: float) -> None:
        passed[0] += timedelta(**by)

    return later


def program(token: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {token}"})


def browser(user) -> Client:
    """Somebody who has just signed in, and so has shown who they are."""
    client = Client()
    client.force_login(user)
    proving.shown(client)
    return client


def post(client: Client, url: str, body: dict | None = None, **more) -> tuple[int, dict]:
    told = client.post(url, json.dumps(body or {}), content_type="application/json", **more)
    return told.status_code, told.json()


# scope --------------------------------------------------------------------------------------------------------------------------------


def test_a_key_for_some_rights_some_workflows_and_some_tools_is_for_nothing_else(cast):
    _, token = keys.make(cast.agent, name="ci", by=SYSTEM, capabilities=["runs.start", "runs.view", "actions.propose"], tools=["send_mail"])
    agent = bearer(token)
    assert agent.grants[cast.workspace.pk] == {"runs.start", "runs.view", "actions.propose"} and agent.tools == {"send_mail"}
    run = make_run(cast)
    other = {"tool": "change_record", "tool_schema": 1, "arguments": {}}
    status, told = post(program(token), f"/api/v1/runs/{run.pk}/actions", other, headers={"Idempotency-Key": "a"})
    assert (status, told["title"], told["tools"]) == (403, "This key is not for that.", ["send_mail"])
    _, narrow = keys.make(cast.agent, name="ci", by=SYSTEM, workflows=["support-triage"])
    body = {"title": "x", "agent_version": "1"}
    status, told = post(program(narrow), "/api/v1/runs", body, headers={"Idempotency-Key": "a"})
    assert (status, told["workflows"]) == (403, ["support-triage"])
    rules.check_scope(bearer(narrow), workflow="support-triage", tool="anything")
    with pytest.raises(OutOfScope):
        rules.check_scope(bearer(token), tool="change_record")
    assert {entry.data["why"] for entry in AuditEntry.objects.filter(verb="refused")} == {"out-of-scope"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"capabilities": ["access.manage"]},
        {"capabilities": []},
        {"days": 0},
        {"days": 731},
        {"name": " "},
        {"name": "x" * 61},
        {"tools": ["a b"]},
    ],
)
def test_a_key_that_cannot_be_is_refused_and_not_made(cast, wrong):
    with pytest.raises(KeyRefused):
        keys.make(cast.agent, by=SYSTEM, **({"name": "x"} | wrong))
    assert not AgentKey.objects.exists() and not AuditEntry.objects.exists()


# rotating and revoking ------------------------------------------------------------------------------------------------------------------


def test_after_a_rotation_both_keys_are_good_until_the_overlap_is_over(cast, later):
    old, before = keys.make(cast.agent, name="ci", by=SYSTEM, tools=["send_mail"], capabilities=["runs.view"])
    new, after = keys.rotate(old, by=actor(cast.ada), overlap=timedelta(hours=1))
    assert bearer(before).id == bearer(after).id == str(cast.agent.pk)
    assert (bearer(after).tools, bearer(after).grants) == (bearer(before).tools, bearer(before).grants)
    later(hours=1, seconds=1)
    assert bearer(before) == rules.NOBODY and bearer(after).kind == "agent"
    old.refresh_from_db()
    assert old.successor_id == new.pk
    assert AuditEntry.objects.get(verb="key_rotated").data == {"minutes": 60, "successor": str(new.pk)}


def test_a_key_that_is_over_or_was_rotated_is_not_rotated_again(cast, later):
    key, _ = keys.make(cast.agent, name="ci", by=SYSTEM)
    new, _ = keys.rotate(key, by=SYSTEM, overlap=DAY)
    with pytest.raises(KeyOver, match="rotated before"):
        keys.rotate(key, by=SYSTEM)
    with pytest.raises(KeyRefused):
        keys.rotate(new, by=SYSTEM, overlap=31 * DAY)
    keys.revoke(new, by=SYSTEM)
    with pytest.raises(KeyOver, match="revoked"):
        keys.rotate(new, by=SYSTEM)
    other, _ = keys.make(cast.agent, name="ci", by=SYSTEM, days=1)
    later(days=2)
    with pytest.raises(KeyOver, match="expired"):
        keys.rotate(other, by=SYSTEM)


@pytest.mark.django_db(transaction=True)
def test_rotated_by_two_at_once_there_is_one_new_key(cast):
    key, _ = keys.make(cast.agent, name="ci", by=SYSTEM)
    done = together([lambda: keys.rotate(key, by=SYSTEM)] * 3)
    assert sorted(type(each).__name__ for each in done) == ["KeyOver", "KeyOver", "tuple"]
    assert AgentKey.objects.count() == 2


def test_a_revoked_key_lets_nobody_in_and_its_open_streams_look_again_at_once(cast):
    from access import standing

    key, token = keys.make(cast.agent, name="ci", by=SYSTEM)
    held, told = bearer(token), []
    standing.changed.connect(lambda **_: told.append(rules.changed({held.standing})), weak=False, dispatch_uid="test-keys")
    try:
        keys.revoke(key, by=actor(cast.ada))
        keys.revoke(key, by=actor(cast.ada))
    finally:
        standing.changed.disconnect(dispatch_uid="test-keys")
    assert told == [{held.standing}] and bearer(token) == rules.refresh(held) == rules.NOBODY
    assert AuditEntry.objects.filter(verb="key_revoked").count() == 1
    said = Client().get("/api/v1/runs", headers={"Authorization": f"Bearer {token}"})
    assert said.status_code == 401 and said.json()["detail"].startswith("The key that was sent opens nothing: it was revoked")
    assert Client().get("/api/v1/runs").json()["detail"] == "Nobody is signed in."


def test_the_last_use_is_kept_to_the_minute_and_written_once_in_it(cast, later, django_assert_max_num_queries):
    key, token = keys.make(cast.agent, name="ci", by=SYSTEM)
    assert program(token).get("/api/v1/runs").status_code == 200
    first = AgentKey.objects.get(pk=key.pk).last_used_at
    assert first is not None
    later(seconds=30)
    program(token).get("/api/v1/runs")
    assert AgentKey.objects.get(pk=key.pk).last_used_at == first
    later(seconds=31)
    program(token).get("/api/v1/runs")
    assert AgentKey.objects.get(pk=key.pk).last_used_at > first


# provisioners ---------------------------------------------------------------------------------------------------------------------------


def provisioner(cast, **more) -> str:
    return keys.make_provisioner(cast.workspace.pk, name="terraform", owner=cast.ada, by=actor(cast.ada), **more)[1]


def test_a_provisioner_makes_agents_and_their_keys_and_can_do_nothing_else(cast):
    client = program(provisioner(cast))
    status, told = post(client, "/api/v1/agents", {"name": "billing"})
    assert (status, told["agent"]["owner"]["name"]) == (201, "Ada")
    at = f"/api/v1/agents/{told['agent']['id']}/keys"
    status, made = post(client, at, {"name": "prod", "rights": ["runs.view"], "tools": ["send_mail"], "days": 7})
    assert status == 201 and bearer(made["token"]).name == "billing" and made["key"]["rights"] == ["runs.view"]
    status, new = post(client, f"{at}/{made['key']['id']}/rotations", {"overlap_minutes": 0})
    assert status == 201 and bearer(made["token"]) == rules.NOBODY and bearer(new["token"]).kind == "agent"
    assert client.delete(f"{at}/{new['key']['id']}").json()["key"]["revoked_at"] and bearer(new["token"]) == rules.NOBODY
    assert [agent["name"] for agent in client.get("/api/v1/agents").json()["agents"]] == ["billing"]
    for elsewhere in ("/api/v1/runs", "/api/v1/audit", "/permissions/agents"):
        assert client.get(elsewhere).status_code == 403
    assert AuditEntry.objects.get(verb="agent_created").actor_kind == "provisioner"


def test_agents_that_others_made_are_not_there_for_a_provisioner(cast):
    client = program(provisioner(cast))
    key, _ = keys.make(cast.agent, name="ci", by=SYSTEM)
    for each in (cast.agent, cast.other_agent):
        assert post(client, f"/api/v1/agents/{each.pk}/keys", {"name": "x"})[0] == 404
    assert client.delete(f"/api/v1/agents/{cast.agent.pk}/keys/{key.pk}").status_code == 404
    other = program(provisioner(cast))
    made = post(other, "/api/v1/agents", {"name": "billing"})[1]["agent"]["id"]
    assert post(client, f"/api/v1/agents/{made}/keys", {"name": "x"})[0] == 404


def test_after_it_was_rotated_a_provisioner_manages_the_same_agents(cast):
    key, token = keys.make_provisioner(cast.workspace.pk, name="tf", owner=cast.ada, by=SYSTEM)
    made = post(program(token), "/api/v1/agents", {"name": "billing"})[1]["agent"]["id"]
    _, after = keys.rotate(key, by=SYSTEM)
    assert bearer(token) == rules.NOBODY
    assert post(program(after), f"/api/v1/agents/{made}/keys", {"name": "x"})[0] == 201


def test_a_provisioner_is_narrowed_and_ends_as_other_keys_do(cast, later):
    only = program(provisioner(cast, capabilities=["agents.create"], days=1))
    made = post(only, "/api/v1/agents", {"name": "billing"})[1]["agent"]["id"]
    assert post(only, f"/api/v1/agents/{made}/keys", {"name": "x"})[0] in (403, 404)
    later(days=1, seconds=1)
    assert post(only, "/api/v1/agents", {"name": "other"})[0] == 401
    token = provisioner(cast)
    assert bearer(token).kind == "provisioner"
    cast.ada.memberships.update(deactivated_at=clock.now())
    assert bearer(token) == rules.NOBODY


@pytest.mark.parametrize(("name", "owner"), [("Bad Name", "ada"), ("", "ada"), ("support-triage", "ada"), ("fine", "olga"), ("-a", "ada")])
def test_an_agent_that_cannot_be_is_not_made(cast, name, owner):
    with pytest.raises(AgentRefused):
        keys.create_agent(cast.workspace.pk, name=name, owner=getattr(cast, owner), by=SYSTEM)
    assert Agent.objects.count() == 2


# the page -------------------------------------------------------------------------------------------------------------------------------


def test_a_key_is_shown_in_the_answer_to_its_form_alone_and_once(cast):
    client, asked = browser(cast.ada), str(uuid4())
    form = {"name": "laptop", "right": list(AGENT_CAPABILITIES), "days": "30", "asked": asked, "tools": "send_mail, change_record"}
    told = client.post(f"/permissions/agents/{cast.agent.pk}/keys", form)
    key = AgentKey.objects.get()
    token = told.content.decode().partition('<code id="new-key">')[2].partition("<")[0]
    assert told.status_code == 201 and bearer(token).key_id == str(key.pk) and key.tools == ["send_mail", "change_record"]
    assert "no-store" in told.headers["Cache-Control"]
    again = client.post(f"/permissions/agents/{cast.agent.pk}/keys", form)
    assert again.status_code == 409 and "is not shown again" in again.content.decode() and AgentKey.objects.count() == 1
    page = client.get("/permissions/agents").content.decode()
    assert token not in page and key.prefix in page and "laptop" in page and "Only tools: send_mail, change_record" in page
    with pytest.raises(KeyShown):
        keys.make(cast.agent, name="x", by=SYSTEM, asked=key.asked)


def test_agents_and_keys_are_made_rotated_and_revoked_on_the_page(cast):
    client = browser(cast.ada)
    assert client.post("/permissions/agents", {"name": "billing", "owner": cast.priya.pk}).status_code == 302
    refused = client.post("/permissions/agents", {"name": "Billing!", "owner": cast.priya.pk})
    assert refused.status_code == 422 and b"No agent was made" in refused.content and b'value="Billing!"' in refused.content
    key, token = keys.make(Agent.objects.get(name="billing"), name="ci", by=SYSTEM)
    assert client.post(f"/permissions/keys/agent/{key.pk}/rotation", {"overlap": "60", "days": "90"}).status_code == 201
    assert client.post(f"/permissions/keys/agent/{key.pk}/revocation").status_code == 302 and bearer(token) == rules.NOBODY
    told = client.post("/permissions/provisioners", {"name": "tf", "right": ["agents.create"], "days": "7"})
    assert told.status_code == 201 and ProvisionerKey.objects.get().owner == cast.ada
    page = client.get("/permissions/agents").content.decode()
    assert "Revoked" in page and "hrp_" in page


def test_why_a_key_is_not_rotated_is_said_wherever_the_key_stands(cast):
    client, asked = browser(cast.ada), uuid4()
    over, _ = keys.make(cast.agent, name="ci", by=SYSTEM)
    keys.revoke(over, by=SYSTEM)
    made = [
        keys.make_provisioner(cast.workspace.pk, name=f"tf-{n}", owner=cast.ada, capabilities=["agents.create"], by=SYSTEM)[0]
        for n in range(30)
    ]
    keys.make_provisioner(cast.workspace.pk, name="tf", owner=cast.ada, capabilities=["agents.create"], by=SYSTEM, asked=asked)
    refused = client.post(f"/permissions/keys/agent/{over.pk}/rotation", {"overlap": "60"})
    assert refused.status_code == 409 and refused.content.decode().count("Nothing was changed.") == 1, "it is over: it has no form"
    for key, shown in ((made[0], False), (made[-1], True)):
        refused = client.post(f"/permissions/keys/provisioner/{key.pk}/rotation", {"overlap": "60", "asked": str(asked)})
        page = refused.content.decode()
        assert (refused.status_code, page.count("Nothing was changed."), f"Rotate {key.prefix}" in page) == (409, 1, shown)


def test_who_has_not_shown_lately_who_they_are_is_asked_to(cast):
    client = Client()
    client.force_login(cast.ada)
    told = client.post(f"/permissions/agents/{cast.agent.pk}/keys", {"name": "x", "right": ["runs.view"]})
    assert told.status_code in (302, 303, 403) and not AgentKey.objects.exists()


def test_the_page_takes_few_queries_however_many_keys_there_are(cast, django_assert_max_num_queries):
    for number in range(30):
        agent = Agent.objects.create(workspace=cast.workspace, name=f"agent-{number}", owner=cast.priya)
        keys.make(agent, name="ci", by=SYSTEM)
    client = browser(cast.ada)
    with django_assert_max_num_queries(14):
        assert client.get("/permissions/agents").status_code == 200


def test_agents_and_their_keys_are_listed_a_page_at_a_time(cast, django_assert_max_num_queries):
    for number in range(25):
        Agent.objects.create(workspace=cast.workspace, name=f"agent-{number:02}", owner=cast.priya)
    busy = Agent.objects.get(name="agent-00")
    old, _ = keys.make(busy, name="gone", by=SYSTEM)
    keys.revoke(old, by=SYSTEM)
    for number in range(30):
        keys.make(busy, name=f"ci-{number:02}", by=SYSTEM)
    client = browser(cast.ada)
    with django_assert_max_num_queries(14):
        first = client.get("/permissions/agents").content.decode()
    assert "1 to 20 of 26" in first and "agent-19" in first and "agent-20" not in first, "the agent of the cast is the last"
    assert "All 31 keys" in first and first.count("Rotate or revoke") == 5 and "ci-29" in first and "ci-24" not in first
    assert "agent-20" in client.get("/permissions/agents?page=2").content.decode()
    with django_assert_max_num_queries(14):
        alone = client.get(f"/permissions/agents?agent={busy.pk}").content.decode()
    assert "1 to 25 of 31" in alone and ">agent-01<" not in alone and "gone" not in alone
    assert "gone" in client.get(f"/permissions/agents?agent={busy.pk}&page=9").content.decode(), "past the end is the end"
    for odd in (cast.other_agent.pk, "nonsense"):
        assert client.get(f"/permissions/agents?agent={odd}").status_code == 404


def test_the_command_narrows_lists_rotates_and_revokes(cast):
    from io import StringIO

    from django.core.management import call_command

    def agentkey(*words: str) -> str:
        out = StringIO()
        call_command("agentkey", "support-triage", "--workspace", "fernhill", *words, stdout=out, stderr=StringIO())
        return out.getvalue().strip()

    token = agentkey("--right", "runs.view", "--tool", "send_mail")
    assert bearer(token).tools == {"send_mail"} and bearer(token).grants[cast.workspace.pk] == {"runs.view"}
    new = agentkey("--rotate", token[:9], "--overlap", "0")
    assert bearer(token) == rules.NOBODY and bearer(new).tools == {"send_mail"}
    assert "never used  1 rights" in agentkey("--list")
    agentkey("--revoke", new[:9])
    assert bearer(new) == rules.NOBODY
    out = StringIO()
    call_command("agentkey", "fernhill", "--provisioner", "ada@fernhill.example", stdout=out, stderr=StringIO())
    assert bearer(out.getvalue().strip()).kind == "provisioner"


def test_a_key_whose_narrowing_is_misspelt_is_not_made(cast):
    url = f"/api/v1/agents/{cast.agent.pk}/keys"
    status, told = post(browser(cast.ada), url, {"name": "ci", "tool": ["send_mail"]})
    assert status == 422 and "tool" in told["detail"] and not AgentKey.objects.exists()
    assert post(browser(cast.ada), url, {"name": "ci", "tools": ["send_mail"]})[0] == 201
