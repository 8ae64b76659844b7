"""Break-glass: a right for a short time, with a reason, told to all who answer for it, marked in the log, and reviewed by another admin."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from access import audit, break_glass, people, rules
from access.break_glass import GlassLasts, GlassOpen, GlassRefused, GlassUnreviewed, ReviewedBefore
from access.errors import Forbidden
from access.models import AuditEntry, BreakGlass
from access.reasons import WhyNeeded
from approvals.notifications import audience, wording
from approvals.notifications.models import Notice
from config import clock
from tests import proving
from tests.cast import member
from tests.factories import actor, make_run
from tests.together import together

pytestmark = pytest.mark.django_db
WHY = "The mail desk is down and Otto can’t be reached."


@pytest.fixture
def later(monkeypatch):
    passed, now = [timedelta()], clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + passed[0])

    def later(**by: float) -> None:
        passed[0] += timedelta(**by)

    return later


def taken(cast, *rights: str, who=None, **more) -> BreakGlass:
    return break_glass.take(cast.workspace.pk, rights or ("runs.recover",), by=actor(who or cast.morgan), reason=WHY, **more)


def browser(user) -> Client:
    client = Client()
    client.force_login(user)
    return proving.shown(client)


def test_it_gives_the_right_and_what_one_must_see_until_it_ends_by_the_clock(cast, later, django_assert_num_queries):
    before = actor(cast.morgan)
    taken(cast, "runs.steer", "runs.recover")
    with django_assert_num_queries(1):
        now = actor(cast.morgan)
    assert now.grants[cast.workspace.pk] - before.grants[cast.workspace.pk] == {"runs.steer", "runs.recover"}
    assert rules.changed({before.standing}) == {before.standing} and rules.changed({now.standing}) == set()
    later(minutes=29)
    assert rules.can(actor(cast.morgan), "runs.recover", cast.workspace.pk)
    later(minutes=2)
    after = actor(cast.morgan)
    assert after.grants == before.grants and not after.glass
    assert rules.changed({now.standing}) == {now.standing}, "what is open looks again, though nobody changed anything"


def test_it_reaches_no_other_workspace_and_no_other_person(cast):
    role = cast.elsewhere.roles.first()
    cast.elsewhere.memberships.create(user=cast.morgan, role=role)
    before = actor(cast.morgan).grants[cast.elsewhere.pk]
    taken(cast)
    assert actor(cast.morgan).grants[cast.elsewhere.pk] == before and actor(cast.priya).glass == {}
    cast.morgan.memberships.filter(workspace=cast.workspace).update(deactivated_at=clock.now())
    assert cast.workspace.pk not in actor(cast.morgan).grants


@pytest.mark.parametrize("right", ["approvals.decide", "access.manage", "policies.manage", "runs.start", "everything"])
def test_what_is_not_on_the_list_is_never_taken(cast, right):
    with pytest.raises(GlassRefused, match="is never taken"):
        taken(cast, "runs.recover", right)
    assert not BreakGlass.objects.exists()


def test_it_needs_a_reason_a_time_that_is_offered_and_a_right_that_one_lacks(cast):
    with pytest.raises(WhyNeeded):
        break_glass.take(cast.workspace.pk, ["runs.recover"], by=actor(cast.morgan), reason=" ")
    with pytest.raises(GlassRefused, match="15, 30 or 60 minutes"):
        taken(cast, minutes=600)
    with pytest.raises(GlassRefused, match="nothing to take"):
        taken(cast, "audit.view")
    with pytest.raises(Forbidden):
        taken(cast, who=cast.olga)
    taken(cast)
    with pytest.raises(GlassOpen):
        taken(cast, "runs.steer")


def test_it_is_taken_again_only_once_somebody_else_has_reviewed_the_last_time(cast, later):
    first = taken(cast)
    later(hours=2)
    client = browser(cast.morgan)
    refused = client.post("/permissions/break-glass", {"right": ["runs.steer"], "reason": WHY, "minutes": "15"})
    assert refused.status_code == 409
    assert "UTC was not reviewed yet: another admin of the workspace does that first." in refused.content.decode()
    with pytest.raises(GlassUnreviewed, match="What you took on"):
        taken(cast, "runs.steer")
    taken(cast, who=cast.riley)
    break_glass.review(first, by=actor(cast.ada), note="It was needed, and nothing else was done.")
    assert taken(cast, "runs.steer").taken == ["runs.steer"]


def test_where_nobody_else_could_review_it_nobody_is_waited_for(cast, later):
    cast.workspace.memberships.filter(user__in=rules.some_holders(cast.workspace.pk, "access.manage")).update(deactivated_at=clock.now())
    taken(cast)
    later(hours=2)
    taken(cast)


@pytest.mark.django_db(transaction=True)
def test_taken_twice_at_once_it_is_one(cast):
    done = together([lambda: taken(cast)] * 3)
    assert sorted(type(each).__name__ for each in done) == ["BreakGlass", "GlassOpen", "GlassOpen"]


def test_every_admin_and_manager_is_told_at_once_where_it_is_reviewed(cast):
    taken(cast, who=cast.riley)
    notice = Notice.objects.get(kind="glass")
    assert {user.name for user in audience.people(notice)} == {"Ada", "Morgan", "Priya"}
    told = wording.item(notice, "UTC")
    assert told.title.startswith("Break-glass:") and told.link.endswith("/permissions/break-glass") and "Until" in told.text
    assert WHY not in f"{told.title} {told.text}" and "Riley" not in told.title


def test_what_is_done_under_it_is_marked_and_what_comes_after_is_not(cast, later):
    run, client = make_run(cast), browser(cast.riley)
    at, sent = f"/runs/{run.pk}/signals", {"kind": "cancel", "key": "a"}
    assert client.post(at, sent).status_code == 403
    told = client.post("/permissions/break-glass", {"right": ["runs.steer"], "reason": WHY, "minutes": "15"}, follow=True)
    glass = BreakGlass.objects.get()
    html = told.content.decode()
    assert "Break-glass." in html and "End it now" in html, "each page says so"
    assert client.post(at, sent).status_code < 400
    assert AuditEntry.objects.get(verb="signal_sent").data["glass"] == str(glass.pk)
    assert client.post(f"/permissions/break-glass/{glass.pk}/ending").status_code == 302
    assert "End it now" not in client.get("/inbox").content.decode()
    audit.record(actor(cast.riley), "signed_out", workspace_id=cast.workspace.pk)
    assert "glass" not in AuditEntry.objects.get(verb="signed_out").data
    assert [entry.verb for entry in AuditEntry.objects.filter(verb__startswith="glass").order_by("at")] == ["glass_broken", "glass_ended"]


def test_another_admin_reviews_it_once_it_is_over_and_not_who_took_it(cast, later):
    dana = member(cast.workspace, "dana", "admin")
    glass = taken(cast, who=cast.ada)
    with pytest.raises(GlassLasts):
        break_glass.review(glass, by=actor(dana), note="Looked through it.")
    later(minutes=31)
    for wrong in (cast.ada, cast.morgan):
        with pytest.raises(Forbidden):
            break_glass.review(glass, by=actor(wrong), note="Looked through it.")
    with pytest.raises(WhyNeeded):
        break_glass.review(glass, by=actor(dana), note="")
    break_glass.review(glass, by=actor(dana), note="Looked through it.")
    with pytest.raises(ReviewedBefore):
        break_glass.review(glass, by=actor(dana), note="Looked through it.")
    assert break_glass.unreviewed(cast.workspace.pk) == []
    with pytest.raises(IntegrityError), transaction.atomic():
        BreakGlass.objects.update(reviewed_by=cast.ada)


def test_what_waits_for_a_review_stands_at_the_top_of_the_access_log(cast, later):
    glass, admin = taken(cast, who=cast.riley), browser(cast.ada)
    top = admin.get("/permissions/log").content.decode().partition("alog__filter")[0]
    assert "Riley took 1 right" in top and WHY in top and "Lasts" in top
    later(minutes=31)
    proving.shown(admin)
    top = admin.get("/permissions/log").content.decode().partition("alog__filter")[0]
    assert "Not reviewed" in top and "Mark as reviewed" in top
    assert "Mark as reviewed" not in browser(cast.morgan).get("/permissions/log").content.decode()
    refused = admin.post(f"/permissions/break-glass/{glass.pk}/review", {"note": ""})
    assert refused.status_code == 422 and b"It is not reviewed." in refused.content
    assert admin.post(f"/permissions/break-glass/{glass.pk}/review", {"note": "Needed, and rightly done."}).status_code == 302
    assert "Break-glass to review" not in admin.get("/permissions/log").content.decode()
    assert "Needed, and rightly done." in admin.get("/permissions/break-glass").content.decode()


def test_an_admin_ends_it_early_and_its_holder_has_nothing_at_once(cast):
    glass = taken(cast, who=cast.riley)
    held = actor(cast.riley)
    with pytest.raises(Forbidden):
        break_glass.end(glass, by=actor(cast.otto))
    break_glass.end(glass, by=actor(cast.ada))
    break_glass.end(glass, by=actor(cast.ada))
    assert not actor(cast.riley).glass and rules.changed({held.standing}) == {held.standing}
    assert AuditEntry.objects.filter(verb="glass_ended").count() == 1


def test_it_ends_with_its_holders_going_and_does_not_come_back_with_them(cast):
    glass, ada = taken(cast, who=cast.riley), actor(cast.ada)
    people.deactivate(people.one(ada, cast.workspace.pk, cast.riley.pk), by=ada, why="She left us today.")
    people.reactivate(people.one(ada, cast.workspace.pk, cast.riley.pk), by=ada, why="She is back again.")
    glass.refresh_from_db()
    assert glass.ended_by == cast.ada and not actor(cast.riley).glass


def test_who_has_not_shown_lately_who_they_are_takes_nothing(cast):
    client = Client()
    client.force_login(cast.riley)
    sent = {"right": ["runs.steer"], "reason": WHY, "minutes": "15"}
    asked = client.post("/permissions/break-glass", sent)
    assert asked.status_code == 403 and 'name="hr_to"' in asked.content.decode() and not BreakGlass.objects.exists()
    assert proving.shown(client).post("/permissions/break-glass", sent).status_code == 302 and BreakGlass.objects.count() == 1
