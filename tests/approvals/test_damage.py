"""Bytes that were damaged are said to be unreadable where they stand, and break nothing else."""

import pytest
from django.urls import reverse

from access.rules import person
from approvals import decisions
from artifacts.models import Payload
from runs.models import Event
from tests.approvals.mailing import Proposed, propose_mail
from tests.approvals.test_looking import card, propose
from tests.factories import behind_its_back

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


def damage(payload: Payload) -> None:
    payload.refresh_from_db()
    content = bytearray(payload.content)
    content[-1] ^= 1
    with behind_its_back():
        Payload.objects.filter(pk=payload.pk).update(content=bytes(content))


def approve(proposed: Proposed, by) -> None:
    decisions.decide(proposed.action, reviewer=person(by.pk), verdict="approved", digest=proposed.action.digest)


def test_a_damaged_payment_does_not_keep_the_next_from_being_proposed(cast):
    first = propose(cast, "10.00")
    approve(first, cast.riley)
    assert first.walk() == "succeeded"
    damage(first.action.canonical)
    assert propose(cast, "20.00").action.state == "waiting"


def test_a_damaged_message_does_not_keep_the_next_from_being_proposed(cast):
    first = propose_mail(cast)
    approve(first, cast.riley)
    assert first.walk() == "succeeded"
    damage(first.action.canonical)
    assert propose_mail(cast, title="Ticket ZN-2").action.state == "waiting"


def test_a_damaged_look_leaves_its_action_readable(cast):
    proposed = propose(cast)
    event = Event.objects.get(run=proposed.run, seq=proposed.action.proposed_seq)
    damage(Payload.objects.get(pk=event.payloads["looked"]))
    drawn = card(proposed, cast.riley)
    assert drawn.looked is None and drawn.amount.text == "€1,284.00"


def test_damaged_words_are_said_to_be_unreadable_on_the_page_of_their_action(cast, client):
    proposed = propose_mail(cast)
    damage(proposed.action.subject)
    damage(proposed.action.reason)
    client.force_login(cast.riley)
    answer = client.get(reverse("approvals:action", args=[proposed.action.pk]))
    assert answer.status_code == 200 and "These words can’t be read any more." in answer.content.decode()
