"""What a person sees of one action: every argument, drawn as it is for who may decide, redacted for everybody else."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.rules import person
from approvals import decisions, presenting
from approvals.course import course
from artifacts import vault
from runs.models import Run
from tests.approvals.mailing import CSV, propose_change, propose_mail

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
CARD_NUMBER = "4111 1111 1111 1111"
HOSTILE = {
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "template": "{{ secret }}{% include 'x' %}{# gone #}",
    "bidi": "abc\u202egnp.exe\u2066\u2069",
    "ansi": "\x1b[31mred\x1b[0m\x07",
    "invisible": "pay\u200bload\ufeff\u00ad",
    "quotes": "\"'`=&gt;</bdi></textarea></pre>",
}


def html(client, proposed, query="") -> str:
    response = client.get(proposed.url() + query)
    assert response.status_code == 200
    return response.content.decode()


def text(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_who_decides_in_a_paused_run_is_told_that_it_goes_out_once_somebody_resumes_it(cast, riley, proposed):
    assert "Once somebody resumes it" not in text(html(riley, proposed))
    Run.objects.filter(pk=proposed.action.run_id).update(state="paused", waiting={})
    assert "The run is paused. Once somebody resumes it, " in text(html(riley, proposed))


def test_an_email_is_shown_as_it_would_be_sent(cast, riley):
    proposed = propose_mail(cast, cc=["Anna <anna@fernhill.example>", "accounts@brightwater.example"], file=CSV)
    page = html(riley, proposed)
    shown = text(page)
    assert "From Fernhill Support &lt;support@fernhill.example&gt;" in shown
    assert "To marta@brightwater.example Outside First time written to" in shown
    assert "Cc Anna &lt;anna@fernhill.example&gt; accounts@brightwater.example Outside" in shown
    assert "Bcc Nobody" in shown and "Subject Your duplicate charge" in shown
    assert page.count('<div class="nobody">') == 1, "only what is said of nobody may share a line"
    assert "Hello Marta,\n\nit was charged twice.\n" in page
    assert "On approval, only once, by Handrail through the mail server." in shown  # true before and after it was decided
    assert "payments.csv" in shown and "PAY-88121" in shown and "Personal data" in shown
    assert "13 arguments: 8 shown, 5 folded, none hidden" in shown
    assert f'data-copy="{proposed.action.digest}"' in page
    assert "You approve this one e-mail : 3 recipients, 1 attachment." in shown


def test_the_three_legs_are_named_with_the_events_that_show_them(cast, riley):
    proposed = propose_mail(cast)
    page = html(riley, proposed)
    assert "This sends data out of a run that has read private and outside text." in page
    assert re.search(
        r"Read private data Check the account, #\d+ Read outside text Read the ticket, #\d+ Sends data out 1 recipient", text(page)
    )
    assert f"/runs/{proposed.run.pk}/events/" in page


def test_an_action_that_sends_nothing_out_raises_no_alarm(cast, riley):
    assert 'class="taint"' not in html(riley, propose_change(cast))


def test_any_other_call_is_shown_by_its_schema_argument_by_argument(cast, riley):
    page = html(riley, propose_change(cast, force=True))
    shown = text(page)
    for words in ("Record ACC-1", "Force Yes", "Note Empty ", "Tags Nothing in it"):
        assert words in shown
    assert "<i><bdi>&quot;city&quot;</bdi></i>: <bdi>&quot;Gdynia&quot;</bdi>" in page and "<b>3.5</b>" in page and "<b>null</b>" in page
    assert "9 arguments: 6 shown, 3 folded, none hidden" in shown
    assert "Can be undone. By “Take the note back”." in shown


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_is_text_everywhere(cast, riley, kind):
    bad = HOSTILE[kind]
    mail = propose_mail(cast, subject=bad, body=f"{bad}\n{bad}", name=bad, cc=[f"{bad} <x@y.example>"], file=f"a,b\n{bad},2\n", title=bad)
    other = propose_change(cast, record=bad, fields={bad: [bad, {bad: bad}]}, note=bad, tags=[bad])
    for page in (html(riley, mail), html(riley, other), html(riley, mail, "?do=reject")):
        assert "<script>alert" not in page and "<img" not in page
        for char in "\u202e\u2066\u2069\x1b\x07\u200b\ufeff\u00ad":
            assert char not in page, f"U+{ord(char):04X} stands in the page as it is"
    if kind == "template":
        assert "{{ secret }}{% include &#x27;x&#x27; %}{# gone #}" in html(riley, mail)
    if kind == "bidi":
        assert '<span class="glyph" title="Right-to-left override">U+202E</span>' in html(riley, mail)


def test_a_very_long_line_is_whole(cast, riley):
    line = "x" * 200_000
    assert line in html(riley, propose_mail(cast, body=line)).replace("<wbr>", "")  # places where a browser may break it


def test_a_reason_leads_to_the_events_it_names_and_to_no_others(cast, riley):
    page = html(riley, propose_mail(cast))
    assert re.search(r'<a class="num" href="/runs/[^"]+/events/7">#7</a>', page)


def test_who_may_not_decide_sees_it_redacted_and_nothing_else_of_it_is_in_the_page(cast, client):
    proposed = propose_mail(cast, body=f"Your card {CARD_NUMBER} was charged.", file=f"card\n{CARD_NUMBER}\n1\n")
    client.force_login(cast.morgan)
    page = html(client, proposed)
    assert "You see this redacted." in page and "Your card" in page
    assert CARD_NUMBER not in page and CARD_NUMBER.replace(" ", "") not in page
    assert "arguments, drawn redacted" in page and "card number hidden" in page
    assert client.get(proposed.url("attachments", "0")).status_code == 403
    client.force_login(cast.riley)
    assert CARD_NUMBER in html(client, proposed)


def test_who_may_decide_sees_the_value_and_the_queue_does_not_show_it(cast, riley):
    propose_mail(cast, name=f"card {CARD_NUMBER}")
    page = riley.get("/inbox").content.decode()
    queue, panel = page.split('id="panel"')
    assert CARD_NUMBER not in queue and "card number hidden" in queue
    assert CARD_NUMBER in panel


def test_an_attachment_is_saved_as_its_exact_bytes_and_never_run(cast, riley):
    proposed = propose_mail(cast, file=CSV)
    response = riley.get(proposed.url("attachments", "0"))
    assert response.content.decode() == CSV
    assert response["Content-Disposition"] == "attachment; filename*=UTF-8''payments.csv"
    assert response["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert response["X-Content-Type-Options"] == "nosniff" and response["Content-Type"] == "text/csv"
    assert riley.get(proposed.url("attachments", "1")).status_code == 404


def test_what_was_erased_is_said_and_cannot_be_approved(cast, riley):
    proposed = propose_mail(cast)
    vault.erase(proposed.action.canonical, by=cast.ada)
    page = html(riley, proposed)
    assert "Erased by Ada on " in page and "can no longer be read or run" in page
    assert 'value="approve"' not in page


def test_bytes_that_are_not_those_of_the_digest_are_never_offered_for_approval(cast, riley):
    proposed = propose_mail(cast)
    other = propose_mail(cast, subject="Something else")
    type(proposed.action).objects.filter(pk=proposed.action.pk).update(canonical=other.action.canonical)
    page = html(riley, proposed)
    assert "are not those of its digest" in page
    assert 'value="approve"' not in page
    answer = riley.post(proposed.url("decision"), {"verdict": "approved", "digest": proposed.action.digest})
    assert answer.status_code == 409 and proposed.again().state == "waiting"


def test_earlier_answers_in_the_run_are_evidence(cast, riley):
    first, second = propose_mail(cast), propose_mail(cast, name="Again")
    decisions.decide(first.action, reviewer=person(cast.sam.pk), verdict="rejected", digest=first.action.digest, reason="Attach it.")
    type(first.action).objects.filter(pk=second.action.pk).update(run=first.run, proposed_seq=99)
    assert re.search(r"Earlier answer Sam rejected #\d+ : “Attach it.”", text(html(riley, second)))


def test_how_often_an_address_was_written_to_is_counted_by_what_was_sent(cast, riley):
    first = propose_mail(cast)
    decisions.decide(first.action, reviewer=person(cast.riley.pk), verdict="approved", digest=first.action.digest)
    second = propose_mail(cast)
    assert "First time written to" in html(riley, second)
    assert first.walk() == "succeeded"
    assert "Written to once" in text(html(riley, second))


def test_the_first_row_is_open_at_the_inbox_and_any_action_at_its_own_address(cast, riley):
    first, second = propose_mail(cast), propose_mail(cast, name="Second")
    assert f'data-action="{first.action.pk}"' in riley.get("/inbox").content.decode()
    assert f'data-action="{second.action.pk}"' in html(riley, second)
    assert riley.get("/inbox")["Cache-Control"].startswith("max-age=0, no-cache, no-store")


def test_an_empty_inbox_says_so_and_offers_one_way_on(riley):
    page = riley.get("/inbox").content.decode()
    assert "Nothing is waiting for you." in page and "New requests appear here by themselves." in page


def test_page_reply_and_push_hold_the_same_bytes(cast, riley):
    proposed = propose_mail(cast, file=CSV)
    propose_change(cast)
    actor = person(cast.riley.pk)
    page = html(riley, proposed)
    reply = riley.get(proposed.url(), headers={"HX-Request": "true", "HX-Target": "panel"}).content.decode()
    push = presenting.push_inbox(actor, proposed.action.pk)
    pushed = re.split(r'(?=<\w+ hx-swap-oob="morph")', push.html)[1:]
    names = {re.search(r'id="([a-z-]+?)(-[0-9a-f]{8}-.*?)?"', each)[1] for each in pushed}
    assert names == {"queue", "inbox-count", "frozen-now", "status", "note", "quorum", "thread", "course"}
    for each in pushed:
        plain = _without_amounts(each.replace(' hx-swap-oob="morph"', "", 1).strip())
        assert plain in _without_amounts(page)
        assert plain in _without_amounts(reply.replace(' hx-swap-oob="morph"', ""))
    panel = _without_amounts(page[page.index('<section class="panel"') : page.index("</main>")])
    assert _without_tokens(panel).strip() in _without_tokens(_without_amounts(reply.replace(" data-focus", "", 1)))


def _without_amounts(page: str) -> str:
    return re.sub(r'data-p="\d+"', "", page)  # how much of a deadline is left, rounded when it is drawn


def _without_tokens(page: str) -> str:
    return re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", page)


def test_a_push_holds_no_argument_and_nothing_hidden(cast):
    proposed = propose_mail(cast, body=f"A body with {CARD_NUMBER}", name=f"card {CARD_NUMBER}", file="secret,column\n1,2\n")
    push = presenting.push_inbox(person(cast.riley.pk), proposed.action.pk)
    assert CARD_NUMBER not in push.html and "A body with" not in push.html and "column" not in push.html


def test_a_push_replaces_the_bar_only_when_it_is_over(cast):
    proposed = propose_mail(cast)
    riley = person(cast.riley.pk)
    first = presenting.push_inbox(riley, proposed.action.pk)
    assert 'id="decide-' not in first.html
    again = presenting.push_inbox(riley, proposed.action.pk, last_key=first.key)
    assert 'id="status-' not in again.html and 'id="queue"' in again.html
    decisions.decide(proposed.action, reviewer=person(cast.sam.pk), verdict="approved", digest=proposed.action.digest)
    over = presenting.push_inbox(riley, proposed.action.pk, last_key=first.key)
    assert 'id="decide-' in over.html and "data-over" in over.html and "Sam approved this." in over.html


@pytest.mark.parametrize("propose", [propose_mail, propose_change])
def test_an_action_read_in_two_halves_is_never_taken_for_what_it_is_now(cast, propose):
    proposed = propose(cast)
    decisions.decide(proposed.action, reviewer=person(cast.sam.pk), verdict="approved", digest=proposed.action.digest)
    early = presenting.find(person(cast.riley.pk), proposed.action.pk)  # the first half: the action and its grant
    assert proposed.walk() == "succeeded"
    early.run.refresh_from_db()  # the second: the run and its log, which went on
    drawn = course(early, person(cast.riley.pk))
    assert drawn.outcome and "the run has to reach it" in drawn.outcome.text and len(drawn.stages) > 2
    push = presenting.push_inbox(person(cast.riley.pk), proposed.action.pk, last_key=drawn.key)
    assert "what ran is what was approved." in push.html


def test_a_push_to_somebody_elses_action_is_only_their_own_queue(cast):
    proposed = propose_mail(cast)
    push = presenting.push_inbox(person(cast.olga.pk), proposed.action.pk)
    assert (push.key, push.queue.rows) == ("", [])
    assert str(proposed.action.pk) not in push.html


def test_the_page_takes_the_same_number_of_queries_however_much_there_is(cast, riley):
    small = propose_mail(cast)
    with CaptureQueriesContext(connection) as one:
        html(riley, small)
    for name in "BCDEFG":
        propose_mail(cast, name=name)
    large = propose_mail(cast, cc=[f"{n}@x.example" for n in range(30)], bcc=["z@y.example"], name="Large")
    with CaptureQueriesContext(connection) as many:
        html(riley, large)
    assert len(many) == len(one) <= 22
