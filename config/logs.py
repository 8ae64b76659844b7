"""Log lines: one a record, on stderr, as JSON or for a reader's eyes.

An exception is told by its type and the places it went through, never by its message: that often quotes the data it choked on
(a row, a header, a body), and nothing of a payload may reach a log. With DEBUG the whole traceback is there.

Whatever is said goes through the detectors that make renditions, under the strictest label: the message, each field, and a traceback.
"""

import json
import logging
import re
import sys
import threading
import traceback
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from artifacts.redaction import hide

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
            record.msg, record.args = _said(record).partition("\n")[0], ()
        elif record.name == "daphne.server" and _said(record).startswith(QUOTES):
            record.msg, record.args = QUOTES, ()
        return True


QUOTES = "Exception inside application"  # after which Daphne quotes its message; the request has a line and a traceback of its own


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
        "message": redacted(_said(record)),
    }
    fields |= {
        name: redacted(value) if isinstance(value, str) else value
        for name, value in vars(record).items()
        if name not in USUAL and isinstance(value, PLAIN)
    }
    if record.exc_info and record.exc_info[0]:
        fields |= _error(*record.exc_info)
    return fields


def _said(record: logging.LogRecord) -> str:
    """The message. One that does not fit its arguments would be quoted on stderr with all of them."""
    try:
        return record.getMessage()
    except Exception:
        return str(record.msg)


def redacted(text: str) -> str:
    """What may be said of a text in a log or an error report: no secret, no person, no path of this machine."""
    return hide(text, label="personal")


def _error(kind: type[BaseException], error: BaseException | None, trace: Any) -> dict[str, Any]:
    from django.conf import settings

    if settings.configured and settings.DEBUG:
        return {"error": kind.__name__, "traceback": told(kind, error, trace)}
    places = [f"{_place(frame.filename)}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]
    ours = [place for place in places if "site-packages" not in place]
    return {
        "error": f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
        "where": " < ".join(reversed((ours or places)[-8:])),
    }


def told(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> str:
    """A whole traceback, with its causes. Files are named from where the code begins; what the errors say is redacted."""
    lines = "".join(traceback.format_exception(kind, error, trace))
    return redacted(_FILE.sub(lambda found: f'File "{_place(found[1])}"', lines))


_FILE = re.compile(r'File "([^"\n]{1,500})"')


def _place(file: str) -> str:
    return re.sub(r"^.*/(?=(?:site-packages|python3\.\d+)/)", "", file.removeprefix(ROOT).lstrip("/"))


def catch() -> None:
    """What nobody catches, in a command or a thread, is told as in a log, and not with all that it quotes."""
    sys.excepthook = lambda kind, error, trace: print(told(kind, error, trace), end="", file=sys.stderr)
    threading.excepthook = lambda args: print(told(args.exc_type, args.exc_value, args.exc_traceback), end="", file=sys.stderr)


def _printable(line: str) -> str:
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in line)
