"""The page of the policies: a draft is tried on what was proposed before, and only what was tried is saved."""

import re
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from access.ids import uuid7
from access.models import AuditEntry
from access.rules import person
from approvals import policy, policy_views, trying
from approvals.models import Decision, Policy, PolicySet, ProposedAction
from runs.engine.tools import TOOLS
from tests import proving
from tests.approvals.mailing import propose_change, propose_mail, text
from tests.approvals.test_policy_versions import changing, rule, save
from tests.ids import without_ids

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
SECRET = "Hutnicza 12, code 4711"


@pytest.fixture
def ada(cast) -> Client:
    browser = Client()
    browser.force_login(cast.ada)
    return proving.shown(browser)


def form(cast: Any, **changes: Any) -> dict[str, Any]:
    """The form of the rule of send_mail, as a browser sends it."""
    old = policy.in_force(cast.workspace.pk, "send_mail")
    given = {"key": str(old.key), "place": str(old.position), "name": old.name, "tool": "send_mail", "need": "several", "quorum": "2"}
    given |= {"expires": "3600", "lasts": "3600", "base": str(policy.newest(cast.workspace.pk).version), "do": "try"}
    empty = {"what": [""], "path": [""], "test": ["is"], "value": [""]}
    return given | empty | {"why": "After the ZN-4710 review."} | changes


def tried(response: HttpResponse) -> str:
    return re.search(r'name="tried" value="([^"]+)"', response.content.decode())[1]


def post(browser: Client, given: dict[str, Any]) -> HttpResponse:
    return browser.post("/policies/rule", given)


def test_a_draft_is_tried_and_says_exactly_what_would_have_differed(cast, ada):
    mail, change = propose_mail(cast), propose_change(cast)
    page = post(ada, form(cast))
    assert page.status_code == 200
    assert "1 would differ" in text(page) and "1 needs more people. 1 stays as it was." in text(page)
    assert "One reviewer becomes → Two reviewers" in text(page)
    found = trying.tried(cast.workspace.pk, [rule(cast, "reviewers", "send_mail", quorum=2)]).differs
    assert {(each.id, each.before, each.after) for each in found} == {
        (mail.action.pk, "One reviewer", "Two reviewers"),
        (change.action.pk, "One reviewer", "Never"),
    }
    assert PolicySet.objects.count() == 2 and not Decision.objects.exists(), "nothing was saved or decided"
    assert AuditEntry.objects.get(verb="policy_tried").actor_id == str(cast.ada.pk)


def test_what_was_tried_is_saved_with_its_reason_and_stands_in_the_history(cast, ada):
    propose_mail(cast)
    given = form(cast)
    token = tried(post(ada, given))
    assert post(ada, given | {"do": "save", "tried": token}).status_code == 302
    assert policy.in_force(cast.workspace.pk, "send_mail").quorum == 2
    page = text(ada.get("/policies"))
    assert "Version 3 is in force" in page and "After the ZN-4710 review." in page and "Two reviewers" in page


def test_what_was_not_tried_as_it_is_now_is_not_saved_and_nothing_typed_is_lost(cast, ada):
    propose_mail(cast)
    given = form(cast)
    token = tried(post(ada, given))
    for changed in ({}, {"tried": token, "quorum": "3"}, {"tried": token[:-3] + "abc"}, {"tried": token, "need": "automatic"}):
        page = post(ada, given | {"do": "save"} | changed)
        assert page.status_code == 409 and "After the ZN-4710 review." in page.content.decode()
        assert "This draft was not tried yet" in text(page)
    short = post(ada, given | {"do": "save", "tried": token, "why": ""})
    assert short.status_code == 422 and "Saving a policy needs a reason" in text(short)
    other = Client()
    other.force_login(cast.riley)
    assert policy.newest(cast.workspace.pk).version == 2


def test_a_policy_that_changed_meanwhile_is_not_overwritten(cast, ada):
    propose_mail(cast)
    given = form(cast)
    token = tried(post(ada, given))
    save(cast, *policy.rules(cast.workspace.pk))
    page = post(ada, given | {"do": "save", "tried": token})
    assert page.status_code == 409 and "Version 3 is in force by now; yours was made from version 2." in text(page)
    assert 'name="base" value="3"' in page.content.decode() and "After the ZN-4710 review." in page.content.decode()
    again = post(ada, given | {"base": "3"})
    assert post(ada, given | {"base": "3", "do": "save", "tried": tried(again)}).status_code == 302


def test_a_condition_that_is_not_understood_is_said_beside_what_was_typed(cast, ada):
    propose_mail(cast)
    page = post(ada, form(cast, what=["argument"], path=["$..to"], test=["is"], value=["x<b>y"]))
    assert page.status_code == 422 and "Condition 1: write the path as JSONPath" in text(page)
    assert 'value="x&lt;b&gt;y"' in page.content.decode() and 'value="$..to"' in page.content.decode()


def test_a_condition_that_came_by_halves_is_not_left_out(cast, ada):
    propose_mail(cast)
    page = post(ada, form(cast, what=["effect", "argument"], path=["", "$.to[*]"], test=["is", "is"], value=["send"]))
    assert page.status_code == 422 and "Condition 2: it compares with nothing." in text(page)


def test_a_condition_that_says_not_what_it_asks_about_is_not_left_out(cast, ada):
    propose_mail(cast)
    for half in ({"value": ["send", "417"]}, {"path": ["", "to[*]"], "value": ["send", ""]}):
        page = post(ada, form(cast, **({"what": ["effect", ""], "path": ["", ""], "test": ["is", "is"]} | half)))
        assert page.status_code == 422 and "Condition 2: choose what it asks about, or leave all of it empty." in text(page)
        assert '<li class="cond__new"><details open>' in page.content.decode(), "and what was typed is seen"
    half = text(post(ada, form(cast, what=[""], path=[""], test=["is"], value=["417"])))
    assert "Condition 1: choose what it asks about" in half and "Every action of the tool" not in half


ODD = {
    "Its name has 1 to 120 characters.": [{"name": ""}, {"name": " \u200b "}, {"name": "x" * 121}, {"name": "a\0b"}],
    "Its name holds what looks like a card number": [{"name": "Refunds to 4111 1111 1111 1111"}],
    "Choose a tool, and what it needs.": [{"tool": "x" * 61}, {"tool": "a\0b"}, {"need": "all"}],
    "How many people: write a whole number from 2 to 20.": [{"quorum": each} for each in ("", "1", "21", "two", "２")],
    "Expires after: write a whole number": [{"expires": each} for each in ("", "59", "2592001", "1.5")],
    "Grant lasts: write a whole number": [{"lasts": each} for each in ("0", "-60", "9" * 12)],
    "At most a day: write a whole number": [{"a_day": "0"}],
    "Can be recalled for: write a whole number": [{"recall": "86401"}],
    "At most in money a day": [{"a_day_amount": each} for each in ("500", "500 eur", "-5 EUR", "some EUR")],
    "Days begin in: choose a place.": [{"zone": "Mars/Jezero"}],
    "Choose a group of this workspace, or all who may decide.": [{"from": "01a23076-d5e3-7290-8211-d42543f5a866"}, {"from": "Finance"}],
    "A rule has at most 8 conditions.": [{"what": ["label"] * 9, "path": [""] * 9, "test": ["at_least"] * 9, "value": ["personal"] * 9}],
}


@pytest.mark.parametrize(("said", "odd"), [(said, odd) for said, each in ODD.items() for odd in each])
def test_what_no_rule_can_say_is_refused_in_words_and_nothing_is_tried(cast, ada, said, odd):
    propose_mail(cast)
    page = post(ada, form(cast, **odd))
    assert page.status_code == 422 and said in text(page) and 'name="tried"' not in page.content.decode()


@pytest.mark.parametrize("value", [",", " , ,,"])
def test_a_list_that_names_nothing_is_no_condition_that_could_ever_hold(cast, ada, value):
    propose_mail(cast)
    page = post(ada, form(cast, what=["agent"], path=[""], test=["one_of"], value=[value]))
    assert page.status_code == 422 and "Condition 1: it compares with nothing." in text(page)


def test_what_cannot_be_seen_is_no_name_of_a_rule_and_is_drawn_in_what_it_asks(cast, ada):
    propose_mail(cast)
    for name in ("Refunds\u202e001 ot pu", "Re\u200bfunds"):
        page = post(ada, form(cast, name=name))
        assert page.status_code == 422 and "a character that nobody can see" in text(page)
    assert "it would be read as another rule" in text(post(ada, form(cast, name="Ref\u0443nds"))), "with a Cyrillic letter"
    given = form(cast, what=["argument"], path=["subject"], test=["is"], value=["Zeb\u200bra"])
    assert post(ada, given | {"do": "save", "tried": tried(post(ada, given))}).status_code == 302
    for address in ("/policies", "/permissions", f"/policies/{policy.newest(cast.workspace.pk).version}"):
        page = ada.get(address).content.decode()
        assert "Zebra" not in page and "Zeb\u200bra" not in page, address


@pytest.mark.both_databases
def test_a_second_click_on_save_gives_the_version_that_the_first_made(cast, ada):
    propose_mail(cast)
    given = form(cast)
    given |= {"do": "save", "tried": tried(post(ada, given))}
    first, second = post(ada, given), post(ada, given)
    assert (first.status_code, second.status_code) == (302, 302) and first.url == second.url
    assert policy.newest(cast.workspace.pk).version == int(given["base"]) + 1
    assert post(ada, given | {"name": "Another"}).status_code == 409
    assert post(ada, given | {"base": "0"}).status_code == 409, "nor was it made from that one"
    now, rules = policy.newest(cast.workspace.pk), policy.rules(cast.workspace.pk)
    by_whom = [policy_views._is_saved(now, rules, now.version - 1, person(each.pk)) for each in (cast.ada, cast.morgan)]
    assert by_whom == [True, False]


def test_a_rule_is_put_in_its_place_and_taken_out(cast, ada):
    propose_mail(cast)
    new = form(cast, key="01900000-0000-7000-8000-000000000001", name="No outside mail", need="never", place="1")
    new |= {"what": ["recipients", "effect"], "path": ["", ""], "test": ["is", "is"], "value": ["outside", "send"]}
    page = post(ada, new)
    assert "One reviewer becomes → Never" in text(page)
    assert post(ada, new | {"do": "save", "tried": tried(page)}).status_code == 302
    assert [each.name for each in policy.rules(cast.workspace.pk)][0] == "No outside mail"
    out = new | {"out": "1", "base": "3"}
    assert post(ada, out | {"do": "save", "tried": tried(post(ada, out))}).status_code == 302
    assert "No outside mail" not in [each.name for each in policy.rules(cast.workspace.pk)]


def test_a_rule_is_called_a_draft_only_once_it_was_posted(cast, ada):
    propose_mail(cast)
    given = form(cast)
    fresh = ada.get(f"/policies/rule?key={given['key']}")
    assert "In force As version 2 has it." in text(fresh) and "Draft" not in text(fresh)
    page = post(ada, given)
    assert "Draft, not in force" in text(page) and "Nothing is saved yet." in text(page) and "Saved, this is" not in text(page)
    out = post(ada, given | {"out": "1", "do": ""})
    assert 'name="out" value="1"' in out.content.decode() and "Keep this rule" in text(out), "taking it out is tried as well"
    kept = post(ada, given | {"out": "1", "keep": "1", "do": ""})
    assert "Remove this rule" in text(kept) and "Tried without this rule" not in text(kept)


def test_a_condition_is_taken_out_by_its_cross_and_the_others_stay(cast, ada):
    propose_mail(cast)
    rows = {"what": ["label", "agent"], "path": ["", ""], "test": ["at_least", "is"], "value": ["personal", "support-triage"]}
    page = post(ada, form(cast, **rows) | {"drop": "1", "do": ""}).content.decode()
    assert 'aria-label="Remove condition 1"' in page and 'aria-label="Remove condition 2"' not in page
    assert 'value="support-triage"' in page and page.count('value="personal"') == 1, "only among what is offered"


def test_a_value_is_chosen_where_the_tool_or_the_house_knows_all_there_are_and_typed_elsewhere(cast, ada):
    propose_mail(cast)
    rows = {
        "what": ["argument", "label", "argument", "argument"],
        "path": ["force", "", "$.force", "record"],
        "test": ["is", "at_least", "contains", "is"],
        "value": ["true", "personal", "tr", "ACC-1"],
    }
    page = post(ada, form(cast) | rows | {"tool": "change_record", "do": ""}).content.decode()
    shown = re.findall(r'<(select|input) class="in" name="value"(.*?)(?:</select>|>)', page, re.DOTALL)
    assert [tag for tag, _ in shown][:4] == ["select", "select", "input", "input"]
    assert '<option value="true" selected>true</option><option value="false">false</option>' in page
    assert '<option value="personal" selected>personal</option>' in page and 'value="ACC-1"' in page
    maybe = form(cast) | {name: said[:1] for name, said in rows.items()} | {"tool": "change_record", "value": ["maybe"], "do": ""}
    assert '<option value="maybe" selected>maybe</option><option value="true">' in post(ada, maybe).content.decode(), (
        "what was typed is kept"
    )


def test_an_older_version_is_tried_and_saved_again(cast, ada):
    propose_mail(cast)
    save(cast, rule(cast, "never", "send_mail"))
    assert "Version 3 is in force" in text(ada.get("/policies/versions/2"))
    page = ada.post("/policies/versions/2", {"do": "try", "base": "3"})
    given = {"do": "save", "base": "3", "why": "It stopped everything.", "tried": tried(page)}
    assert ada.post("/policies/versions/2", given).status_code == 302
    assert policy.newest(cast.workspace.pk).digest == PolicySet.objects.get(version=2).digest


def test_a_manager_reads_and_only_an_admin_changes(cast, ada):
    propose_mail(cast)
    morgan = Client()
    morgan.force_login(cast.morgan)
    page = morgan.get("/policies")
    assert page.status_code == 200 and "Outside e-mail, known customer" in text(page) and "/policies/rule" not in page.content.decode()
    given = form(cast)
    assert post(morgan, given).status_code == 403 and post(morgan, given | {"do": "save"}).status_code == 403
    page = ada.get("/policies/rule", {"key": given["key"]}).content.decode()
    assert '<option value="send_mail" selected>' in page and '<option value="change_record">Change the record</option>' in page


def test_a_try_shows_renditions_only(cast, ada):
    change = propose_change(cast, fields={"street": SECRET})
    save(cast, rule(cast, "reviewers"), rule(cast, "reviewers", "send_mail"))
    old = policy.in_force(cast.workspace.pk, "change_record")
    asks = {"what": ["argument"], "path": ["$.fields.street"], "test": ["contains"], "value": ["hutnicza"]}
    page = post(ada, form(cast) | {"key": str(old.key), "tool": "change_record", "need": "never"} | asks)
    assert "One reviewer becomes → Never" in text(page) and str(change.action.pk) in page.content.decode()
    assert "4711" not in without_ids(page.content.decode())


def test_what_agents_asked_for_is_listed_with_a_way_on(cast, ada):
    save(cast, rule(cast, "automatic", "send_mail"))
    changing(cast)
    page = ada.get("/policies")
    assert "change_record" in text(page) and "/policies/rule?tool=change_record" in page.content.decode()
    assert 'value="Change the record"' in ada.get("/policies/rule?tool=change_record").content.decode()


def test_many_rules_are_listed_a_page_at_a_time(cast, ada, django_assert_max_num_queries):
    propose_mail(cast)
    with CaptureQueriesContext(connection) as few:
        ada.get("/policies")
    fill = [policy.changed(_rules(cast)[0], name=f"Rule {n:03}", key=uuid7()) for n in range(99)]
    stated = {"base": policy.newest(cast.workspace.pk).version, "why": "Many.", "by": person(cast.ada.pk)}
    policy.put_in_force(cast.workspace.pk, fill, **stated)
    with django_assert_max_num_queries(len(few) + 1):  # the reason of the version
        first = text(ada.get("/policies"))
    assert "1 to 25 of 99" in first and "Rule 024" in first and "Rule 025" not in first and "Anything else" not in first
    last = text(ada.get("/policies?page=4"))
    assert "76 to 99 of 99" in last and "Rule 098" in last and "Anything else" in last, "what comes after all rules stands there"
    assert "All 99 rules" in text(ada.get("/policies/section"))


def test_a_try_on_a_thousand_actions_takes_few_queries(cast, ada, django_assert_max_num_queries):
    action = propose_mail(cast).action
    for field in ("id", "digest"):
        assert hasattr(action, field)
    rows = [ProposedAction(**_fields(action), digest=f"{n:064x}") for n in range(999)]
    ProposedAction.objects.bulk_create(rows)
    draft = [policy.changed(each, conditions=[{"what": "amount", "test": "more", "value": "1 EUR"}]) for each in _rules(cast)]
    with django_assert_max_num_queries(8):
        found = trying.tried(cast.workspace.pk, draft)
    assert (found.of, len(found.differs), found.more) == (1000, 1000, 1000)
    with django_assert_max_num_queries(24):
        page = post(ada, form(cast))
    assert "The newest 50 of 1000" in text(page)


def _fields(action: ProposedAction) -> dict[str, Any]:
    return {f.attname: getattr(action, f.attname) for f in action._meta.concrete_fields if f.name not in ("id", "digest", "key")}


def _rules(cast: Any) -> list[Policy]:
    return policy.rules(cast.workspace.pk)


def test_a_token_of_one_person_is_no_good_for_another(cast):
    draft = [rule(cast, "never")]
    word = trying.token(cast.workspace.pk, draft, base=1, by=person(cast.ada.pk))
    assert trying.was_shown(word, cast.workspace.pk, draft, base=1, by=person(cast.ada.pk))
    assert not trying.was_shown(word, cast.workspace.pk, draft, base=2, by=person(cast.ada.pk))
    assert not trying.was_shown(word, cast.workspace.pk, draft, base=1, by=person(cast.otto.pk))


def test_what_a_rule_covers_is_one_sentence_and_rules_far_down_are_folded(cast, ada):
    euros = [
        {"what": "argument", "path": "$.currency", "test": "is", "value": "EUR"},
        {"what": "amount", "test": "more", "value": "1000 EUR"},
    ]
    rules = [rule(cast, "reviewers", "send_mail", *euros, quorum=1)]
    there = {"what": "argument", "path": "$.after.reply_to", "test": "there", "value": ""}
    rules += [rule(cast, "reviewers", "send_mail", there, quorum=1)]
    of_many = [{"what": what, "path": "$.to[*]", "test": "ends", "value": ".pt"} for what in ("argument", "every")]
    rules += [rule(cast, "reviewers", "send_mail", *of_many, quorum=1)]
    rules += [rule(cast, "reviewers", "send_mail", quorum=1) for _ in range(9)]
    save(cast, *rules)
    page = ada.get("/policies/section").content.decode()
    title = TOOLS["send_mail"].title
    assert f"{title} if its amount is more than €1,000</bdi></td>" in page and "currency is" not in page
    assert f"{title} if it sets the reply to</bdi></td>" in page
    assert f"{title} if any “to” ends with .pt and every “to” ends with .pt</bdi></td>" in page
    narrow = ada.get("/policies").content.decode()
    assert f"{title} if it sets the reply to</bdi></span>" in narrow and "after.reply_to" not in narrow, (
        "in the words that the permissions have"
    )
    assert page.count('<tr role="row" class="rest">') == 4 and "4 more rules" in page and "What no rule covers" in page
    assert 'class="more"><td role="cell" colspan="7">' in page
    looking = Client()
    looking.force_login(cast.riley)  # who may not edit, and so has a column less
    assert 'class="more"><td role="cell" colspan="6">' in looking.get("/policies/section").content.decode()
    save(cast, *rules[:9])
    assert 'class="rest"' not in ada.get("/policies/section").content.decode(), "one more is not worth a fold"
