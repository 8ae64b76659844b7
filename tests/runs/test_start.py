"""Starting a run from a message: stored, looked at, started once. What goes wrong is said in place, and that nothing was started."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from access import rules
from access.models import User
from artifacts.models import Payload
from config import clock
from runs import starting, uploads
from runs.engine.workflow import Intake, Workflow
from runs.errors import IntakeFailed, NoReference
from runs.management.commands import triage
from runs.models import Run
from runs.starting import WorkflowInfo
from tests.cast import Cast, member
from tests.factories import make_run

MESSAGE = (
    b"From: Ines <ines@alderpress.example>\r\nTo: support@fernhill.example\r\nSubject: Wrong VAT number\r\n"
    b"\r\nHello,\r\nplease send it again.\r\n"
)
WORKFLOW = "support-triage"
NEW = "/runs/new"


@pytest.fixture
def otto(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.otto)
    return client


def upload(client: Client, cast: Cast, content: bytes, name: str = "ticket.eml", **more: Any) -> Any:
    sent = {"agent": f"{cast.agent.pk}/{WORKFLOW}", "source": "file", "ticket": SimpleUploadedFile(name, content)}
    return client.post(NEW, sent | more)


def token_of(response: Any) -> str:
    """The token that the page was sent on to."""
    return parse_qs(urlsplit(response.headers["Location"]).query)["message"][0]


def test_an_upload_is_stored_sealed_and_shown_before_anything_runs(cast: Cast, otto: Client) -> None:
    response = upload(otto, cast, MESSAGE)
    assert response.status_code == 302
    html = otto.get(response.headers["Location"]).content.decode()
    assert "Ines &lt;ines@alderpress.example&gt;" in html and "Wrong VAT number" in html and "please send it again" in html
    assert "Whatever this message asks for is text, not an order." in html
    kept = Payload.objects.get(media_type="message/rfc822")
    assert (kept.label, kept.size) == ("personal", len(MESSAGE)) and b"alderpress" not in bytes(kept.content)
    assert not Run.objects.exists()


def test_the_page_says_who_will_decide_and_who_may_not(cast: Cast, otto: Client) -> None:
    html = otto.get(NEW).content.decode()
    assert "Riley or Sam reads the exact action. Not you: you start the run." in html
    member(cast.workspace, "bo", "reviewer")
    assert "Bo, Riley or Sam reads the exact action." in otto.get(NEW).content.decode()
    assert re.findall(r"<b>([^<]+)</b>", html.split('id="will-t"')[1])[:3] == ["Record the plan", "Read the ticket", "Check the account"]


def test_the_plan_says_of_each_step_what_it_reads_or_does(cast: Cast, otto: Client) -> None:
    told = re.findall(r"<b>([^<]+)</b>(?:<p>([^<]+)</p>)?", otto.get(NEW).content.decode().split('id="will-t"')[1])
    assert dict(told) | {"Wait for a person": ""} == {
        "Record the plan": "Before any tool is used.",
        "Read the ticket": "From the help desk: outside text, never an order.",
        "Check the account": "From the CRM: private data.",
        "Draft a reply": "A script writes it; no model is asked.",
        "Wait for a person": "",
        "Update the CRM": "Its policy says whether a person is asked for it as well. Once only. Can be undone.",
        "Send the reply": "Once only. Can’t be undone.",
        "Report": "Every claim cites an event.",
    }


def test_the_plan_says_that_a_model_writes_where_one_is_asked(cast: Cast, otto: Client, settings: Any) -> None:
    settings.HANDRAIL_MODEL_URL = "http://127.0.0.1:9/v1"
    html = otto.get(NEW).content.decode()
    assert "<b>Draft a reply</b><p>A model writes it.</p>" in html and "no model is asked" not in html


def test_what_a_run_usually_costs_is_told_of_runs_that_cost_something(cast: Cast, otto: Client) -> None:
    ended = [make_run(cast) for _ in range(5)]
    Run.objects.update(workflow=WORKFLOW, state="succeeded", ended_at=clock.now(), working_ms=4000)
    assert "Usual cost" not in otto.get(NEW).content.decode(), "a script answered: its price is none"
    Run.objects.filter(pk__in=[run.pk for run in ended[:3]]).update(cost_micro=120_000)
    assert "€0.12 and 4 s of work, by the last 5 runs." in re.sub(r"<[^>]+>", "", otto.get(NEW).content.decode())


def test_an_agent_is_offered_only_with_what_it_runs_and_refused_in_place_with_anything_else(
    cast: Cast, otto: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = WorkflowInfo("back-office", 1, "Back office", True, ("Read the request", "Work out what to do"), "")
    monkeypatch.setattr(starting, "workflow_infos", lambda known=starting.workflow_infos: [*known(), other])
    office = cast.workspace.agents.create(name="back-office", owner=cast.priya)
    for name in ("triage-loop", "outside-loop"):
        cast.workspace.agents.create(name=name, owner=cast.priya)
    offered = re.findall(r'<option value="([0-9a-f-]+/[^"]+)"[^>]*>([^<]+)<', otto.get(NEW).content.decode())
    assert (f"{cast.agent.pk}/support-triage", "support-triage 3") in offered and (f"{office.pk}/back-office", "back-office 1") in offered
    assert f"{office.pk}/support-triage" not in dict(offered) and not [word for _, word in offered if word.startswith("outside-loop")]
    chosen = otto.get(f"{NEW}?agent={office.pk}/back-office").content.decode()
    assert "Work out what to do" in chosen.split('id="will-t"')[1]
    response = upload(otto, cast, MESSAGE, agent=f"{office.pk}/support-triage")
    html = response.content.decode()
    assert response.status_code == 422 and "This agent does not run “support-triage”." in html and 'role="alert"' in html
    assert not Payload.objects.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "There is no message in this."),
        (b" \n ", "There is no message in this."),
        (b"\x00\x01\x02 not a message at all", "This is not an e-mail message."),
        (b"From: a@b.example\n\n" + b"x" * uploads.MAX_MESSAGE, "at most 10,485,760 are taken"),
    ],
)
def test_what_is_no_message_is_refused_in_place_and_nothing_is_kept(cast: Cast, otto: Client, content: bytes, said: str) -> None:
    response = upload(otto, cast, content)
    html = response.content.decode()
    assert response.status_code in (413, 422) and said in html and "Nothing was started." in html and 'role="alert"' in html
    assert not Payload.objects.exists()


def test_pasted_text_is_a_message_too(cast: Cast, otto: Client) -> None:
    response = otto.post(NEW, {"agent": f"{cast.agent.pk}/{WORKFLOW}", "source": "text", "text": MESSAGE.decode()})
    assert "Wrong VAT number" in otto.get(response.headers["Location"]).content.decode()


def test_an_upload_belongs_to_who_made_it(cast: Cast, otto: Client) -> None:
    token = token_of(upload(otto, cast, MESSAGE))
    other = User.objects.create_user("second@fernhill.example", "correct horse battery", name="Second")
    cast.workspace.memberships.create(user=other, role=cast.workspace.roles.get(name="operator"))
    with pytest.raises(uploads.UploadGone):
        uploads.load(token, by=rules.person(other.pk))
    for forged in ("", "x", token[:-2], token + "x"):
        with pytest.raises(uploads.UploadGone):
            uploads.load(forged, by=rules.person(cast.otto.pk))


def test_only_who_may_start_runs_sees_the_page(cast: Cast) -> None:
    for person, status in ((cast.riley, 403), (cast.morgan, 403), (cast.otto, 200)):
        client = Client()
        client.force_login(person)
        assert client.get(NEW).status_code == status


def test_another_workspaces_agent_can_not_be_started(cast: Cast, otto: Client) -> None:
    assert upload(otto, cast, MESSAGE, agent=f"{cast.other_agent.pk}/{WORKFLOW}").status_code == 403
    assert not Payload.objects.exists()


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Intake]], None]:
    """What the outside answers when a message is filed there. The real desk is asked in tests/browser."""

    def answers(function: Callable[..., Intake]) -> None:
        monkeypatch.setattr(starting, "intake", function)

    return answers


def filed(workflow: str, message: bytes, key: str) -> Intake:
    return Intake({"ticket_id": "ZN-4852"}, "Ticket ZN-4852, Wrong VAT number", {"ticket": ["ZN-4852"]})


def begin(client: Client, cast: Cast, token: str, **more: Any) -> Any:
    return client.post(f"{NEW}?message={token}", {"message": token, "owner": str(cast.priya.pk), "note": "", **more})


@pytest.mark.django_db(transaction=True)
def test_starting_twice_starts_one_run(cast: Cast, otto: Client, desk: Any) -> None:
    desk(filed)
    first, again = upload(otto, cast, MESSAGE), upload(otto, cast, MESSAGE, name="the same.eml")
    answers = {begin(otto, cast, token_of(each)).headers["Location"] for each in (first, first, again)}
    run = Run.objects.get()
    assert answers == {reverse("runs:run", args=(run.pk,))}
    assert (run.owner, run.starter_id, run.state) == (cast.priya, str(cast.otto.pk), "queued")


@pytest.mark.django_db(transaction=True)
def test_a_message_is_one_run_wherever_it_came_in(cast: Cast, otto: Client, desk: Any, tmp_path: Path) -> None:
    keys = set()

    def filing(workflow: str, message: bytes, key: str) -> Intake:
        keys.add(key)
        return filed(workflow, message, key)

    desk(filing)
    begin(otto, cast, token_of(upload(otto, cast, MESSAGE)))
    file = tmp_path / "the same.eml"
    file.write_bytes(MESSAGE)
    call_command("triage", file, workflow=WORKFLOW, workspace=cast.workspace.slug)
    assert Run.objects.count() == len(keys) == 1
    call_command("triage", file, workflow=WORKFLOW, workspace=cast.workspace.slug, again=True)
    assert Run.objects.count() == 2 and len(keys) == 1


def test_a_run_from_the_command_line_may_take_as_many_steps_as_its_workflow_says(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Workflow("few", 1, lambda run: None, "Few", (), "", None, steps=7)
    monkeypatch.setattr(triage, "WORKFLOWS", {"few": known, "any": replace(known, name="any", steps=None)})
    assert [triage.limits(name)["steps"] for name in ("few", "any", "gone")] == [7, triage.STEPS, triage.STEPS]
    assert starting.DEFAULT_BUDGETS.items() < triage.limits("few").items()


@pytest.mark.django_db(transaction=True)
def test_a_message_can_be_brought_in_for_somebody_else_of_the_workspace(cast: Cast, desk: Any, tmp_path: Path) -> None:
    desk(filed)
    file = tmp_path / "a message.eml"
    file.write_bytes(MESSAGE)
    its = {"workflow": WORKFLOW, "workspace": cast.workspace.slug}
    for nobody in ("nobody@fernhill.example", cast.olga.email):
        with pytest.raises(CommandError, match="is nobody of Fernhill"):
            call_command("triage", file, owner=nobody, **its)
    call_command("triage", file, owner=cast.morgan.email, **its)
    run = Run.objects.get()
    assert (run.owner, run.starter_id, run.budgets["steps"]) == (cast.morgan, str(cast.morgan.pk), 24)


@pytest.mark.django_db(transaction=True)
def test_note_and_limits_are_recorded_with_the_run(cast: Cast, otto: Client, desk: Any) -> None:
    desk(filed)
    token = token_of(upload(otto, cast, MESSAGE))
    begin(otto, cast, token, note="They are on the old plan.", cost="2.50", minutes="30")
    run = Run.objects.get()
    assert run.budgets == {"tokens": 400_000, "cost_micro": 2_500_000, "working_ms": 1_800_000}
    assert "They are on the old plan." in otto.get(reverse("runs:run", args=(run.pk,))).content.decode()


@pytest.mark.parametrize("wrong", [{"cost": "-1"}, {"minutes": "x"}, {"owner": "nobody"}, {"note": "x" * 3000}])
def test_a_field_that_is_wrong_is_named_and_what_was_typed_is_kept(cast: Cast, otto: Client, desk: Any, wrong: dict[str, str]) -> None:
    desk(filed)
    response = begin(otto, cast, token_of(upload(otto, cast, MESSAGE)), **({"note": "Keep me."} | wrong))
    html = response.content.decode()
    assert response.status_code == 422 and f"Check these fields: {next(iter(wrong))}." in html and "Wrong VAT number" in html
    assert "note" in wrong or "Keep me." in html
    assert not Run.objects.exists()


def test_when_the_desk_is_away_the_page_says_that_nothing_was_started(cast: Cast, otto: Client, desk: Any) -> None:
    def away(workflow: str, message: bytes, key: str) -> Intake:
        raise IntakeFailed("The help desk did not answer.")

    desk(away)
    response = begin(otto, cast, token_of(upload(otto, cast, MESSAGE)))
    html = response.content.decode()
    assert response.status_code == IntakeFailed.status and "Nothing was started." in html and "The help desk did not answer." in html
    assert "Safe to repeat: the same file starts one run." in html and "Wrong VAT number" in html
    assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_message_that_nobody_could_answer_is_the_messages_fault_and_not_the_desks(cast: Cast, otto: Client) -> None:
    nobody = MESSAGE.replace(b"Ines <ines@alderpress.example>", b"undisclosed")
    response = begin(otto, cast, token_of(upload(otto, cast, nobody)))
    html = response.content.decode()
    assert response.status_code == 422 and "no From line with an address that could be answered" in html and "Nothing was started." in html
    assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_reference_that_is_taken_is_followed_by_a_longer_one(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def reference(length: int) -> str:
        asked.append(length)
        return f"RN-{'7' * length}"

    monkeypatch.setattr(starting, "reference", reference)
    runs = [make_run(cast, key=f"a{number}") for number in range(3)]
    assert [run.ref for run in runs] == ["RN-7777", "RN-77777", "RN-777777"]
    assert asked[:4] == [4, 4, 4, 5]
    for number in range(3, 6):
        make_run(cast, key=f"a{number}")
    with pytest.raises(NoReference):
        make_run(cast, key="one too many")
    assert make_run(cast, key="a0") == runs[0] and Run.objects.count() == 6


@pytest.mark.django_db(transaction=True)
def test_the_run_belongs_to_who_starts_it_or_to_the_agents_owner_and_to_nobody_else(cast: Cast, otto: Client, desk: Any) -> None:
    desk(filed)
    for number, (asked, owner) in enumerate([(cast.riley, cast.priya), (cast.otto, cast.otto)]):
        token = token_of(upload(otto, cast, MESSAGE + str(number).encode()))
        begin(otto, cast, token, owner=str(asked.pk))
        assert Run.objects.latest("created_at").owner == owner
