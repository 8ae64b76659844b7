"""What Celery does for the audit trail. Two beats, two workers or none do no harm."""

from celery import shared_task

from access import refusals, sealing


@shared_task(name="access.seal", ignore_result=True, expires=10)
def seal() -> None:
    refusals.settle()
    sealing.seal()
