from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.test import Client

from access.models import User
from tests.runs.serving import House


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A served Handrail that tests share: they leave it running, and each works on runs of its own."""
    with House(tmp_path_factory.mktemp("house")) as house:
        yield house


@pytest.fixture
def sign_in() -> Callable[[User], Client]:
    """A browser of somebody who is signed in."""

    def signed_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return signed_in


@pytest.fixture
def agent(house: House) -> Iterator[httpx.Client]:
    """The agent whose runs these tests are about."""
    with house.client(house.cast["ours"]["agent"]) as client:
        yield client


@pytest.fixture
def start(agent: httpx.Client) -> Callable[..., dict[str, Any]]:
    """Starts a run that the agent works on itself."""
    return lambda **more: begin(agent, **more)


def begin(client: httpx.Client, **more: Any) -> dict[str, Any]:
    answer = client.post("runs", json={"title": "A test", "agent_version": "1.0"} | more, headers={"Idempotency-Key": str(uuid4())})
    assert answer.status_code == 201, answer.text
    return answer.json()
