"""A log line says what happened and where, never what somebody sent."""

import json
import logging
import sys
import threading

import pytest
from django.test import RequestFactory
from django.views.debug import technical_500_response

from config import logs
from tests.canaries.garden import Garden

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


def test_with_debug_the_whole_traceback_is_there_with_its_causes_and_without_what_they_quote(settings) -> None:
    settings.DEBUG = True
    garden = Garden()
    cause = KeyError(garden.line("cause", 900))
    cause.__cause__ = ValueError(garden.dossier("the cause's cause"))
    line = logs.Line().format(record(error=cause))
    assert "ValueError" in line and "KeyError" in line and 'File "tests/config/test_logs.py"' in line
    assert "direct cause" in line and list(garden.seen_in(line)) == []


@pytest.mark.parametrize("formatter", [logs.Line(), logs.Json()])
def test_message_arguments_and_fields_are_redacted(formatter: logging.Formatter) -> None:
    garden = Garden()
    made = record("it failed with %s and %r", note=garden.line("field", 900), path=garden.one("field", "path unix"))
    made.args = (garden.dossier("argument"), {"a": [garden.line("argument", 400)]})
    line = formatter.format(made)
    assert "it failed with" in line and list(garden.seen_in(line)) == []


def test_a_message_that_does_not_fit_its_arguments_is_told_without_them(capsys) -> None:
    made = record("it failed with %d and %s")
    made.args = (SECRET,)
    assert "it failed with" in logs.Json().format(made) and "4111" not in capsys.readouterr().err


def test_what_nobody_catches_is_told_redacted(capsys) -> None:
    logs.catch()
    try:
        raise RuntimeError(SECRET)
    except RuntimeError:
        sys.excepthook(*sys.exc_info())
    failing = threading.Thread(target=lambda: int(SECRET))
    failing.start()
    failing.join()
    said = capsys.readouterr().err
    assert "RuntimeError" in said and "ValueError" in said and "4111" not in said


def test_a_page_of_an_error_under_debug_shows_no_values(settings) -> None:
    settings.DEBUG = True
    garden = Garden()
    request = RequestFactory().get("/", {"q": garden.one("query")}, HTTP_X_ODD=garden.one("header"), HTTP_ACCEPT="text/html")
    try:
        local = garden.one("a variable")
        raise RuntimeError(garden.line("error", 500) + local)
    except RuntimeError:
        page = technical_500_response(request, *sys.exc_info()).content
    assert b"RuntimeError" in page and list(garden.seen_in(page)) == []


def test_what_the_web_server_quotes_of_an_error_is_left_out() -> None:
    assert "4111" not in logs.Line().format(record(f"Exception inside application: {SECRET}\n  File x", name="daphne.server"))


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
