"""What Celery does for notifications. Losing one of these costs seconds: what is to be told stands in the database."""

from celery import shared_task

from approvals.notifications import chasing, sending, spreading, tidying


@shared_task(name="approvals.notify", ignore_result=True, expires=10)
def notify() -> None:
    spreading.spread()
    sending.pack()
    sending.send_due()


@shared_task(name="approvals.tidy", ignore_result=True, expires=600)
def tidy() -> None:
    tidying.tidy()


@shared_task(name="approvals.chase", ignore_result=True, expires=10)
def chase() -> None:
    chasing.remind_due()
    chasing.escalate_due()
