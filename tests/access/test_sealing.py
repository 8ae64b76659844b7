"""The audit trail is a chain: sealed by one at a time, in an order that passes nothing, and what was changed afterwards is found."""

import os
import signal
import threading
from datetime import timedelta
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client

from access import audit, sealing
from access.audit_models import AuditSeal, Sealer
from access.chain import Broken, Whole, verify
from access.models import AuditEntry
from access.rules import SYSTEM
from config import clock
from tests.factories import behind_its_back
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)


def written(count: int, verb: str = "looked") -> list[AuditEntry]:
    return [audit.record(SYSTEM, verb, number=number) for number in range(count)]


def broken() -> Broken:
    found = verify()
    assert isinstance(found, Broken), found
    return found


def test_each_entry_gets_one_number_and_the_chain_is_whole(db):
    entries = written(5)
    assert verify() == Whole(0, "0" * 64, waiting=5)
    assert (sealing.seal(), sealing.seal()) == (5, 0)
    entries += written(2)
    assert sealing.seal() == 2
    assert [seal.entry for seal in AuditSeal.objects.order_by("number")] == [entry.pk for entry in entries]
    assert verify() == Whole(7, AuditSeal.objects.get(number=7).hash, waiting=0)


def test_more_than_one_batch_is_sealed_at_once(db, monkeypatch):
    monkeypatch.setattr(sealing, "BATCH", 3)
    written(7)
    assert sealing.seal() == 7 and isinstance(verify(), Whole)


def test_a_hash_covers_the_one_before_the_number_and_every_column(db):
    entry = written(1)[0]
    told = sealing.canonical(entry)
    assert told.startswith(b'{"actor":["system","handrail"],"at":"') and b'"data":{"number":0},"id":"' in told
    hashes = {sealing.chained(prev, number, told) for prev in ("0" * 64, "1" * 64) for number in (1, 2)}
    assert len(hashes) == 4
    columns = {"at": clock.now(), "actor_kind": "human", "actor_id": "x", "verb": "x", "subject_kind": "x", "subject_id": "x", "data": {}}
    for column, value in columns.items():
        other = AuditEntry.objects.get(pk=entry.pk)
        setattr(other, column, value)
        assert sealing.canonical(other) != told, column


# late, together, killed ---------------------------------------------------------------------------------------------------------------


def test_an_entry_that_commits_after_younger_ones_were_sealed_is_sealed_later(db):
    written(3)
    sealing.seal()
    assert Sealer.objects.get().floor is not None
    late = AuditEntry.objects.create(
        pk=UUID(int=AuditEntry.objects.order_by("pk").first().pk.int - (30 * 60_000 << 80)), actor_kind="system", verb="looked"
    )
    assert sealing.seal() == 1
    assert AuditSeal.objects.get(number=4).entry == late.pk and isinstance(verify(), Whole)


def test_one_that_is_later_than_anybody_thought_is_found_by_the_look_at_everything(db, monkeypatch):
    written(3)
    sealing.seal()
    AuditEntry.objects.create(pk=UUID(int=1 << 100), actor_kind="system", verb="looked")
    assert sealing.seal() == 0 and verify().waiting == 1
    soon = clock.now() + sealing.EVERYTHING + timedelta(seconds=1)
    monkeypatch.setattr(clock, "now", lambda: soon)
    assert sealing.seal() == 1 and isinstance(verify(), Whole)


@pytest.mark.postgres_only
def test_a_transaction_that_is_open_meanwhile_holds_up_nobody_and_is_not_passed(db):
    recorded, sealed = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            audit.record(SYSTEM, "slow")
            recorded.set()
            assert sealed.wait(20)

    def sealer() -> list[int]:
        assert recorded.wait(20)
        written(2)
        first = sealing.seal()
        sealed.set()
        return [first]

    assert together([slow, sealer]) == [None, [2]]
    assert sealing.seal() == 1 and isinstance(verify(), Whole)
    assert AuditEntry.objects.get(pk=AuditSeal.objects.get(number=3).entry).verb == "slow"


def test_sealers_at_once_seal_each_entry_once(db, monkeypatch):
    monkeypatch.setattr(sealing, "BATCH", 10)
    written(60)
    done = together([sealing.seal] * 4)
    assert all(isinstance(count, int) for count in done), done
    sealing.seal()
    assert AuditSeal.objects.count() == 60 and verify() == Whole(60, Sealer.objects.get().hash, 0)


def test_a_sealer_that_is_killed_between_the_seals_and_the_head_has_sealed_nothing(db):
    written(4)
    connection.close()
    child = os.fork()
    if child == 0:
        sealing._floor = lambda: os.kill(os.getpid(), signal.SIGKILL)
        sealing.seal()
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert AuditSeal.objects.count() == 0
    assert sealing.seal() == 4 and isinstance(verify(), Whole)


# what was changed is found --------------------------------------------------------------------------------------------------------------


def test_an_entry_that_was_altered_removed_or_resealed_is_found_where_it_stands(db):
    entries = written(5)
    sealing.seal()
    rows, seals = AuditEntry.objects.filter(pk=entries[2].pk), AuditSeal.objects.filter(number=3)
    before = rows.get()
    with behind_its_back():
        rows.update(data={"number": 20})
    assert broken() == Broken(3, f"The entry {before.pk} or its seal was altered.")
    with behind_its_back():  # who can compute a hash seals it anew: the next one tells
        seals.update(hash=sealing.chained(AuditSeal.objects.get(number=2).hash, 3, sealing.canonical(rows.get())))
    assert broken().number == 4
    with behind_its_back():
        rows.delete()
    assert broken() == Broken(3, f"The entry {before.pk} was removed.")
    with behind_its_back():
        seals.delete()
    assert broken() == Broken(3, "The seal #3 was removed; the next one that is there is #4.")


def test_a_tail_that_was_cut_off_is_found_by_the_head_and_by_one_that_was_kept(db):
    written(5)
    sealing.seal()
    kept = verify()
    tail = AuditSeal.objects.filter(number__gt=3)
    with behind_its_back():
        AuditEntry.objects.filter(pk__in=list(tail.values_list("entry", flat=True))).delete()
        tail.delete()
    assert broken() == Broken(4, "The chain ends at #3, but the sealer counted to #5: its tail was cut off.")
    Sealer.objects.update(number=3, hash=AuditSeal.objects.get(number=3).hash)  # who may change the tables can make that fit as well
    assert isinstance(verify(), Whole)
    assert verify(kept=(5, kept.hash)) == Broken(4, "The chain ends at #3, but #5 was kept elsewhere: its tail was cut off.")


def test_a_trail_without_what_its_sealer_counted_to_is_not_whole_and_the_sealer_says_so(db, caplog):
    written(3)
    sealing.seal()
    with behind_its_back():
        AuditSeal.objects.filter(number=3).delete()
        Sealer.objects.all().delete()
    assert broken() == Broken(3, "What the sealer counted to was removed: nobody can say that the tail was not cut off.")
    written(1)
    assert sealing.seal() == 0 and "its numbers are taken" in caplog.text


def test_a_trail_that_was_written_anew_is_found_by_a_head_that_was_kept(db):
    entries = written(3)
    sealing.seal()
    kept = verify()
    with behind_its_back():
        AuditEntry.objects.filter(pk=entries[0].pk).update(verb="nothing_happened")
        AuditSeal.objects.all().delete()
        Sealer.objects.all().delete()
    sealing.seal()
    assert isinstance(verify(), Whole)
    assert isinstance(verify(kept=(3, kept.hash)), Broken)


# the commands and readiness -------------------------------------------------------------------------------------------------------------


def command(name: str, *words: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command(name, *words, stdout=out, stderr=out)
    except SystemExit as end:
        return end.code, out.getvalue()
    return 0, out.getvalue()


def test_the_commands_seal_and_say_whether_the_trail_is_whole(db):
    entries = written(2)
    assert command("sealaudit") == (0, "2 entries sealed.\n")
    written(1)
    head = f"2:{AuditSeal.objects.get(number=2).hash}"
    assert command("verifyaudit") == (0, f"The audit trail: whole, 2 entries, 1 not sealed yet. Head {head}\n")
    assert command("verifyaudit", "--kept", head)[0] == 0
    assert command("verifyaudit", "--kept", f"2:{'0' * 64}")[0] == 1
    with pytest.raises(CommandError, match="A kept head looks like"):
        command("verifyaudit", "--kept", "2")
    with behind_its_back():
        AuditEntry.objects.filter(pk=entries[1].pk).delete()
    assert command("verifyaudit") == (1, f"The audit trail: BROKEN at #2. The entry {entries[1].pk} was removed.\n")


def test_readiness_says_that_the_sealer_lags_and_the_process_stays_in_service(db, monkeypatch):
    sealing.seal()
    written(1)
    assert not sealing.lags()
    later = clock.now() + sealing.LAGS + timedelta(seconds=1)
    monkeypatch.setattr(clock, "now", lambda: later)
    told = Client().get("/readyz")
    assert (told.status_code, told.json()["audit_sealer"]) == (200, "lags: is a worker with its beat running?")
    sealing.seal()
    assert Client().get("/readyz").json()["audit_sealer"] == "ok"
