"""DBOS: workflows of so many steps, one after the other. `python dbos_steps.py URL STEPS RUNS`.

Prints JSON: its version, the seconds of each run, and how its connections are set.
"""

import json
import sys
import time
from importlib.metadata import version
from uuid import uuid4

import psycopg
from dbos import DBOS, SetWorkflowID

SETTINGS = ("synchronous_commit", "fsync", "full_page_writes", "default_transaction_isolation")
TEXT = "The account has two open invoices, and both of them are due before the end of May."  # as ours has
times: list[int] = []


@DBOS.step()
def look(number: int) -> dict[str, object]:
    times.append(number)
    return {"number": number, "text": TEXT}


@DBOS.workflow()
def looks(steps: int) -> int:
    return sum(look(number)["number"] for number in range(steps))


def main(url: str, steps: int, runs: int) -> None:
    DBOS(config={"name": "bench", "system_database_url": url, "run_admin_server": False, "log_level": "WARNING"})
    DBOS.launch()
    took = []
    for _ in range(runs + 1):  # the first is not counted
        began = time.perf_counter()
        with SetWorkflowID(str(uuid4())):
            assert looks(steps) == sum(range(steps))
        took.append(time.perf_counter() - began)
    assert len(times) == steps * (runs + 1)
    print(json.dumps({"version": version("dbos"), "seconds": took[1:], "connections": connections(url)}))
    DBOS.destroy()


def connections(url: str) -> list[str]:
    """What this process's connections to the server are set to, as the server and the pool have it."""
    with psycopg.connect(url) as own:
        shown = {name: own.execute(f"SHOW {name}").fetchone()[0] for name in SETTINGS}
        others = own.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()
    return [f"{others[0]} connections, pooled by SQLAlchemy; {', '.join(f'{name}={value}' for name, value in shown.items())}"]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
