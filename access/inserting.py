"""Rows as an INSERT of PostgreSQL, for whoever writes rows of several tables in one statement. Elsewhere rows are saved by their models."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

FEW = 24  # rows, up to which each has its place in the text; more of them go as columns: about nine times faster for hundreds
Statement = tuple[str, list[Any]]


def insertion(table: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Statement:
    """The statement and its values. `columns`: name → type, in the order of each row's values; JSON is given as text."""
    if len(rows) <= FEW:
        return _in_places(table, tuple(columns.items()), len(rows)), [value for row in rows for value in row]
    return _in_columns(table, tuple(columns.items())), [list(column) for column in zip(*rows, strict=True)]


@lru_cache(maxsize=200)
def _in_places(table: str, columns: tuple[tuple[str, str], ...], count: int) -> str:
    row = f"({', '.join(['%s'] * len(columns))})"
    return f"INSERT INTO {table} ({_names(columns)}) VALUES {', '.join([row] * count)}"  # noqa: S608


@lru_cache(maxsize=20)
def _in_columns(table: str, columns: tuple[tuple[str, str], ...]) -> str:
    given = ", ".join(f"%s::{'text' if kind == 'jsonb' else kind}[]" for _, kind in columns)
    taken = ", ".join(f"{name}::{kind}" for name, kind in columns)
    return f"INSERT INTO {table} ({_names(columns)}) SELECT {taken} FROM unnest({given}) AS given({_names(columns)})"  # noqa: S608


def _names(columns: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(name for name, _ in columns)
