"""A reviewer edits an action: what stands is another action with another digest, which another person must decide on."""

import dataclasses
import re

import pytest

from access.rules import person
from approvals import decisions, editing, exact, inbox, policy
from approvals.errors import AlreadyDecided, DigestChanged, EditRefused, NothingChanged, SelfApproval, Unreadable
from approvals.models import Decision, Grant, ProposedAction
from runs.engine.tools import TOOLS
from runs.models import Event, Run
from tests.approvals.mailing import propose_change, propose_mail, rules, sent, text
from tests.approvals.test_policy_versions import rule, save
from tests.together import together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
HTMX = {"HX-Request": "true", "HX-Target": "panel"}


def edited(proposed, by, **changes):
    arguments = dict(exact.read(proposed.action).arguments) | changes
    return editing.edit(proposed.action, by=by, arguments=arguments, digest=proposed.action.digest)


def typed(proposed, **changes) -> dict[str, str]:
    """The form as a browser would post it."""
    fields = {field.input_name: field.text for field in editing.form(proposed.action) if not field.fixed}
    return fields | {f"argument.{name}": text for name, text in changes.items()} | {"digest": proposed.action.digest}


def checked(response) -> str:
    return re.search(r'name="checked" value="(\w+)"', response.content.decode())[1]


def approve(action, who):
    return decisions.decide(action, reviewer=person(who.pk), verdict="approved", digest=action.digest)


def test_what_runs_is_the_edit_that_another_person_approved(cast, proposed):
    made = edited(proposed, person(cast.riley.pk), body="Hello Marta,\n\nit is refunded.\n", cc=[])
    old, new = proposed.again(), ProposedAction.objects.get(pk=made.action.pk)
    assert (old.state, old.superseded_by_id, new.state, new.editor_id) == ("superseded", new.pk, "waiting", cast.riley.pk)
    assert new.digest != old.digest and new.round == 1
    with pytest.raises(SelfApproval, match="edited this action"):
        approve(new, cast.riley)
    with pytest.raises(DigestChanged):
        approve(old, cast.sam)
    approve(new, cast.sam)
    assert proposed.walk() == "succeeded"
    (message,) = sent
    assert message["body"] == "Hello Marta,\n\nit is refunded.\n"
    assert message["key"] == str(Grant.objects.get(action=new).pk)


def test_an_editor_may_approve_where_the_policy_says_so_and_never_what_is_tainted(cast):
    mail, change = propose_mail(cast), propose_change(cast)
    save(cast, *(rule(cast, "reviewers", tool, editor_may_approve=True) for tool in ("send_mail", "change_record")))
    riley = person(cast.riley.pk)
    tainted, plain = edited(mail, riley, subject="Your refund").action, edited(change, riley, note="As she wrote").action
    assert list(inbox.mine(riley)) == [plain]
    with pytest.raises(SelfApproval, match="edited this action"):
        approve(tainted, cast.riley)
    assert approve(plain, cast.riley).action.state == "approved"
    assert approve(tainted, cast.sam).action.state == "approved"


def test_approvals_of_the_old_one_do_not_count(cast):
    rules(cast.workspace.pk, quorum=2)
    proposed = propose_mail(cast)
    approve(proposed.action, cast.sam)
    made = edited(proposed, person(cast.riley.pk), subject="Your refund")
    assert approve(made.action, cast.sam).action.state == "waiting"
    assert not Grant.objects.exists()


def test_the_log_says_who_edited_and_what_took_its_place(cast, proposed):
    made = edited(proposed, person(cast.riley.pk), subject="Your refund")
    told = Event.objects.filter(run_id=proposed.run.pk).order_by("-seq")[:2]
    assert [event.type for event in told] == ["action.superseded", "action.proposed"]
    assert str(cast.riley.pk) in told[1].body and str(made.action.pk) in told[0].body


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"to": "nobody"}, "to"),
        ({"unheard": 1}, "unheard"),
        ({"body": 3}, "body"),
    ],
)
def test_arguments_that_do_not_fit_change_nothing(cast, proposed, changes, says):
    with pytest.raises(EditRefused, match=says):
        edited(proposed, person(cast.riley.pk), **changes)
    assert proposed.again().state == "waiting" and ProposedAction.objects.count() == 1


def test_the_same_again_is_no_edit_and_what_the_tool_fills_in_stays(cast, proposed):
    with pytest.raises(NothingChanged):
        edited(proposed, person(cast.riley.pk))
    with pytest.raises(NothingChanged):
        edited(proposed, person(cast.riley.pk), sender="Somebody else <else@fernhill.example>", message_id="<x@y>")


def test_an_edit_back_to_what_was_replaced_is_refused_and_says_which(cast, proposed):
    made = edited(proposed, person(cast.riley.pk), subject="Your refund")
    first = exact.read(proposed.action).arguments
    with pytest.raises(EditRefused, match=rf"#{proposed.action.proposed_seq}.*superseded"):
        editing.edit(made.action, by=person(cast.sam.pk), arguments=first, digest=made.action.digest)


def test_an_edit_before_the_run_has_come_to_wait_is_waited_for_all_the_same(cast, proposed):
    waited = Run.objects.get(pk=proposed.run.pk).waiting
    made = edited(proposed, person(cast.riley.pk), subject="Your refund")
    Run.objects.filter(pk=proposed.run.pk).update(waiting=waited)  # as a worker leaves it that came to wait after the edit
    approve(made.action, cast.sam)
    assert proposed.walk() == "succeeded" and len(sent) == 1


@pytest.mark.parametrize("who", ["morgan", "otto", "ada"])
def test_only_who_may_decide_may_edit(cast, proposed, who):
    with pytest.raises(SelfApproval):
        edited(proposed, person(getattr(cast, who).pk), subject="Mine")


def test_what_the_policy_forbids_by_now_can_not_be_edited_into(cast, proposed):
    policy.set_rule(proposed.run.workspace_id, "send_mail", name="Closed", outcome="never", by=cast.ada)
    with pytest.raises(EditRefused, match="policy"):
        edited(proposed, person(cast.riley.pk), subject="Your refund")


def test_nothing_that_a_person_edited_is_granted_by_a_rule_alone(cast):
    rules(cast.workspace.pk, quorum=1)
    proposed = propose_change(cast)
    policy.set_rule(proposed.run.workspace_id, "change_record", name="Open", outcome="automatic", by=cast.ada)
    made = edited(proposed, person(cast.riley.pk), note="By hand")
    assert made.action.state == "waiting" and not Grant.objects.filter(action=made.action).exists()


@pytest.mark.both_databases
def test_editing_races_deciding_and_one_of_them_stands(cast, proposed):
    outcomes = together(
        [
            lambda: edited(proposed, person(cast.riley.pk), subject="Your refund"),
            lambda: approve(proposed.action, cast.sam),
        ]
    )
    (refused,) = [each for each in outcomes if isinstance(each, Exception)]
    assert isinstance(refused, AlreadyDecided | DigestChanged)
    approved = Decision.objects.count()
    assert (proposed.again().state, approved) in (("approved", 1), ("superseded", 0))
    assert ProposedAction.objects.filter(state="waiting").count() == 1 - approved


@pytest.mark.both_databases
def test_the_same_edit_twice_at_once_makes_one_action(cast, proposed):
    made = together([lambda: edited(proposed, person(cast.riley.pk), subject="Your refund")] * 4)
    assert len({each.action.pk for each in made}) == 1 and sum(not each.again for each in made) == 1
    assert ProposedAction.objects.count() == 2


# on the page ---------------------------------------------------------------------------------------------------------------------------


def test_the_form_holds_every_argument_and_looking_changes_nothing(riley, proposed):
    page = riley.get(proposed.url("edit"))
    html = page.content.decode()
    for name in ("to", "cc", "bcc", "subject", "body", "name"):
        assert f'name="argument.{name}"' in html
    assert 'name="argument.sender"' not in html and "filled in by the tool" in html
    assert "Nothing is sent while you edit." in text(page)
    shown = riley.post(proposed.url("edit"), typed(proposed, subject="Your refund"))
    assert "1 of" in text(shown) and "Propose my version" in text(shown)
    assert proposed.again().state == "waiting" and ProposedAction.objects.count() == 1


def test_two_steps_put_it_up_and_the_new_page_says_what_changed(riley, proposed):
    shown = riley.post(proposed.url("edit"), typed(proposed, subject="Your refund", cc=""))
    put = riley.post(proposed.url("edit"), typed(proposed, subject="Your refund", cc="") | {"checked": checked(shown)})
    newer = ProposedAction.objects.get(state="waiting")
    assert (put.status_code, put["Location"]) == (303, f"/actions/{newer.pk}?from={proposed.action.pk}")
    page = text(riley.get(put["Location"]))
    assert "You edited this." in page and "What changed" in page and "you can’t decide on it" in page
    assert newer.digest == checked(shown)
    assert "What changed" in text(riley.get(f"/actions/{newer.pk}"))  # however one comes to it
    assert exact.read(newer).arguments["cc"] == []
    assert "You edited this." in text(riley.get(proposed.url()))


def test_who_edited_reads_in_full_what_they_wrote_and_others_who_may_not_decide_do_not(cast, client, proposed):
    secret = "Hello Marta,\n\nwrite to anna.kowalska@brightwater.example or +48 601 234 567.\n"
    made = edited(proposed, person(cast.riley.pk), body=secret).action
    for who, sees in ((cast.riley, True), (cast.sam, True), (cast.morgan, False)):
        client.force_login(who)
        assert ("+48 601 234 567" in client.get(f"/actions/{made.pk}").content.decode()) is sees, who.name


def test_an_address_outside_the_runs_scope_is_said_at_its_field_before_anything_is_proposed(cast, riley, proposed, monkeypatch):
    limited = dataclasses.replace(TOOLS["send_mail"], touches=lambda a: {"email": a["cc"]})
    monkeypatch.setitem(TOOLS, "send_mail", limited)
    page = riley.post(proposed.url("edit"), typed(proposed, cc="elsewhere@other.example"))
    html = page.content.decode()
    assert page.status_code == 422 and "Propose my version" not in html and proposed.again().state == "waiting"
    assert 'id="error-cc">Outside this run’s scope: elsewhere@other.example' in html and 'aria-describedby="error-cc"' in html
    assert 'id="error-body"' not in html
    arguments = editing.version(
        proposed.action, exact.whole(proposed.action).arguments | {"cc": ["elsewhere@other.example"]}
    ).what.arguments
    with pytest.raises(EditRefused, match="outside this run’s scope"):
        editing.edit(proposed.action, by=person(cast.riley.pk), arguments=arguments, digest=proposed.action.digest)
    assert ProposedAction.objects.count() == 1


def test_the_form_shows_an_action_to_nobody_who_may_not_decide_on_it(cast, riley, proposed):
    subject = exact.whole(proposed.action).arguments["subject"]
    assert subject in riley.get(proposed.url("edit")).content.decode()
    Run.objects.filter(pk=proposed.run.pk).update(owner=cast.riley)
    for answer in (riley.get(proposed.url("edit")), riley.post(proposed.url("edit"), typed(proposed, subject="Another"))):
        assert answer.status_code == 403 and subject not in answer.content.decode()


def test_a_letter_is_edited_in_the_order_and_words_of_letters(proposed):
    fields = editing.form(proposed.action)
    open_ones = [field.title for field in fields if not field.fixed]
    assert open_ones[:4] == ["To", "Cc", "Bcc", "Subject"] and "Message" in open_ones and "Message-ID" in [field.title for field in fields]
    assert [field.fixed for field in fields] == sorted(field.fixed for field in fields), "what the tool fills in comes last"


def test_nothing_is_not_struck_as_if_somebody_had_written_it(riley, proposed):
    shown = riley.post(proposed.url("edit"), typed(proposed, bcc="ina@brightwater.example")).content.decode()
    row = shown.partition("Your changes</caption>")[2].partition("</table>")[0]
    assert '<span class="dim">Nothing in it</span>' in row and "ina@brightwater.example" in row and "<del>" not in row and ">Bcc<" in row


def test_who_decides_on_an_edit_sees_who_edited_what(cast, client, proposed):
    made = edited(proposed, person(cast.riley.pk), subject="Your refund")
    client.force_login(cast.sam)
    for address in (f"/actions/{made.action.pk}", "/inbox"):
        page = text(client.get(address))
        assert "Riley edited this." in page and "What changed" in page and "Your version" not in page
    assert "put up an edit" in text(client.get(f"/runs/{proposed.run.pk}"))


def test_what_is_changed_after_the_look_is_shown_again_and_not_put_up(riley, proposed):
    shown = riley.post(proposed.url("edit"), typed(proposed, subject="Your refund"))
    again = riley.post(proposed.url("edit"), typed(proposed, subject="Your money") | {"checked": checked(shown)})
    assert "You changed it since you looked at it." in text(again)
    assert checked(again) != checked(shown) and ProposedAction.objects.count() == 1


def test_what_can_not_be_read_is_said_at_its_field_and_stays_typed(cast, riley):
    proposed = propose_change(cast)
    refused = riley.post(proposed.url("edit"), typed(proposed, fields='{"city": '), headers=HTMX)
    assert refused.status_code == 422
    assert "This is not JSON." in text(refused) and "{&quot;city&quot;: " in refused.content.decode()
    assert proposed.again().state == "waiting"


@pytest.mark.parametrize("wrong", ['{"city": 1, "city": 2}', '{"n": 9007199254740993}', "[1,"])
def test_json_that_would_not_be_what_was_typed_is_refused_at_its_field(cast, riley, wrong):
    proposed = propose_change(cast)
    refused = riley.post(proposed.url("edit"), typed(proposed, fields=wrong))
    assert refused.status_code == 422 and "This is not JSON." in text(refused)
    assert ProposedAction.objects.count() == 1


def test_arguments_that_no_digest_can_name_are_refused(cast):
    proposed = propose_change(cast)
    with pytest.raises(EditRefused):
        edited(proposed, person(cast.riley.pk), fields={"n": 2**60})


def test_what_is_not_the_digests_own_is_not_edited(cast, riley, proposed):
    ProposedAction.objects.filter(pk=proposed.action.pk).update(digest="0" * 64)
    proposed.action.refresh_from_db()
    with pytest.raises(Unreadable):
        edited(proposed, person(cast.riley.pk), subject="Your refund")
    assert "can’t be approved" in text(riley.post(proposed.url("edit"), {"digest": "0" * 64}, headers=HTMX))


def test_a_tool_that_is_not_loaded_any_more_is_said(riley, proposed):
    form = typed(proposed, subject="Your refund")
    ProposedAction.objects.filter(pk=proposed.action.pk).update(tool_schema=9)
    refused = riley.post(proposed.url("edit"), form)
    assert refused.status_code == 422 and "not loaded here" in text(refused)
    assert riley.get(proposed.url("edit")).status_code == 303


def test_who_comes_too_late_is_told_what_stands(cast, riley, proposed):
    shown = riley.post(proposed.url("edit"), typed(proposed, subject="Your refund"))
    approve(proposed.action, cast.sam)
    late = riley.post(proposed.url("edit"), typed(proposed, subject="Your refund") | {"checked": checked(shown)}, headers=HTMX)
    assert late.status_code == 409 and "Sam approved this." in text(late)
    assert ProposedAction.objects.count() == 1
    assert riley.get(proposed.url("edit")).status_code == 303


def test_what_nobody_touched_stays_to_the_byte(cast, riley):
    proposed = propose_mail(cast, body="One\r\ntwo\r\n\r\n three \n\rfour")
    shown = riley.post(proposed.url("edit"), typed(proposed, subject="Your refund"))
    riley.post(proposed.url("edit"), typed(proposed, subject="Your refund") | {"checked": checked(shown)})
    assert exact.read(ProposedAction.objects.get(state="waiting")).arguments["body"] == "One\r\ntwo\r\n\r\n three \n\rfour"
