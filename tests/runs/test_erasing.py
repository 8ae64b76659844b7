"""Erasing for good: what it takes, what goes along, what is in its way, and what is left to see."""

import base64
import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from access.errors import Forbidden
from access.models import AuditEntry, User
from approvals import decisions
from artifacts import vault
from artifacts.models import Artifact, Payload
from runs import erasing, intake, log, signals, verification
from runs.intake import Told
from runs.log import Text
from runs.models import Event, Run
from tests import proving
from tests.approvals.mailing import propose_mail
from tests.factories import actor, agent_actor, end, make_run, note

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = "Dear Marta Oyelaran,\nyour parcel 4821 is on its way.\n"


def artifact(run: Run, cast, text: str | bytes = WORDS, name: str = "reply.txt", key: str = "a") -> Artifact:
    told = Told(key, "artifact.created", {"name": name}, {"content": Text(text)})
    [accepted] = intake.accept(run, [told], by=agent_actor(cast.agent))
    return Event.objects.get(run_id=run.pk, seq=accepted.seq).artifact


def again(thing: Artifact) -> Payload:
    return Payload.objects.get(pk=thing.payload_id)


def texts_left(word: bytes) -> list[str]:
    """Payloads in which this can still be read, and renditions."""
    found = []
    for payload in Payload.objects.select_related("key"):
        content = vault.opened(payload) or b""
        if word in content or word.decode() in (payload.rendition or ""):
            found.append(f"{payload.media_type} {content[:60]!r}")
    return found


def erase_on_the_page(client: Client, run: Run, thing: Artifact, **typed: str):
    proving.shown(client)
    at = reverse("runs:erasure", args=(run.pk, thing.pk))
    shown = client.get(at, {"what": typed.get("what", "this")}).context["plan"]
    return client.post(at, {"reason": "asked", "sure": "on", "shown": shown.digest if shown else ""} | typed, follow=True)


def test_an_admin_erases_an_artifact_and_everybody_sees_who_and_when_and_the_run_verifies(cast, client):
    run = make_run(cast)
    first = artifact(run, cast)
    second = artifact(run, cast, "Quite another text, of the second version", key="b")
    note(run, f"I wrote: {WORDS}")
    end(run)

    client.force_login(cast.ada)
    said = erase_on_the_page(client, run, first, words="She wrote to us on Monday.").content.decode()
    assert "Erased 1 payload, and 1 more in which the same text stood." in said and "erased for good" in said and "Ada" in said
    assert texts_left(b"Oyelaran") == [] and again(second).erased_at is None
    gone = again(first)
    assert (gone.content, gone.wrapped, gone.rendition, gone.erased_by, gone.erased_why) == (None, None, None, cast.ada, "asked")

    for page in ("runs:run", "runs:events"):
        assert "Oyelaran" not in client.get(reverse(page, args=(run.pk,))).content.decode()
    event = client.get(reverse("runs:event", args=(run.pk, Event.objects.get(artifact=first).seq))).content.decode()
    assert "Erased by Ada, <time" in event and "Its commitment stays in the log" in event
    around = client.get(reverse("runs:around", args=(run.pk, first.pk))).content.decode()
    assert "The person it is about asked for it" in around and "Erase for good" not in around
    [told] = [line["texts"]["content"] for line in lines(client, run) if line["body"]["data"].get("artifact") == str(first.pk)]
    assert told["erased_by"] == "Ada" and told["erased_at"]

    whole = verification.verify(Run.objects.get(pk=run.pk))
    assert isinstance(whole, verification.Whole) and whole.erased == 2
    entries = AuditEntry.objects.filter(verb="payload_erased")
    assert {(each.actor_id, each.data["reason"], each.data["copy"]) for each in entries} == {
        (str(cast.ada.pk), "asked", False),
        (str(cast.ada.pk), "asked", True),
    }
    assert vault.open_bytes(Payload.objects.select_related("key").get(pk=entries[0].data["words"])) == b"She wrote to us on Monday."
    assert client.get(reverse("runs:erasure", args=(run.pk, first.pk))).context["why_not"].status == 410


def lines(client: Client, run: Run) -> list[dict]:
    return client.get(f"/api/v1/runs/{run.pk}/events").json()["events"]


def test_under_the_address_of_another_run_nothing_of_a_run_is_erased(cast, client):
    run, other = make_run(cast), make_run(cast, title="Another")
    first = artifact(run, cast)
    end(run)
    end(other)
    login(client, cast.ada)
    assert client.get(reverse("runs:erasure", args=[run.pk, first.pk])).status_code == 200
    assert client.get(reverse("runs:erasure", args=[other.pk, first.pk])).status_code == 404


def test_all_versions_go_at_once(cast, client):
    run = make_run(cast)
    made = [artifact(run, cast, f"{WORDS} Version {number}", key=str(number)) for number in range(3)]
    end(run)
    client.force_login(cast.ada)
    assert "Erased 3 payloads" in erase_on_the_page(client, run, made[1], what="all").content.decode()
    assert all(again(each).erased_at for each in made)
    page = client.get(reverse("artifacts:artifact", args=(made[1].pk,))).content.decode()
    assert "Nothing to compare: what was erased is gone for good." in page and "Download both" not in page


@pytest.mark.parametrize("typed", [{"reason": ""}, {"reason": "other"}, {"reason": "because"}, {"shown": "0" * 64}, {"words": "x" * 501}])
def test_without_a_reason_or_with_other_things_than_were_shown_nothing_goes(cast, client, typed):
    run = make_run(cast)
    made = artifact(run, cast)
    end(run)
    client.force_login(cast.ada)
    asked = client.post(reverse("runs:erasure", args=(run.pk, made.pk)), {"reason": "asked", "sure": "on"})
    assert asked.status_code == 403 and "Show that it is you" in asked.content.decode()
    answer = erase_on_the_page(client, run, made, **typed)
    assert answer.status_code in (409, 422) and "Nothing was erased" in answer.content.decode()
    assert again(made).erased_at is None


def test_what_a_run_needs_that_has_not_ended_is_not_erased(cast, client):
    run = make_run(cast)
    made = artifact(run, cast)
    client.force_login(cast.ada)
    page = client.get(reverse("runs:erasure", args=(run.pk, made.pk))).content.decode()
    assert f"{run.ref} has not ended. Cancel it, or wait for the end." in page and "Erase for good</button>" not in page
    with pytest.raises(erasing.StillNeeded):
        erasing.erase(run, [made.payload_id], by=actor(cast.ada), reason="asked")
    assert again(made).erased_at is None


def test_what_an_action_needs_is_not_erased_and_says_what_to_do(cast):
    action = propose_mail(cast).action
    run = action.run
    found = erasing.plan(run, [action.canonical_id])
    assert any("waits for a decision. Decide on it, or withdraw it." in why for why in found.held)
    with pytest.raises(erasing.StillNeeded):
        erasing.erase(run, [action.canonical_id], by=actor(cast.ada), reason="asked")


def test_what_an_event_says_and_what_its_action_holds_is_erased_from_its_page(cast, client):
    mail = propose_mail(cast)
    rejected = {"reviewer": actor(cast.riley), "verdict": "rejected", "digest": mail.action.digest, "reason": "Marta Oyelaran is away."}
    decision = decisions.decide(mail.action, **rejected).decision
    assert mail.walk() == "succeeded"
    run, ada = mail.run, proving.shown(login(client, cast.ada))
    said = Event.objects.get(run_id=run.pk, seq=decision.seq)
    at, event = (reverse(f"runs:{name}", args=(run.pk, said.seq)) for name in ("event_erasure", "event"))
    assert (
        f'href="{at}"' in ada.get(event).content.decode() and f'href="{at}"' not in login(Client(), cast.otto).get(event).content.decode()
    )

    page = ada.get(at)
    html = page.content.decode()
    assert f"The text “reason” of #{said.seq}: 1 payload" in html and "Each event with its number, time, actor and hash" in html
    assert f"All that {run.ref} holds" in html and "The action:" not in html, "which another event put up"
    sure = {"reason": "asked", "sure": "on"}
    assert ada.post(at, sure | {"what": "text:reason", "shown": "0" * 64}).status_code == 409 and texts_left(b"Oyelaran is away")
    done = ada.post(at, sure | {"what": "text:reason", "shown": page.context["plan"].digest}, follow=True)
    assert "Erased 1 payload" in done.content.decode() and "Erased by Ada, <time" in done.content.decode()
    assert texts_left(b"Oyelaran is away") == [] and texts_left(b"it was charged twice") != []

    at = reverse("runs:event_erasure", args=(run.pk, mail.action.proposed_seq))
    page = ada.get(at, {"what": "part:0"})
    assert "The action: arguments, words and files" in page.content.decode()
    ada.post(at, sure | {"what": "part:0", "shown": page.context["plan"].digest})
    assert Payload.objects.get(pk=mail.action.canonical_id).erased_by == cast.ada
    assert "it was charged twice" not in (card := ada.get(mail.url()).content.decode()) and "erased" in card.lower()
    everything = ada.get(at, {"what": "run"}).context["plan"].digest
    ada.post(at, sure | {"what": "run", "shown": everything})
    assert not Payload.objects.filter(pk__in=erasing.of_runs([run.pk]), erased_at=None).exists()
    assert isinstance(verification.verify(Run.objects.get(pk=run.pk)), verification.Whole)
    assert AuditEntry.objects.filter(verb="payload_erased", data__reason="asked", actor_id=str(cast.ada.pk)).count() >= 3


def login(client: Client, user: User) -> Client:
    client.force_login(user)
    return client


@pytest.mark.parametrize("name", ["riley", "morgan", "otto"])
def test_only_who_has_the_right_erases(cast, client, name):
    run = make_run(cast)
    made = artifact(run, cast)
    end(run)
    with pytest.raises(Forbidden):
        erasing.erase(run, [made.payload_id], by=actor(getattr(cast, name)), reason="asked")
    with pytest.raises(Forbidden):
        erasing.erase(run, [made.payload_id], by=agent_actor(cast.agent), reason="asked")
    assert again(made).erased_at is None


@pytest.mark.parametrize("kept", ["as it is", "in JSON", "in JSON in JSON", "in base64", "in a signal"])
def test_copies_go_along_wherever_and_however_they_are_kept(cast, kept):
    run = make_run(cast)
    made = artifact(run, cast)
    match kept:
        case "as it is":
            note(run, WORDS)
        case "in JSON":
            artifact(run, cast, json.dumps({"body": WORDS}), name="call.json", key="b")
        case "in JSON in JSON":
            artifact(run, cast, json.dumps({"call": json.dumps({"body": WORDS})}), name="call.json", key="b")
        case "in base64":
            artifact(run, cast, json.dumps({"file": base64.b64encode(WORDS.encode()).decode()}), name="call.json", key="b")
        case "in a signal":
            signals.send(run, kind="context", key="k", by=actor(cast.otto), note=f"Write: {WORDS}")
            with log.holding(run.pk) as held:
                signals.take(held, "context")
    end(run)
    done = erasing.erase(run, [made.payload_id], by=actor(cast.ada), reason="exposed")
    assert len(done.copies) >= 1 and texts_left(b"Oyelaran") == []


def test_a_short_text_takes_no_other_texts_along(cast):
    run = make_run(cast)
    made = artifact(run, cast, "yes")
    note(run, "yes, of course it is")
    end(run)
    assert erasing.erase(run, [made.payload_id], by=actor(cast.ada), reason="mistake").copies == ()


def test_from_the_command_line_with_a_persons_name(cast):
    run = make_run(cast)
    made = artifact(run, cast)
    end(run)

    def erase(*words: str) -> str:
        out = StringIO()
        call_command("erase", run.ref, *words, stdout=out)
        return out.getvalue()

    as_ada = ("--by", cast.ada.email, "--reason", "asked")
    assert "Nothing was erased. Add --yes" in erase("--artifact", "reply.txt", *as_ada)
    assert again(made).erased_at is None
    with pytest.raises(CommandError, match="right"):
        erase("--artifact", "reply.txt", "--by", cast.riley.email, "--reason", "asked", "--yes")
    assert "Erased 1 payload(s)" in erase("--artifact", "reply.txt", *as_ada, "--yes")
    erase("--everything", *as_ada, "--yes")
    assert not Payload.objects.filter(pk__in=erasing.of_runs([run.pk]), erased_at=None).exists()
    assert isinstance(verification.verify(Run.objects.get(pk=run.pk)), verification.Whole)
    with pytest.raises(CommandError, match="erased already"):
        erase("--everything", *as_ada, "--yes")
