"""A reviewer asks the agent about an action that waits: the answer comes into the log, the action stays as it is, and deciding goes on."""

import pytest
from django.urls import reverse

from access.rules import person
from approvals import asking, decisions, editing, exact, presenting
from approvals.errors import ActionClosed, AlreadyDecided, QuestionOpen, QuestionRefused, SelfApproval
from approvals.models import Decision, ProposedAction
from runs.engine import executor
from runs.engine.models import script
from runs.engine.workflow import Answers, Channel, workflow
from runs.models import Event, Run
from tests.approvals import mailing
from tests.approvals.mailing import MAIL, propose_mail, send_mail, sent, text
from tests.cast import member
from tests.together import together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
WHY = "Why is accounts@brightwater.example copied in?"


@script("test-answer", version="1", title="Answer")
def answered(*, question: str, known: str) -> dict:
    if "raise" in question:
        raise RuntimeError(question)
    return {"answer": f"{known}: {question}", "cites": [2, 2, 99_999, "x"]}


@workflow("test-answering", version=1, title="Answer a ticket")
def answering(run: Channel) -> None:
    answer = run.propose(send_mail, answers=Answers("test-answer", {"known": "I read"}), **MAIL)
    if answer.approved:
        run.perform(answer)


@pytest.fixture
def proposed(cast):
    sent.clear()
    return mailing._propose(cast, "test-answering", "Ticket ZN-1", {})


def ask(proposed, who, question=WHY):
    return asking.ask(proposed.again(), by=person(who.pk), question=question, digest=proposed.action.digest)


def events(proposed, kind) -> list[Event]:
    return list(Event.objects.filter(run_id=proposed.run.pk, type=kind).order_by("seq"))


def approve(proposed, who):
    action = proposed.again()
    return decisions.decide(action, reviewer=person(who.pk), verdict="approved", digest=action.digest)


def test_the_answer_comes_and_the_action_waits_as_it_was(cast, proposed):
    asked = ask(proposed, cast.riley)
    assert Run.objects.get(pk=proposed.run.pk).state == "queued"
    assert proposed.walk() == "waiting"
    (said,) = asking.thread(proposed.again())
    assert (said.id, said.by, said.is_open, said.cites) == (asked.question, str(cast.riley.pk), False, (2,))
    assert (proposed.again().state, proposed.again().digest) == ("waiting", proposed.action.digest)
    assert events(proposed, "model.called")[-1].seq < said.answer_seq
    approve(proposed, cast.sam)
    assert proposed.walk() == "succeeded" and len(sent) == 1


def test_questions_leave_no_step_behind(cast, proposed):
    for question in ("What is this?", "And what is that?"):
        ask(proposed, cast.riley, question)
        assert proposed.walk() == "waiting"
    approve(proposed, cast.sam)
    assert proposed.walk() == "succeeded"
    texts = [said.answer_seq for said in asking.thread(proposed.again())]
    assert len(texts) == 2 and len(sent) == 1
    assert len(events(proposed, "action.proposed")) == 1


def test_one_question_is_open_at_a_time_and_the_same_again_is_the_first(cast, proposed):
    first = ask(proposed, cast.riley)
    assert ask(proposed, cast.riley) == asking.Asked(first.question, first.seq, again=True)
    with pytest.raises(QuestionOpen, match=f"#{first.seq}"):
        ask(proposed, cast.sam)
    assert len(events(proposed, "question.asked")) == 1


@pytest.mark.both_databases
def test_the_same_question_at_once_is_one(cast, proposed):
    asked = together([lambda: ask(proposed, cast.riley)] * 5)
    assert len({each.question for each in asked}) == 1 and len(events(proposed, "question.asked")) == 1


@pytest.mark.parametrize("who", ["morgan", "otto", "ada"])
def test_only_who_may_decide_asks(cast, proposed, who):
    with pytest.raises(SelfApproval):
        ask(proposed, getattr(cast, who))


@pytest.mark.parametrize("question", ["", "  ", "?", "x" * 2001])
def test_what_is_no_question_is_refused(cast, proposed, question):
    with pytest.raises(QuestionRefused):
        ask(proposed, cast.riley, question)


def test_deciding_goes_on_while_a_question_is_open_and_closes_it(cast, proposed):
    ask(proposed, cast.riley)
    approve(proposed, cast.sam)
    with pytest.raises(AlreadyDecided):
        ask(proposed, cast.riley, "And why now?")
    assert proposed.walk() == "succeeded"
    (said,) = asking.thread(proposed.again())
    assert said.is_open and not events(proposed, "question.answered")


def test_nothing_is_asked_of_what_has_expired(cast, proposed):
    ProposedAction.objects.filter(pk=proposed.action.pk).update(expires_at=proposed.action.proposed_at)
    with pytest.raises(ActionClosed):
        ask(proposed, cast.riley)


def test_a_model_that_fails_is_said_and_parks_nothing(cast, proposed):
    ask(proposed, cast.riley, "Please raise this.")
    assert proposed.walk() == "waiting"
    (answer,) = events(proposed, "question.answered")
    assert not asking.open_questions(proposed.again()) and answer.payloads["answer"]


def test_a_workflow_that_answers_nothing_says_so(cast):
    proposed = propose_mail(cast)
    ask(proposed, cast.riley)
    assert proposed.walk() == "waiting"
    assert len(events(proposed, "question.answered")) == 1 and not events(proposed, "model.called")


def test_a_question_before_the_run_has_come_to_wait_is_answered_all_the_same(cast, proposed, monkeypatch):
    original = executor._wait

    def asked_meanwhile(held, outcome):
        if not events(proposed, "question.asked"):
            ask(proposed, cast.riley)
        return original(held, outcome)

    Run.objects.filter(pk=proposed.run.pk).update(state="queued", waiting={})
    monkeypatch.setattr(executor, "_wait", asked_meanwhile)
    proposed.walk()
    assert Run.objects.get(pk=proposed.run.pk).state == "queued"
    assert proposed.walk() == "waiting" and len(events(proposed, "question.answered")) == 1


def test_an_edit_closes_what_was_asked_of_the_old_one(cast, proposed):
    ask(proposed, cast.riley)
    arguments = dict(exact.read(proposed.action).arguments) | {"subject": "Your refund"}
    made = editing.edit(proposed.again(), by=person(cast.sam.pk), arguments=arguments, digest=proposed.action.digest)
    assert proposed.walk() == "waiting"
    assert not events(proposed, "question.answered") and asking.thread(made.action) == ()


# on the page ---------------------------------------------------------------------------------------------------------------------------


def test_the_page_shows_what_was_asked_and_answered(cast, client, proposed):
    client.force_login(cast.riley)
    posted = client.post(proposed.url("questions"), {"question": WHY, "digest": proposed.action.digest})
    assert posted.status_code == 303
    page = text(client.get(proposed.url()))
    assert "You asked" in page and "The agent is answering" in page and "Waiting for the agent’s answer" in page
    proposed.walk()
    page = text(client.get(proposed.url()))
    assert "support-triage answered" in page and "1 answered." in page and "Waiting for a reviewer" in page
    assert "Read for yourself: #2" in page and "The action did not change." in page
    client.force_login(cast.sam)
    assert "Riley asked" in text(client.get(proposed.url()))


def test_who_has_asked_finds_the_letter_folded_and_the_decision_records_that(cast, client, proposed):
    client.force_login(cast.riley)
    assert "as you read it" not in text(client.get(proposed.url()))
    ask(proposed, cast.riley)
    proposed.walk()
    page = text(client.get(proposed.url()))
    assert "Message, as you read it" in page and "12 arguments: 6 shown, 6 folded, none hidden" in page
    given = {"verdict": "approved", "digest": proposed.action.digest, "opened": ["/message"]}
    client.force_login(cast.sam)
    assert "as you read it" not in text(client.get(proposed.url()))
    client.force_login(cast.riley)
    client.post(proposed.url("decision"), given)
    seen = Decision.objects.get().seen
    assert (seen["shown"], seen["folded"], seen["opened"]) == (6, 6, ["/message"])


def test_a_letter_that_is_warned_of_is_never_folded(cast):
    def behind(action: ProposedAction) -> int:
        card = presenting.panel(presenting.find(person(cast.riley.pk), action.pk), person(cast.riley.pk)).card
        assert card is not None
        return presenting._behind(card)

    assert behind(propose_mail(cast, file="a,b\n1,2\n").action) == 2
    assert behind(propose_mail(cast, body="Hello\u200b Marta").action) == 0


def test_the_events_that_an_answer_names_are_links_whether_cited_or_only_written(cast, client, proposed):
    ask(proposed, cast.sam, "What do #1 and #99999 say?")
    proposed.walk()
    client.force_login(cast.riley)
    page = client.get(proposed.url())
    assert "Read for yourself: #1 Read for yourself: #2" in text(page)
    link = reverse("runs:event", args=(proposed.run.pk, 1))
    assert f'What do <a class="num" href="{link}">#1</a> and #99999 say?' in page.content.decode()


def test_a_refused_question_stays_typed(cast, client, proposed):
    client.force_login(cast.riley)
    ask(proposed, cast.sam)
    target = {"HX-Request": "true", "HX-Target": f"thread-{proposed.action.pk}"}
    late = client.post(proposed.url("questions"), {"question": WHY, "digest": proposed.action.digest}, headers=target)
    assert late.status_code == 409
    wrong = client.post(proposed.url("questions"), {"question": "?", "digest": proposed.action.digest})
    assert wrong.status_code == 422 and "Nothing was asked." in text(wrong) or "Sam asked" in text(wrong)


def test_an_edited_action_shows_what_was_asked_about_the_versions_before_it(cast, proposed, client):
    first = proposed.again()
    ask(proposed, cast.riley)
    assert proposed.walk() == "waiting"
    asking.ask(proposed.again(), by=person(cast.riley.pk), question="And who is Otto?", digest=first.digest)
    action = first
    for who, subject in ((cast.sam, "Another"), (cast.riley, "And another")):
        arguments = exact.whole(action).arguments | {"subject": subject}
        action = editing.edit(action, by=person(who.pk), arguments=arguments, digest=action.digest).action
    client.force_login(cast.riley)
    page = text(client.get(reverse("approvals:action", args=(action.pk,))))
    assert page.count(f"About #{first.proposed_seq} , before the edit") == 2 and "copied in? support-triage answered" in page
    assert "The answer to a question By a script" in page and "The draft" not in page
    assert "It was edited before the agent answered." in page and "The action did not change." not in page
    thread = presenting.panel(presenting.find(person(cast.riley.pk), action.pk), person(cast.riley.pk)).course.exchanges
    assert [(each.about, each.closed) for each in thread] == [
        (first.proposed_seq, False),
        (first.proposed_seq, True),
    ]
    third = member(cast.workspace, "tess", "reviewer")
    asking.ask(action, by=person(third.pk), question="And this one?", digest=action.digest)
    assert asking.open_questions(action)[0].text == "And this one?", "the agent is asked about what stands alone"
    assert proposed.walk() == "waiting"
    page = text(client.get(reverse("approvals:action", args=(action.pk,))))
    assert "The action did not change." in page and page.count("before the edit") == 2
    assert "before the edit" not in text(client.get(reverse("approvals:action", args=(first.pk,))))
