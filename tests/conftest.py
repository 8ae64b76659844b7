from tests.cast import cast
from tests.fixtures import (
    browser,
    django_db_keepdb,
    django_db_setup,
    new_context,
    new_stack,
    page,
    pytest_collection,
    pytest_collection_modifyitems,
    pytest_make_parametrize_id,
    server,
)

__all__ = [
    "browser",
    "cast",
    "django_db_keepdb",
    "django_db_setup",
    "new_context",
    "new_stack",
    "page",
    "pytest_collection",
    "pytest_collection_modifyitems",
    "pytest_make_parametrize_id",
    "server",
]
