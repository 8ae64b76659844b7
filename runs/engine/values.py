"""What a workflow is given: JSON values that read like objects, artifacts, and how both are written down."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from runs.engine.journal import result_of
from runs.log import Text
from runs.models import JournalEntry


class Record(dict[str, Any]):
    """A JSON object whose values can be read as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(frozen=True)
class Kept:
    """An artifact of this run."""

    id: UUID
    name: str
    version: int
    media_type: str
    seq: int  # the event that made it


def wrap(value: Any) -> Any:
    """A JSON value whose objects are Records."""
    if isinstance(value, dict):
        return Record({key: wrap(inner) for key, inner in value.items()})
    return [wrap(inner) for inner in value] if isinstance(value, list) else value


def read_back(entry: JournalEntry) -> Any:
    """What a completed step gave, as the workflow got it then."""
    return wrap(result_of(entry))


def json_text(value: Any, label: str) -> Text:
    return Text(orjson.dumps(value), label, "application/json")
