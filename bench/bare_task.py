"""The peer of a decision: an empty Celery task on the house's broker with the house's settings.

`python -m bench.bare_task N` sends it so many times, each after the one before has run, and prints a JSON list of the milliseconds from
sending to running. A worker for it: `celery -A bench.bare_task worker`.
"""

import os
import sys
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import orjson
import redis
from celery import Celery
from django.conf import settings

NAME = "bench.bare"
PATIENCE = 60  # seconds for one; the first waits for the worker to start

app = Celery(NAME)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(task_default_queue=NAME, worker_hijack_root_logger=True)


@app.task(name=NAME)
def stamp(sent: float) -> None:
    took = (time.time() - sent) * 1000
    with redis.Redis.from_url(settings.VALKEY_URL) as valkey:
        valkey.rpush(NAME, took)


def main(times: int) -> None:
    with redis.Redis.from_url(settings.VALKEY_URL, socket_timeout=2 * PATIENCE) as valkey:
        print(orjson.dumps([_once(valkey) for _ in range(times)]).decode())


def _once(valkey: redis.Redis) -> float:
    stamp.apply_async((time.time(),))
    answer = valkey.blpop([NAME], timeout=PATIENCE)
    assert answer, "no worker took it"
    return float(answer[1])


if __name__ == "__main__":
    main(int(sys.argv[1]))
