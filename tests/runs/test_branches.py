"""Forks and replays by API, on their page and by command: who asks gets what the domain says, and what was typed is kept."""

import re
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils.html import strip_tags

from access.rules import person
from approvals import policy
from runs.engine import forking
from runs.models import Event, Run
from runs.places import FREE
from tests.runs import workflows
from tests.runs.test_engine import approve, start, walk
from tests.runs.workflows import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def run(cast, outside) -> Run:
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    run = start(cast, "test-talk", {"thing": "tea"})
    walk(run)
    return run


@pytest.fixture
def otto(cast) -> Client:
    client = Client()
    client.force_login(cast.otto)
    return client


def post(otto: Client, run: Run, body: dict, key: str = "k"):
    return otto.post(f"/api/v1/runs/{run.pk}/forks", body, content_type="application/json", headers={"Idempotency-Key": key})


def test_the_api_says_where_a_run_can_be_forked_and_forks_it_once(otto, run):
    told = otto.get(f"/api/v1/runs/{run.pk}/forks").json()
    assert [step["step"] for step in told["steps"]] == [None, "look#1", "model.phrase#1", "propose.say#1"]
    assert told["steps"][2] | {"title": ""} == {"step": "model.phrase#1", "title": "", "input": ["thing"], "completed": True}
    made = post(otto, run, {"step": "model.phrase#1", "input": {"thing": "coffee"}, "note": "Try it with coffee."})
    assert made.status_code == 201 and post(
        otto, run, {"step": "model.phrase#1", "input": {"thing": "coffee"}, "note": "Try it with coffee."}
    )
    assert Run.objects.filter(forked_from=run).count() == 1
    assert made.json()["forked_from"]["ref"] == run.ref
    clash = post(otto, run, {"step": "look#1"})
    assert clash.status_code == 409 and clash.json()["type"].endswith("fork-reused")
    assert post(otto, run, {"step": "nowhere#1"}, "other").status_code == 422
    assert otto.get(f"/api/v1/runs/{run.pk}/forks").json()["forks"][0]["run"] == made.json()["id"]


def test_the_page_offers_the_steps_with_their_input_and_keeps_what_was_typed(otto, run):
    page = otto.get(f"/runs/{run.pk}/forks?step=model.phrase%231").content.decode()
    key = re.search(r'name="key" value="([0-9a-f]{32})"', page)[1]
    assert 'value="model.phrase#1" checked' in page and 'name="edit|propose.say#1|text"' in page
    form = {"key": key, "place": "propose.say#1", "edit|propose.say#1|to": "[not json", "note": "Why not"}
    wrong = otto.post(f"/runs/{run.pk}/forks", form)
    assert wrong.status_code == 422 and "Why not" in wrong.content.decode() and "[not json" in wrong.content.decode()
    form |= {"edit|propose.say#1|to": "b@example.org", "edit|look#1|thing": "of no account", "pause": "on"}
    first = otto.post(f"/runs/{run.pk}/forks", form)
    assert first.status_code == 302 and otto.post(f"/runs/{run.pk}/forks", form).url == first.url
    run.refresh_from_db()
    assert run.state == "paused" and Run.objects.filter(forked_from=run).count() == 1
    made = otto.get(first.url, follow=True).content.decode()
    assert "forked it from" in made and run.ref in made


def test_the_page_says_of_each_step_who_did_it_and_who_was_asked(cast, otto, run):
    approve(cast, run)
    walk(run)
    page = strip_tags(otto.get(f"/runs/{run.pk}/forks").content.decode())
    told = [" ".join(each.split()) for each in (page.partition("1. ")[2].partition("has ended")[0]).split("\n") if each.strip()]
    steps = [each for each in told if each.startswith(("Look", "2. ", "3. ", "4. "))]
    assert steps == [
        "LookUsed a tool",
        "2. Phrase itA script answered",
        "3. Ask for approval: Say itPeople approved it",
        f"4. Note it{FREE}",
    ]
    log = " ".join(strip_tags(otto.get(f"/runs/{run.pk}/events").content.decode()).split())
    assert "A script answered: Phrase" in log and "Answered: Phrase" in log and "the model" not in log.lower()
    made = forking.fork(run, by=person(cast.otto.pk), key="f", step="propose.say#1")
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="automatic", by=None)
    walk(made)
    assert strip_tags(otto.get(f"/runs/{made.pk}/forks").content.decode()).count(FREE) == 2


def test_the_page_is_drawn_with_a_fixed_number_of_queries(cast, otto, run, django_assert_max_num_queries):
    approve(cast, run)
    walk(run)
    with django_assert_max_num_queries(16):
        assert otto.get(f"/runs/{run.pk}/forks").status_code == 200


def test_a_run_that_can_not_be_forked_says_why(otto, run):
    Run.objects.filter(pk=run.pk).update(state="compensating")
    assert "It is being undone" in otto.get(f"/runs/{run.pk}/forks").content.decode()
    assert post(otto, run, {}).json()["type"].endswith("not-forkable")


def test_a_replay_by_api_and_by_command_says_same_and_writes_nothing(cast, otto, run):
    approve(cast, run)
    walk(run)
    head = Event.objects.filter(run_id=run.pk).count()
    told = otto.get(f"/api/v1/runs/{run.pk}/replay").json()
    assert (told["same"], told["end"], told["asked"]) == (True, "ended", told["recorded"])
    out = StringIO()
    call_command("replay", run.ref, stdout=out)
    assert out.getvalue().startswith(f"{run.ref}: same. 9 of 9 recorded steps, with test-talk version 1, to its end")
    assert Event.objects.filter(run_id=run.pk).count() == head
    assert otto.get(f"/api/v1/runs/{run.pk}/replay?version=9").json()["type"].endswith("not-replayable")


def test_a_replay_of_a_fork_with_changed_input_is_the_same(cast, otto, run):
    made = Run.objects.get(pk=post(otto, run, {"step": "model.phrase#1", "input": {"thing": "coffee"}}).json()["id"])
    walk(made)
    approve(cast, made)
    assert walk(made) == "succeeded" and otto.get(f"/api/v1/runs/{made.pk}/replay").json()["differences"] == []
    assert forking.why_not(made) == ""
