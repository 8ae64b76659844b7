"""What is hidden is shown to who may see it, for a time, in one session, on record; and never what nobody may see."""

import json
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import DatabaseError
from django.test import Client

from access import audit
from access.models import AuditEntry, Membership
from access.rules import Actor, authenticate
from approvals import decisions
from artifacts import redaction_policies, reveal, revealing, vault
from artifacts.models import Artifact, Payload, Reveal
from artifacts.reveal import NothingToReveal, RevealOver, RevealReasonNeeded, RevealRefused, TooManyReveals
from config import clock
from runs.log import Text
from runs.models import Event
from runs.vocabulary import NotePosted
from tests import factories
from tests.approvals.lettering import propose_letter
from tests.approvals.mailing import Proposed, propose_mail
from tests.artifacts.files import as_pdf
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)
IBAN, MAIL, KEY = "DE89370400440532013000", "ines@brightwater.example", "sk_live_51HxT2eKq8mPz0aB"
CSV = f"reference,from,contact\nPAY-88120,{IBAN},{MAIL}\nPAY-88121,{IBAN},api_key={KEY}\n"
WHY = {"reason": "decide", "details": "Checking the second charge."}


class Someone:
    """A person in a browser of their own."""

    def __init__(self, user) -> None:
        self.user, self.browser = user, Client(headers={"host": "handrail.test"})
        self.browser.force_login(user)

    @property
    def actor(self) -> Actor:
        return authenticate({"headers": [], "user": self.user, "session": self.browser.session})

    def at(self, key: str) -> revealing.Place:
        return revealing.place(self.actor, key)

    def reveal(self, key: str, *, token=None, **why) -> Reveal:
        return reveal.make(self.actor, self.at(key), token=token or uuid4(), **why)

    def get(self, url: str, **headers) -> str:
        answer = self.browser.get(url, headers=headers, secure=True)
        self.status = answer.status_code
        return answer.content.decode()

    def post(self, url: str, data=None, **headers):
        return self.browser.post(url, data or {}, headers=headers, secure=True)


@pytest.fixture
def proposed(cast) -> Proposed:
    return propose_mail(cast, file=CSV)


def file_of(proposed: Proposed, name: str = "payments.csv") -> str:
    return f"artifact:{Artifact.objects.get(run_id=proposed.run.pk, name=name).pk}"


def said(someone: Someone, row: Reveal) -> str:
    return reveal.read(reveal.showing(someone.actor, row)).text


def test_who_decides_sees_what_is_hidden_for_ten_minutes_and_secrets_never(cast, proposed):
    riley = Someone(cast.riley)
    row = riley.reveal(file_of(proposed), **WHY)
    assert (row.until - row.at, row.action_id, row.hidden) == (timedelta(minutes=10), proposed.action.pk, {"email": 1, "iban": 2})
    shown = said(riley, row)
    assert shown.count(IBAN) == 2 and MAIL in shown and KEY not in shown and "⟦secret⟧" in shown
    entry = AuditEntry.objects.get(verb="revealed")
    assert (entry.actor_id, entry.subject_id, entry.data["reason"]) == (str(cast.riley.pk), str(row.payload_id), "decide")
    assert vault.open_bytes(row.details).decode() == WHY["details"] and WHY["details"] not in str(entry.data)


def test_the_right_goes_by_label_and_ends_with_what_gave_it(cast, proposed):
    riley, morgan, ada = Someone(cast.riley), Someone(cast.morgan), Someone(cast.ada)
    for who in (morgan, ada, Someone(cast.otto)):
        with pytest.raises(RevealRefused):
            who.reveal(file_of(proposed), **WHY)
    assert AuditEntry.objects.filter(verb="reveal_refused", data__why="reveal-refused").count() == 3
    inside = file_of(proposed, "ticket.eml")
    Payload.objects.filter(pk=morgan.at(inside).payload.pk).update(findings={"email": 1})
    assert morgan.reveal(inside).reason == "" and morgan.at(inside).payload.label == "internal"
    with pytest.raises(RevealRefused):
        ada.reveal(inside)
    row = riley.reveal(file_of(proposed), **WHY)
    decisions.decide(proposed.action, reviewer=riley.actor, verdict="rejected", digest=proposed.action.digest, reason="Wrong customer.")
    with pytest.raises(RevealOver, match="What gave you the right is over"):
        reveal.showing(riley.actor, row)
    role = Membership.objects.get(user=cast.ada).role
    role.capabilities = [*role.capabilities, "reveal.personal"]
    role.save()
    assert said(ada, ada.reveal(file_of(proposed), reason="incident", details="Looking into it now."))


def test_secret_erased_and_unhidden_payloads_have_no_reveal(cast, proposed):
    riley = Someone(cast.riley)
    at = riley.at(file_of(proposed))
    Payload.objects.filter(pk=at.payload.pk).update(label="secret")
    with pytest.raises(RevealRefused, match="shown to nobody"):
        riley.reveal(at.key, **WHY)
    Payload.objects.filter(pk=at.payload.pk).update(label="personal", findings={"secret": 1, "path": 2})
    with pytest.raises(NothingToReveal):
        riley.reveal(at.key, **WHY)
    vault.erase(at.payload, by=cast.ada)
    with pytest.raises(vault.Erased):
        riley.reveal(at.key, **WHY)


def test_what_earlier_rules_hid_as_secret_is_not_revealed_by_later_ones(cast, proposed):
    riley = Someone(cast.riley)
    row = riley.reveal(file_of(proposed), **WHY)
    Payload.objects.filter(pk=row.payload_id).update(findings={"email": 1, "iban": 2, "secret": 2})
    assert IBAN not in riley.get(f"/reveals/{row.pk}") and riley.status == 403
    for page in (proposed.url(), file_of(proposed).replace("artifact:", "/artifacts/")):
        assert IBAN not in riley.get(page) and riley.status == 200


def test_what_a_policy_hides_as_a_secret_is_in_no_reveal_however_long_the_text_is_and_whatever_the_policy_became(cast):
    run, otto, ada = factories.make_run(cast), Someone(cast.otto), Someone(cast.ada)
    policy = {"event": "*", "tool": "*", "why": "It has notes."}
    notes = {"note": f"Tumbleweed {KEY} and {KEY}", "to": IBAN, "rest": ["x" * 900] * 100}

    def noted(said: dict) -> int:
        return factories.append(run, NotePosted(), texts={"note": Text(json.dumps(said), label="internal", media_type="application/json")})

    early = noted(notes)
    with_policy = redaction_policies.make(cast.workspace.pk, by=ada.actor, path="$.note", kind="secret", base=0, **policy)
    redaction_policies.make(cast.workspace.pk, by=ada.actor, path="$.to", kind="iban", base=1, **policy)
    short = noted(notes | {"rest": ""})
    rows = [otto.reveal(f"event:{run.pk}:{seq}:note") for seq in (early, short)]
    assert all(IBAN in said(otto, row) and "Tumbleweed" not in said(otto, row) for row in rows)
    redaction_policies.withdraw(with_policy, by=ada.actor, why="No longer.", base=2)
    redaction_policies.make(cast.workspace.pk, by=ada.actor, path="$.note", kind="", base=3, **policy)
    assert all(IBAN in said(otto, row) and "Tumbleweed" not in said(otto, row) for row in rows)
    payload = reveal.showing(otto.actor, rows[0]).payload
    assert not reveal._is_clean(payload, b"{}"), "nor is what is longer than what is shown of it given as a file"


def test_a_reason_is_needed_and_a_form_sent_twice_is_one_reveal(cast, proposed):
    riley, token = Someone(cast.riley), uuid4()
    for wrong in ({"reason": "", "details": WHY["details"]}, {"reason": "decide", "details": "Because \u200b\u200b"}, {"reason": "decide"}):
        with pytest.raises(RevealReasonNeeded):
            riley.reveal(file_of(proposed), **wrong)
    first = riley.reveal(file_of(proposed), token=token, **WHY)
    assert riley.reveal(file_of(proposed), token=token, **WHY) == first == riley.reveal(file_of(proposed), **WHY)
    assert AuditEntry.objects.filter(verb="revealed").count() == 1
    reveal.end(riley.actor, first)
    with pytest.raises(RevealOver):
        riley.reveal(file_of(proposed), token=token, **WHY)


def test_no_reveal_ends_of_which_nothing_is_written_down(cast, proposed, monkeypatch):
    riley = Someone(cast.riley)
    row = riley.reveal(file_of(proposed), **WHY)

    def full(*_: object, **__: object) -> None:
        raise DatabaseError("disk full")

    monkeypatch.setattr(audit, "record", full)
    with pytest.raises(DatabaseError):
        reveal.end(riley.actor, row)
    assert reveal.is_live(Reveal.objects.get())


def test_two_at_the_same_time_are_one_reveal(cast, proposed):
    riley, token = Someone(cast.riley), uuid4()
    actor, at = riley.actor, riley.at(file_of(proposed))
    made = together([lambda: reveal.make(actor, at, token=token, **WHY).pk] * 3)
    assert len(set(made)) == 1 and Reveal.objects.count() == 1 == AuditEntry.objects.filter(verb="revealed").count()


def test_a_reveal_is_for_one_session_and_ends_to_the_second(cast, proposed, monkeypatch):
    riley, elsewhere, sam = Someone(cast.riley), Someone(cast.riley), Someone(cast.sam)
    row = riley.reveal(file_of(proposed), **WHY)
    url = f"/reveals/{row.pk}"
    assert IBAN in riley.get(url) and riley.status == 200
    for other in (elsewhere, sam, Someone(cast.olga)):
        assert IBAN not in other.get(url) and other.status == 404
    for seconds, status in ((599.9, 200), (600.0, 410)):
        monkeypatch.setattr(clock, "now", lambda seconds=seconds: row.at + timedelta(seconds=seconds))
        assert (IBAN in riley.get(url), riley.status) == (status == 200, status)
    assert IBAN not in riley.get(url, **{"HX-Request": "true"}) and riley.status == 410


def test_a_script_does_not_browse_by_revealing(cast, proposed, monkeypatch):
    riley = Someone(cast.riley)
    monkeypatch.setattr(reveal, "AT_MOST", 2)
    for _ in range(2):
        reveal.end(riley.actor, riley.reveal(file_of(proposed), **WHY))
    with pytest.raises(TooManyReveals):
        riley.reveal(file_of(proposed), **WHY)
    assert AuditEntry.objects.filter(verb="reveal_refused", data__why="too-many-reveals").exists()


def test_the_page_asks_reveals_and_hides_again_without_a_script(cast, proposed):
    riley, morgan = Someone(cast.riley), Someone(cast.morgan)
    page = file_of(proposed).replace("artifact:", "/artifacts/")
    before = riley.get(page)
    assert "4 places</b> hidden" in before and "Reveal 3 of 4…" in before and IBAN not in before
    assert "Reveal 3 hidden places?" in riley.get(f"/reveals/new?place={file_of(proposed)}")
    wrong = riley.post("/reveals", {"place": file_of(proposed), "reason": "decide", "details": "No."})
    assert wrong.status_code == 422 and b"No.</textarea>" in wrong.content
    sent = riley.post("/reveals", {"place": file_of(proposed)} | WHY)
    assert sent.status_code == 302 and IBAN in riley.get(sent["Location"]) and KEY not in riley.get(sent["Location"])
    after = riley.browser.get(page, secure=True)
    assert IBAN in after.content.decode() and "no-store" in after["Cache-Control"]
    told = morgan.get(page)
    assert IBAN not in told and "Checking the second charge." in told and "1 e-mail address, 2 IBANs" in told
    assert "/reveals/new" not in told
    riley.post(f"{sent['Location']}/ending")
    assert IBAN not in riley.get(page) and riley.get(sent["Location"]) and riley.status == 410


def test_the_answer_to_htmx_takes_the_place_of_what_asked(cast, proposed):
    riley = Someone(cast.riley)
    dialog = riley.get(f"/reveals/new?place={file_of(proposed)}", **{"HX-Request": "true"})
    assert dialog.lstrip().startswith("<dialog") and "Needed to decide on this action" in dialog
    sent = riley.post("/reveals", {"place": file_of(proposed)} | WHY, **{"HX-Request": "true"})
    assert (sent["HX-Retarget"], sent["HX-Trigger"]) == (f"#{riley.at(file_of(proposed)).dom}", "revealed")
    assert sent.content.decode().count(IBAN) == 2 and 'hx-swap-oob="true"' in sent.content.decode()


def test_a_text_of_an_event_is_revealed_from_the_raw_log(cast):
    run = factories.make_run(cast)
    seq = factories.note(run, f"Pay to {IBAN}, not to /home/otto/secret.txt", label="internal")
    otto, key = Someone(cast.otto), f"event:{run.pk}:{seq}:note"
    row = otto.reveal(key)
    assert IBAN in said(otto, row) and "/home/otto" not in said(otto, row)
    assert (row.until - row.at) == timedelta(hours=1)
    before = Event.objects.filter(run_id=run.pk).count()
    factories.end(run)
    assert said(otto, row) and Event.objects.filter(run_id=run.pk).count() == before + 2, "a reveal is no event"
    at, morgan = f"/runs/{run.pk}/events/{seq}", Someone(cast.morgan)
    assert "Revealed by" in otto.get(at) and "1 IBAN" in otto.get(at), "beside the event, for who sees it"
    told = morgan.get(f"/runs/{run.pk}/events")
    assert 'id="run-revealed"' in told and f'<a href="{at}">#{seq} note</a>' in told and "Otto" in told, (
        "and of the whole run, for a manager"
    )
    assert 'id="run-revealed"' not in otto.get(f"/runs/{run.pk}/events")


def test_the_card_opens_its_attachments_and_its_evidence_and_shuts_them_with_the_decision(cast, proposed):
    riley = Someone(cast.riley)
    before = riley.get(proposed.url())
    assert IBAN not in before and f"place=action%3A{proposed.action.pk}%3A0" in before and "IBAN hidden" in before
    evidence = f"evidence:{proposed.action.pk}:{file_of(proposed).partition(':')[2]}"
    assert f'id="{riley.at(evidence).dom}"' in before and riley.at(evidence).back == proposed.url()
    taken = riley.browser.get(proposed.url("attachments", "0"), secure=True)
    assert taken["Location"] == f"/reveals/new?place=action:{proposed.action.pk}:0"
    row = riley.reveal(f"action:{proposed.action.pk}:0", **WHY)
    assert riley.reveal(evidence, **WHY) == row, "the same bytes, asked for at another place"
    shown = riley.get(proposed.url())
    assert shown.count(IBAN) == 2 and KEY not in shown
    taken = riley.browser.get(proposed.url("attachments", "0"), secure=True, follow=True).content.decode()
    assert IBAN in taken and KEY not in taken, "of a file that holds a secret, what is shown of it"
    assert AuditEntry.objects.filter(verb="downloaded", subject_id=str(row.payload_id)).count() == 1
    decisions.decide(proposed.action, reviewer=riley.actor, verdict="rejected", digest=proposed.action.digest, reason="It holds a key.")
    assert IBAN not in riley.get(proposed.url()) and IBAN not in riley.get(f"/reveals/{row.pk}") and riley.status == 410


def test_over_the_api_people_reveal_and_managers_see_who_did_and_agents_do_neither(cast, proposed):
    riley, morgan, pk = Someone(cast.riley), Someone(cast.morgan), proposed.action.attachments[0]
    address = f"/api/v1/payloads/{pk}/reveals"
    refused = riley.browser.post(address, {"reason": "decide"}, content_type="application/json", secure=True)
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:handrail:problem:reveal-reason-needed")
    told = riley.browser.post(address, WHY, content_type="application/json", secure=True)
    assert told.status_code == 201 and IBAN in told.json()["text"] and KEY not in told.json()["text"]
    assert told["Cache-Control"] == "no-store" and told.json()["left"] == 1
    of_run = morgan.browser.get(f"/api/v1/runs/{proposed.run.pk}/reveals", secure=True).json()["reveals"]
    assert [(each["by"], each["details"], each["hidden"]) for each in of_run] == [("Riley", WHY["details"], {"email": 1, "iban": 2})]
    assert IBAN not in str(of_run) and riley.get(f"/api/v1/runs/{proposed.run.pk}/reveals") and riley.status == 403
    labels = morgan.get("/permissions/labels")
    assert "Revealed, 30 days" in labels and '<span class="num">1</span>' in labels


def test_a_page_of_a_pdf_whose_text_holds_a_secret_is_not_drawn(cast):
    pdf = as_pdf([["Invoice", IBAN], [f"api_key={KEY}"]])
    action = propose_letter(cast, files=[("a.pdf", "application/pdf", pdf)]).action
    riley = Someone(cast.riley)
    row = riley.reveal(f"action:{action.pk}:0", **WHY)
    assert "Page 1 of 2" in riley.get(f"/reveals/{row.pk}/look")
    assert "So this page is not shown." in riley.get(f"/reveals/{row.pk}/look?page=2")
    assert riley.get(f"/reveals/{row.pk}/pages/2") and riley.status == 404


def test_the_page_takes_few_queries_and_says_where_the_file_went(cast, proposed, django_assert_max_num_queries):
    riley, artifact = Someone(cast.riley), file_of(proposed).partition(":")[2]
    riley.reveal(file_of(proposed), **WHY)
    with django_assert_max_num_queries(20):
        assert IBAN in riley.get(f"/artifacts/{artifact}")
    listed = riley.browser.get(f"/artifacts/{artifact}", secure=True).context["versions"]
    assert listed and not any("payload" in each._state.fields_cache for each in listed), "of the other versions no byte is read"
    told = riley.get(f"/runs/{proposed.run.pk}/artifacts/{artifact}")
    assert "With “" in told and f'href="{proposed.url()}"' in told and "cmp-old" not in told
    ticket = file_of(proposed, "ticket.eml").partition(":")[2]
    assert "With “" not in riley.get(f"/runs/{proposed.run.pk}/artifacts/{ticket}")
