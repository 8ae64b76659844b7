"""A message as an e-mail: plain text, and the same as simple HTML. Sent by Django's SMTP backend."""

import smtplib
from collections.abc import Sequence
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string

from approvals.notifications import wording
from approvals.notifications.models import Message
from approvals.notifications.outcomes import Failed, Outcome, Sent
from approvals.notifications.wording import Item


def send(message: Message, items: Sequence[Item]) -> Outcome:
    """Hand it to the mail server. The Message-ID is the message's own and never changes, so that a repeat can be told."""
    try:
        built(message, items).send()
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        return Failed("address refused", retryable=not all(code >= 500 for code in codes))
    except smtplib.SMTPAuthenticationError:
        return Failed("not let in", retryable=True)  # an admin mends the password, and it goes out then
    except smtplib.SMTPResponseException as error:
        return Failed("refused", retryable=error.smtp_code < 500)
    except (smtplib.SMTPException, OSError) as error:
        return Failed("timed out" if isinstance(error, TimeoutError) else "not reached", retryable=True)
    except ValueError:  # what can't stand in a header
        return Failed("not an address", retryable=False)
    return Sent()


def built(message: Message, items: Sequence[Item]) -> EmailMultiAlternatives:
    """The e-mail itself. Nothing in its headers comes from outside but the person's own address."""
    ours = wording.address("notifications:settings")
    context = {"items": items, "settings_url": ours, "test": message.test}
    subject = wording.one_line(wording.subject(items))
    mail = EmailMultiAlternatives(
        subject=f"Test: {subject}" if message.test else subject,
        body=render_to_string("approvals/notify/mail.txt", context),
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[message.user.email],
        headers={
            "Message-ID": f"<{message.pk}@{urlsplit(settings.HANDRAIL_URL).hostname}>",
            "Auto-Submitted": "auto-generated",
            "List-Unsubscribe": f"<{ours}>",
            "X-Handrail-Notification": str(message.pk),
        },
    )
    mail.attach_alternative(render_to_string("approvals/notify/mail.html", context), "text/html")
    return mail
