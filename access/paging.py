"""Long lists, a page at a time. `_pager.html` draws where one is, and the way to the next."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlencode

from django.db.models import Model, QuerySet

from access.ids import as_number

PAGE = 25
T = TypeVar("T")
M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Paged(Generic[T]):
    """One page of a list. `start`, `end`: which rows of all these are, from 1; both 0 if there is none."""

    rows: list[T]
    total: int
    page: int
    pages: int
    start: int
    end: int

    @property
    def last(self) -> bool:
        return self.page == self.pages


def of_query(rows: QuerySet[M], wanted: str, *, size: int = PAGE) -> Paged[M]:
    """The page that an address asks for; the nearest there is, whatever it says. Two queries."""
    start, page, pages, total = _cut(rows.count(), wanted, size)
    return _paged(list(rows[start : start + size]), total, page, pages, start)


def of_list(rows: Sequence[T], wanted: str, *, size: int = PAGE) -> Paged[T]:
    """The same of what was fetched already: its order is not the database's, or it is short."""
    start, page, pages, total = _cut(len(rows), wanted, size)
    return _paged(list(rows[start : start + size]), total, page, pages, start)


def _cut(total: int, wanted: str, size: int) -> tuple[int, int, int, int]:
    pages = max(-(-total // size), 1)
    page = min(max(as_number(wanted) or 1, 1), pages)
    return (page - 1) * size, page, pages, total


def _paged(rows: list[T], total: int, page: int, pages: int, start: int) -> Paged[T]:
    return Paged(rows, total, page, pages, start + 1 if rows else 0, start + len(rows))


def kept(suffix: str, **more: str) -> str:
    """What the addresses of other pages keep of this one’s query: its place, and what was asked for."""
    said = (suffix.removeprefix("?"), urlencode({name: value for name, value in more.items() if value}))
    return "".join(f"{each}&" for each in said if each)
