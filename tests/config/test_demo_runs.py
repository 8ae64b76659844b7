"""`manage.py demo_runs`: a run for each example; what waiting can mend is waited for, and nothing else."""

import time

import pytest
from django.core.management import CommandError, call_command

import examples.back_office.workflow  # noqa: F401  it is registered by being loaded
from approvals.models import Decision
from artifacts import vault
from config.management.commands import demo_runs
from runs.models import Run
from tests.approvals.mailing import propose_mail

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_message_that_is_refused_is_said_at_once_and_not_tried_again(settings, monkeypatch, tmp_path):
    settings.DEMO = True
    call_command("demo_seed")
    (tmp_path / "lunch.eml").write_bytes(b"Subject: Lunch\n\nPizza?")
    monkeypatch.setattr(demo_runs, "MESSAGES", {"back-office": tmp_path})
    monkeypatch.setenv("HANDRAIL_BACK_OFFICE", str(tmp_path / "office"))
    began = time.monotonic()
    with pytest.raises(CommandError, match="lunch.eml: It asks for nothing"):
        call_command("demo_runs")
    assert time.monotonic() - began < demo_runs.PATIENCE / 2 and not Run.objects.exists()


def test_what_a_reviewer_is_on_in_the_demo_is_really_claimed_and_nobody_claims_what_is_their_own(cast):
    proposed = propose_mail(cast)
    until = time.monotonic() + 60
    assert not demo_runs.claim(proposed.run, by=cast.priya.email, until=until)
    assert not demo_runs.claim(proposed.run, by="nobody@fernhill.example", until=until)
    assert proposed.again().claimed_by is None
    assert demo_runs.claim(proposed.run, by=cast.sam.email, until=until)
    assert proposed.again().claimed_by == cast.sam
    assert not demo_runs.claim(proposed.run, by=cast.riley.email, until=until), "Sam is on it"


def test_what_the_demo_decides_by_itself_says_so_and_nobody_decides_on_what_is_their_own(cast):
    proposed = propose_mail(cast)
    assert not demo_runs.approve(proposed.run, by=cast.priya.email)
    assert demo_runs.approve(proposed.run, by=cast.sam.email)
    decided = Decision.objects.select_related("reviewer", "reason__key").get()
    assert decided.reviewer == cast.sam and vault.open_bytes(decided.reason).decode() == demo_runs.BY_ITSELF
