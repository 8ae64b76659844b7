"""Keys: rotated, what was sealed before opens still, and an old version goes only when nothing needs it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO

import pytest
from cryptography.exceptions import InvalidTag
from django.core.management import CommandError, call_command
from django.db import connection

from access.models import AuditEntry
from access.rules import SYSTEM
from artifacts import keys, rotation, vault
from artifacts.models import Payload, WorkspaceKey
from config import clock
from tests.together import together

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """No key of another test is remembered."""
    keys._unwrapped.cache_clear()
    keys._keys.clear()
    yield
    keys._unwrapped.cache_clear()
    keys._keys.clear()


def kept(cast, text: str = "The words") -> Payload:
    return vault.keep(cast.workspace.pk, text, label="internal")


def again(payload: Payload) -> Payload:
    return Payload.objects.select_related("key").get(pk=payload.pk)


def vaultkey(*words: str) -> str:
    out = StringIO()
    call_command("vaultkey", *words, stdout=out, stderr=out)
    return out.getvalue()


def verbs() -> list[str]:
    return list(AuditEntry.objects.filter(verb__startswith="vault_").order_by("at").values_list("verb", flat=True))


def test_after_a_rotation_old_payloads_open_and_their_version_goes_when_nothing_needs_it(cast, monkeypatch):
    monkeypatch.setattr(rotation, "BATCH", 2)
    old = [kept(cast, f"Text {number}") for number in range(5)]
    commitments = {payload.pk: payload.commitment for payload in old}
    theirs = vault.keep(cast.elsewhere.pk, "Of another workspace", label="internal")

    said = vaultkey("rotate", "--workspace", "fernhill")
    assert "version 2 was made" in said and "2 of 5" in said and "5 of 5" in said
    assert [again(payload).key.version for payload in old] == [2] * 5
    assert [vault.open_bytes(again(payload)).decode() for payload in old] == [f"Text {number}" for number in range(5)]
    assert all(again(payload).commitment == commitments[payload.pk] for payload in old)
    assert kept(cast).key.version == 2, "and new ones are under it at once"
    assert again(theirs).key.version == 1
    first = WorkspaceKey.objects.get(workspace=cast.workspace, version=1)
    assert first.retired_at, "nothing refers to it"

    vaultkey("rewrap")
    assert WorkspaceKey.objects.filter(pk=first.pk).exists(), "but a process may yet"
    monkeypatch.setattr(keys, "GRACE", timedelta())
    vaultkey("rewrap")
    assert not WorkspaceKey.objects.filter(pk=first.pk).exists()
    assert vault.open_bytes(again(old[0])) == b"Text 0"
    assert verbs() == ["vault_key_rotated", "vault_key_retired", "vault_key_destroyed"]


def test_what_was_ended_in_the_middle_goes_on_where_it_was(cast, monkeypatch):
    monkeypatch.setattr(rotation, "BATCH", 2)
    for number in range(5):
        kept(cast, f"Text {number}")
    vaultkey("rotate", "--later")
    halfway = rotation.rewrap(cast.workspace.pk)
    next(halfway)
    halfway.close()
    assert rotation.left(cast.workspace.pk) == 3
    assert not WorkspaceKey.objects.exclude(retired_at=None).exists(), "what is in use is not retired"
    assert [batch.moved for batch in rotation.rewrap()] == [2, 1]
    assert rotation.left() == 0


def test_what_a_process_still_sealed_under_the_old_version_is_wrapped_anew_too(cast, monkeypatch):
    kept(cast)
    old = keys.current(cast.workspace.pk)
    vaultkey("rotate")
    monkeypatch.setattr(keys, "current", lambda _: old)  # another process, which remembers it for some seconds
    late = kept(cast, "Late")
    monkeypatch.setattr(keys, "GRACE", timedelta())
    assert keys.destroy(by=SYSTEM) == 0, "it is referred to"
    vaultkey("rewrap")
    assert again(late).key.version == 2 and vault.open_bytes(again(late)) == b"Late"
    assert not WorkspaceKey.objects.filter(pk=old.pk).exists()


def test_a_payload_that_is_erased_meanwhile_stays_erased(cast):
    payload, other = kept(cast), kept(cast)
    newest = keys.rotate(cast.workspace, by=SYSTEM)
    read = [again(payload), again(other)]
    vault.erase(payload, by=cast.ada)
    assert vault.rewrapped(read, newest) == (1, 0)
    gone = again(payload)
    assert (gone.wrapped, gone.content, gone.erased_by) == (None, None, cast.ada)
    list(rotation.rewrap())
    assert again(payload).key == newest and again(payload).wrapped is None, "its tombstone does not keep the old version"


def test_a_payload_that_does_not_open_keeps_its_version(cast, monkeypatch):
    broken, other = kept(cast), kept(cast)
    Payload.objects.filter(pk=broken.pk).update(wrapped=b"not what it was, and long enough")
    monkeypatch.setattr(keys, "GRACE", timedelta())
    said = vaultkey("rotate", "--workspace", "fernhill")
    assert "1 payload(s) do not open" in said and "version 1, old, 1 payloads" in said
    assert again(broken).key.version == 1 and vault.open_bytes(again(other))


@pytest.mark.django_db(transaction=True)
def test_two_jobs_and_payloads_that_are_kept_at_the_same_time_lose_nothing(cast, monkeypatch):
    monkeypatch.setattr(rotation, "BATCH", 3)
    monkeypatch.setattr(keys, "REMEMBERED", 0.0)
    old = [kept(cast, f"Text {number}") for number in range(12)]
    keys.rotate(cast.workspace, by=SYSTEM)
    fresh: list[Payload] = []

    def job() -> None:
        list(rotation.rewrap())

    def writer() -> None:
        fresh.extend(kept(cast, f"New {number}") for number in range(8))

    assert together([job, job, writer]) == [None] * 3
    assert [vault.open_bytes(again(payload)).decode() for payload in old] == [f"Text {number}" for number in range(12)]
    assert [vault.open_bytes(again(payload)).decode() for payload in fresh] == [f"New {number}" for number in range(8)]
    assert rotation.left() == 0


@pytest.mark.django_db(transaction=True)
def test_two_who_rotate_at_once_make_versions_of_their_own_or_one_is_told(cast):
    kept(cast)

    def rotate(_: int) -> object:
        try:
            return keys.rotate(cast.workspace, by=SYSTEM).version
        except keys.RotatedMeanwhile:
            return "told"
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as crowd:
        made = list(crowd.map(rotate, range(4)))
    versions = [each for each in made if each != "told"]
    assert sorted(WorkspaceKey.objects.values_list("version", flat=True)) == [1, *sorted(versions)]


# the master key -----------------------------------------------------------------------------------------------------------------------


def test_under_a_new_master_key_everything_opens_and_is_sealed_anew(cast, settings):
    payload = kept(cast)
    old = settings.HANDRAIL_VAULT_KEY
    settings.HANDRAIL_VAULT_KEY, settings.HANDRAIL_VAULT_KEY_OLD = bytes(range(32)), (bytes(32), old)
    keys._unwrapped.cache_clear()
    assert vault.open_bytes(again(payload)) == b"The words"
    assert "1 key(s) sealed" in vaultkey("rewrap-master") and "0 key(s) sealed" in vaultkey("rewrap-master")

    settings.HANDRAIL_VAULT_KEY_OLD = ()
    keys._unwrapped.cache_clear()
    assert vault.open_bytes(again(payload)) == b"The words"
    assert vault.open_bytes(again(kept(cast, "New"))) == b"New"
    assert verbs() == ["vault_key_resealed"]
    settings.HANDRAIL_VAULT_KEY = old
    keys._unwrapped.cache_clear()
    with pytest.raises(InvalidTag):
        vault.open_bytes(again(payload))


def test_a_key_that_opens_under_no_master_key_is_named_and_left_as_it_is(cast, settings):
    payload = kept(cast)
    settings.HANDRAIL_VAULT_KEY = bytes(range(32))
    keys._unwrapped.cache_clear()
    before = bytes(again(payload).key.wrapped)
    with pytest.raises(CommandError, match="under no master key"):
        vaultkey("rewrap-master")
    assert bytes(again(payload).key.wrapped) == before
    assert clock.now() > payload.created_at
