"""What Celery does for approvals."""

from celery import shared_task

from approvals import decisions, freezes, outside


@shared_task(name="approvals.expire", ignore_result=True, expires=10)
def expire() -> None:
    decisions.expire_due()
    freezes.let_go_due()
    outside.silent_due()
