"""Log lines: one a record, on stderr, as JSON or for a reader's eyes.

An exception is told by its type and the places it went through, never by its message: that often quotes the data it choked on
(a row, a header, a body), and nothing of a payload may reach a log. With DEBUG the whole traceback is there.
"""

import json
import logging
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = str(Path(__file__).resolve().parent.parent)
USUAL = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "taskName"}
PLAIN = (str, int, float, bool, type(None))


class WithoutTaskValues(logging.Filter):
    """Celery quotes a failed task's arguments and exception, and a message it does not understand; ours names the task only."""

    def filter(self, record: logging.LogRecord) -> bool:
        told = record.__dict__.pop("data", None)
        if isinstance(told, dict) and "name" in told:
            record.msg, record.args = f"Task {told['name']} {told.get('description', 'ended badly')}", ()
            record.__dict__["task_id"] = told.get("id")
        elif record.name.startswith("celery"):
            record.msg, record.args = record.getMessage().partition("\n")[0], ()
        return True


class Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_fields(record), default=str, ensure_ascii=True)


class Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        head = f"{fields.pop('level'):<7} {fields.pop('logger')}: {fields.pop('message')}"
        fields.pop("at")
        traced = fields.pop("traceback", "")
        # \x1b and its like would let text that somebody sent write on the operator's terminal
        line = _printable(" ".join([head, *(f"{name}={value}" for name, value in fields.items())]))
        return f"{line}\n{traced}" if traced else line


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
    }
    fields |= {name: value for name, value in vars(record).items() if name not in USUAL and isinstance(value, PLAIN)}
    if record.exc_info and record.exc_info[0]:
        fields |= _error(*record.exc_info)
    return fields


def _error(kind: type[BaseException], error: BaseException | None, trace: Any) -> dict[str, Any]:
    from django.conf import settings

    if settings.configured and settings.DEBUG:
        return {"error": kind.__name__, "traceback": "".join(traceback.format_exception(kind, error, trace))}
    places = [f"{frame.filename.removeprefix(ROOT).lstrip('/')}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]
    ours = [place for place in places if "site-packages" not in place]
    return {
        "error": f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
        "where": " < ".join(reversed((ours or places)[-8:])),
    }


def _printable(line: str) -> str:
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in line)
