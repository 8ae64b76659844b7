"""An answer that breaks off in the middle ends the connection, so that nobody waits for the rest or takes a part for the whole."""

import os
import time

import httpx
import pytest

BIG = 3_000_000  # bytes: more than lies in a row, and than one piece of an answer


def test_a_download_that_breaks_in_the_middle_ends_at_once_and_the_server_goes_on(house, agent, start) -> None:
    run = start()["id"]
    headers = {"Idempotency-Key": "big", "Content-Type": "application/octet-stream"}
    made = agent.post(f"runs/{run}/artifacts?name=scan.bin", content=os.urandom(BIG), headers=headers)
    assert made.status_code == 201, made.text
    pk = agent.get(f"runs/{run}/artifacts").json()["artifacts"][0]["id"]
    file = max((house.data / "payloads").rglob("*-*"), key=lambda each: each.stat().st_mtime)
    sealed = file.read_bytes()
    file.chmod(0o600)
    file.write_bytes(sealed[:-1] + bytes([sealed[-1] ^ 1]))

    for _ in range(2):  # the second time too: what looks after connections goes on
        began = time.monotonic()
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
            agent.get(f"runs/{run}/artifacts/{pk}/content", timeout=20)
        assert time.monotonic() - began < 15
    assert agent.get(f"runs/{run}").status_code == 200
