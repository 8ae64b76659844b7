"""Waiting for a thing, with a bound. No test sleeps to be right."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
SOON = 60.0  # seconds until a page shows what takes one or two on an idle machine, for a slow one that does much else


def until(condition: Callable[[], T], *, within: float = 10.0, what: str | Callable[[], str] = "", every: float = 0.05) -> T:
    """The first truthy value of `condition()`, asked again and again; after `within` seconds an AssertionError with `what`."""
    end = time.monotonic() + within
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            told = what() if callable(what) else what
            raise AssertionError(f"not within {within:g} s: {told or getattr(condition, '__name__', 'the condition')}")
        time.sleep(every)
