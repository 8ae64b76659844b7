"""What a database keeps of rows that were overwritten.

SQLite overwrites them in its file (`secure_delete`), but its write-ahead log holds what they were, and what opened them, until the log is
begun anew. So after an erasure it is: its pages are moved into the file, and it is cut to nothing. PostgreSQL has VACUUM for that.
"""

import logging

from django.db import connection

from access.errors import AWAY

PATIENCE, USUAL = 2000, 20_000  # milliseconds to wait for whoever reads; the latter is what a connection has (config/settings.py)

logger = logging.getLogger(__name__)


def remove() -> bool:
    """Begin the log anew. False if somebody read for too long; the job that collects garbage comes back to it."""
    if connection.vendor != "sqlite":
        return True
    with connection.cursor() as cursor:
        try:
            cursor.execute(f"PRAGMA busy_timeout={PATIENCE}")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            done = not cursor.fetchone()[0]
        except AWAY:
            done = False
        finally:
            cursor.execute(f"PRAGMA busy_timeout={USUAL}")
    if not done:
        logger.info("the write-ahead log is in use, and is begun anew later")
    return done
