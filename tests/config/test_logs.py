"""A log line says what happened and where, never what somebody sent."""

import json
import logging
import sys

import pytest

from config import logs

SECRET = "card 4111 1111 1111 1111"


def record(message: str = "it failed", *, error: Exception | None = None, name: str = "runs", **extra: object) -> logging.LogRecord:
    trace = None
    if error is not None:
        try:
            raise error
        except type(error):
            trace = sys.exc_info()
    made = logging.getLogger(name).makeRecord(name, logging.ERROR, __file__, 1, message, (), trace, extra=extra)
    logs.WithoutTaskValues().filter(made)
    return made


@pytest.mark.parametrize("formatter", [logs.Line(), logs.Json()])
def test_an_exception_is_told_by_type_and_place_without_its_message(formatter: logging.Formatter) -> None:
    line = formatter.format(record(error=ValueError(SECRET)))
    assert "ValueError" in line and "tests/config/test_logs.py" in line
    assert "4111" not in line and "\n" not in line


def test_with_debug_the_whole_traceback_is_there(settings) -> None:
    settings.DEBUG = True
    assert "4111" in logs.Line().format(record(error=ValueError(SECRET)))


def test_json_has_one_object_a_line_with_the_fields_given() -> None:
    told = json.loads(logs.Json().format(record(run="RN-7Q4K", seq=7)))
    assert (
        told["run"] == "RN-7Q4K"
        and told["seq"] == 7
        and told["level"] == "error"
        and told["logger"] == "runs"
        and told["at"].endswith("+00:00")
    )


def test_control_characters_do_not_reach_the_terminal() -> None:
    line = logs.Line().format(record("\x1b[2J\nsecond line\u202e", note="\x07"))
    assert "\x1b" not in line and "\n" not in line and "\u202e" not in line and "\x07" not in line


def test_a_failed_task_is_named_without_its_arguments() -> None:
    line = logs.Line().format(record(f"Task runs.execute raised ValueError({SECRET!r})", name="celery.app.trace", data={
        "name": "runs.execute", "id": "1", "description": "raised unexpected", "args": SECRET, "exc": SECRET,
    }))  # fmt: skip
    assert "Task runs.execute raised unexpected" in line and "4111" not in line


def test_a_message_that_celery_does_not_understand_is_not_quoted() -> None:
    line = logs.Line().format(
        record(f"Received unregistered task of type 'x'.\nThe full contents: {SECRET}", name="celery.worker.consumer")
    )
    assert "unregistered task" in line and "4111" not in line
