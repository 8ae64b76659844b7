"""What Celery carries: wake-ups. Losing one costs time, never a run; running one twice does nothing twice."""

from uuid import UUID

from celery import shared_task

from runs.engine import executor
from runs.engine import sweep as sweeping


@shared_task(name="runs.execute", ignore_result=True)
def execute(run_id: str) -> None:
    executor.execute(UUID(run_id))


@shared_task(name="runs.sweep", ignore_result=True, expires=10)
def sweep() -> None:
    sweeping.sweep()
