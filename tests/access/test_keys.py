"""Agent keys: made by one command, printed once, kept as a hash."""

import hashlib
import re
from datetime import timedelta
from io import StringIO

import pytest
from django.core import serializers
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from access import audit, keys
from access.models import Agent, AgentKey, AuditEntry, ProvisionerKey
from access.rules import AGENT_CAPABILITIES, SYSTEM
from config import clock
from tests.factories import actor, bearer

pytestmark = pytest.mark.django_db


def test_a_key_is_kept_as_a_hash_only(cast):
    key, token = keys.make(cast.agent, name="laptop", by=SYSTEM)
    assert re.fullmatch(r"hr_[A-Za-z0-9_-]{43}", token)
    assert key.digest == hashlib.sha256(token.encode()).hexdigest()
    stored = serializers.serialize("json", [*AgentKey.objects.all(), *AuditEntry.objects.all()])
    assert token not in stored and token[9:] not in stored
    assert key.prefix == token[:9], "enough to tell keys apart: 36 of 256 bits"


def test_no_two_keys_are_alike(cast):
    assert len({keys.make(cast.agent, name="test", by=SYSTEM)[1] for _ in range(50)}) == 50


def test_a_key_ends_after_ninety_days_unless_told_otherwise(cast, monkeypatch):
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now)
    assert keys.make(cast.agent, name="test", by=SYSTEM)[0].expires_at == now + timedelta(days=90)
    assert keys.make(cast.agent, name="test", by=SYSTEM, days=1)[0].expires_at == now + timedelta(days=1)


def test_making_a_key_is_written_down_with_who_made_it(cast):
    key, _ = keys.make(cast.agent, name="laptop", by=actor(cast.ada))
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.actor_kind, entry.actor_id) == ("key_created", "human", str(cast.ada.pk))
    assert (entry.subject_kind, entry.subject_id, entry.workspace) == ("agent_key", str(key.pk), cast.workspace)


# manage.py agentkey ------------------------------------------------------------------------------------------------------------------


def test_no_key_is_there_of_which_nothing_is_written_down(cast, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise DatabaseError("disk full")

    monkeypatch.setattr(audit, "record", full)
    with pytest.raises(DatabaseError):
        keys.make(cast.agent, name="one", by=SYSTEM)
    with pytest.raises(DatabaseError):
        keys.make_provisioner(cast.workspace.pk, name="two", owner=cast.priya, by=SYSTEM)
    assert not AgentKey.objects.exists() and not ProvisionerKey.objects.exists()


def agentkey(*words: object) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("agentkey", *map(str, words), stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_the_command_prints_a_good_key_and_nothing_else_on_its_output(cast):
    out, err = agentkey("support-triage", "--workspace", "fernhill", "--days", 7, "--name", "nightly job")
    assert out == out.strip() + "\n"
    agent = bearer(out.strip())
    assert agent.id == str(cast.agent.pk) and agent.grants[cast.workspace.pk] == set(AGENT_CAPABILITIES)
    key = AgentKey.objects.get()
    assert key.name == "nightly job" and timedelta(days=6) < key.expires_at - clock.now() <= timedelta(days=7)
    assert "not shown again" in err and out.strip() not in err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["support-triage"], "There are 2 agents"),
        (["nobody", "--workspace", "fernhill"], "There are 0 agents"),
        (["support-triage", "--workspace", "nowhere"], "There are 0 agents"),
        (["support-triage", "--workspace", "fernhill", "--days", "0"], "1 to 730 days"),
        (["support-triage", "--workspace", "fernhill", "--days", "-3"], "1 to 730 days"),
        (["support-triage", "--workspace", "fernhill", "--days", "731"], "1 to 730 days"),
        ([], "agent"),
    ],
)
def test_the_command_makes_nothing_when_it_is_not_clear_for_whom_or_how_long(cast, words, why):
    agents = Agent.objects.count()
    with pytest.raises(CommandError, match=why):
        agentkey(*words)
    assert AgentKey.objects.count() == AuditEntry.objects.count() == 0
    assert Agent.objects.count() == agents
