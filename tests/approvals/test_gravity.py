"""Approving something of high risk asks again who one is, once that was shown a while ago; nothing of what was typed is lost."""

from datetime import timedelta

import pytest
from django.test import Client

from approvals.models import Decision, ProposedAction
from tests import proving
from tests.approvals.mailing import propose_mail
from tests.cast import Cast

PASSWORD = "correct horse battery"


@pytest.fixture
def grave(cast: Cast) -> ProposedAction:
    action = propose_mail(cast).action
    ProposedAction.objects.filter(pk=action.pk).update(risk=3)
    return action


@pytest.fixture
def riley(cast: Cast) -> Client:
    client = Client()
    client.post("/sign-in", {"email": cast.riley.email, "password": PASSWORD})
    return client


def form(action: ProposedAction, verdict: str = "approved") -> dict[str, str]:
    return {
        "verdict": verdict,
        "digest": action.digest,
        "reason": "It is right.",
    }


def test_who_has_just_signed_in_approves_at_once(grave: ProposedAction, riley: Client) -> None:
    assert riley.post(f"/actions/{grave.pk}/decision", form(grave)).status_code in (302, 303)
    assert Decision.objects.get().signed_in == "password"


@pytest.mark.parametrize("by_htmx", [False, True])
def test_a_while_later_it_is_asked_again_and_the_decision_goes_on_as_it_was_typed(grave, riley: Client, by_htmx: bool) -> None:
    proving.shown(riley, ago=timedelta(minutes=16))
    address = f"/actions/{grave.pk}/decision"
    asked = riley.post(address, form(grave), headers={"HX-Request": "true"} if by_htmx else {})
    assert "Show that it is you" in asked.content.decode() and 'name="reason" value="It is right."' in asked.content.decode()
    assert not Decision.objects.exists()
    more = {"hr_to": address, "hr_method": "post", "hr_with": "password", "hr_password": PASSWORD}
    on = riley.post("/confirm", form(grave) | more).content.decode()
    assert f'action="{address}" data-go-on' in on and not Decision.objects.exists()
    riley.post(address, form(grave))
    assert Decision.objects.get().verdict == "approved"


def test_rejecting_is_asked_of_nobody_twice_and_neither_is_what_has_no_high_risk(cast: Cast, grave, riley: Client) -> None:
    proving.shown(riley, ago=timedelta(hours=1))
    riley.post(f"/actions/{grave.pk}/decision", form(grave, "rejected"))
    usual = propose_mail(cast).action
    riley.post(f"/actions/{usual.pk}/decision", form(usual))
    assert sorted(Decision.objects.values_list("verdict", flat=True)) == ["approved", "rejected"]


def test_over_the_api_it_is_a_problem_that_says_where_to_show_it(grave: ProposedAction, riley: Client) -> None:
    proving.shown(riley, ago=timedelta(hours=1))
    sent = {"verdict": "approved", "digest": form(grave)["digest"]}
    address = f"/api/v1/actions/{grave.pk}/decisions"
    refused = riley.post(address, sent, content_type="application/json")
    told = refused.json()
    assert (refused.status_code, told["type"], told["confirm"]) == (403, "urn:handrail:problem:step-up-needed", "/confirm")
    assert "Nothing was changed." in told["what_next"] and not Decision.objects.exists()
    proving.shown(riley)
    assert riley.post(address, sent, content_type="application/json").status_code == 201


def test_the_installation_says_after_how_long_it_is_asked(grave: ProposedAction, riley: Client, settings) -> None:
    settings.HANDRAIL_DECISION_STEP_UP = 5
    proving.shown(riley, ago=timedelta(minutes=6))
    asked = riley.post(f"/api/v1/actions/{grave.pk}/decisions", form(grave), content_type="application/json")
    assert asked.status_code == 403 and "more than 5 minutes ago" in asked.json()["detail"] and not Decision.objects.exists()
    settings.HANDRAIL_DECISION_STEP_UP = 60
    assert riley.post(f"/actions/{grave.pk}/decision", form(grave)).status_code in (302, 303)
