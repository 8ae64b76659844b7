"""Whoever owns the database can change a log behind its back, but not unnoticed: the check says that it is broken, and where."""

import hashlib
import json
import threading
from collections.abc import Callable
from contextlib import closing
from io import StringIO
from typing import Any

import orjson
import pytest
from django.core.management import call_command
from django.db import connection

from artifacts import keys, ruling, vault
from artifacts.json_paths import Rule
from artifacts.models import Artifact, Payload
from artifacts.redaction import DEFAULT, PERSONAL, Policy
from artifacts.sealing import seal
from runs import log
from runs.log import Text, chained
from runs.models import Event, Run
from runs.verification import Broken, Whole, verify
from runs.vocabulary import ArtifactCreated, MilestoneReached, NotePosted
from tests import factories
from tests.factories import behind_its_back, line
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

NOTE, TOLD, MADE, SHARED = 3, 4, 5, 6  # where these events stand in the log


@pytest.fixture
def run(cast) -> Run:
    """Seven events: created, started, a note, one with a sender's id, an artifact, a milestone, a last note. It goes on."""
    run = factories.make_run(cast)
    factories.note(run, "First note")
    factories.note(run, "Told by the agent", sender="agent:1")
    payload = vault.keep(cast.workspace.pk, "Dear Marta", label="personal")
    made = Artifact.objects.create(workspace=cast.workspace, run_id=run.pk, name="reply.txt", version=1, payload=payload)
    created = ArtifactCreated(artifact=made.pk, name="reply.txt", version=1, label="personal", media_type="text/plain", size=10)
    factories.append(run, created, artifact=made, texts={"content": payload})
    factories.append(run, MilestoneReached(), texts={"title": Text("Drafted"), "detail": Text("With care", "personal")})
    factories.note(run, "Last note")
    run.refresh_from_db()
    assert run.seq == 7
    return run


def sql(statement: str, *values: Any) -> None:
    """One row changed, behind the log's back."""
    with behind_its_back(), connection.cursor() as cursor:
        cursor.execute(statement, values)
        assert cursor.rowcount == 1


def event(run: Run, seq: int, assignment: str, *values: Any) -> None:
    sql(f"UPDATE runs_event SET {assignment} WHERE run_id = %s AND seq = %s", *values, key(run.pk), seq)


def key(pk: Any) -> Any:
    return pk if connection.vendor == "postgresql" else pk.hex


def payload_of(run: Run, seq: int, role: str = "note") -> Payload:
    return Payload.objects.get(pk=line(run, seq).payloads[role])


def broken_at(run: Run, seq: int, word: str) -> None:
    found = verify(run)
    assert isinstance(found, Broken), "nobody noticed"
    assert found.seq == seq, found.why
    assert word in found.why, found.why


# whole ------------------------------------------------------------------------------------------------------------------------------


def test_a_log_as_it_was_written_is_whole(run):
    found = verify(run)
    assert found == Whole(7, bytes(run.head_hash).hex(), 0)
    assert verify(run, payloads=False) == found


def test_anyone_can_compute_the_chain_from_what_is_stored(run):
    """SHA-256(hash before ‖ seq as eight bytes ‖ body), with no code of ours."""
    before = bytes(32)
    for stored in Event.objects.filter(run_id=run.pk).order_by("seq"):
        before = hashlib.sha256(before + stored.seq.to_bytes(8, "big") + stored.body.encode("utf-8")).digest()
        assert bytes(stored.hash) == before
    assert bytes(run.head_hash) == before


def test_anyone_who_is_given_salt_and_bytes_can_check_a_commitment(run):
    payload = payload_of(run, NOTE)
    salt, data = vault.opening(payload)
    assert data == b"First note"
    assert hashlib.sha256(salt + data).hexdigest() == json.loads(line(run, NOTE).body)["payloads"]["note"]


def test_an_ended_log_is_whole(run):
    factories.end(run)
    found = verify(run)
    assert isinstance(found, Whole) and found.head == 9


def test_what_was_erased_leaves_the_log_whole_and_is_counted(cast, run):
    vault.erase(payload_of(run, NOTE), by=cast.ada)
    vault.erase(payload_of(run, SHARED, "detail"), by=cast.ada)
    found = verify(run)
    assert isinstance(found, Whole) and found.erased == 2


def test_one_runs_log_says_nothing_about_anothers(cast, run):
    other = factories.make_run(cast)
    event(other, 2, "type = 'note.posted'")
    assert isinstance(verify(run), Whole)
    broken_at(other, 2, "filed")


def test_a_log_that_grows_while_it_is_checked_is_whole(run):
    """An old reading of the run's row, and appends all the while."""
    over = threading.Event()

    def write() -> None:
        with closing(connection):
            while not over.is_set():
                factories.note(run)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(10):
            grown = Event.objects.filter(run_id=run.pk).count()
            assert isinstance(verify(run), Whole)
            until(lambda grown=grown: Event.objects.filter(run_id=run.pk).count() > grown, what="one more event")
    finally:
        over.set()
        writer.join(30)
    assert not writer.is_alive()


# events -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seq", [1, 4, 7])
def test_an_altered_body_is_found(run, seq):
    body = line(run, seq).body
    event(run, seq, "body = %s", body.replace('"kind":"', '"kind":"x'))
    broken_at(run, seq, "not what was written")


def test_a_body_that_says_the_same_in_other_bytes_is_found(run):
    event(run, NOTE, "body = %s", line(run, NOTE).body.replace(",", ", ", 1))
    broken_at(run, NOTE, "not what was written")


@pytest.mark.parametrize("column", ["hash", "prev_hash"])
def test_an_altered_hash_is_found(run, column):
    event(run, TOLD, f"{column} = %s", bytes(32))
    broken_at(run, TOLD, "not what was written")


@pytest.mark.parametrize(
    ("seq", "assignment", "value"),
    [
        (NOTE, "type = %s", "run.resumed"),
        (TOLD, "sender = %s", "agent:2"),
        (TOLD, "sender = NULL", None),
        (NOTE, "sender = %s", "agent:3"),
        (MADE, "artifact_id = NULL", None),
        (NOTE, "payloads = %s", "{}"),
        (NOTE, "payloads = %s", '{"note": "x", "more": "x"}'),
        (NOTE, "payloads = %s", "[]"),
        (NOTE, "payloads = %s", "7"),
    ],
)
def test_a_column_that_says_otherwise_than_the_body_is_found(run, seq, assignment, value):
    event(run, seq, assignment, *([value] if value is not None else []))
    found = verify(run)
    assert isinstance(found, Broken) and found.seq == seq, found


def test_an_event_that_names_another_artifact_is_found(cast, run):
    payload = payload_of(run, MADE, "content")
    other = Artifact.objects.create(workspace=cast.workspace, run_id=run.pk, name="other.txt", version=1, payload=payload)
    event(run, MADE, "artifact_id = %s", key(other.pk))
    broken_at(run, MADE, "filed")


@pytest.mark.parametrize("seq", [1, 4, 6])
def test_a_removed_event_is_missed(run, seq):
    sql("DELETE FROM runs_event WHERE run_id = %s AND seq = %s", key(run.pk), seq)
    broken_at(run, seq, "missing")


def test_two_exchanged_events_are_found(run):
    for before, after in ((NOTE, 99), (TOLD, NOTE), (99, TOLD)):
        event(run, before, "seq = %s", after)
    broken_at(run, NOTE, "not what was written")


def test_an_event_in_another_month_is_missed(run):
    event(run, NOTE, "run_month = '2020-01-01'")
    broken_at(run, NOTE, "missing")


def test_an_event_of_another_run_does_not_fit(cast, run):
    other = factories.make_run(cast)
    factories.note(other, "First note")
    stolen = line(other, 3)
    event(run, NOTE, "body = %s", stolen.body)
    broken_at(run, NOTE, "not what was written")


@pytest.mark.parametrize("left", [6, 2, 0])
def test_a_tail_that_was_cut_is_missed(run, left):
    with behind_its_back():
        Event.objects.filter(run_id=run.pk, seq__gt=left)._raw_delete("default")
    broken_at(run, left + 1, "cut")


def test_a_tail_of_thousands_that_was_cut_is_told_with_its_thousands_apart(run):
    Run.objects.filter(pk=run.pk).update(seq=2352)
    broken_at(run, 8, "counted to #2,352")


def test_an_event_put_after_the_head_is_found(run):
    last = line(run, 7)
    body = last.body.replace('"v":1', '"v":2')
    digest = chained(bytes(last.hash), 8, body)
    Event.objects.bulk_create([Event(run_month=run.month, run=run, seq=8, type=last.type, body=body, prev_hash=last.hash, hash=digest)])
    with behind_its_back():
        Event.objects.filter(run_id=run.pk, seq=8).update(payloads=last.payloads)
    broken_at(run, 8, "counted to #7")


# the run's row ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "seq"),
    [
        ({"head_hash": bytes(32)}, 8),
        ({"seq": 8}, 8),
        ({"seq": 6}, 7),
        ({"seq": 0, "head_hash": bytes(32)}, 1),
    ],
)
def test_a_changed_head_is_found(run, fields, seq):
    Run.objects.filter(pk=run.pk).update(**fields)
    broken_at(run, seq, "head was changed")


def test_an_ending_that_no_event_tells_is_found(run):
    Run.objects.filter(pk=run.pk).update(state="succeeded", ended_at=run.created_at)
    broken_at(run, 7, "state was changed")


@pytest.mark.parametrize("fields", [{"state": "failed"}, {"state": "running", "ended_at": None}])
def test_an_ending_that_was_taken_back_or_exchanged_is_found(run, fields):
    factories.end(run)
    Run.objects.filter(pk=run.pk).update(**fields)
    broken_at(run, 9, "state was changed")


def test_a_tail_cut_together_with_the_count_still_contradicts_the_ending(run):
    factories.end(run)
    with behind_its_back():
        Event.objects.filter(run_id=run.pk, seq=9)._raw_delete("default")
        Run.objects.filter(pk=run.pk).update(seq=8, head_hash=line(run, 8).hash)
    broken_at(run, 8, "state was changed")


# a chain written anew -------------------------------------------------------------------------------------------------------------------


def rewrite(run: Run, change: Callable[[str], str], seq: int) -> None:
    """As somebody would who knows how the chain is made: every hash from `seq` on fits again, and the head too."""
    with behind_its_back():
        before = bytes(line(run, seq).prev_hash)
        for stored in Event.objects.filter(run_id=run.pk, seq__gte=seq).order_by("seq"):
            body = change(stored.body) if stored.seq == seq else stored.body
            digest = chained(before, stored.seq, body)
            Event.objects.filter(run_id=run.pk, seq=stored.seq).update(body=body, prev_hash=before, hash=digest)
            before = digest
        Run.objects.filter(pk=run.pk).update(head_hash=before)


@pytest.mark.parametrize("body", ["", "no JSON", "[]", "7", "null", '{"v":1}', '{"type":"note.posted","data":{},"payloads":7}'])
def test_a_body_that_is_no_event_is_found_even_if_the_chain_fits(run, body):
    rewrite(run, lambda _: body, NOTE)
    found = verify(run)
    assert isinstance(found, Broken) and found.seq == NOTE


def test_a_chain_written_anew_from_the_middle_no_longer_fits_a_head_that_somebody_kept(run):
    """What a hash chain alone can't show: so the head can be noted elsewhere, and `verify` prints it."""
    kept = verify(run)
    rewrite(run, lambda body: body.replace('"v":1', '"v":2'), NOTE)
    found = verify(run)
    assert isinstance(found, Whole) and isinstance(kept, Whole)
    assert (found.head, found.hash != kept.hash) == (kept.head, True)


# payloads -----------------------------------------------------------------------------------------------------------------------------


def test_an_exchanged_payload_is_found(run):
    other = payload_of(run, 7)
    event(run, NOTE, "payloads = %s", json.dumps({"note": str(other.pk)}))
    broken_at(run, NOTE, "exchanged")


def test_a_payload_of_the_same_words_is_another_one(run, cast):
    twin = vault.keep(cast.workspace.pk, "First note", label="internal")
    event(run, NOTE, "payloads = %s", json.dumps({"note": str(twin.pk)}))
    broken_at(run, NOTE, "exchanged")


def test_two_payloads_of_one_event_that_changed_places_are_found(run):
    title, detail = (line(run, SHARED).payloads[role] for role in ("title", "detail"))
    event(run, SHARED, "payloads = %s", json.dumps({"title": detail, "detail": title}))
    broken_at(run, SHARED, "exchanged")


@pytest.mark.parametrize("named", ["019ae4b0-0000-7000-8000-000000000000", "no id", ""])
def test_a_payload_that_is_not_there_is_missed(run, named):
    event(run, NOTE, "payloads = %s", json.dumps({"note": named}))
    found = verify(run)
    assert isinstance(found, Broken) and found.seq == NOTE


def test_a_removed_payload_is_missed(run):
    sql("DELETE FROM artifacts_payload WHERE id = %s", key(payload_of(run, NOTE).pk))
    broken_at(run, NOTE, "removed")


def flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize("column", ["content", "wrapped"])
def test_one_altered_bit_of_a_payload_is_found(run, column):
    payload = payload_of(run, NOTE)
    Payload.objects.filter(pk=payload.pk).update(**{column: flipped(bytes(getattr(payload, column)))})
    broken_at(run, NOTE, "committed to")
    assert isinstance(verify(run, payloads=False), Whole), "the chain itself is as it was"


def test_a_payload_filled_with_anothers_bytes_is_found(run):
    other = payload_of(run, 7)
    Payload.objects.filter(pk=payload_of(run, NOTE).pk).update(content=other.content, wrapped=other.wrapped)
    broken_at(run, NOTE, "committed to")


def test_a_payload_with_another_commitment_is_found(run):
    Payload.objects.filter(pk=payload_of(run, NOTE).pk).update(commitment=payload_of(run, 7).commitment)
    broken_at(run, NOTE, "exchanged")


def test_bytes_sealed_anew_by_somebody_who_has_the_key_are_found(run):
    payload, salt, data_key = payload_of(run, NOTE), bytes(32), bytes(range(32))
    Payload.objects.filter(pk=payload.pk).update(
        wrapped=seal(keys.unwrap(payload.key), salt + data_key, payload.pk.bytes),
        content=seal(data_key, b"Another note", payload.pk.bytes),
    )
    assert vault.open_bytes(payload_of(run, NOTE)) == b"Another note", "it opens well"
    broken_at(run, NOTE, "committed to")


@pytest.mark.parametrize(
    ("rendition", "more"),
    [
        ("Last note", {}),
        ("First note, and more", {}),
        ("First", {}),
        ("", {}),
        ("First ⟦card⟧ note", {}),
        ("Worst ⟦secret⟧", {"findings": {"secret": 1}}),
        ("⟦secret⟧ notes", {"findings": {"secret": 1}}),
        ("First note", {"findings": {"card": 1}}),
        ("⟦secret⟧ note", {}),
    ],
)
def test_what_is_shown_of_a_payload_and_was_changed_is_found(run, rendition, more):
    Payload.objects.filter(pk=payload_of(run, NOTE).pk).update(rendition=rendition, **more)
    broken_at(run, NOTE, "its rendition was changed")
    assert isinstance(verify(run, payloads=False), Whole), "the chain itself is as it was"


def test_renditions_of_other_policies_and_those_made_anew_are_no_forgeries(cast, run, monkeypatch):
    policies = [
        Policy(kinds={"internal": PERSONAL, "personal": PERSONAL}),
        Policy(rules=(Rule("$.sum", "secret"), Rule("$..who", "email"))),
    ]
    said = orjson.dumps({"sum": 12, "to": {"who": ["a", {"b": 1}], "note": "Write to marta@fernhill.example"}}).decode()
    for version, policy in enumerate([DEFAULT, *policies, DEFAULT], 1):
        monkeypatch.setattr(ruling, "kept", [lambda _, version=version, policy=policy: (version, policy)])
        for media_type in ("text/plain", "application/json"):
            factories.append(run, NotePosted(), texts={"note": Text(said, "internal", media_type)})
        call_command("rerender", stdout=StringIO())
        assert isinstance(verify(run), Whole), (version, verify(run))


@pytest.mark.parametrize("media_type", ["text/plain", "application/json"])
def test_a_rendition_that_is_cut_is_compared_as_far_as_it_goes(cast, run, monkeypatch, media_type):
    said = orjson.dumps([{"sum": n, "who": f"person-{n}@fernhill.example", "note": "As agreed."} for n in range(4000)]).decode()
    policy = Policy(kinds={"internal": PERSONAL}, rules=(Rule("$[*].sum", "secret"),))
    monkeypatch.setattr(ruling, "kept", [lambda _: (1, policy)])
    seq = factories.append(run, NotePosted(), texts={"note": Text(said, "internal", media_type)})
    monkeypatch.setattr(ruling, "kept", [])
    assert isinstance(verify(run), Whole), verify(run)
    for forged in ("⟦secret⟧Nothing is due.", "⟦secret⟧As agreed.⟦secret⟧Nothing is due.⟦+99⟧"):
        Payload.objects.filter(pk=payload_of(run, seq).pk).update(rendition=forged, findings={"secret": forged.count("⟦secret⟧")})
        broken_at(run, seq, "its rendition was changed")


def test_of_a_rendition_of_earlier_rules_of_ours_nobody_claims_that_it_was_compared(run, monkeypatch):
    Payload.objects.filter(pk=payload_of(run, NOTE).pk).update(rendition="Forged")
    monkeypatch.setattr(ruling, "BUILT_IN", ruling.BUILT_IN + 1)
    found = verify(run)
    assert isinstance(found, Whole) and found.unsure == 1
    call_command("rerender", stdout=StringIO())
    assert payload_of(run, NOTE).rendition == "⟦secret⟧" and verify(run).unsure == 0, "what was forged is gone then"


def test_a_large_payload_whose_rendition_was_changed_is_found(cast, run, monkeypatch, settings):
    monkeypatch.setattr(vault, "MAX_BYTES", 100)
    payload = vault.sealed_from(cast.workspace.pk, [b"x" * 200], label="internal", media_type="text/plain")
    vault.store([payload])
    made = Artifact.objects.create(workspace=cast.workspace, run_id=run.pk, name="long.txt", version=1, payload=payload)
    created = ArtifactCreated(artifact=made.pk, name="long.txt", version=1, label="internal", media_type="text/plain", size=200)
    factories.append(run, created, artifact=made, texts={"content": payload})
    assert isinstance(verify(run), Whole)
    Payload.objects.filter(pk=payload.pk).update(rendition="⟦unreadable⟧ 2 bytes of text/plain")
    broken_at(run, 8, "its rendition was changed")


def test_the_first_broken_place_is_the_one_that_is_told(run):
    event(run, 6, "body = %s", "later")
    event(run, NOTE, "body = %s", "first")
    broken_at(run, NOTE, "not what was written")


def test_the_check_of_a_log_of_thousands_is_one_walk(cast, django_assert_max_num_queries):
    run = factories.make_run(cast)
    with log.holding(run.pk) as held:
        for _ in range(2500):
            held.append(MilestoneReached(), actor=log.ENGINE)
    with django_assert_max_num_queries(9):
        found = verify(run, payloads=False)
    assert isinstance(found, Whole) and found.head == 2502
