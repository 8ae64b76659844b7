"""What Celery does for the audit trail and for people. Two beats, two workers or none do no harm."""

from celery import shared_task

from access import links, open_sessions, refusals, sealing


@shared_task(name="access.seal", ignore_result=True, expires=10)
def seal() -> None:
    refusals.settle()
    sealing.seal()


@shared_task(name="access.send_links", ignore_result=True, expires=10)
def send_links() -> None:
    links.send_due()


@shared_task(name="access.tidy", ignore_result=True, expires=600)
def tidy() -> None:
    """Forget the sessions and the links that have run out."""
    open_sessions.tidy()
    links.tidy()
