"""The outside world as a real process on free ports, one for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.outside import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A desk of its own for each test, on an empty folder; nothing may have gone wrong inside it."""
    running = World(tmp_path / "desk")
    yield running
    if running.process.poll() is None:
        assert running.stop() == ""


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[World]:
    """A desk that waits one second for a request or a message."""
    running = World(tmp_path / "desk", patience=1.0)
    yield running
    assert running.stop() == ""
