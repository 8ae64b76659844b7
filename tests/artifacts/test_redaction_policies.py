"""Who administers says what is hidden beside what detectors find: tried first, with a reason, in versions; what is hidden stays so."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from access.models import AuditEntry
from access.reasons import WhyNeeded
from access.rules import person
from artifacts import redaction_policies, rerendering, vault
from artifacts.json_paths import PathRefused
from artifacts.models import Payload, RedactionPolicy
from artifacts.rendition import plain
from config import clock
from runs import log
from runs.log import Text
from runs.vocabulary import ToolEnded
from tests.approvals.mailing import propose_mail, text
from tests.factories import make_run
from tests.proving import shown as proved

pytestmark = pytest.mark.django_db(transaction=True)
SAID = {"name": "Marta", "plan": "pro", "card": "4111 1111 1111 1111", "note": "Asked for a call"}


def make(cast, path: str, kind: str = "secret", **more):
    given = {"event": "*", "tool": "*", "why": "The CRM has notes."} | more
    base = redaction_policies.version(cast.workspace.pk)
    return redaction_policies.make(cast.workspace.pk, by=person(cast.ada.pk), path=path, kind=kind, base=base, **given)


def told(run, tool: str = "crm_look") -> Payload:
    """What a tool of an agent gave back."""
    with log.holding(run.pk) as held:
        data = ToolEnded(tool=tool, outcome="ok")
        held.append(data, actor=log.ENGINE, texts={"result": Text(json.dumps(SAID), media_type="application/json")})
    return Payload.objects.order_by("-pk").first()


def shown(payload: Payload) -> str:
    return plain(vault.shown([payload.pk])[payload.pk].text)


def anew(cast) -> None:
    for _ in rerendering.rerender(cast.workspace):
        pass


@pytest.fixture
def run(cast):
    return make_run(cast)


@pytest.fixture
def ada(cast) -> Client:
    client = Client()
    client.force_login(cast.ada)
    return proved(client)


def test_a_policy_hides_what_its_path_names_of_its_tools_and_events(cast, run) -> None:
    make(cast, "$.note", tool="crm_*", event="tool.*")
    assert "Asked" not in shown(told(run)) and "pro" in shown(told(run))
    assert "Asked" in shown(told(run, "mail_look"))
    make(cast, "$.*", event="note.*")
    assert "pro" in shown(told(run))


def test_hidden_by_default_and_shown_by_name_a_detector_has_the_last_word(cast, run) -> None:
    make(cast, "$.*")
    make(cast, "$.plan", kind="")
    make(cast, "$.card", kind="")
    assert json.loads(shown(told(run))) == {
        "name": "[secret hidden]",
        "plan": "pro",
        "card": "[card number hidden]",
        "note": "[secret hidden]",
    }


def test_what_was_kept_before_is_rendered_anew_and_never_shows_more(cast, run) -> None:
    early = told(run)
    note = make(cast, "$.note")
    anew(cast)
    assert "Asked" not in shown(early) and "pro" in shown(early)
    redaction_policies.withdraw(note, by=person(cast.ada.pk), why="No longer.", base=1)
    assert "Asked" in shown(told(run)), "what is kept from now on"
    make(cast, "$.note", kind="")
    make(cast, "$.plan")
    anew(cast)
    assert "Asked" not in shown(early) and "pro" not in shown(early) and "Marta" in shown(early)


def test_an_action_is_masked_for_who_does_not_decide_on_it(cast, client) -> None:
    make(cast, "$..subject", tool="send_mail")
    proposed = propose_mail(cast)
    for name, sees in (("morgan", False), ("riley", True)):
        client.force_login(getattr(cast, name))
        assert ("Your duplicate charge" in text(client.get(f"/actions/{proposed.action.pk}"))) is sees


def test_a_change_needs_a_reason_a_version_and_the_right(cast) -> None:
    make(cast, "$.a")
    with pytest.raises(redaction_policies.RedactionChanged):
        redaction_policies.make(
            cast.workspace.pk, by=person(cast.ada.pk), path="$.b", kind="secret", event="", tool="", why="Because.", base=0
        )
    for wrong in ({"why": ""}, {"tool": "[a-z]"}, {"path": "$..*..*"}, {"kind": "nothing"}):
        given = {"path": "$.b", "kind": "secret", "event": "*", "tool": "*", "why": "Because.", "base": 1} | wrong
        with pytest.raises((redaction_policies.PolicyRefused, PathRefused, WhyNeeded)) as refused:
            redaction_policies.make(cast.workspace.pk, by=person(cast.ada.pk), **given)
        assert refused.value.status == 422
    assert RedactionPolicy.objects.count() == 1
    assert AuditEntry.objects.filter(verb="redaction_policy_made", workspace=cast.workspace).count() == 1


def test_an_admin_tries_a_policy_on_a_sample_keeps_it_and_withdraws_it(cast, ada, run) -> None:
    sent = {"path": "$.note", "kind": "phone", "tool": "crm_*", "event": "", "why": "The CRM has notes.", "sample": json.dumps(SAID)}
    sent |= {"label": "internal", "of_event": "tool.ended", "of_tool": "crm_look", "base": "0"}
    tried = text(ada.post("/permissions/redaction/new", sent | {"do": "try"}))
    assert "Shown with it" in tried and "Shown now" in tried and "phone number hidden" in tried and not RedactionPolicy.objects.exists()
    wrong = ada.post("/permissions/redaction/new", sent | {"do": "save", "path": "$..*..*"})
    assert wrong.status_code == 422 and "one filter at most" in text(wrong) and "The CRM has notes." in wrong.content.decode()
    assert ada.post("/permissions/redaction/new", sent | {"do": "save"}).status_code == 302
    page = text(ada.get("/permissions/redaction"))
    assert "is hidden as phone number" in page and "The CRM has notes." in page and "Ada" in page
    row = RedactionPolicy.objects.get()
    assert ada.post(f"/permissions/redaction/{row.pk}/withdrawal", {"why": "", "base": "1"}).status_code == 422
    assert ada.post(f"/permissions/redaction/{row.pk}/withdrawal", {"why": "Not needed.", "base": "1"}).status_code == 302
    assert "Withdrawn by Ada" in text(ada.get("/permissions/redaction"))
    morgan = Client()
    morgan.force_login(cast.morgan)
    log = text(morgan.get("/permissions/log?what=vault"))  # with the reasons, and where they hold
    assert "The CRM has notes." in log and "Not needed." in log and "Redaction policies" in log
    assert (
        morgan.get("/permissions/redaction").status_code == 200
        and "Withdraw</button>" not in morgan.get("/permissions/redaction").content.decode()
    )
    assert morgan.post("/permissions/redaction/new", sent | {"do": "save"}).status_code == 403


def test_many_withdrawn_policies_are_listed_a_page_at_a_time(cast, ada, django_assert_max_num_queries) -> None:
    for n in range(31):
        make(cast, f"$.a{n:02}")
    RedactionPolicy.objects.exclude(path="$.a30").update(withdrawn_in=99, withdrawn_at=clock.now(), withdrawn_by=cast.ada)
    with django_assert_max_num_queries(14):
        first = ada.get("/permissions/redaction")
    assert 'rel="next" href="/permissions/redaction?page=2#past"' in first.content.decode()
    assert "1 to 25 of 30" in text(first) and "$.a29" in text(first) and "$.a04" not in text(first), "the newest first"
    assert "$.a04" in text(ada.get("/permissions/redaction?page=2"))
    refused = ada.post(f"/permissions/redaction/{RedactionPolicy.objects.get(path='$.a30').pk}/withdrawal", {"why": "", "base": "1"})
    assert 'href="/permissions/redaction?page=2#past"' in refused.content.decode()


def test_the_api_makes_lists_and_withdraws(cast, ada) -> None:
    body = {"path": "$..iban", "hide": "iban", "why": "Accounts.", "version": 0}
    made = ada.post("/api/v1/redaction-policies", body, content_type="application/json")
    assert made.status_code == 201, made.content
    listed = ada.get("/api/v1/redaction-policies").json()
    assert listed["version"] == 1 and listed["policies"][0]["why"] == "Accounts."
    address = f"/api/v1/redaction-policies/{made.json()['policy']['id']}/withdrawal"
    assert ada.post(address, {"why": "Not needed.", "version": 0}, content_type="application/json").status_code == 409
    assert ada.post(address, {"why": "Not needed.", "version": 1}, content_type="application/json").json() == {"version": 2}


def test_the_command_lists_tries_adds_and_withdraws(cast, tmp_path) -> None:
    sample = tmp_path / "sample.json"
    sample.write_text(json.dumps(SAID))

    def said(*words: str) -> str:
        out = StringIO()
        call_command("redaction", "--workspace", "fernhill", *words, stdout=out)
        return out.getvalue()

    assert "No policy is in force" in said()
    assert "Asked" not in said("--try", str(sample), "--path", "$.note") and "4111" not in said("--try", str(sample))
    by = ["--by", "ada@fernhill.example", "--why", "The CRM has notes."]
    assert "number 1" in said("--add", "$.note", *by) and "$.note  hidden as secret" in said()
    assert "Withdrawn" in said("--withdraw", "1", *by) and "No policy" in said()
    with pytest.raises(CommandError, match="Say with --by"):
        said("--add", "$.note", "--why", "x", "--by", "riley@fernhill.example")
