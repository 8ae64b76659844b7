"""Doing things at the same time: real threads, each with a database connection of its own."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection

T = TypeVar("T")


def together(calls: Sequence[Callable[[], T]], *, within: float = 90.0) -> list[T | Exception]:
    """What each call gives, or the exception that it ended with, in the order of the calls. They begin at one moment."""
    start = threading.Barrier(len(calls))

    def one(call: Callable[[], T]) -> T | Exception:
        try:
            start.wait(within)
            return call()
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as threads:
        return [future.result(within) for future in [threads.submit(one, call) for call in calls]]
