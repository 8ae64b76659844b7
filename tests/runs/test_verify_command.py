"""`manage.py verify RUN` says that a log is whole, or where it is not; a pipeline can go by its exit code."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from artifacts import vault
from artifacts.models import Payload
from runs.models import Event, Run
from tests import factories
from tests.factories import behind_its_back, line
from tests.ids import without_ids

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(cast) -> Run:
    run = factories.make_run(cast)
    factories.note(run, "Card 4111 1111 1111 1111")
    factories.note(run)
    factories.end(run)
    run.refresh_from_db()
    return run


def verify(*words: str, **options: Any) -> tuple[int, str, str]:
    """Exit code, output, complaints."""
    out, err, code = StringIO(), StringIO(), 0
    try:
        call_command("verify", *words, stdout=out, stderr=err, **options)
    except SystemExit as ended:
        code = ended.code
    return code, out.getvalue(), err.getvalue()


def test_a_whole_log_is_called_whole_with_its_head(run):
    assert verify(run.ref) == (0, f"{run.ref}: whole, #1 to #6. Head {bytes(run.head_hash).hex()}\n", "")


def test_a_run_is_found_by_its_reference_in_any_writing_and_by_its_id(run):
    for called in (run.ref, run.ref.lower(), run.ref.removeprefix("RN-"), f" {run.ref} ", str(run.pk), run.pk.hex):
        code, said, _ = verify(called)
        assert (code, "whole, #1 to #6" in said) == (0, True), called


def test_erased_payloads_are_counted(cast, run):
    vault.erase(Payload.objects.get(pk=line(run, 3).payloads["note"]), by=cast.ada)
    assert "whole, #1 to #6, 1 payload erased." in verify(run.ref)[1]
    vault.erase(Payload.objects.get(pk=line(run, 4).payloads["note"]), by=cast.ada)
    assert "whole, #1 to #6, 2 payloads erased." in verify(run.ref)[1]


def test_a_broken_log_ends_with_one_and_names_the_place(run):
    with behind_its_back():
        Event.objects.filter(run_id=run.pk, seq=3).update(body=line(run, 3).body.replace("internal", "x") + " ")
    code, said, complaint = verify(run.ref)
    assert (code, said) == (1, "")
    assert complaint.startswith(f"{run.ref}: BROKEN at #3. #3 is not what was written")
    assert "4111" not in without_ids(complaint) and "body" not in complaint


def test_a_removed_event_and_a_cut_tail_are_named(run):
    with behind_its_back():
        Event.objects.filter(run_id=run.pk, seq__gt=4)._raw_delete("default")
    assert verify(run.ref)[0::2] == (
        1,
        f"{run.ref}: BROKEN at #5. The log ends at #4, but the run counted to #6: the tail was cut or the head was changed.\n",
    )
    with behind_its_back():
        Event.objects.filter(run_id=run.pk, seq=2)._raw_delete("default")
    assert verify(run.ref)[0::2] == (1, f"{run.ref}: BROKEN at #2. #2 is missing: the log goes on at #3.\n")


@pytest.mark.parametrize(
    "called", ["RN-0000", "no reference", "", "0190aaaa-0000-7000-8000-000000000000", "#3", "RN-7Q4K; DROP TABLE runs_run"]
)
def test_a_run_that_is_not_there_is_said_not_to_be(run, called):
    with pytest.raises(CommandError, match="no run called"):
        call_command("verify", called)


def test_of_two_workspaces_with_one_reference_one_must_be_named(cast, run):
    other = factories.make_run(cast, agent=cast.other_agent)
    Run.objects.filter(pk=other.pk).update(ref=run.ref)
    with pytest.raises(CommandError, match="2 runs called .*--workspace"):
        call_command("verify", run.ref)
    assert "#1 to #6" in verify(run.ref, "--workspace", "fernhill")[1]
    assert "BROKEN" not in verify(run.ref, "--workspace", "elsewhere")[2]
    with pytest.raises(CommandError, match="no run called"):
        call_command("verify", run.ref, "--workspace", "nowhere")
