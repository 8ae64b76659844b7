"""Infrastructure for tests/conftest.py to take in: databases that may be emptied, a browser, the house as real processes."""

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import hypothesis
import pytest
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.test import TransactionTestCase
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from pytest_django import DjangoDbBlocker

from access import append_only
from tests import chromium, migrated
from tests.stack import Stack
from tests.waiting import SOON

# the same examples each time, so that a change that breaks nothing never fails; HYPOTHESIS_PROFILE=default searches anew
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

OTHERS_OUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
DATABASE_FIXTURES = {"db", "transactional_db", "django_db_setup", "server", "new_stack"}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays to the end, so nobody looks through its half a million objects for rubbish: now, between tests, or then."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark by directory; leave out what is not about this database (not skipped: nothing is missing); begin with what takes long."""
    for item in items:
        place = item.path.relative_to(config.rootpath).parts
        for mark in ("browser", "acceptance"):
            if mark in place[:-1]:
                item.add_marker(mark)
    left_out = {item for item in items if not _belongs_to(os.environ.get("HANDRAIL_TEST_DB", "sqlite"), item)}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def _belongs_to(database: str, item: pytest.Item) -> bool:
    """SQLite, which is the default, has every test. PostgreSQL has those that use a database in a way that no other test does there; the
    others would only do the same again."""
    if database == "sqlite":
        return item.get_closest_marker("postgres_only") is None
    uses = any(map(item.get_closest_marker, ("django_db", "acceptance", "both_databases"))) or DATABASE_FIXTURES & set(item.fixturenames)
    if item.get_closest_marker("sqlite_only"):
        return False
    return bool(item.get_closest_marker("both_databases") or (uses and not item.get_closest_marker("any_database")))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name by their argument what prints otherwise in each process: pytest-xdist compares the names."""
    return argname if isinstance(val, UUID | set | frozenset) or type(val) is object else None


KEPT = {"django_migrations", "django_content_type", "auth_permission"}  # the same before and after each test


def _empty_the_tables(self: TransactionTestCase) -> None:
    """After a test with transaction=True. Django empties every table and then makes all permissions anew, which takes longer than most
    tests; this empties what is not empty. The keys are checked when it commits, so the order does not matter."""
    with transaction.atomic(), connection.cursor() as cursor:
        filled = [name for name in connection.introspection.table_names(cursor) if name not in KEPT and _holds_rows(cursor, name)]
        protected = {model._meta.db_table for model in append_only.TABLES} & set(filled)
        if protected:
            append_only.remove()
        for name in filled:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(name)}")
        if protected:
            append_only.install()


def _holds_rows(cursor: CursorWrapper, name: str) -> bool:
    cursor.execute(f"SELECT EXISTS (SELECT 1 FROM {connection.ops.quote_name(name)})")
    return bool(cursor.fetchone()[0])


TransactionTestCase._fixture_teardown = _empty_the_tables


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_modify_db_settings: None) -> bool:
    """Whether there is a test database already that is only to be looked through: yes, a copy of one that is migrated."""
    test = connection.settings_dict["TEST"]
    if connection.vendor == "postgresql":
        test["TEMPLATE"] = migrated.postgres_template()
        return False
    shutil.copy(migrated.sqlite(), test["NAME"])
    return True


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """pytest-django's; at the end it sends everybody else away: threads keep their connections, and then it could not be dropped."""
    yield
    if connection.vendor == "postgresql":
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(OTHERS_OUT)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of this process."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright's loop runs in this thread, and Django would refuse to read its database
    with sync_playwright() as playwright:
        expect.set_options(timeout=SOON * 1000)
        found = playwright.chromium.launch(**chromium.options())
        yield found
        found.close()


@pytest.fixture
def new_context(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Makes browser contexts (a person with cookies of their own): `new_context(viewport={"width": 390, "height": 844})`."""
    with ExitStack() as opened:

        def make(**options: Any) -> BrowserContext:
            context = browser.new_context(**{"reduced_motion": "reduce"} | options)  # what moves is drawn all the time
            context.set_default_timeout(SOON * 1000)
            opened.callback(context.close)
            return context

        yield make


@pytest.fixture
def page(new_context: Callable[..., BrowserContext]) -> Iterator[Page]:
    """A page at 1440 × 900. What the browser's console complains about fails the test, but for a refusal that the test provoked."""
    page = new_context(viewport={"width": 1440, "height": 900}).new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if _is_a_complaint(message) else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    assert not complaints, f"the browser's console has {complaints}"


def _is_a_complaint(message: ConsoleMessage) -> bool:
    refused = message.text.startswith("Failed to load resource") and "/static/" not in message.location.get("url", "")
    return message.type in ("error", "warning") and not refused


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The whole demo, seeded, with the desk: shared by all tests of this process, which leave it running."""
    with Stack(tmp_path_factory.mktemp("server"), desk=True, first=["demo_seed"]) as stack:
        yield stack


@pytest.fixture
def new_stack(tmp_path: Path) -> Iterator[Callable[..., Stack]]:
    """Starts a stack of the test's own: `new_stack(desk=True, first=["demo_seed"], without=["worker"], env={…})`."""
    with ExitStack() as opened:
        count = 0

        def make(**options: Any) -> Stack:
            nonlocal count
            count += 1
            where = tmp_path / f"stack-{count}"
            where.mkdir()
            return opened.enter_context(Stack(where, **options))

        yield make
