"""Large payloads lie in sealed files: they come out as they went in, nothing of them can be moved, and no file is lost or left over."""

import io
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import boto3
import pytest
from cryptography.exceptions import InvalidTag
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.core.management import call_command
from django.db import transaction
from moto.server import ThreadedMotoServer

from artifacts import storing, tidying, vault
from artifacts.models import Payload
from artifacts.vault import Erased, PayloadTooLarge
from tests.together import together

pytestmark = pytest.mark.django_db
CHUNK = storing.CHUNK
SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK]


@pytest.fixture(params=["disk", "bucket"])
def kept_in(request: pytest.FixtureRequest, tmp_path: Path, settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both of the storages there are: a directory, and a bucket of a real server."""
    if request.param == "disk":
        use(settings, "artifacts.storing.Files", location=tmp_path / "payloads")
    else:
        server = request.getfixturevalue("s3")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        own = {"access_key": "test", "secret_key": "test", "region_name": "eu-west-1", "endpoint_url": server, "default_acl": None}
        boto3.client(
            "s3", endpoint_url=server, region_name="eu-west-1", aws_access_key_id="test", aws_secret_access_key="test"
        ).create_bucket(Bucket=tmp_path.name.replace("_", "-"), CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        use(settings, "artifacts.storing_s3.Bucket", bucket_name=tmp_path.name.replace("_", "-"), **own)
    return request.param


@pytest.fixture
def on_disk(tmp_path: Path, settings) -> Path:
    use(settings, "artifacts.storing.Files", location=tmp_path / "payloads")
    return tmp_path / "payloads"


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def use(settings, backend: str, **options: object) -> None:
    settings.STORAGES = settings.STORAGES | {"payloads": {"BACKEND": backend, "OPTIONS": options}}


def kept(cast, content: bytes, **more: str) -> Payload:
    return vault.keep(cast.workspace.pk, content, **({"label": "internal", "media_type": "application/octet-stream"} | more))


def again(payload: Payload) -> Payload:
    return Payload.objects.select_related("key").get(pk=payload.pk)


def files(at: Path) -> list[Path]:
    return [each for each in at.rglob("*") if each.is_file()] if at.exists() else []


# in and out -----------------------------------------------------------------------------------------------------------------------------


def test_what_is_large_lies_sealed_outside_of_the_database_and_comes_out_the_same(cast, kept_in):
    text = b"Marta Oyelaran wrote this. " * 40_000
    payload = again(kept(cast, text, media_type="text/plain"))
    assert payload.content is None and payload.stored in set(storing.listed())
    with storages["payloads"].open(payload.stored) as file:
        assert b"Oyelaran" not in file.read()
    assert vault.open_bytes(payload) == text and vault.is_whole(payload) and payload.rendition.startswith("Marta Oyelaran wrote")
    for start, end in [(0, 1), (5, 30), (CHUNK - 3, CHUNK + 3), (CHUNK, 2 * CHUNK), (len(text) - 4, len(text)), (7, 2 * CHUNK + 9)]:
        assert b"".join(vault.stream(payload, start, end)) == text[start:end]
    assert again(kept(cast, b"small")).stored is None


@pytest.mark.parametrize("size", SIZES)
def test_any_size_comes_out_whole_or_in_part(cast, on_disk, size):
    content = os.urandom(size)
    pieces = (content[at : at + 100_000] for at in range(0, size, 100_000))
    payload = vault.sealed_from(cast.workspace.pk, pieces, label="internal", media_type="application/octet-stream")
    vault.store([payload])
    assert b"".join(vault.stream(again(payload))) == content and vault.is_whole(again(payload)) and payload.size == size
    assert b"".join(vault.stream(again(payload), size // 3, size // 2)) == content[size // 3 : size // 2]


def test_what_is_larger_than_memory_should_hold_is_streamed_and_nothing_of_it_is_shown(cast, on_disk, monkeypatch):
    monkeypatch.setattr(vault, "MAX_BYTES", 1_000_000)
    content = b"Card 4111 1111 1111 1111\n" * 100_000
    pieces = (content[at : at + 65536] for at in range(0, len(content), 65536))
    payload = vault.sealed_from(cast.workspace.pk, pieces, label="internal", media_type="text/plain")
    vault.store([payload])
    assert payload.rendition == "⟦unreadable⟧ 2,500,000 bytes of text/plain" and payload.findings == {"unreadable": 1}
    with pytest.raises(PayloadTooLarge):
        vault.open_bytes(again(payload))
    assert vault.opened(again(payload)) is None
    assert b"".join(vault.stream(again(payload))) == content and vault.is_whole(again(payload))


# sealed -----------------------------------------------------------------------------------------------------------------------------------


def _sealed_chunks(data: bytes) -> tuple[bytes, list[bytes]]:
    head, rest = data[:8], data[8:]
    return head, [rest[at : at + CHUNK + 28] for at in range(0, len(rest), CHUNK + 28)]


@pytest.mark.parametrize("what", ["cut", "swapped", "doubled", "flipped", "emptied", "of another", "gone", "head"])
def test_a_file_that_was_tampered_with_does_not_open(cast, on_disk, what):
    payload, other = again(kept(cast, os.urandom(3 * CHUNK))), again(kept(cast, os.urandom(3 * CHUNK)))
    at = on_disk / payload.stored
    head, chunks = _sealed_chunks(at.read_bytes())
    match what:
        case "cut":
            chunks.pop()
        case "swapped":
            chunks[0], chunks[1] = chunks[1], chunks[0]
        case "doubled":
            chunks.insert(0, chunks[0])
        case "flipped":
            chunks[1] = chunks[1][:50] + bytes([chunks[1][50] ^ 1]) + chunks[1][51:]
        case "emptied":
            chunks.clear()
        case "of another":
            chunks = _sealed_chunks((on_disk / other.stored).read_bytes())[1]
        case "head":
            head = b"HRV2" + head[4:]
    if what == "gone":
        at.unlink()
    else:
        at.chmod(0o600)
        at.write_bytes(head + b"".join(chunks))
    with pytest.raises(InvalidTag):
        b"".join(vault.stream(payload))
    assert vault.opened(payload) is None


def test_a_row_cannot_be_pointed_at_another_rows_file(cast, on_disk):
    mine, other = kept(cast, os.urandom(2 * CHUNK)), kept(cast, os.urandom(2 * CHUNK))
    name = other.stored
    Payload.objects.filter(pk=other.pk).update(stored="elsewhere")
    Payload.objects.filter(pk=mine.pk).update(stored=name)
    with pytest.raises(InvalidTag):
        vault.open_bytes(again(mine))


# erased, and left over ----------------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_erasing_removes_the_file_once_it_is_certain(cast, kept_in):
    payload = kept(cast, os.urandom(2 * CHUNK))
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        vault.erase(payload, by=cast.ada)
        raise ZeroDivisionError
    assert vault.is_whole(again(payload)), "it was taken back"
    vault.erase(payload, by=cast.ada)
    assert list(storing.listed()) == [] and again(payload).stored is None
    with pytest.raises(Erased):
        vault.stream(again(payload))


@pytest.mark.django_db(transaction=True)
def test_garbage_is_what_no_row_names_and_is_old(cast, kept_in):
    payload = kept(cast, os.urandom(2 * CHUNK))
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        kept(cast, os.urandom(2 * CHUNK))
        raise ZeroDivisionError
    storages["payloads"].save("ab/left-over", ContentFile(b"?"))
    assert len(list(storing.listed())) == 3
    out = io.StringIO()
    call_command("vaultgc", stdout=out)
    assert "0 file(s)" in out.getvalue() and len(list(storing.listed())) == 3, "they may be on their way to their rows"
    assert tidying.tidy(timedelta(seconds=-5)) == (0, 2)
    assert list(storing.listed()) == [payload.stored] and vault.is_whole(again(payload))


@pytest.mark.django_db(transaction=True)
def test_collecting_garbage_while_payloads_are_kept_takes_none_of_them(cast, on_disk):
    for number in range(20):
        left = on_disk / "ff" / str(number)
        left.parent.mkdir(parents=True, exist_ok=True)
        left.write_bytes(b"?")
        os.utime(left, (time.time() - 60, time.time() - 60))
    kept_now: list[Payload] = []

    def keep() -> None:
        for _ in range(15):
            with transaction.atomic():
                payload = kept(cast, os.urandom(CHUNK))
                list(Payload.objects.filter(pk=payload.pk))
            kept_now.append(payload)

    def collect() -> None:
        for _ in range(15):
            tidying.tidy(timedelta(seconds=20))

    assert together([keep, keep, collect, collect]) == [None] * 4
    assert len(kept_now) == 30 and all(vault.is_whole(again(payload)) for payload in kept_now)
    assert len(files(on_disk)) == 30


def test_a_file_and_each_directory_above_it_are_for_their_owner_alone(cast, settings, tmp_path):
    of_the_house = settings.STORAGES["payloads"]
    use(settings, of_the_house["BACKEND"], **of_the_house["OPTIONS"] | {"location": tmp_path / "payloads"})
    kept(cast, os.urandom(CHUNK))
    made = [tmp_path / "payloads", *(tmp_path / "payloads").rglob("*")]
    assert len(files(tmp_path)) == 1 and {oct(each.stat().st_mode & 0o777) for each in made if each.is_file()} == {"0o600"}
    assert {oct(each.stat().st_mode & 0o777) for each in made if each.is_dir()} == {"0o700"}
