"""Once an action is closed its exact words are read by who decided on it, and by nobody else: others see it as redacted."""

from datetime import timedelta

import pytest
from django.test import Client

from access.rules import person
from approvals import decisions, editing, presenting
from approvals.models import ProposedAction
from config import clock
from tests.approvals.mailing import MAIL, Proposed, propose_mail

pytestmark = pytest.mark.django_db(transaction=True)
HIDDEN = "4111 1111 1111 1111"
SAYS = {"body": f"Your card {HIDDEN} was charged."}
CSV = "date,iban\n2026-11-24,DE89370400440532013000\n"


def reader(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def reads(user, proposed: Proposed) -> bool:
    """Whether this person finds the exact words: on the page, in the queue's panel, over the API, in the file. All of them, or none."""
    client = reader(user)
    page = client.get(proposed.url()).content.decode()
    found = {HIDDEN in page, "You see this redacted." not in page, client.get(proposed.url("attachments", "0")).status_code != 403}
    assert len(found) == 1, found
    assert HIDDEN not in client.get(f"/api/v1/actions/{proposed.action.pk}").content.decode(), "which has renditions for people"
    assert HIDDEN not in presenting.push_inbox(person(user.pk), proposed.action.pk).html, "and so has a push"
    return found.pop()


def test_a_closed_action_is_read_in_full_by_who_decided_and_as_redacted_by_everybody_else(cast):
    mail = propose_mail(cast, file=CSV, **SAYS)
    assert [reads(user, mail) for user in (cast.riley, cast.sam, cast.morgan)] == [True, True, False]
    codes = [warn["code"] for warn in mail.action.warnings]
    decisions.decide(mail.action, reviewer=person(cast.riley.pk), verdict="approved", digest=mail.action.digest, acks=codes)
    assert [reads(user, mail) for user in (cast.riley, cast.sam, cast.morgan)] == [True, False, False]
    assert "who decided on it sees every argument in full" in reader(cast.sam).get(mail.url()).content.decode()
    assert HIDDEN not in reader(cast.sam).get(f"/standing-grants/new?action={mail.action.pk}").content.decode()
    cast.riley.memberships.update(role=cast.workspace.roles.get(name="manager"))
    assert not reads(cast.riley, mail), "who may not decide any more reads it as everybody does"


def test_what_nobody_decided_in_time_nobody_reads_and_who_edited_it_does(cast):
    late, edited = propose_mail(cast, file=CSV, **SAYS), propose_mail(cast, file=CSV, **SAYS)
    ProposedAction.objects.filter(pk=late.action.pk).update(expires_at=clock.now() - timedelta(seconds=1))
    assert [reads(user, late) for user in (cast.riley, cast.sam)] == [False, False]
    editing.edit(edited.action, by=person(cast.sam.pk), arguments=MAIL | {"body": "Hello Marta."}, digest=edited.action.digest)
    assert [reads(user, edited) for user in (cast.riley, cast.sam)] == [False, True]
