"""Standing grants: “approve the like for an hour, at most 20”. Each use is recorded, the budget is kept, and some things never count."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client

from access.errors import Forbidden
from access.models import AuditEntry, Membership
from access.rules import person
from approvals import decisions, editing, exact, freezes, policy, presenting, standing_grants, unknown
from approvals.findings import Warning
from approvals.models import Decision, Grant, ProposedAction, StandingGrant, StandingUse
from approvals.standing_grants import AlreadyRevoked, BackTestFirst, StandingRefused
from artifacts import vault
from config import clock
from runs.models import Event, Run
from tests.approvals.mailing import propose_change, propose_mail, sent, text
from tests.approvals.test_policy_page import tried
from tests.approvals.test_policy_versions import changing, rule, save
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)
GDYNIA = {"what": "argument", "path": "$.fields.city", "test": "is", "value": "Gdynia"}


def stands(cast: Any, *asks: dict[str, str], by: Any = None, tool: str = "change_record", budget: int = 20) -> StandingGrant:
    owner = person((by or cast.riley).pk)
    of = standing_grants.wanted(cast.workspace.pk, tool=tool, asks=asks or [GDYNIA], budget=budget, lasts=timedelta(hours=1))
    return standing_grants.make(of, by=owner, shown=standing_grants.token(of, owner))


def reviewed(cast: Any, **more: Any) -> None:
    save(cast, rule(cast, "reviewers", **more), rule(cast, "reviewers", "send_mail"))


def test_what_is_alike_is_approved_by_it_and_each_use_is_recorded(cast):
    reviewed(cast)
    grant = stands(cast)
    run = changing(cast)
    assert run.state == "succeeded"
    action = ProposedAction.objects.get(run=run)
    use = StandingUse.objects.get()
    assert (use.grant, use.action, use.digest, use.number, use.policy) == (grant, action, action.digest, 1, action.policy)
    told = Event.objects.get(run_id=run.pk, type="action.covered")
    assert told.seq == use.seq == action.settled_seq and not Decision.objects.exists()
    assert Grant.objects.get(action=action).outcome == "executed"
    assert changing(cast, fields={"city": "Sopot"}).state == "waiting", "this one is not alike"
    grant.refresh_from_db()
    assert grant.used == 1


def test_of_twenty_at_once_only_as_many_are_covered_as_its_budget_takes(cast):
    reviewed(cast)
    grant = stands(cast, budget=5)
    ended = together([partial(changing, cast, record=f"ACC-{n}") for n in range(20)])
    assert sorted(run.state for run in ended if isinstance(run, Run)) == ["succeeded"] * 5 + ["waiting"] * 15
    grant.refresh_from_db()
    assert grant.used == 5 == StandingUse.objects.count() == Grant.objects.count()
    assert sorted(StandingUse.objects.values_list("number", flat=True)) == [1, 2, 3, 4, 5]


def test_it_is_made_only_after_its_back_test_and_only_by_who_may_decide(cast):
    reviewed(cast)
    waiting = propose_change(cast).action
    of = standing_grants.wanted(cast.workspace.pk, tool="change_record", asks=[GDYNIA], budget=3, lasts=timedelta(hours=1))
    riley = person(cast.riley.pk)
    assert [each.id for each in standing_grants.back_test(of, riley).covered] == [waiting.pk]
    assert standing_grants.back_test(of, person(cast.priya.pk)).covered == (), "Priya owns the run"
    other = standing_grants.wanted(cast.workspace.pk, tool="change_record", asks=[GDYNIA], budget=4, lasts=timedelta(hours=1))
    for shown in ("", standing_grants.token(other, riley), standing_grants.token(of, person(cast.sam.pk))):
        with pytest.raises(BackTestFirst):
            standing_grants.make(of, by=riley, shown=shown)
    for who in (cast.morgan, cast.ada, cast.olga):
        with pytest.raises(Forbidden):
            standing_grants.make(of, by=person(who.pk), shown=standing_grants.token(of, person(who.pk)))
    for wrong in ({"budget": 0}, {"budget": 101}, {"lasts": timedelta(hours=25)}, {"tool": "made_up"}):
        with pytest.raises(StandingRefused):
            fields: dict[str, Any] = {"tool": "change_record", "asks": [GDYNIA], "budget": 3, "lasts": timedelta(hours=1)}
            standing_grants.wanted(cast.workspace.pk, **fields | wrong)
    assert not StandingGrant.objects.exists()


def test_a_double_click_makes_one_and_a_revoked_one_is_not_made_again_by_its_back_test(cast):
    reviewed(cast)
    riley = person(cast.riley.pk)
    of = standing_grants.wanted(cast.workspace.pk, tool="change_record", asks=[GDYNIA], budget=3, lasts=timedelta(hours=1))
    shown = standing_grants.token(of, riley)
    made = together([partial(standing_grants.make, of, by=riley, shown=shown)] * 2)
    assert [each.pk for each in made] == [StandingGrant.objects.get().pk] * 2
    assert AuditEntry.objects.filter(verb="standing_grant_made").count() == 1
    standing_grants.revoke(made[0], by=riley)
    assert standing_grants.make(of, by=riley, shown=shown).revoked_at is not None
    assert not standing_grants.standing(cast.workspace.pk).exists()


def test_what_it_names_of_an_action_is_in_full_only_for_who_may_decide(cast):
    grant = stands(cast, GDYNIA | {"path": "$.fields.mail", "value": "marta@oyelaran.example"})
    for who, seen in ((cast.riley, True), (cast.morgan, False)):
        browser = Client()
        browser.force_login(who)
        for address in ("/policies", f"/standing-grants/{grant.pk}", f"/api/v1/standing-grants/{grant.pk}", "/api/v1/standing-grants"):
            answer = browser.get(address)
            assert answer.status_code == 200 and ("oyelaran" in answer.content.decode()) is seen, (who.name, address)


def test_it_never_covers_a_send_with_all_three_legs(cast):
    sent.clear()
    reviewed(cast)
    stands(cast, {"what": "effect", "test": "is", "value": "send"}, tool="send_mail")
    assert propose_mail(cast).action.state == "waiting" and not sent


def test_the_like_of_what_is_never_covered_is_not_offered_and_why_is_said_in_its_place(cast):
    reviewed(cast)
    send, one = propose_mail(cast), propose_change(cast)
    reviewed(cast, quorum=2)
    two = propose_change(cast, record="ACC-2")
    riley = Client()
    riley.force_login(cast.riley)
    for proposed, why in ((send, "outside text, and it sends data out."), (two, "it takes 2 people."), (one, "")):
        for who in (cast.riley, cast.sam)[: 2 if proposed is two else 1]:
            decisions.decide(proposed.action, reviewer=person(who.pk), verdict="approved", digest=proposed.action.digest)
        page, form = riley.get(proposed.url()), riley.get("/standing-grants/new", {"action": proposed.action.pk})
        assert ("Approve the like for an hour" in text(page)) is not bool(why)
        assert ("Its like can’t be approved beforehand" in text(page)) is bool(why) and why in text(page)
        assert ("The action that you come from would not be covered." in text(form)) is bool(why) and why in text(form)


def test_it_never_covers_what_takes_several_people(cast):
    reviewed(cast, quorum=2)
    stands(cast)
    assert changing(cast).state == "waiting"


def test_it_never_covers_what_carries_a_warning_that_must_be_looked_at(cast, monkeypatch):
    reviewed(cast)
    stands(cast)
    found = "approvals.gate.inspection.inspect"
    for severity in ("lock", "warn"):
        monkeypatch.setattr(found, lambda *_, severity=severity, **__: [Warning("odd_address", severity, "/arguments/record")])
        assert changing(cast, note=severity).state == "waiting"


def test_it_never_covers_a_run_of_its_owners_own(cast):
    reviewed(cast)
    grant = stands(cast)
    type(cast.agent).objects.filter(pk=cast.agent.pk).update(owner=cast.riley)
    cast.agent.refresh_from_db()
    Membership.objects.get(user=cast.riley)
    assert changing(cast).state == "waiting"
    grant.refresh_from_db()
    assert grant.used == 0


@pytest.mark.parametrize("end", ["revoked", "over", "left", "frozen", "edited"])
def test_it_covers_nothing_once_it_is(cast, end):
    reviewed(cast)
    grant = stands(cast)
    if end == "revoked":
        standing_grants.revoke(grant, by=person(cast.ada.pk))
        with pytest.raises(AlreadyRevoked):
            standing_grants.revoke(grant, by=person(cast.riley.pk))
    elif end == "over":
        StandingGrant.objects.filter(pk=grant.pk).update(expires_at=clock.now() - timedelta(seconds=1))
    elif end == "left":
        Membership.objects.filter(user=cast.riley).update(deactivated_at=clock.now())
    elif end == "frozen":
        freezes.freeze(cast.workspace.pk, what="tool", tool="change_record", by=person(cast.ada.pk), reason="It writes nonsense.")
    else:
        _edited(cast)
        return
    run = changing(cast)
    assert run.state == "waiting" and not Grant.objects.exists()


def _edited(cast: Any) -> None:
    """An edit that makes an action alike is not covered: a person looks at it."""
    waiting = propose_change(cast, fields={"city": "Sopot"}).action
    arguments = dict(exact.read(waiting).arguments) | {"fields": {"city": "Gdynia"}}
    made = editing.edit(waiting, by=person(cast.sam.pk), arguments=arguments, digest=waiting.digest)
    assert made.action.state == "waiting"


def test_nobody_but_its_owner_or_an_admin_revokes_it(cast):
    reviewed(cast)
    grant = stands(cast)
    with pytest.raises(Forbidden):
        standing_grants.revoke(grant, by=person(cast.sam.pk))
    standing_grants.revoke(grant, by=person(cast.riley.pk))


def test_riley_makes_one_from_an_action_on_the_page_and_it_is_seen_and_revoked(cast):
    reviewed(cast)
    proposed = propose_change(cast)
    decisions.decide(proposed.action, reviewer=person(cast.riley.pk), verdict="approved", digest=proposed.action.digest)
    riley = Client()
    riley.force_login(cast.riley)
    assert f"/standing-grants/new?action={proposed.action.pk}" in riley.get(proposed.url()).content.decode()
    page = riley.get("/standing-grants/new", {"action": proposed.action.pk})
    assert 'value="record"' in page.content.decode() and 'value="ACC-1"' in page.content.decode()
    assert '<option value="change_record" selected>' in page.content.decode()
    given = {"action": str(proposed.action.pk), "tool": "change_record", "budget": "2", "minutes": "60", "do": "try"}
    given |= {"what": ["argument"], "path": ["$.record"], "test": ["is"], "value": ["ACC-1"]}
    seen = riley.post("/standing-grants/new", given)
    assert "1 of 1 would have been covered" in text(seen)
    refused = riley.post("/standing-grants/new", given | {"do": "make", "tried": tried(seen), "budget": "3"})
    assert refused.status_code == 409 and "was not tried yet" in text(refused)
    made = riley.post("/standing-grants/new", given | {"do": "make", "tried": tried(seen)})
    assert made.status_code == 302
    run = changing(cast, note="again")
    assert run.state == "succeeded"
    page = riley.get(made["Location"])
    assert "1 of 2 used" in text(page) and run.ref in text(page)
    assert "1 of 2" in text(riley.get("/policies"))
    card = text(riley.get(f"/actions/{ProposedAction.objects.get(run=run).pk}"))
    assert "A standing grant of Riley allowed this." in card
    action = presenting.find(person(cast.riley.pk), ProposedAction.objects.get(run=run).pk)
    told = unknown.read(action, person(cast.riley.pk)).tried
    assert ("covered", ("Riley",)) in [(row.word, row.names) for row in told], "had its outcome been lost, the page would say so too"
    assert riley.post(made["Location"] + "/revocation").status_code == 302
    assert "Revoked by Riley" in text(riley.get(made["Location"]))
    assert policy.rules(cast.workspace.pk)


def test_a_condition_that_was_filled_in_is_taken_out_and_one_that_was_typed_is_never_left_out(cast):
    reviewed(cast)
    action = propose_change(cast).action
    riley = Client()
    riley.force_login(cast.riley)
    given = {"action": str(action.pk), "tool": "change_record", "budget": "2", "minutes": "60", "do": "try"}
    rows = {"what": ["argument", ""], "path": ["field", "record"], "test": ["is", "is"]}
    seen = riley.post("/standing-grants/new", given | rows | {"value": ["note", "ACC-1"]})
    assert seen.status_code == 200 and 'value="ACC-1"' not in seen.content.decode()
    for value in ("ACC-2", "ACC-1, ACC-2"):
        seen = riley.post("/standing-grants/new", given | rows | {"value": ["note", value]})
        assert seen.status_code == 422 and "Condition 2: choose what it asks about" in text(seen)
        assert f'value="{value}"' in seen.content.decode() and 'name="tried"' not in seen.content.decode()


def test_it_is_made_from_an_action_only_if_it_is_of_the_same_tool(cast):
    reviewed(cast)
    action = propose_change(cast).action
    riley = Client()
    riley.force_login(cast.riley)
    for tool, made_from in (("change_record", action), ("send_mail", None)):
        given = {"action": str(action.pk), "tool": tool, "budget": "2", "minutes": "60", "do": "try"}
        seen = riley.post("/standing-grants/new", given)
        assert riley.post("/standing-grants/new", given | {"do": "make", "tried": tried(seen)}).status_code == 302
        assert StandingGrant.objects.get(tool=tool).made_from == made_from


def test_what_it_compares_arguments_with_lies_in_the_vault_and_once_erased_it_covers_nothing(cast, client):
    reviewed(cast)
    grant = stands(cast, GDYNIA, {"what": "effect", "test": "is", "value": "write"})
    grant.refresh_from_db()
    assert "Gdynia" not in str(StandingGrant.objects.values().get(pk=grant.pk)) and grant.conditions[1]["value"] == "write"
    client.force_login(cast.riley)
    assert "fields.city is Gdynia" in text(client.get(f"/standing-grants/{grant.pk}"))
    assert changing(cast).state == "succeeded"
    vault.erase(grant.kept, by=cast.ada)
    assert changing(cast, record="ACC-2").state == "waiting"
    assert "fields.city is" in text(client.get(f"/standing-grants/{grant.pk}"))


def test_no_more_than_so_many_stand_in_a_workspace_at_once(cast, monkeypatch):
    reviewed(cast)
    monkeypatch.setattr(standing_grants, "MAX_OPEN", 2)
    first = stands(cast)
    stands(cast)
    with pytest.raises(standing_grants.StandingRefused, match="2 stand already. Revoke one first."):
        stands(cast)
    standing_grants.revoke(first, by=person(cast.riley.pk))
    stands(cast)
    assert standing_grants.standing(cast.workspace.pk).count() == 2
