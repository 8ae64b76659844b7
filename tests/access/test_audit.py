"""The audit trail: who did what to what, in words and ids of ours, written with the thing itself or not at all."""

import pytest
from django.db import transaction

from access import audit, keys
from access.models import AgentKey, AuditEntry
from access.rules import NOBODY, SYSTEM
from config import clock
from tests import factories
from tests.factories import actor, agent_actor

pytestmark = pytest.mark.django_db


def test_an_entry_says_who_did_what_to_what_and_when(cast):
    before = clock.now()
    audit.record(actor(cast.ada), "role_changed", workspace_id=cast.workspace.pk, subject=("user", cast.sam.pk), role="manager", times=2)
    entry = AuditEntry.objects.get()
    assert (entry.actor_kind, entry.actor_id, entry.verb) == ("human", str(cast.ada.pk), "role_changed")
    assert (entry.subject_kind, entry.subject_id, entry.workspace) == ("user", str(cast.sam.pk), cast.workspace)
    assert entry.data == {"role": "manager", "times": 2} and before <= entry.at <= clock.now()


@pytest.mark.parametrize("kind", ["nobody", "system", "agent"])
def test_who_is_no_person_is_written_down_too(cast, kind):
    who = {"nobody": NOBODY, "system": SYSTEM}.get(kind) or agent_actor(cast.agent)
    entry = audit.record(who, "looked")
    assert (entry.actor_kind, entry.actor_id, entry.workspace, entry.subject_kind, entry.subject_id) == (kind, who.id, None, "", "")


def test_starting_a_run_is_written_down(cast):
    run = factories.make_run(cast, by=actor(cast.otto))
    entry = AuditEntry.objects.get(verb="run_started")
    assert (entry.actor_id, entry.subject_id, entry.workspace) == (str(cast.otto.pk), str(run.pk), cast.workspace)


def test_an_entry_goes_with_the_thing_it_is_about(cast):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        keys.make(cast.agent, name="test", by=SYSTEM)
        raise ZeroDivisionError
    assert AgentKey.objects.count() == AuditEntry.objects.count() == 0
