"""Who is refused something is written down: what, and which right was missing; once a minute, with a count, whoever hammers."""

import ast
from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client

from access import break_glass, keys, refusals
from access.audit import GROUPS, VERBS
from access.audit_models import RefusalTally
from access.errors import Forbidden, NotFound
from access.models import AuditEntry
from access.rules import SYSTEM
from config import clock
from tests import test_architecture as architecture
from tests.approvals.mailing import propose_mail
from tests.factories import actor, make_run
from tests.together import together

pytestmark = pytest.mark.django_db


@pytest.fixture
def later(monkeypatch):
    """Lets time pass."""
    passed = [timedelta()]
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + passed[0])

    def later(**by: int) -> None:
        passed[0] += timedelta(**by)

    return later


def browser(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def told() -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(verb="refused").order_by("at", "pk"))


def test_a_person_without_the_right_is_written_down_with_it(cast):
    run = make_run(cast)
    assert browser(cast.riley).post(f"/runs/{run.pk}/signals", {"kind": "pause", "key": "a"}).status_code == 403
    entry = told()[0]
    assert (entry.actor_id, entry.workspace_id) == (str(cast.riley.pk), cast.workspace.pk)
    assert (entry.subject_kind, entry.subject_id) == ("run", str(run.pk))
    assert entry.data == {"right": "runs.steer", "why": "forbidden", "at": "runs:signal", "times": 1} | {"at": entry.data["at"]}


def test_what_is_of_another_workspace_is_written_down_as_not_found_in_ones_own(cast):
    run = make_run(cast)
    assert browser(cast.olga).get(f"/runs/{run.pk}").status_code == 404
    entry = told()[0]
    assert (entry.workspace_id, entry.subject_id) == (cast.elsewhere.pk, str(run.pk))
    assert (entry.data["right"], entry.data["why"]) == ("runs.view", "not-found")


def test_a_refusal_that_is_said_within_the_page_is_written_down_too(cast):
    proposed = propose_mail(cast)
    told_at = browser(cast.otto).post(f"/actions/{proposed.action.pk}/decision", {"verdict": "approved", "digest": proposed.action.digest})
    assert told_at.status_code == 403 and told()[0].data["right"] == "approvals.decide"


def test_a_key_is_written_down_by_the_api(cast):
    run, (_, token) = make_run(cast), keys.make(cast.agent, name="test", by=SYSTEM)
    sent = Client(headers={"Authorization": f"Bearer {token}"}).post(
        f"/api/v1/runs/{run.pk}/recovery", {"choice": "retry", "parked": 1}, content_type="application/json"
    )
    assert sent.status_code in (403, 404)
    assert (told()[0].actor_kind, told()[0].data["right"]) == ("agent", "runs.recover")


def test_a_stream_that_is_refused_is_written_down_and_one_that_is_opened_counts_as_a_use_of_the_key(cast):
    from runs.consumers import RunSocket

    run, (key, token) = make_run(cast), keys.make(cast.agent, name="test", by=SYSTEM)
    other = make_run(cast, agent=cast.other_agent)
    for each in (run, other):
        socket = RunSocket()
        socket.scope = {"url_route": {"kwargs": {"run_id": str(each.pk)}}, "headers": [(b"authorization", f"Bearer {token}".encode())]}
        if each == run:
            assert socket._enter()[1] == run
        else:
            with pytest.raises(NotFound):
                socket._enter()
    key.refresh_from_db()
    assert key.last_used_at is not None and (told()[0].subject_id, told()[0].data["at"]) == (str(other.pk), "stream")


def test_a_wrong_address_and_nobody_leave_no_trace(cast):
    browser(cast.riley).get("/nothing-here")
    Client().get(f"/runs/{uuid4()}")
    Client(headers={"Authorization": "Bearer hr_x"}).get(f"/api/v1/runs/{uuid4()}")
    assert not told()


# a flood ------------------------------------------------------------------------------------------------------------------------------


def refuse(cast, times: int = 1, subject: str = "", right: str = "runs.steer") -> None:
    for _ in range(times):
        refusal = Forbidden("No.", capability=right)
        refusal.subject = ("run", subject) if subject else None
        refusals.note(actor(cast.riley), refusal, at="test")


def test_the_same_again_within_a_minute_is_a_count_on_the_next_entry(cast, later):
    refuse(cast, 5)
    assert [entry.data["times"] for entry in told()] == [1]
    later(seconds=61)
    refuse(cast, 2)
    assert [entry.data["times"] for entry in told()] == [1, 5]


def test_the_count_of_what_came_no_more_is_told_by_the_beat_once(cast, later):
    refuse(cast, 5)
    refusals.settle()
    assert len(told()) == 1
    later(seconds=61)
    refusals.settle()
    refusals.settle()
    assert [entry.data["times"] for entry in told()] == [1, 4] and told()[1].actor_id == str(cast.riley.pk)
    assert not RefusalTally.objects.exists()


def test_very_many_different_things_are_counted_together(cast, later):
    for _ in range(100):
        refuse(cast, subject=str(uuid4()))
    assert len(told()) == refusals.DIFFERENT + 1
    later(seconds=61)
    refusals.settle()
    assert sum(entry.data["times"] for entry in told()) == 100 and told()[-1].data["why"] == "many"


def test_another_person_and_another_right_are_other_entries(cast):
    refuse(cast, 2)
    refuse(cast, 2, right="runs.start")
    refusals.note(actor(cast.sam), Forbidden("No.", capability="runs.steer"), at="test")
    assert len(told()) == 3


def test_what_is_no_matter_of_rights_is_no_refusal(cast):
    from access.errors import BadInput

    refusals.note(actor(cast.riley), BadInput("No."))
    assert not told()
    refusals.note(actor(cast.riley), NotFound())
    assert len(told()) == 1


@pytest.mark.django_db(transaction=True)
def test_the_same_refused_at_one_moment_is_one_entry(cast):
    assert together([lambda: refuse(cast)] * 6) == [None] * 6
    assert len(told()) == 1


# the closed list of what is told -----------------------------------------------------------------------------------------------------


def verbs_of(text: str) -> set[str]:
    """The verbs that a file records: given to `audit.record`, or to a function of its own that hands one on."""
    tree = ast.parse(text)
    found, wrappers = set(), {}
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        names = [arg.arg for arg in function.args.args]
        for call in _calls(function, lambda chain: chain in (["audit", "record"], ["record"])):
            if isinstance(call.args[1], ast.Name) and call.args[1].id in names:
                wrappers[function.name] = names.index(call.args[1].id)
            elif isinstance(call.args[1], ast.Name):
                name = call.args[1].id
                given = [
                    each for each in ast.walk(function) if isinstance(each, ast.Assign) and architecture.chain(each.targets[0]) == [name]
                ]
                found |= {verb for each in given for verb in _strings(each.value)}
            else:
                found |= _strings(call.args[1])
    for name, place in wrappers.items():
        for call in _calls(tree, lambda chain, name=name: chain == [name]):
            found |= _strings(call.args[place])
    return found


def _calls(node, fits):
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and fits(architecture.chain(call.func)):
            yield call


def _strings(node) -> set[str]:
    return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def test_every_verb_that_is_recorded_has_its_words():
    recorded = {verb for path in architecture.code() for verb in verbs_of(path.read_text("utf-8"))}
    assert {"signed_in", "refused", "frozen"} <= recorded, "the search finds nothing any more"
    assert recorded - set(VERBS) == set(), "say in access/verbs.py what the access log calls it"
    assert {verb.group for verb in VERBS.values()} == set(GROUPS)


def test_every_verb_that_has_words_is_named_by_who_records_it():
    files = [path for path in architecture.code() if architecture.name(path) != "access/verbs.py"]
    named = {text for path in files for text in _strings(ast.parse(path.read_text("utf-8")))}
    assert set(VERBS) - named == set()


def test_what_was_counted_under_break_glass_is_marked_too(cast, later):
    glass = break_glass.take(cast.workspace.pk, ["runs.steer"], by=actor(cast.riley), reason="Nobody can be reached.")
    for _ in range(3):
        refusals.note(actor(cast.riley), Forbidden("No.", capability="runs.start"))
    later(minutes=2)
    refusals.settle()
    assert [(entry.data["times"], entry.data["glass"]) for entry in told()] == [(1, str(glass.pk)), (2, str(glass.pk))]
