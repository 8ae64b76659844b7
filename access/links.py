"""Links that open once: signed, so that reading the table is not enough to make one, and sent by mail by a worker.

A worker sends, so that asking for one takes as long for an address that nobody has as for one that somebody has.
"""

import logging
import smtplib
from datetime import datetime, timedelta
from typing import TypeVar

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.signing import BadSignature, Signer
from django.db.models import F, QuerySet
from django.template.loader import render_to_string
from django.urls import reverse

from access.people_models import Invitation, Link, PasswordLink
from config import clock

L = TypeVar("L", bound=Link)
AGAIN, MOST_TRIES, BATCH = timedelta(minutes=1), 5, 20
KEPT = timedelta(days=1)  # longer than asking for very many is counted
PAGES = {Invitation: "access:invitation", PasswordLink: "access:password_link"}

logger = logging.getLogger(__name__)


def address(link: Link) -> str:
    """The whole address of a link, as it stands in the mail. In the query, which no log of ours has."""
    return f"{settings.HANDRAIL_URL}{reverse(PAGES[type(link)])}?link={_signer(type(link)).sign(link.nonce)}"


def find(model: type[L], token: str) -> L | None:
    """What a token of an address stands for, if it opens still."""
    try:
        nonce = _signer(model).unsign(token)
    except BadSignature:
        return None
    return model.objects.filter(nonce=nonce, used_at=None, expires_at__gt=clock.now()).first()


def use(link: Link) -> bool:
    """Use it up, in the caller's transaction. False if somebody was faster."""
    return type(link).objects.filter(pk=link.pk, used_at=None, expires_at__gt=clock.now()).update(used_at=clock.now()) == 1


def send_due() -> int:
    """Send what is to be sent. A worker that dies in the middle leaves it to the next in a minute: at least once, under the same link."""
    if not settings.HANDRAIL_MAIL:
        return 0
    return sum(_send(model, pk) for model in PAGES for pk in _due(model))


def tidy() -> None:
    """Forget the links for a new password that opened nothing any more a day ago: the audit trail keeps who asked for them."""
    PasswordLink.objects.filter(expires_at__lt=clock.now() - KEPT).delete()


def _due(model: type[Link]) -> list[object]:
    now = clock.now()
    return list(_waiting(model, now).order_by("next_at").values_list("pk", flat=True)[:BATCH])


def _waiting(model: type[L], now: datetime) -> QuerySet[L]:
    waiting = model.objects.filter(sent_at=None, used_at=None, by_mail=True, next_at__lte=now, expires_at__gt=now, tries__lt=MOST_TRIES)
    return waiting.filter(withdrawn_at=None) if model is Invitation else waiting.exclude(user=None)


def _send(model: type[Link], pk: object) -> bool:
    now = clock.now()
    claimed = _waiting(model, now).filter(pk=pk).update(tries=F("tries") + 1, next_at=now + AGAIN)
    link = model.objects.filter(pk=pk).first()
    if not claimed or link is None:
        return False
    try:
        _mail(link).send()
    except (OSError, smtplib.SMTPException) as error:
        logger.warning("a link could not be sent", extra={"link": str(pk), "error": type(error).__name__})
        return False
    # not if another link was made meanwhile: that one is to be sent still
    model.objects.filter(pk=pk, nonce=link.nonce, sent_at=None).update(sent_at=clock.now())
    return True


def _mail(link: Link) -> EmailMessage:
    if isinstance(link, Invitation):
        subject, template, to = f"Come in to {link.workspace.name} on Handrail", "access/mail_invitation.txt", link.email
    else:
        subject, template, to = "A new password for Handrail", "access/mail_password.txt", link.user.email
    host = settings.HANDRAIL_URL.partition("://")[2].partition(":")[0]
    told = {"link": link, "address": address(link)}
    message_id = f"<{link.pk}.{int(link.expires_at.timestamp())}@{host}>"  # the same however often this one is sent
    return EmailMessage(
        subject, render_to_string(template, told), to=[to], headers={"Message-ID": message_id, "Auto-Submitted": "auto-generated"}
    )


def _signer(model: type[Link]) -> Signer:
    return Signer(salt=f"access.links.{model.__name__}", sep=".")
