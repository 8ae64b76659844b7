"""A log whose end was cut off behind its back, together with the run's own row, is found out by the rows that it told of."""

import pytest

from access.rules import person
from approvals import decisions
from approvals.models import Decision
from runs.lifecycle import ENDINGS
from runs.models import Event, Run
from runs.verification import Broken, Whole, verify
from tests.approvals.mailing import Proposed, propose_mail, sent
from tests.factories import behind_its_back

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mail(cast) -> Proposed:
    sent.clear()
    return propose_mail(cast, file="a,b\n1,2\n")


def walked(cast, mail: Proposed) -> Run:
    decisions.decide(mail.action, reviewer=person(cast.riley.pk), verdict="approved", digest=mail.action.digest)
    assert mail.walk() == "succeeded"
    mail.run.refresh_from_db()
    return mail.run


def cut(run: Run, to: int, state: str = "running") -> None:
    """Cut the log off after #`to`, and make the run's row fit, as somebody would who owns the database."""
    head = Event.objects.get(run_id=run.pk, seq=to)
    with behind_its_back():
        Event.objects.filter(run_id=run.pk, seq__gt=to)._raw_delete("default")
    Run.objects.filter(pk=run.pk).update(seq=to, head_hash=head.hash, state=state, ended_at=None)


def test_a_run_that_was_left_alone_is_whole(cast, mail) -> None:
    assert isinstance(verify(mail.run), Whole)
    assert isinstance(verify(walked(cast, mail)), Whole)


@pytest.mark.parametrize(
    "after", ["action.proposed", "action.decided", "action.granted", "action.redeemed", "tool.ended", "artifact.created"]
)
def test_a_tail_that_was_cut_with_a_row_made_to_fit_is_found_by_what_it_told_of(cast, mail, after) -> None:
    run = walked(cast, mail)
    types = list(Event.objects.filter(run_id=run.pk).order_by("seq").values_list("seq", "type"))
    to = max(seq for seq, kind in types if kind == after)
    assert types[-1][1] in ENDINGS
    cut(run, to)
    found = verify(run)
    assert isinstance(found, Broken) and found.seq == to + 1 and "the tail was cut" in found.why


def test_an_event_that_no_longer_names_its_decision_is_found(cast, mail) -> None:
    run = walked(cast, mail)
    [decision] = mail.action.decisions.all()
    with behind_its_back():
        Decision.objects.filter(pk=decision.pk)._raw_delete("default")
    assert isinstance(verify(run), Whole), "what is not there says nothing; SECURITY.md says so"
    stale = {"id": decision.pk, "action": mail.action, "reviewer": cast.riley, "round": 1, "verdict": "approved", "digest": "0" * 64}
    Decision(**stale, policy=mail.action.policy, seq=3).save(force_insert=True)
    found = verify(run)
    assert isinstance(found, Broken) and found.seq == 3 and "does not tell of decision" in found.why
