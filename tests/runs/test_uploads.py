"""Large files over HTTP: up in parts that go on where they broke off, and down in ranges."""

import hashlib
import os
from datetime import timedelta

import pytest
from django.test import Client

from access import keys
from access.rules import SYSTEM
from artifacts import storing, tidying, uploading, vault
from artifacts.models import Artifact, Payload, Upload
from config import clock
from runs import verification
from tests.factories import end, make_run
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)
MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def own_files(tmp_path, settings):
    own = {"BACKEND": "artifacts.storing.Files", "OPTIONS": {"location": tmp_path / "payloads"}}
    settings.STORAGES = settings.STORAGES | {"payloads": own}


@pytest.fixture
def agent(cast) -> Client:
    _, token = keys.make(cast.agent, name="test", by=SYSTEM)
    return Client(headers={"Authorization": f"Bearer {token}"})


def begin(agent: Client, run, size: int, key: str = "a", **more):
    body = {"name": "scan.bin", "size": size} | more
    return agent.post(f"/api/v1/runs/{run.pk}/uploads", body, content_type="application/json", headers={"Idempotency-Key": key})


def send(agent: Client, pk: str, offset: int, part: bytes):
    return agent.patch(f"/api/v1/uploads/{pk}", part, content_type="application/octet-stream", headers={"Upload-Offset": str(offset)})


def finish(agent: Client, pk: str, content: bytes):
    return agent.post(f"/api/v1/uploads/{pk}/finish", {"sha256": hashlib.sha256(content).hexdigest()}, content_type="application/json")


def kind(answer) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition(":")[2]


def test_a_file_that_came_in_parts_becomes_an_artifact_and_is_downloaded_in_ranges(cast, agent, monkeypatch):
    monkeypatch.setattr(vault, "MAX_BYTES", MIB)
    run, content = make_run(cast), os.urandom(2 * MIB + 4321)
    begun = begin(agent, run, len(content), label="personal")
    pk = begun.json()["id"]
    assert begun.status_code == 201 and begun.json()["offset"] == 0
    assert send(agent, pk, 0, content[:MIB]).headers["Upload-Offset"] == str(MIB)
    assert (begin(agent, run, len(content), label="personal").json()["id"], begin(agent, run, 5).status_code) == (pk, 409)

    wrong = send(agent, pk, 0, content[:MIB])
    assert kind(wrong) == (409, "wrong-offset") and wrong.json()["offset"] == MIB
    told = agent.head(f"/api/v1/uploads/{pk}")
    assert (told.headers["Upload-Offset"], told.headers["Upload-Length"]) == (str(MIB), str(len(content)))
    assert kind(finish(agent, pk, content)) == (409, "not-complete")
    assert kind(send(agent, pk, MIB, b"x")) == (422, "odd-part")
    assert send(agent, pk, MIB, content[MIB : 2 * MIB]).status_code == 200
    assert send(agent, pk, 2 * MIB, content[2 * MIB :]).json()["offset"] == len(content)

    done = finish(agent, pk, content)
    assert done.status_code == 201 and finish(agent, pk, content).json() == done.json() | {"duplicate": True}
    made = Artifact.objects.select_related("payload").get()
    assert (made.name, made.payload.label, made.payload.size) == ("scan.bin", "personal", len(content))
    assert list(storing.listed()) == [made.payload.stored], "the parts are gone"
    assert isinstance(verification.verify(run), verification.Whole)

    at = f"/api/v1/runs/{run.pk}/artifacts/{made.pk}/content"
    whole = agent.get(at)
    assert b"".join(whole.streaming_content) == content and whole.headers["Content-Length"] == str(len(content))
    assert whole.headers["X-Content-Type-Options"] == "nosniff" and whole.headers["Content-Security-Policy"].startswith("sandbox;")
    assert whole.headers["Content-Disposition"] == 'attachment; filename="scan.bin"'
    for asked, start, upto in [("bytes=0-9", 0, 10), (f"bytes={MIB - 5}-{MIB + 5}", MIB - 5, MIB + 6), ("bytes=-7", -7, None)]:
        part = agent.get(at, headers={"Range": asked})
        assert part.status_code == 206 and b"".join(part.streaming_content) == content[start:upto]
    beyond = agent.get(at, headers={"Range": f"bytes={len(content)}-"})
    assert beyond.status_code == 416 and beyond.headers["Content-Range"] == f"bytes */{len(content)}"
    other = agent.get(at, headers={"Range": "bytes=0-1", "If-Range": '"older"'})
    assert other.status_code == 200 and len(b"".join(other.streaming_content)) == len(content)
    end(run)
    vault.erase(made.payload, by=cast.ada)
    gone = agent.get(at)
    assert gone.status_code == 410 and "Erased by Ada" in gone.json()["detail"] and list(storing.listed()) == []


def test_what_arrived_otherwise_than_it_was_sent_is_not_kept(cast, agent):
    run = make_run(cast)
    pk = begin(agent, run, 10).json()["id"]
    send(agent, pk, 0, b"0123456789")
    assert kind(finish(agent, pk, b"another")) == (409, "other-digest")
    assert not Artifact.objects.exists()
    assert finish(agent, pk, b"0123456789").status_code == 201
    assert len(list(storing.listed())) == 1


def test_two_that_finish_it_at_once_get_the_same_artifact(cast, agent, monkeypatch):
    run, real, first = make_run(cast), vault.sealed_from, []
    pk = begin(agent, run, 10).json()["id"]
    send(agent, pk, 0, b"0123456789")

    def slower(*given, **more):
        monkeypatch.setattr(vault, "sealed_from", real)
        first.append(finish(agent, pk, b"0123456789"))
        return real(*given, **more)

    monkeypatch.setattr(vault, "sealed_from", slower)
    second = finish(agent, pk, b"0123456789")
    assert (first[0].status_code, second.status_code, second.json()["id"]) == (201, 200, first[0].json()["id"])
    assert Artifact.objects.count() == 1 and second.json()["duplicate"] is True


def test_of_many_that_send_the_same_part_at_once_one_is_taken(cast, agent):
    run, content = make_run(cast), os.urandom(MIB)
    pk = begin(agent, run, len(content)).json()["id"]
    answers = together([lambda: send(agent, pk, 0, content).status_code] * 4)
    assert sorted(answers) == [200, 409, 409, 409]
    assert finish(agent, pk, content).status_code == 201
    assert vault.open_bytes(Payload.objects.select_related("key").get(stored__isnull=False)) == content


def test_what_nobody_finishes_is_forgotten_after_a_day(cast, agent, monkeypatch):
    run = make_run(cast)
    pk = begin(agent, run, 2 * MIB).json()["id"]
    send(agent, pk, 0, os.urandom(MIB))
    assert tidying.tidy(timedelta(seconds=-5)) == (0, 0), "its parts are needed"
    monkeypatch.setattr(uploading.clock, "now", lambda now=uploading.clock.now: now() + timedelta(hours=25))
    assert kind(send(agent, pk, MIB, os.urandom(MIB))) == (410, "upload-over")
    assert tidying.tidy(timedelta(seconds=-5)) == (1, 1)
    assert not Upload.objects.exists() and list(storing.listed()) == []


def test_an_upload_is_seen_by_its_agent_alone_and_for_a_run_that_goes_on(cast, agent, client):
    run = make_run(cast)
    pk = begin(agent, run, 10).json()["id"]
    _, theirs = keys.make(cast.other_agent, name="test", by=SYSTEM)
    stranger = Client(headers={"Authorization": f"Bearer {theirs}"})
    assert stranger.get(f"/api/v1/uploads/{pk}").status_code == 404
    client.force_login(cast.ada)
    assert client.get(f"/api/v1/uploads/{pk}").status_code == 404
    assert kind(begin(agent, run, 2**40, key="c")) == (413, "payload-too-large")
    assert agent.delete(f"/api/v1/uploads/{pk}").status_code == 204
    assert kind(send(agent, pk, 0, b"0123456789")) == (410, "upload-over")
    end(run)
    assert kind(begin(agent, run, 10, key="b")) == (409, "run-ended")


@pytest.mark.parametrize("name", ["4111-1111-1111-1111.pdf", "../scan.bin", "a\u202egpj.exe"])
def test_a_name_that_no_artifact_can_have_is_refused_before_a_byte_of_it_is_sent(cast, agent, name):
    refused = begin(agent, make_run(cast), 5 * MIB, name=name)
    assert refused.status_code == 422 and not Upload.objects.exists()


def test_an_agent_has_so_many_uploads_open_at_once_and_no_more(cast, agent, monkeypatch):
    monkeypatch.setattr(uploading, "MOST_OPEN", 3)
    runs = [make_run(cast), make_run(cast)]
    answers = together([lambda n=n: begin(agent, runs[n % 2], 5, key=f"k{n}") for n in range(6)])
    assert sorted(answer.status_code for answer in answers) == [201] * 3 + [409] * 3
    refused = next(answer for answer in answers if answer.status_code == 409)
    assert kind(refused) == (409, "too-many-uploads") and refused.json()["limit"] == 3 and Upload.objects.count() == 3
    assert "give it up (DELETE)" in refused.json()["what_next"]
    one = Upload.objects.order_by("pk").first()
    again = next(n for n in range(6) if one.sender == f"k{n}")
    assert begin(agent, runs[again % 2], 5, key=one.sender).json()["id"] == str(one.pk), "one that is there goes on"
    agent.delete(f"/api/v1/uploads/{one.pk}")
    assert begin(agent, runs[0], 5, key="later").status_code == 201
    Upload.objects.filter(sender="later").update(expires_at=clock.now())
    assert begin(agent, runs[0], 5, key="latest").status_code == 201, "what ran out holds up nothing"
