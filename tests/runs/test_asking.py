"""A run asks people something, waits, and goes on with the answer, once."""

import pytest

from access.errors import BadInput
from access.rules import person
from artifacts import vault
from runs import endings, log, questions
from runs.engine import executor
from runs.log import Text
from runs.models import Event, Run
from runs.questions import NotAsked, PeopleAnswer
from runs.vocabulary import QuestionAnswered
from tests.approvals.mailing import text
from tests.factories import agent_actor
from tests.runs import workflows
from tests.runs.test_engine import start, types, walk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(cast) -> Run:
    workflows.reset()
    run = start(cast, "test-asks", {}, scope={})
    assert walk(run) == "waiting" and run.waiting["on"] == "answer"
    return run


def test_the_answer_reaches_the_workflow_and_is_given_once(cast, run):
    question = questions.asked(run)
    assert question.text == "Coffee or tea?"
    questions.answer(run, question.id, "Tea, please.", by=person(cast.otto.pk))
    with pytest.raises(NotAsked):
        questions.answer(run, question.id, "Coffee.", by=person(cast.otto.pk))
    assert walk(run) == "succeeded"
    report = Event.objects.get(run_id=run.pk, type="report.published")
    assert next(iter(vault.shown(report.payloads.values()).values())).text == "Tea, please."
    assert types(run).count("question.asked") == types(run).count("question.answered") == 1


def test_only_people_answer_and_only_an_agent_outside_ends_its_run(cast, run):
    agent = agent_actor(cast.agent)
    question = questions.asked(run)
    with pytest.raises(PeopleAnswer):
        questions.answer(run, question.id, "Tea, please.", by=agent)
    with pytest.raises(endings.EndsByItself):
        endings.end(run, "failed", by=agent)
    run.refresh_from_db()
    assert run.state == "waiting" and run.ended_at is None


def test_an_answer_without_words_is_none(cast, run):
    question = questions.asked(run)
    for nothing in ("", " \n", "\u2060"):
        with pytest.raises(BadInput):
            questions.answer(run, question.id, nothing, by=person(cast.otto.pk))


def test_an_answer_that_comes_while_the_worker_is_on_its_way_to_wait_is_not_missed(cast, monkeypatch):
    run = start(cast, "test-asks", {}, scope={})
    real = executor._wait

    def late(held, outcome):
        with log.holding(run.pk) as locked:
            locked.append(QuestionAnswered(question=outcome.waiting.question), actor=person(cast.otto.pk), texts={"answer": Text("Tea.")})
        return real(held, outcome)

    monkeypatch.setattr(executor, "_wait", late)
    executor.execute(run.pk)
    run.refresh_from_db()
    assert run.state == "queued"


def test_the_page_asks_who_may_steer_and_takes_the_answer(cast, run, sign_in):
    assert "Coffee or tea?" in text(sign_in(cast.otto).get(f"/runs/{run.pk}"))
    assert 'id="answer-f"' not in sign_in(cast.riley).get(f"/runs/{run.pk}").content.decode()
    question = questions.asked(run)
    answer = sign_in(cast.otto).post(f"/runs/{run.pk}/answers", {"question": str(question.id), "text": "Tea."}, follow=True)
    assert "Answered. The run goes on with it." in text(answer)
    again = sign_in(cast.otto).post(f"/runs/{run.pk}/answers", {"question": str(question.id), "text": "Tea."}, follow=True)
    assert "The run does not wait for an answer to this." in text(again)
