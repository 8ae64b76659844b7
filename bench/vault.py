"""Large files up in parts and down again, beside sealing them and writing a file on the same machine: `python -m bench.vault`."""

import hashlib
import os
import secrets
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import httpx
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bench import house
from bench.house import House, Row, Table, times

MIB = 1024 * 1024
PART, CHUNK = 8 * MIB, 256 * 1024
ARGUMENTS = [("--mib", 64, "size of the file in MiB")]
Sealed = tuple[AESGCM, list[bytes]]


def figures(running: House, options: Namespace, table: Table) -> None:
    content, run = os.urandom(options.mib * MIB), running.new_run()
    headers = {"Authorization": f"Bearer {running.token}"}
    with httpx.Client(base_url=f"{running.base_url}/api/v1/", headers=headers, timeout=600, trust_env=False) as http:
        up = _rate(content, lambda: _up(http, run, content))
        made = http.get(f"runs/{run}/artifacts").raise_for_status().json()["artifacts"][0]["id"]
        down = _rate(content, lambda: _down(http, f"runs/{run}/artifacts/{made}/content", content))
    written = _rate(content, lambda: _write(content))
    sealed = _seal(content)
    opened = _rate(content, lambda: _open(sealed))
    table.add(_row(options, "up, in parts of 8 MiB", up, written, "sealing and writing a file"))
    table.add(_row(options, "down", down, opened, "opening in memory"))


def _row(options: Namespace, way: str, ours: float, theirs: float, beside: str) -> Row:
    return Row(f"{options.mib} MiB {way}", "1 connection", "1 Daphne", {"MB/s": f"{ours:,.0f}"}, times(ours, theirs, beside))


def _rate(content: bytes, what: Callable[[], None]) -> float:
    """Megabytes a second."""
    begun = time.perf_counter()
    what()
    return len(content) / 1e6 / (time.perf_counter() - begun)


def _up(http: httpx.Client, run: str, content: bytes) -> None:
    body = {"name": "bench.bin", "size": len(content)}
    begun = http.post(f"runs/{run}/uploads", json=body, headers={"Idempotency-Key": secrets.token_hex(8)})
    at = f"uploads/{begun.raise_for_status().json()['id']}"
    for start in range(0, len(content), PART):
        http.patch(at, content=content[start : start + PART], headers={"Upload-Offset": str(start)}).raise_for_status()
    http.post(f"{at}/finish", json={"sha256": hashlib.sha256(content).hexdigest()}).raise_for_status()


def _down(http: httpx.Client, at: str, content: bytes) -> None:
    assert http.get(at).raise_for_status().content == content


def _write(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as where, (Path(where) / "a").open("wb") as file:
        file.writelines(_seal(content)[1])
        file.flush()
        os.fsync(file.fileno())


def _seal(content: bytes) -> Sealed:
    box = AESGCM(AESGCM.generate_key(256))
    return box, [box.encrypt(at.to_bytes(12, "big"), content[at : at + CHUNK], None) for at in range(0, len(content), CHUNK)]


def _open(sealed: Sealed) -> None:
    for number, each in enumerate(sealed[1]):
        sealed[0].decrypt((number * CHUNK).to_bytes(12, "big"), each, None)


if __name__ == "__main__":
    house.command(__doc__, figures, ARGUMENTS, seconds=1, without=["worker", "beat"])
