"""The log of a run has one writer: dense, chained, whole under any number of writers at once, and closed by its one ending."""

import hashlib
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
import redis
import rfc8785
from django.conf import settings as handrail
from django.db import IntegrityError, connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from access.errors import NotFound
from access.rules import Actor
from approvals import decisions
from approvals.models import Grant
from artifacts import vault
from artifacts.models import Artifact, Payload
from config import clock
from config.celery import app as celery
from runs import intake, lifecycle, live, log
from runs.engine import gates, lease
from runs.errors import EventReused, IllegalTransition, InFlight, InvalidEvent, RunEnded, StaleToken
from runs.intake import Told
from runs.lifecycle import ENDINGS, TERMINAL, TRANSITIONS, State
from runs.log import ENGINE, Held, Text, chained
from runs.models import Event, Lease, Run
from runs.verification import Whole, verify
from runs.vocabulary import (
    TYPES,
    ArtifactCreated,
    CheckpointSaved,
    Data,
    MilestoneReached,
    NotePosted,
    RunFailed,
    RunPaused,
    RunSucceeded,
    RunWaiting,
)
from tests import factories
from tests.approvals.mailing import propose_mail
from tests.runs import made_up
from tests.together import together
from tests.waiting import until

needs_database = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(cast) -> Run:
    return factories.make_run(cast)


def seqs(run: Run) -> list[int]:
    return list(Event.objects.filter(run_id=run.pk).order_by("seq").values_list("seq", flat=True))


def types(run: Run) -> list[str]:
    return list(Event.objects.filter(run_id=run.pk).order_by("seq").values_list("type", flat=True))


def whole(run: Run) -> Whole:
    found = verify(run)
    assert isinstance(found, Whole), found
    return found


def fresh(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


# dense and chained ------------------------------------------------------------------------------------------------------------------


@needs_database
def test_the_numbers_of_a_log_have_no_gap_and_the_row_is_its_head(run):
    assert [factories.note(run) for _ in range(3)] == [3, 4, 5]
    with log.holding(run.pk) as held:
        assert [held.append(MilestoneReached(), actor=ENGINE) for _ in range(100)] == list(range(6, 106))
    last = factories.line(run, 105)
    assert seqs(run) == list(range(1, 106))
    assert (fresh(run).seq, bytes(fresh(run).head_hash)) == (105, bytes(last.hash))
    assert whole(run).head == 105


@needs_database
def test_many_writers_at_once_leave_a_dense_log_and_a_whole_chain(run):
    """Eight writers, some with batches and some that fail half-way through."""

    def write(writer: int) -> list[int]:
        got = []
        for turn in range(8):
            try:
                with log.holding(run.pk) as held:
                    for _ in range(1 + (writer + turn) % 3):
                        seq = held.append(NotePosted(), actor=ENGINE, texts={"note": Text(f"{writer}.{turn}")})
                    if (writer + turn) % 4 == 0:
                        raise Interrupted
                got.append(seq)
            except Interrupted:
                pass
        return got

    answers = together([partial(write, writer) for writer in range(8)])
    assert not [each for each in answers if isinstance(each, Exception)], answers
    written = seqs(run)
    assert written == list(range(1, len(written) + 1))
    told = [seq for seqs in answers for seq in seqs]
    assert len(told) == len(set(told)) == 48 and set(told) <= set(written)
    assert all(seqs == sorted(seqs) for seqs in answers), "each writer sees its own in order"
    assert whole(run).head == len(written) == 2 + sum(1 + (w + t) % 3 for w in range(8) for t in range(8) if (w + t) % 4)


class Interrupted(Exception):
    pass


@needs_database
def test_writers_of_different_runs_do_not_mix(cast, run):
    other = factories.make_run(cast)
    answers = together([partial(factories.note, each) for each in (run, other) for _ in range(6)])
    assert sorted(answers[:6]) == sorted(answers[6:]) == [3, 4, 5, 6, 7, 8]
    assert whole(run).head == whole(other).head == 8


@needs_database
def test_a_writer_that_waited_for_the_lock_writes_after_what_was_committed_meanwhile(run):
    holds, asked = threading.Event(), threading.Event()

    def first() -> int:
        with log.holding(run.pk) as held:
            holds.set()
            assert asked.wait(30)
            return held.append(MilestoneReached(), actor=ENGINE)

    def second() -> int:
        assert holds.wait(30)
        asked.set()
        return factories.note(run)

    assert together([first, second]) == [3, 4]
    assert types(run)[2:] == ["milestone.reached", "note.posted"]


# all or nothing -----------------------------------------------------------------------------------------------------------------------


@needs_database
def test_a_failure_while_holding_leaves_nothing(cast, run):
    before = (fresh(run).seq, bytes(fresh(run).head_hash), Payload.objects.count(), Artifact.objects.count())
    with pytest.raises(Interrupted), log.holding(run.pk) as held:
        payload = vault.keep(cast.workspace.pk, "x", label="internal")
        made = Artifact.objects.create(workspace=cast.workspace, run_id=run.pk, name="x", version=1, payload=payload)
        created = ArtifactCreated(artifact=made.pk, name="x", version=1, label="internal", media_type="text/plain", size=1)
        held.append(created, actor=ENGINE, artifact=made, texts={"content": payload})
        held.move(State.WAITING, RunWaiting(on="timer"), waiting={"on": "timer"})
        held.change(tokens=99)
        raise Interrupted
    assert (fresh(run).seq, bytes(fresh(run).head_hash), Payload.objects.count(), Artifact.objects.count()) == before
    assert (fresh(run).state, fresh(run).tokens, fresh(run).waiting) == ("running", 0, {})
    assert factories.note(run) == 3


@needs_database
def test_a_failure_of_the_database_itself_leaves_nothing(run):
    """The sender's id is taken, which only the database knows, at the last moment."""
    factories.note(run, sender="agent:1")
    with pytest.raises(IntegrityError), log.holding(run.pk) as held:
        held.append(MilestoneReached(), actor=ENGINE)
        held.append(MilestoneReached(), actor=ENGINE, sender="agent:1")
        held.change(tokens=99)
    assert (types(run)[2:], fresh(run).seq, fresh(run).tokens) == (["note.posted"], 3, 0)
    assert whole(run).head == 3


@needs_database
def test_holding_is_never_nested(run):
    with log.holding(run.pk), pytest.raises(RuntimeError, match="durable"), log.holding(run.pk):
        pass
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"), log.holding(run.pk):
        pass


@needs_database
def test_a_run_that_is_not_there_can_not_be_held(cast):
    with pytest.raises(NotFound), log.holding(uuid4()):
        raise AssertionError("held nothing")


@needs_database
def test_state_and_event_are_committed_together_and_seen_together(run):
    """A reader on another connection sees neither before the commit, and both after it."""

    def seen() -> tuple[str, str]:
        return fresh(run).state, types(run)[-1]

    with log.holding(run.pk) as held:
        held.move(State.WAITING, RunWaiting(on="timer"), waiting={"on": "timer"})
        [inside] = together([seen])
    assert inside == ("running", "run.started")
    assert seen() == ("waiting", "run.waiting")


@needs_database
def test_a_run_and_its_first_events_are_made_together_or_not_at_all(cast):
    kept = vault.keep(cast.workspace.pk, "A run", label="internal")
    row = Run(ref="RN-0001", workspace=cast.workspace, agent=cast.agent, owner=cast.priya, starter_kind="human", starter_id="x", title=kept)
    with pytest.raises(Interrupted), transaction.atomic():
        held = log.create(row)
        held.append(NotePosted(), actor=ENGINE)
        log.finish(held)
        raise Interrupted
    assert not Run.objects.filter(ref="RN-0001").exists() and not Event.objects.filter(run_id=row.pk).exists()


# transitions and endings ----------------------------------------------------------------------------------------------------------------


ENDING_DATA = factories.ENDINGS


def data_for(state: State) -> Data:
    return ENDING_DATA.get(state, NotePosted())


def held_as(state: State) -> Held:
    now = clock.now()
    return Held(Run(state=state.value, ended_at=now if state in TERMINAL else None, workspace_id=uuid4(), seq=7, head_hash=bytes(32)))


@pytest.mark.parametrize("before", list(State))
def test_an_illegal_transition_is_refused_and_changes_nothing(before):
    for after in set(State) - TRANSITIONS[before]:
        held = held_as(before)
        with pytest.raises(RunEnded if before in TERMINAL else IllegalTransition) as refused:
            held.move(after, data_for(after))
        assert refused.value.extra["state"] == before.value
        assert (held.row.state, held.row.seq, held.changed, held.pending) == (before.value, 7, {}, [])


@pytest.mark.parametrize("before", sorted(set(State) - TERMINAL))
def test_a_legal_transition_writes_its_event_and_its_time(before, monkeypatch):
    monkeypatch.setattr(log, "ending_guards", [])
    for after in TRANSITIONS[before]:
        held = held_as(before)
        assert held.move(after, data_for(after), waiting={"on": "timer"}) == 8
        assert [pending.type for pending in held.pending] == [data_for(after).type]
        assert held.changed["state"] == after.value and held.row.state == after.value
        assert (held.row.ended_at is not None) == (after in TERMINAL)
        assert held.changed["state_since"] is held.row.state_since and held.changed["waiting"] == {"on": "timer"}


@pytest.mark.parametrize("kind", sorted(ENDINGS))
def test_an_ending_is_written_only_with_the_state_that_it_tells(kind, monkeypatch):
    monkeypatch.setattr(log, "ending_guards", [])
    data = ENDING_DATA[ENDINGS[kind]]
    with pytest.raises(IllegalTransition):
        held_as(State.RUNNING).append(data, actor=ENGINE)
    for state in set(TRANSITIONS[State.RUNNING]) - {ENDINGS[kind]}:
        with pytest.raises(IllegalTransition):
            held_as(State.RUNNING).move(state, data)
    with pytest.raises(IllegalTransition):
        held_as(State.RUNNING).move(ENDINGS[kind], NotePosted())


@needs_database
def test_a_run_that_is_moved_says_so_in_its_row_and_its_log(run):
    before = fresh(run)
    with log.holding(run.pk) as held:
        held.move(State.PAUSED, RunPaused(signal=uuid4()))
    now = fresh(run)
    assert (now.state, now.seq, types(run)[-1], now.ended_at) == ("paused", 3, "run.paused", None)
    assert now.state_since > before.state_since
    with pytest.raises(IllegalTransition), log.holding(run.pk) as held:
        held.move(State.SUCCEEDED, RunSucceeded())
    assert (fresh(run).state, fresh(run).seq) == ("paused", 3)


@needs_database
@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_the_last_event_of_a_run_is_its_ending(run, state):
    last = factories.end(run, state)
    assert (fresh(run).state, fresh(run).seq) == (state.value, last)
    assert fresh(run).ended_at == fresh(run).state_since
    for attempt in (
        lambda held: held.append(NotePosted(), actor=ENGINE),
        lambda held: held.move(State.QUEUED, NotePosted()),
        lambda held: held.move(state, ENDING_DATA[state]),
        lambda held: held.move(State.FAILED, RunFailed(reason="error")),
    ):
        with pytest.raises(RunEnded) as refused, log.holding(run.pk) as held:
            attempt(held)
        assert refused.value.extra["state"] == state.value
    assert seqs(run)[-1] == last and types(run)[-1] == factories.ENDINGS[state].type
    assert whole(run).head == last


@needs_database
def test_nothing_follows_an_ending_in_the_same_transaction(run):
    with pytest.raises(RunEnded), log.holding(run.pk) as held:
        held.move(State.SUCCEEDED, RunSucceeded())
        held.append(NotePosted(), actor=ENGINE)
    assert (fresh(run).state, seqs(run)) == ("running", [1, 2])


@needs_database
def test_of_many_endings_at_once_one_stands(run):
    states = [State.SUCCEEDED, State.FAILED, State.CANCELLED] * 3
    answers = together([partial(factories.end, run, state) for state in states])
    won = [(state, answer) for state, answer in zip(states, answers, strict=True) if not isinstance(answer, Exception)]
    assert len(won) == 1 and all(isinstance(answer, RunEnded) for answer in answers if isinstance(answer, Exception)), answers
    [(state, seq)] = won
    assert (fresh(run).state, fresh(run).seq) == (state.value, seq) == (state.value, 4)
    assert [kind for kind in types(run) if kind in ENDINGS] == [factories.ENDINGS[state].type] == types(run)[-1:]
    assert {answer.extra["state"] for answer in answers if isinstance(answer, RunEnded)} == {state.value}, "the losers are told who won"


@needs_database
def test_notes_that_race_with_an_ending_come_before_it_or_not_at_all(run):
    def notes() -> int:
        written = 0
        try:
            for _ in range(20):
                factories.note(run)
                written += 1
        except RunEnded:
            pass
        return written

    *written, last = together([notes, notes, partial(factories.end, run)])
    assert types(run)[-1] == "run.succeeded" and fresh(run).seq == last
    assert types(run).count("note.posted") == sum(written)
    assert whole(run).head == last


@needs_database
@pytest.mark.parametrize("kind", sorted(ENDINGS))
def test_the_database_itself_refuses_a_second_ending(run, kind):
    """Through SQL, with a hash that fits and a number that is free."""
    last = factories.end(run)
    row = factories.line(run, last)
    digest = chained(bytes(row.hash), last + 1, row.body)
    statement = (
        "INSERT INTO runs_event (run_month, run_id, seq, type, body, prev_hash, hash, payloads) "
        "SELECT run_month, run_id, seq + 1, %s, body, hash, %s, payloads FROM runs_event WHERE run_id = %s AND seq = %s"
    )
    pk = run.pk if connection.vendor == "postgresql" else run.pk.hex
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, [kind, digest, pk, last])
    with connection.cursor() as cursor:
        cursor.execute(statement, ["note.posted", digest, pk, last])  # it is the ending that was refused, not the statement
        assert cursor.rowcount == 1


@needs_database
@pytest.mark.parametrize("outcome", ["none", "unknown"])
def test_a_run_does_not_end_while_something_it_sent_has_no_known_outcome(cast, outcome):
    proposed = propose_mail(cast)
    run = proposed.run
    decisions.decide(proposed.action, reviewer=factories.actor(cast.riley), verdict="approved", digest=proposed.action.digest)
    with log.holding(run.pk) as held:
        redemption = gates.current().redeem(held, proposed.action.pk, token=1, worker="w")
        assert isinstance(redemption, gates.Redemption)
        if outcome == "unknown":
            gates.current().unknown(held, redemption, reason="dropped")
    before = fresh(run).seq
    for state in (State.FAILED, State.CANCELLED):
        with pytest.raises(InFlight), log.holding(run.pk) as held:
            held.move(state, ENDING_DATA[state])
    assert fresh(run).seq == before and not lifecycle.ended(fresh(run).state)
    with log.holding(run.pk) as held:
        gates.current().executed(held, redemption, result={}, label="internal", found=False)
        held.move(State.FAILED, ENDING_DATA[State.FAILED])
    assert Grant.objects.get(action=proposed.action).outcome == "executed"
    assert types(run)[-1] == "run.failed" and isinstance(verify(run), Whole)


# the body -----------------------------------------------------------------------------------------------------------------------------

ids = st.uuids().map(str)
actors = st.builds(Actor, st.sampled_from(["human", "agent", "system"]), ids)
senders = st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
times = st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45))]))
commitments = st.dictionaries(st.from_regex(r"[a-z_0-9]{1,20}", fullmatch=True), st.from_regex(r"[0-9a-f]{64}", fullmatch=True), max_size=4)


@given(made_up.data(), actors, commitments, st.none() | st.integers(1, 2**53 - 1), senders, st.none() | times)
def test_a_body_is_canonical_json(data, actor, commitments, caused_by, sender, sent_at):
    """RFC 8785, by an implementation that is not ours: for data of every type."""
    body = log._body(data, actor, commitments, caused_by, sender, sent_at)
    said = orjson.loads(body)
    assert rfc8785.dumps(said) == body.encode()
    assert (said["type"], said["actor"], said["payloads"]) == (data.type, {"kind": actor.kind, "id": actor.id}, commitments)
    assert said["data"] == data.model_dump(mode="json", exclude_none=True)
    assert said.keys() <= {"v", "type", "at", "actor", "data", "payloads", "caused_by", "sender"}, "never seq, never hash, never a name"


@needs_database
def test_every_type_is_stored_as_the_canonical_json_that_was_hashed(cast, run):
    payload = vault.keep(cast.workspace.pk, "x", label="internal")
    made = Artifact.objects.create(workspace=cast.workspace, run_id=run.pk, name="x", version=1, payload=payload)
    told = [simplest(kind) for kind in sorted(set(TYPES) - set(ENDINGS))]
    with log.holding(run.pk) as held:
        for data in told:
            artifact = made if isinstance(data, ArtifactCreated) else None
            data = data.model_copy(update={"artifact": made.pk}) if artifact else data
            more = {"sender": f"agent:{data.type}", "sent_at": clock.now(), "caused_by": 1}
            held.append(data, actor=Actor("agent", str(run.agent_id)), artifact=artifact, **more)
    stored = list(Event.objects.filter(run_id=run.pk, seq__gt=2).order_by("seq"))
    assert [each.type for each in stored] == [data.type for data in told]
    for each in stored:
        assert rfc8785.dumps(orjson.loads(each.body)) == each.body.encode()
        assert bytes(each.hash) == hashlib.sha256(bytes(each.prev_hash) + each.seq.to_bytes(8, "big") + each.body.encode()).digest()
    assert whole(run).head == 2 + len(told)


def simplest(kind: str) -> Data:
    found: list[Data] = []

    @settings(max_examples=1)
    @given(made_up.data_of(kind))
    def take(data: Data) -> None:
        found.append(data)

    take()
    return found[0]


@given(times)
def test_times_are_written_in_utc_to_the_microsecond(at):
    written = log.stamp(at)
    assert len(written) == len("2026-11-26T14:02:11.000000Z") and written.endswith("Z")
    assert datetime.fromisoformat(written) == at


@needs_database
def test_the_log_tells_the_time_of_the_one_clock(run, tmp_path, monkeypatch):
    moved = tmp_path / "offset"
    moved.write_text("86400")
    monkeypatch.setenv(clock.VARIABLE, str(moved))
    body = orjson.loads(factories.line(run, factories.note(run)).body)
    assert datetime.fromisoformat(body["at"]) - datetime.now(UTC) > timedelta(hours=23)


@needs_database
def test_names_and_texts_stand_in_no_body(cast, run):
    seq = factories.note(run, "Marta Oyelaran asked", actor=factories.actor(cast.riley))
    body = factories.line(run, seq).body
    assert "Marta" not in body and "Riley" not in body and str(cast.riley.pk) in body


@needs_database
def test_an_event_that_is_too_long_is_refused(run):
    with pytest.raises(InvalidEvent, match="at most 65536"), log.holding(run.pk) as held:
        held.append(NotePosted(), actor=ENGINE, sender="x" * 70_000)
    assert fresh(run).seq == 2


# what goes with an event ------------------------------------------------------------------------------------------------------------------


@needs_database
def test_a_text_under_a_role_that_the_type_does_not_have_is_refused(run):
    for data, role in ((NotePosted(), "title"), (CheckpointSaved(), "note"), (NotePosted(), "note\n")):
        with pytest.raises(InvalidEvent, match="carries no text"), log.holding(run.pk) as held:
            held.append(data, actor=ENGINE, texts={role: Text("x")})
    assert fresh(run).seq == 2


@needs_database
def test_a_text_of_another_workspace_is_refused(cast, run):
    stray = vault.keep(cast.elsewhere.pk, "Theirs", label="internal")
    with pytest.raises(InvalidEvent, match="another workspace"), log.holding(run.pk) as held:
        held.append(NotePosted(), actor=ENGINE, texts={"note": stray})
    assert fresh(run).seq == 2


@needs_database
def test_an_artifact_stands_in_the_event_that_made_it_and_nowhere_else(cast, run):
    payload = vault.keep(cast.workspace.pk, "x", label="internal")
    here, there = (
        Artifact.objects.create(workspace=cast.workspace, run_id=pk, name="x", version=1, payload=payload) for pk in (run.pk, uuid4())
    )

    def created(artifact: Artifact) -> ArtifactCreated:
        return ArtifactCreated(artifact=artifact.pk, name="x", version=1, label="internal", media_type="text/plain", size=1)

    for data, artifact in ((created(there), there), (created(there), here), (created(here), None), (NotePosted(), here)):
        with pytest.raises(InvalidEvent, match="artifact"), log.holding(run.pk) as held:
            held.append(data, actor=ENGINE, artifact=artifact)
    assert fresh(run).seq == 2
    assert factories.append(run, created(here), artifact=here, texts={"content": payload}) == 3


# fencing ------------------------------------------------------------------------------------------------------------------------------


def token_of(run: Run) -> int:
    return Lease.objects.get(run=run).token


@needs_database
def test_a_stale_token_writes_nothing(run):
    current = token_of(run)
    with log.holding(run.pk, token=current) as held:
        held.append(NotePosted(), actor=ENGINE)
    with log.holding(run.pk):
        lease.fence_out(run.pk)
    for stale in (current, current - 1, current + 2, 10**12):
        with pytest.raises(StaleToken), log.holding(run.pk, token=stale):
            raise AssertionError("it was let in")
    assert fresh(run).seq == 3
    with log.holding(run.pk, token=current + 1) as held:
        held.append(NotePosted(), actor=ENGINE)
    assert fresh(run).seq == 4


@needs_database
def test_a_run_without_a_lease_lets_no_token_in(run):
    Lease.objects.filter(run=run).delete()
    with pytest.raises(StaleToken), log.holding(run.pk, token=0):
        raise AssertionError("it was let in")


@needs_database
def test_a_worker_that_is_overtaken_while_it_waits_for_the_lock_writes_nothing(run):
    taken, asked = threading.Event(), threading.Event()
    token = token_of(run)

    def overtake() -> int:
        with log.holding(run.pk) as held:
            taken.set()
            assert asked.wait(30)
            lease.fence_out(run.pk)
            return held.append(MilestoneReached(), actor=ENGINE)

    def late() -> int:
        assert taken.wait(30)
        asked.set()
        with log.holding(run.pk, token=token) as held:
            return held.append(NotePosted(), actor=ENGINE)

    seq, refused = together([overtake, late])
    assert seq == 3 and isinstance(refused, StaleToken), refused
    assert types(run)[2:] == ["milestone.reached"]


# the same event again -------------------------------------------------------------------------------------------------------------------


@needs_database
def test_a_senders_id_stands_once_in_a_run_and_may_stand_in_another(cast, run):
    assert factories.note(run, sender="agent:1") == 3
    with pytest.raises(IntegrityError):
        factories.note(run, sender="agent:1")
    assert factories.note(factories.make_run(cast), sender="agent:1") == 3
    assert (factories.note(run), factories.note(run)) == (4, 5), "events without one are never the same"


@needs_database
def test_the_same_told_by_many_at_once_is_one_event(cast, run):
    """An impatient agent sends the same batch five times at once."""
    agent = factories.agent_actor(cast.agent)
    batch = [Told(str(n), "note.posted", texts={"note": Text(f"Note {n}")}) for n in range(4)]
    answers = together([partial(intake.accept, run, batch, by=agent)] * 5)
    assert not [each for each in answers if isinstance(each, Exception)], answers
    assert {tuple(each.seq for each in answer) for answer in answers} == {(3, 4, 5, 6)}
    assert sorted(all(each.duplicate for each in answer) for answer in answers) == [False, True, True, True, True]
    assert seqs(run) == [1, 2, 3, 4, 5, 6] and isinstance(verify(run), Whole)
    with pytest.raises(EventReused):
        intake.accept(run, [Told("0", "note.posted", texts={"note": Text("Otherwise")})], by=agent)


# after the commit -------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def wakes() -> Iterator[Any]:
    """The next wake-up of a run, as its seq. Tests of other processes share the channel, so each asks for its own run."""
    with redis.Redis.from_url(handrail.VALKEY_URL) as client, client.pubsub(ignore_subscribe_messages=True) as heard:
        heard.subscribe(live.CHANNEL)
        until(lambda: client.pubsub_numsub(live.CHANNEL)[0][1] >= 1, what="the subscription")

        def next_wake(run_id: UUID) -> int:
            def ours() -> dict[str, Any] | None:
                while message := heard.get_message(timeout=0.1):
                    told = orjson.loads(message["data"])
                    if told.get("run") == str(run_id):
                        return told
                return None

            told = until(ours, what="a wake-up")
            assert told.keys() == {"run", "workspace", "seq"}, "it says where the log is, and nothing else"
            return told["seq"]

        yield next_wake


@needs_database
def test_a_commit_wakes_who_follows_and_a_failure_wakes_nobody(cast, wakes):
    run = factories.make_run(cast)
    assert wakes(run.pk) == 2
    with pytest.raises(Interrupted), log.holding(run.pk) as held:
        held.append(NotePosted(), actor=ENGINE)
        raise Interrupted
    with log.holding(run.pk) as held:
        for _ in range(3):
            held.append(NotePosted(), actor=ENGINE)
    assert wakes(run.pk) == 5, "one for the three of them, and none for what failed"


@needs_database
def test_when_the_wake_up_comes_the_event_can_be_read(cast, wakes):
    run = factories.make_run(cast)
    for expected in range(2, 12):
        assert wakes(run.pk) == expected
        assert together([lambda: seqs(run)[-1]]) == [expected]
        factories.note(run)


@pytest.fixture(params=["nowhere", "silent"])
def no_valkey(request, settings, monkeypatch, tmp_path) -> Iterator[None]:
    """Valkey and the broker are gone: there is no such socket, or somebody listens and never answers."""
    path = tmp_path / "v.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        if request.param == "silent":
            listening.bind(str(path))
            listening.listen(64)
        monkeypatch.setenv("CELERY_BROKER_WRITE_URL", f"redis+socket://{tmp_path}/nobody.sock")
        monkeypatch.setattr(celery.amqp, "_producer_pool", None)
        forget_valkey()
        settings.VALKEY_URL = f"unix://{path}"
        yield
        forget_valkey()


def forget_valkey() -> None:
    live._valkey().close()
    live._valkey.cache_clear()


@needs_database
def test_a_wake_up_that_fails_takes_nothing_back(cast, run, no_valkey):
    assert factories.note(run) == 3
    with log.holding(run.pk) as held:
        held.move(State.WAITING, RunWaiting(on="timer"), waiting={"on": "timer"})
    Run.objects.filter(pk=run.pk).update(workflow="test-mailing")
    with log.holding(run.pk) as held:
        held.move(State.QUEUED, NotePosted())  # which calls a worker too
    assert (fresh(run).state, fresh(run).seq) == ("queued", 5)
    assert whole(run).head == 5


@needs_database
@pytest.mark.parametrize("broken", ["wake", "call_worker"])
def test_not_even_a_fault_in_a_wake_up_takes_a_commit_back(cast, run, broken, monkeypatch):
    def fault(*_: Any) -> None:
        raise RuntimeError("a mistake of ours")

    Run.objects.filter(pk=run.pk).update(workflow="test-mailing")
    monkeypatch.setattr(live, broken, fault)
    with log.holding(run.pk) as held:
        held.move(State.QUEUED, NotePosted())
    assert (fresh(run).state, fresh(run).seq) == ("queued", 3)


@needs_database
def test_a_row_that_moved_under_a_writer_is_noticed(run):
    """What the lock makes impossible is refused loudly all the same: a second writer with an old reading of the row."""
    with pytest.raises(StaleToken, match="moved"), log.holding(run.pk) as held:
        Run.objects.filter(pk=run.pk).update(seq=7)
        held.append(NotePosted(), actor=ENGINE)
    assert (fresh(run).seq, seqs(run)) == (2, [1, 2])
