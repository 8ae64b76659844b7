"""What comes in through the door, and what every answer carries."""

import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.test import Client

from config.asgi import application, is_same_origin

POLICY = {
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "font-src 'self'", "connect-src 'self'",
    "form-action 'self'", "frame-src 'self'", "frame-ancestors 'none'", "base-uri 'none'",
}  # fmt: skip
LIMIT = settings.BODY_MAX


def scope(kind: str = "http", path: str = "/healthz", **headers: str) -> dict[str, Any]:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in ({"host": "handrail.test"} | headers).items()]
    plain = {"path": path, "raw_path": path.encode(), "query_string": b"", "headers": named, "client": ("127.0.0.1", 1)}
    return {"type": kind, "method": "POST", "http_version": "1.1", "scheme": "http", "subprotocols": [], **plain}


async def answer(asked: dict[str, Any], *bodies: bytes) -> tuple[int, dict[str, str], bytes]:
    client = ApplicationCommunicator(application, asked)
    for index, body in enumerate(bodies or (b"",)):
        await client.send_input({"type": "http.request", "body": body, "more_body": index < len(bodies) - 1})
    start, body = await client.receive_output(10), await client.receive_output(10)
    await client.wait(10)
    return start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, body["body"]


def policy(value: str) -> set[str]:
    return {directive.strip() for directive in value.split(";") if directive.strip()}


def got(client: Client, path: str) -> Mapping[str, str]:
    with closing(client.get(path)) as response:
        return response.headers


# --- what every answer carries


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/healthz", "/static/css/base.css", "/no-such-page", "/static/no-such-file", "/api/v1/no-such-thing"])
def test_every_answer_has_the_strict_policy_and_the_safe_headers(client: Client, path: str) -> None:
    headers = got(client, path)
    assert policy(headers["Content-Security-Policy"]) == POLICY
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin" and headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "camera=()" in headers["Permissions-Policy"] and headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.django_db
def test_an_unknown_host_is_refused_with_the_same_headers(client: Client) -> None:
    refused = client.get("/no-such-page", headers={"host": "evil.example"})
    assert refused.status_code == 400 and policy(refused.headers["Content-Security-Policy"]) == POLICY


@pytest.mark.django_db
def test_pages_are_kept_in_no_cache_and_static_files_are(client: Client) -> None:
    assert got(client, "/no-such-page")["Cache-Control"] == "no-store"
    assert "max-age" in got(client, "/static/css/base.css")["Cache-Control"]


@pytest.mark.django_db
def test_https_is_remembered_behind_a_trusted_proxy(client: Client) -> None:
    assert "max-age=31536000" in client.get("/healthz", secure=True).headers["Strict-Transport-Security"]
    assert "Strict-Transport-Security" not in client.get("/healthz").headers


# --- health


def test_healthz_needs_nothing(client: Client) -> None:
    assert client.get("/healthz").content == b"alive\n"
    assert client.post("/healthz").status_code == 405


@pytest.mark.django_db
def test_readyz_says_what_is_in_place(client: Client) -> None:
    told = client.get("/readyz")
    assert (told.status_code, told.json()) == (
        200,
        {"ready": True, "database": "ok", "valkey": "ok", "append_only": "ok", "audit_sealer": "ok"},
    )


@pytest.mark.django_db
def test_readyz_says_what_is_missing_without_details(client: Client, settings: Any) -> None:
    settings.VALKEY_URL = "redis://:hunter2@127.0.0.1:1/0"
    told = client.get("/readyz")
    assert (told.status_code, told.json()["valkey"], told.json()["ready"]) == (503, "unreachable", False)
    assert b"hunter2" not in told.content


@pytest.mark.django_db(transaction=True)
def test_readyz_notices_that_the_log_could_be_changed(client: Client) -> None:
    from access import append_only

    append_only.remove()
    try:
        told = client.get("/readyz")
        assert (told.status_code, told.json()["append_only"]) == (503, "triggers missing: run manage.py migrate")
    finally:
        append_only.install()


# --- bodies


@pytest.mark.asyncio
@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_over_the_limit_is_refused_as_a_problem(announced: bool) -> None:
    headers = {"content_length": str(LIMIT + 1)} if announced else {}
    status, told, body = await answer(scope(**headers), b"x" * (LIMIT // 2), b"x" * (LIMIT // 2), b"xx")
    assert status == 413 and told["content-type"] == "application/problem+json" and json.loads(body)["status"] == 413
    assert policy(told["content-security-policy"]) == POLICY


@pytest.mark.asyncio
async def test_a_body_at_the_limit_comes_through() -> None:
    status, _, _ = await answer(scope(content_length=str(LIMIT)), b"x" * LIMIT)
    assert status == 403  # for want of a form's token, so it was read to its end


# --- sockets


@pytest.mark.parametrize(
    ("origin", "host", "has_key", "welcome"),
    [
        ("https://handrail.test", "handrail.test", False, True),
        ("https://HANDRAIL.test", "handrail.TEST", False, True),
        ("https://handrail.test", "inside:8000", False, True),  # a proxy asked by another name; the page is still ours
        ("https://evil.example", "handrail.test", False, False),
        ("https://evil.example", "evil.example", False, False),  # a name that somebody pointed at us
        ("https://handrail.test.evil.example", "handrail.test", False, False),
        ("https://handrail.test:8443", "handrail.test", False, False),
        ("https://evil.example", "handrail.test", True, False),  # a browser's page with a stolen key is not welcome either
        ("null", "handrail.test", False, False),
        ("file://handrail.test", "handrail.test", False, False),
        ("https://[", "handrail.test", False, False),
        ("", "handrail.test", True, True),  # a program with a key of its own
        ("", "handrail.test", False, False),
    ],
)
def test_a_socket_is_for_our_own_pages_and_for_programs_with_a_key(origin: str, host: str, has_key: bool, welcome: bool) -> None:
    assert is_same_origin(origin, host, has_key) is welcome


@pytest.mark.asyncio
async def test_a_socket_from_elsewhere_is_closed_before_anything_reads_it() -> None:
    client = ApplicationCommunicator(application, scope("websocket", "/ws/pages/inbox", origin="https://evil.example"))
    await client.send_input({"type": "websocket.connect"})
    assert (await client.receive_output(10))["type"] == "websocket.close"


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_socket_to_nowhere_is_closed() -> None:
    client = ApplicationCommunicator(application, scope("websocket", "/ws/nowhere", origin="https://handrail.test"))
    await client.send_input({"type": "websocket.connect"})
    assert (await client.receive_output(10))["type"] == "websocket.close"
