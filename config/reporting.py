"""The page of an error under DEBUG: the traceback as a log has it, and none of the values that Django would show beside it."""

from django.utils.html import escape
from django.views.debug import ExceptionReporter

from config import logs


class Reporter(ExceptionReporter):
    """Django's, without the values of variables, of the request and of the settings."""

    def get_traceback_html(self) -> str:
        return f"<!doctype html><meta charset='utf-8'><title>Error</title><pre>{escape(self.get_traceback_text())}</pre>"

    def get_traceback_text(self) -> str:
        return logs.told(self.exc_type, self.exc_value, self.tb)
