"""The vault: bytes go in and come out the same, to nobody without the keys, into no other row, and never again once erased."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidTag
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artifacts import keys, sealing, vault
from artifacts.models import Label, Payload, WorkspaceKey
from artifacts.vault import Erased, PayloadTooLarge
from config import clock

pytestmark = pytest.mark.django_db
TEXT = "Card 4111 1111 1111 1111, Marta Oyelaran"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """No unwrapped key of another test is remembered."""
    keys._unwrapped.cache_clear()
    yield
    keys._unwrapped.cache_clear()


def kept(cast, content: bytes | str = TEXT, **more) -> Payload:
    return vault.keep(cast.workspace.pk, content, **({"label": "internal"} | more))


def again(payload: Payload) -> Payload:
    return Payload.objects.get(pk=payload.pk)


# in and out -----------------------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=2000) | st.text(st.characters(), max_size=500))
def test_what_goes_in_comes_out(cast, content):
    """Any bytes, and any text, half surrogate pairs and all."""
    payload = again(kept(cast, content))
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    assert vault.open_bytes(payload) == data
    assert payload.size == len(data)


def test_the_commitment_is_the_hash_of_salt_and_bytes(cast):
    payload = again(kept(cast))
    salt, data = vault.opening(payload)
    assert len(salt) == 32 and data == TEXT.encode()
    assert payload.commitment == hashlib.sha256(salt + data).hexdigest() == vault.commit(salt, data)


def test_equal_payloads_have_nothing_in_common_to_see(cast):
    """Who sees two commitments or two rows can't tell whether they are of the same words."""
    first, second = again(kept(cast)), again(kept(cast))
    assert first.commitment != second.commitment
    assert bytes(first.content) != bytes(second.content) and bytes(first.wrapped) != bytes(second.wrapped)
    assert vault.opening(first)[0] != vault.opening(second)[0]


@pytest.mark.parametrize("label", Label.values)
def test_nothing_of_the_words_lies_in_the_database_but_the_rendition(cast, label):
    secret = "Oyelaran-4111111111111111"
    payload = again(kept(cast, f"Card 4111111111111111 of {secret}", label=label))
    sealed = bytes(payload.content) + bytes(payload.wrapped) + bytes(payload.key.wrapped)
    assert secret.encode() not in sealed and b"4111" not in sealed and b"Card" not in sealed
    assert "4111111111111111" not in payload.rendition


def test_a_payload_of_the_greatest_size_is_kept_and_one_byte_more_is_not(cast):
    payload = kept(cast, b"\0" * vault.MAX_BYTES, media_type="application/octet-stream")
    assert payload.size == vault.MAX_BYTES
    with pytest.raises(PayloadTooLarge) as refused:
        kept(cast, b"\0" * (vault.MAX_BYTES + 1))
    assert refused.value.status == 413 and refused.value.extra == {"limit": vault.MAX_BYTES}
    assert Payload.objects.count() == 1


def test_a_payload_goes_with_what_it_was_kept_for(cast):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        kept(cast)
        raise ZeroDivisionError
    assert not Payload.objects.exists()


def test_bytes_without_a_label_that_is_known_are_not_kept(cast):
    for label in ("", "restricted", "PUBLIC"):
        with pytest.raises(IntegrityError), transaction.atomic():
            kept(cast, label=label)


# keys -----------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [("content",), ("wrapped",), ("content", "wrapped"), ("content", "wrapped", "commitment", "size")])
def test_what_is_moved_to_another_row_does_not_open(cast, columns):
    mine, other = again(kept(cast)), again(kept(cast, "Another text"))
    Payload.objects.filter(pk=mine.pk).update(**{column: getattr(other, column) for column in columns})
    with pytest.raises(InvalidTag):
        vault.open_bytes(again(mine))


@pytest.mark.parametrize("column", ["content", "wrapped"])
@pytest.mark.parametrize("at", [0, 11, 12, -17, -1])
def test_one_altered_bit_is_noticed(cast, column, at):
    payload = again(kept(cast))
    altered = bytearray(getattr(payload, column))
    altered[at] ^= 1
    setattr(payload, column, bytes(altered))
    with pytest.raises(InvalidTag):
        vault.open_bytes(payload)


@pytest.mark.parametrize("column", ["content", "wrapped"])
def test_what_was_cut_does_not_open(cast, column):
    payload = again(kept(cast))
    whole = bytes(getattr(payload, column))
    for left in (0, 5, 12, 27, len(whole) - 1):
        setattr(payload, column, whole[:left])
        with pytest.raises((InvalidTag, ValueError)):
            vault.open_bytes(payload)


def test_a_wrong_master_key_opens_nothing(cast, settings):
    payload = kept(cast)
    settings.HANDRAIL_VAULT_KEY = bytes(32)
    keys._unwrapped.cache_clear()  # as in another process
    with pytest.raises(InvalidTag):
        vault.open_bytes(again(payload))
    with pytest.raises(InvalidTag):
        kept(cast)


def test_a_workspaces_key_opens_nothing_of_another(cast):
    mine = again(kept(cast))
    theirs = again(vault.keep(cast.elsewhere.pk, TEXT, label="internal"))
    assert mine.key != theirs.key
    mine.key = theirs.key
    with pytest.raises(InvalidTag):
        vault.open_bytes(mine)


def test_a_key_that_is_moved_to_another_workspace_does_not_open(cast):
    theirs = kept(cast).key
    WorkspaceKey.objects.create(workspace=cast.elsewhere, version=1, wrapped=theirs.wrapped)
    with pytest.raises(InvalidTag):
        vault.keep(cast.elsewhere.pk, TEXT, label="internal")


def test_the_newest_key_seals_and_the_older_still_opens(cast):
    old = kept(cast)
    fresh = sealing.seal(keys._master(), bytes(range(32)), cast.workspace.pk.bytes)
    newest = WorkspaceKey.objects.create(workspace=cast.workspace, version=2, wrapped=fresh)
    new = kept(cast)
    assert new.key == newest and old.key.version == 1
    assert vault.open_bytes(again(old)) == vault.open_bytes(again(new)) == TEXT.encode()


@pytest.mark.django_db(transaction=True)
def test_of_many_first_payloads_at_once_one_makes_the_workspaces_key(cast):
    def keep(number: int) -> Payload:
        try:
            return kept(cast, f"Text {number}")
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as crowd:
        made = list(crowd.map(keep, range(16)))
    assert WorkspaceKey.objects.count() == 1
    assert [vault.open_bytes(again(payload)).decode() for payload in made] == [f"Text {number}" for number in range(16)]


# what may be shown, and erasing -------------------------------------------------------------------------------------------------------


def test_what_is_shown_is_the_rendition(cast, django_assert_num_queries):
    payloads = [kept(cast), kept(cast, "All is well", label="public", media_type="text/markdown")]
    with django_assert_num_queries(1):
        shown = vault.shown(payload.pk for payload in payloads)
    first, second = (shown[payload.pk] for payload in payloads)
    assert "4111" not in first.text and first.hidden == {"card": 1} and first.label == "internal"
    assert (second.text, second.hidden, second.media_type, second.size) == ("All is well", {}, "text/markdown", 11)
    assert vault.shown([]) == {}


def test_erasing_destroys_bytes_salt_key_and_rendition_and_says_who_and_when(cast):
    payload, before = kept(cast), clock.now()
    vault.erase(payload, by=cast.ada)
    gone = again(payload)
    assert (gone.wrapped, gone.content, gone.rendition, gone.findings) == (None, None, None, {})
    assert (gone.commitment, gone.size, gone.label) == (payload.commitment, payload.size, payload.label), "the log still names it"
    shown = vault.shown([payload.pk])[payload.pk]
    assert (shown.erased_by, shown.hidden) == ("Ada", {}) and shown.text.startswith("Erased by Ada on ")
    assert before <= shown.erased_at <= clock.now()


def test_what_was_erased_opens_for_nobody_and_is_erased_once(cast):
    payload = kept(cast)
    vault.erase(payload, by=cast.ada)
    first = again(payload)
    for attempt in (lambda: vault.open_bytes(first), lambda: vault.opening(first), lambda: vault.erase(payload, by=cast.riley)):
        with pytest.raises(Erased) as refused:
            attempt()
        assert refused.value.status == 410
    assert (again(payload).erased_by, again(payload).erased_at) == (cast.ada, first.erased_at)


@pytest.mark.sqlite_only
@pytest.mark.django_db(transaction=True)
def test_what_was_erased_is_gone_from_the_databases_file_too(cast):
    """The rendition lay there in plain words."""
    payload = kept(cast, "Nobody reads about the walnut-coloured harpsichord. " * 400)
    file = Path(connection.settings_dict["NAME"])

    def holds_it() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return b"walnut-coloured" in file.read_bytes()

    assert holds_it()
    vault.erase(payload, by=cast.ada)
    assert not holds_it()


@pytest.mark.parametrize("half", [{"wrapped": None}, {"content": None}, {"rendition": None}, {"wrapped": None, "content": None}])
def test_the_database_keeps_a_payload_whole_or_erased(cast, half):
    payload = kept(cast)
    with pytest.raises(IntegrityError), transaction.atomic():
        Payload.objects.filter(pk=payload.pk).update(**half)
    with pytest.raises(IntegrityError), transaction.atomic():
        Payload.objects.filter(pk=payload.pk).update(erased_at=clock.now())


@pytest.mark.django_db(transaction=True)
@pytest.mark.sqlite_only  # PostgreSQL keeps old rows until VACUUM
def test_what_was_erased_stands_in_no_file_of_the_database_any_more(cast):
    at = str(connection.settings_dict["NAME"])

    def stands() -> bool:
        return any(b"Quuxalotl" in file.read_bytes() for file in map(Path, (at, f"{at}-wal")) if file.exists())

    payload = kept(cast, "The word is Quuxalotl.")
    assert stands()
    vault.erase(payload, by=cast.ada)
    assert not stands()
