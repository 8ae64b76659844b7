"""Made-up data of every type of the vocabulary, for tests that search: whatever a type's declaration lets through."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

from hypothesis import strategies as st
from pydantic import StringConstraints
from pydantic.fields import FieldInfo

from runs.vocabulary import TYPES, Data


def data() -> st.SearchStrategy[Data]:
    """Data of any type."""
    return st.sampled_from(sorted(TYPES)).flatmap(data_of)


@lru_cache(maxsize=100)
def data_of(kind: str) -> st.SearchStrategy[Data]:
    """Data of one type. A field that may be left out sometimes is."""
    fields = TYPES[kind].model_fields
    needed = {name: _values(field) for name, field in fields.items() if field.is_required()}
    others = {name: _values(field) for name, field in fields.items() if not field.is_required()}
    return st.fixed_dictionaries(needed, optional=others).map(lambda given: TYPES[kind](**given))


def _values(field: FieldInfo) -> st.SearchStrategy[Any]:
    return _of(field.annotation, field.metadata)


def _of(annotation: Any, metadata: Any = ()) -> st.SearchStrategy[Any]:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _of(inner[0], [*metadata, *inner[1:]])
    if origin is Literal:
        return st.sampled_from(inner)
    if origin is Union or type(annotation).__name__ == "UnionType":
        return st.one_of(*(st.none() if each is type(None) else _of(each) for each in inner))
    if origin is tuple:
        return st.lists(_of(inner[0]), max_size=min(_limit(metadata, "max_length", 5), 5)).map(tuple)
    if annotation is int:
        return st.integers(_limit(metadata, "ge", 0), _limit(metadata, "le", 2**53 - 1))
    if annotation is str:
        return st.from_regex(_pattern(metadata), fullmatch=True)
    return {bool: st.booleans(), UUID: st.uuids(), datetime: st.datetimes(timezones=st.just(UTC))}[annotation]


def _limit(metadata: Any, name: str, otherwise: int) -> int:
    parts = [part for each in metadata for part in (each, *getattr(each, "metadata", ()))]
    told = [getattr(part, name) for part in parts if getattr(part, name, None) is not None]
    return told[-1] if told else otherwise


def _pattern(metadata: Any) -> str:
    [pattern] = [each.pattern for each in metadata if isinstance(each, StringConstraints)]
    return pattern.removeprefix("^").removesuffix("$")
