"""A body that is too large is refused while it comes in, by whoever it is sent, and takes no place on disk meanwhile."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from config.settings import BODY_MAX

MEGABYTE = b"x" * 1_000_000
CHUNK = b"%x\r\n%b\r\n" % (len(MEGABYTE), MEGABYTE)


@contextmanager
def sending(house, path: str, *headers: str) -> Iterator[socket.socket]:
    """A request without end, to which nothing but its head was sent yet."""
    head = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *headers, "", ""]
    with socket.create_connection(("127.0.0.1", house.port), timeout=20) as caller:
        caller.sendall("\r\n".join(head).encode())
        yield caller


def told(caller: socket.socket) -> tuple[str, str, dict]:
    """Status line, head and problem of the answer."""
    said = b""
    while b"\r\n\r\n" not in said or not said.endswith(b"}"):
        piece = caller.recv(65536)
        assert piece, said
        said += piece
    head, _, body = said.decode().partition("\r\n\r\n")
    return head.splitlines()[0], head.lower(), json.loads(body)


def spooled(house) -> int:
    """The bytes of the files without a name that the web server has open: bodies it gathers."""
    files = list(Path(f"/proc/{house.pid('web')}/fd").iterdir())
    sizes = []
    for file in files:
        with suppress(OSError):
            if "(deleted)" in str(file.readlink()):
                sizes.append(file.stat().st_size)
    return sum(sizes)


@pytest.mark.parametrize("path", ["/api/v1/runs", "/runs/new", "/sign-in", "/nowhere"])
def test_a_length_that_is_too_large_is_refused_before_a_byte_of_it_was_sent(house, path) -> None:
    for more in ((), ("Expect: 100-continue",)):
        with sending(house, path, f"Content-Length: {BODY_MAX + 1}", *more) as caller:
            status, head, problem = told(caller)
        assert status == "HTTP/1.1 413 Content Too Large" and problem["status"] == 413 and str(BODY_MAX) in problem["detail"]
        assert "content-type: application/problem+json" in head and "connection: close" in head and "content-security-policy:" in head


def test_a_body_without_a_length_is_refused_as_soon_as_it_is_too_large(house) -> None:
    with sending(house, "/api/v1/runs", "Transfer-Encoding: chunked") as caller:
        for _ in range(BODY_MAX // len(MEGABYTE) + 1):
            caller.sendall(CHUNK)
        assert told(caller)[2]["status"] == 413
        assert spooled(house) < BODY_MAX
        with suppress(OSError):  # whoever goes on is not read for ever, and nothing of it is kept
            for _ in range(200):
                caller.sendall(CHUNK)
                assert spooled(house) < BODY_MAX
    with house.client() as client:
        assert client.get("runs").status_code == 401, "the server goes on"


MANY_PARTS = b"".join(b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n' for _ in range(150_000)) + b"--x--\r\n"
NESTED = b"".join(b"--x%d\r\nContent-Type: multipart/mixed; boundary=x%d\r\n\r\n" % (n, n + 1) for n in range(5000))
FORMS = {
    "many parts": ("multipart/form-data; boundary=x", MANY_PARTS),
    "many fields": ("application/x-www-form-urlencoded", b"a=1&" * 2_500_000),
    "nested parts": ("multipart/form-data; boundary=x0", NESTED),
    "no boundary": ("multipart/form-data", b"x"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", ["/theme", "/api/v1/runs"])
def test_a_form_from_anybody_is_refused_in_words_and_nobody_waits_for_it(house, form, path) -> None:
    media_type, body = FORMS[form]
    with httpx.Client(base_url=house.base_url, trust_env=False, timeout=60) as anybody:
        answer = anybody.post(path, content=body, headers={"Content-Type": media_type})
    assert answer.status_code in (400, 401, 403, 415), answer.text[:300]
    assert "content-security-policy" in answer.headers and len(answer.content) > 100


def test_a_body_up_to_the_limit_is_read(house) -> None:
    with house.client(house.cast["ours"]["agent"]) as agent:
        answer = agent.post("runs", content=b" " * BODY_MAX, headers={"Content-Type": "application/json", "Idempotency-Key": "a"})
        assert answer.status_code == 413 and answer.json()["type"] == "urn:handrail:problem:body-too-large"  # the API's own, smaller one
