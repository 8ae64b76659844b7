"""The access log: who may read what of it, how it is found, what it says, and how it leaves the house."""

import csv
import io
import json
from uuid import uuid4

import pytest
from django.test import Client

from access import audit, roles, rules, sealing, telling, trail
from access.errors import heard
from access.models import AuditEntry, Role, User
from access.rules import NOBODY, SYSTEM
from approvals import freezes
from artifacts.models import Artifact
from runs.engine.tools import TOOLS
from tests.approvals.mailing import propose_mail
from tests.cast import member
from tests.factories import actor, make_run

pytestmark = pytest.mark.django_db


def browser(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def page(cast):
    """What Morgan, who manages, sees at an address of the log."""
    client = browser(cast.morgan)

    def page(query: str = "") -> str:
        told = client.get(f"/permissions/log{query}")
        assert told.status_code == 200, told.content
        return told.content.decode()

    return page


def entry(cast, user, verb: str, **more) -> AuditEntry:
    return audit.record(actor(user), verb, workspace_id=cast.workspace.pk, **more)


# what it says -------------------------------------------------------------------------------------------------------------------------


def test_a_row_says_who_did_what_with_which_label_and_why_and_where(cast, page):
    run = make_run(cast)
    told = {"label": "personal", "run": str(run.pk), "hidden": {"email": 2}, "reason": "", "details": ""}
    entry(cast, cast.riley, "revealed", subject=("payload", cast.riley.pk), **told)
    html = page("?what=reveal")
    assert "Riley" in html and "Revealed 2 hidden values" in html and "Personal data" in html
    assert f'href="/runs/{run.pk}"' in html and run.ref in html


def test_a_refusal_is_said_to_be_one_with_the_right_that_was_missing(cast, page):
    run = make_run(cast)
    browser(cast.riley).post(f"/runs/{run.pk}/signals", {"kind": "pause", "key": "a"})
    html = page("?what=refused")
    words = rules.CAPABILITIES["runs.steer"]
    assert f"<b>Refused:</b> <bdi>{words[0].lower()}{words[1:]}</bdi>" in html and "Doesn’t have the right" in html and run.ref in html


def test_the_reason_that_somebody_gave_stands_beside_what_they_did(cast, page):
    freezes.freeze(cast.workspace.pk, what="workspace", by=actor(cast.ada), reason="Wrong amounts since noon.")
    assert "Froze the workspace" in page() and "Wrong amounts since noon." in page()


@pytest.mark.django_db(transaction=True)
def test_a_change_of_a_role_is_told_with_its_difference_who_asked_for_it_and_why_and_is_found_by_its_name(cast, page):
    rafael = member(cast.workspace, "rafael", "admin")
    role = Role.objects.get(workspace=cast.workspace, name="operator")
    wanted = roles.Wanted("operator", frozenset({*role.capabilities, "audit.view", "reveal.personal:team"} - {"runs.start"}))
    asked = roles.ask(cast.workspace.pk, role, wanted, base=role.version, by=actor(cast.ada), why="Otto looks after it at weekends.")
    html = page("?q=operator")
    assert "1 entry found" in html and "Asked for a change of the role Operator: now “" in html
    assert "“Reveal personal data, with a reason, own team”" in html and "; no longer “Start runs”" in html
    roles.confirm(asked.change, by=actor(rafael))
    html = page("?q=operator")
    assert "2 entries found" in html and html.count("Otto looks after it at weekends.") == 2
    assert f"as {cast.ada.name} asked" in html and f'href="/permissions/roles/{role.pk}"' in html
    assert browser(cast.ada).get("/permissions/history").content.decode().count("Otto looks after it at weekends.") == 2


@pytest.mark.django_db(transaction=True)
def test_who_refuses_a_change_of_a_role_is_told_with_their_own_reason(cast, page):
    rafael, role = member(cast.workspace, "rafael", "admin"), Role.objects.get(workspace=cast.workspace, name="operator")
    wanted = roles.Wanted("operator", frozenset({*role.capabilities, "audit.view"}))
    asked = roles.ask(cast.workspace.pk, role, wanted, base=role.version, by=actor(cast.ada), why="Otto looks after it.")
    roles.refuse(asked.change, by=actor(rafael), why="He reads enough already.")
    html, history = page("?q=operator"), browser(cast.ada).get("/permissions/history").content.decode()
    assert html.count("He reads enough already.") == 1 == html.count("Otto looks after it.")
    assert "He reads enough already." in history


def test_names_are_those_of_now_and_what_is_gone_is_still_told(cast, page):
    entry(cast, cast.riley, "signed_in", how="password")
    AuditEntry.objects.create(workspace=cast.workspace, actor_kind="human", actor_id=str(cast.agent.pk), verb="signed_out")
    AuditEntry.objects.create(workspace=cast.workspace, actor_kind="nobody", verb="sign_in_refused", subject_kind="user", subject_id="x")
    audit.record(SYSTEM, "something_older_than_the_list", workspace_id=cast.workspace.pk)
    cast.riley.name = "Riley Park"
    cast.riley.save()
    html = page()
    assert "Riley Park" in html and ", gone" in html and "Somebody not signed in" in html
    assert "Something older than the list" in html and "Signed in by password" in html
    entry(cast, cast.riley, "signed_in", how="sso")
    assert "Signed in by single sign-on" in page("?what=sign_in")


def test_every_verb_can_be_told_whatever_its_entry_holds(cast, page):
    for verb in audit.VERBS:
        entry(cast, cast.ada, verb)
    for group in audit.GROUPS:  # none of them has more verbs than a page has rows
        verbs = [verb for verb in audit.VERBS.values() if verb.group == group]
        assert page(f"?what={group}").count('<td role="cell" class="num nowrap">') == len(verbs), group


# who may, and what they find ----------------------------------------------------------------------------------------------------------


def test_the_log_is_for_who_may_read_it_and_of_their_workspace_alone(cast, page):
    audit.record(actor(cast.olga), "webhook_set", workspace_id=cast.elsewhere.pk)
    entry(cast, cast.riley, "webhook_set")
    assert "Olga" not in page() and "Riley" in page() and "1 entry found" in page("?what=delivery")
    assert [browser(user).get("/permissions/log").status_code for user in (cast.riley, cast.otto, cast.ada)] == [403, 403, 200]
    assert "Riley" not in browser(cast.olga).get("/permissions/log").content.decode()


def test_it_is_found_by_person_group_label_day_run_and_words(cast, page):
    run, other = make_run(cast), propose_mail(cast)
    entry(cast, cast.riley, "revealed", label="personal", run=str(run.pk))
    entry(cast, cast.sam, "revealed", label="internal", run=str(other.run.pk))
    entry(cast, cast.otto, "recalled", subject=("action", other.action.pk))

    def found(query: str) -> set[str]:
        rows = page(query).partition("<tbody")[2]
        return {name for name in ("Riley", "Sam", "Otto", "Priya", "Ada") if name in rows}

    assert found(f"?who=human:{cast.riley.pk}") == {"Riley"}
    assert found("?what=reveal") == {"Riley", "Sam"}
    assert found("?label=internal") == {"Sam"}
    assert found(f"?run={run.ref}&what=reveal") == {"Riley"}
    assert found(f"?run={other.run.pk}") >= {"Sam", "Otto"} and "Riley" not in found(f"?run={other.run.pk}")
    assert found(f"?q={run.ref}&what=reveal") == found("?q=riley&what=reveal") == {"Riley"}
    assert found("?q=revealed") == {"Riley", "Sam"} and found("?q=recalled") == {"Otto"}
    entry(cast, cast.ada, "action_tried", subject=("action", other.action.pk))
    assert f"Tried {TOOLS[other.action.tool].title} again in the simulator" in page("?q=simulator")
    today = AuditEntry.objects.latest("at").at.date()
    assert found(f"?since={today}&until={today}&what=reveal") == {"Riley", "Sam"} and found("?until=2020-01-01") == set()
    assert "No entry is like that" in page("?q=nothing-of-the-sort") and "No entry is like that" in page("?run=RN-0000")


@pytest.mark.parametrize(
    "query", ["since=yesterday", "until=2026-13-01", "what=x", "who=x:1", "label=x", "before=x", "since=2026-02-01&until=2026-01-01"]
)
def test_a_filter_that_cannot_be_says_so_and_keeps_what_was_typed(cast, query):
    told = browser(cast.ada).get(f"/permissions/log?{query}&q=kept")
    assert told.status_code == 422 and b"Nothing was searched" in told.content and b'value="kept"' in told.content
    api = browser(cast.ada).get(f"/api/v1/audit?{query}")
    assert (api.status_code, api.json()["title"]) == (422, "The access log can’t be searched like this.")


def test_every_entry_is_on_one_page_and_the_newest_is_first(cast, monkeypatch):
    monkeypatch.setattr(trail, "PAGE", 7)
    moment = AuditEntry(workspace=cast.workspace).at
    AuditEntry.objects.bulk_create(
        AuditEntry(workspace=cast.workspace, actor_kind="system", verb="looked", data={"n": n}, at=moment) for n in range(20)
    )
    seen, before = [], ""
    while True:
        page = trail.page(cast.workspace.pk, trail.Wanted(), before=before, size=7)
        seen += [each.data["n"] for each in page.entries]
        before = page.older
        if not before:
            break
        entry(cast, cast.riley, "signed_out")  # what is written meanwhile moves nothing
    assert sorted(seen) == list(range(20)) and seen == [
        e.data["n"] for e in AuditEntry.objects.filter(verb="looked").order_by("-at", "-pk")
    ]


def test_the_page_of_permissions_gets_the_newest_rows_alone(cast, page):
    for _ in range(8):
        entry(cast, cast.riley, "signed_out")
    html = page("?part=recent")
    assert html.count("<tr") == 6 and "All 8 entries" in html and "<html" not in html


def test_the_page_of_permissions_leaves_out_who_came_and_went(cast, page):
    entry(cast, cast.riley, "frozen")
    for verb in ("signed_in", "signed_out", "confirmed_again"):
        entry(cast, cast.riley, verb)
    html = page("?part=recent")
    assert html.count("<tr") == 2 and "All 4 entries" in html


def test_the_page_of_permissions_tells_first_what_people_did(cast, page):
    entry(cast, cast.riley, "frozen")
    AuditEntry.objects.bulk_create(AuditEntry(workspace=cast.workspace, actor_kind="system", verb="granted") for _ in range(9))
    html = page("?part=recent")
    assert html.count("<tr") == 6 and cast.riley.name in html and "All 10 entries" in html


def test_nothing_was_written_down_yet(cast):
    assert trail.page(cast.workspace.pk, trail.Wanted()).entries == []
    client = browser(cast.ada)
    AuditEntry.objects.all()  # signing in by hand leaves none
    assert b"Nothing was written down yet" in client.get("/permissions/log").content


def test_a_page_takes_few_queries_however_long_the_log_is(cast, django_assert_max_num_queries):
    runs = [make_run(cast) for _ in range(3)]
    people = (cast.riley, cast.sam, cast.ada)
    AuditEntry.objects.bulk_create(
        AuditEntry(
            workspace=cast.workspace,
            actor_kind="human",
            actor_id=str(people[n % 3].pk),
            verb="revealed" if n % 2 else "frozen",
            data={"label": "personal", "run": str(runs[n % 3].pk)},
        )
        for n in range(10_050)
    )
    client = browser(cast.ada)
    with django_assert_max_num_queries(20):
        html = client.get("/permissions/log?what=reveal&q=riley").content.decode()
    assert html.count("Riley") >= 50 and "1,675 entries found" in html
    with django_assert_max_num_queries(12):
        assert "10,000+ entries" in client.get("/permissions/log").content.decode()
    with django_assert_max_num_queries(12):
        assert len(client.get("/api/v1/audit?limit=500").json()["entries"]) == 500


# out of the house ---------------------------------------------------------------------------------------------------------------------


def exported(client: Client, form: str, **more: str) -> bytes:
    told = client.post("/permissions/log/exports", {"form": form, **more})
    assert told.status_code == 200 and "attachment" in told.headers["Content-Disposition"]
    return b"".join(told.streaming_content)


def test_an_export_has_every_entry_that_was_asked_for_and_is_one_itself(cast, monkeypatch):
    from access import exporting

    monkeypatch.setattr(exporting, "AT_ONCE", 3)
    for _ in range(8):
        entry(cast, cast.riley, "revealed", label="personal")
    entry(cast, cast.sam, "signed_out")
    sealing.seal()
    rows = list(csv.DictReader(io.StringIO(exported(browser(cast.morgan), "csv", what="reveal").decode("utf-8-sig"))))
    assert (
        len(rows) == 8
        and {row["who"] for row in rows} == {"Riley"}
        and [row["number"] for row in rows] == [str(n) for n in range(8, 0, -1)]
    )
    written = AuditEntry.objects.get(verb="audit_exported")
    assert (written.actor_id, written.data) == (str(cast.morgan.pk), {"form": "csv", "entries": 8, "narrowed": ["what"]})
    lines = [json.loads(line) for line in exported(browser(cast.ada), "jsonl").splitlines()]
    assert [line["verb"] for line in lines[:3]] == ["audit_exported", "audit_exported", "signed_out"] and len(lines) == 11
    assert lines[2]["actor"] == {"kind": "human", "id": str(cast.sam.pk), "name": "Sam"} and lines[2]["number"] == 9


def test_no_cell_is_a_formula(cast):
    cast.riley.name = "=HYPERLINK(1)"
    cast.riley.save()
    entry(cast, cast.riley, "signed_out")
    text = exported(browser(cast.ada), "csv").decode("utf-8-sig")
    assert "'=HYPERLINK(1)" in text and ",=HYPERLINK" not in text


def test_a_change_that_two_admins_made_leads_to_what_was_asked_for(cast, page):
    asked = uuid4()
    entry(cast, cast.ada, "change_confirmed", subject=("change", asked), what="the approval policies")
    html = page("?what=rights")
    assert "Confirmed a change of the approval policies" in html and f'<a href="/permissions/asked/{asked}">Change</a>' in html


def test_who_may_not_read_the_log_exports_none_of_it(cast):
    assert browser(cast.riley).post("/permissions/log/exports", {"form": "csv"}).status_code == 403
    assert browser(cast.ada).post("/permissions/log/exports", {"form": "xlsx"}).status_code == 422
    assert not AuditEntry.objects.filter(verb="audit_exported").exists()


def test_the_api_gives_the_same_page_by_page(cast):
    for _ in range(5):
        entry(cast, cast.riley, "revealed", label="personal")
    client = browser(cast.morgan)
    first = client.get("/api/v1/audit?limit=3&what=reveal").json()
    rest = client.get(f"/api/v1/audit?limit=3&what=reveal&before={first['next']}").json()
    assert (len(first["entries"]), len(rest["entries"]), rest["next"]) == (3, 2, None)
    assert first["entries"][0]["what"] == "Revealed hidden values" and first["entries"][0]["number"] is None
    assert browser(cast.riley).get("/api/v1/audit").status_code == 403
    assert NOBODY.kind == "nobody"


def test_what_is_of_another_workspace_has_no_name_in_the_log_of_who_asked_for_it(cast):
    proposed, olga, home = propose_mail(cast), browser(cast.olga), cast.workspace
    file, role = Artifact.objects.filter(run_id=proposed.run.pk).first(), home.roles.first()
    asked = (f"/runs/{proposed.run.pk}", f"/actions/{proposed.action.pk}", f"/artifacts/{file.pk}", f"/permissions/roles/{role.pk}")
    told = {olga.get(address).status_code for address in asked}
    audit.record(actor(cast.olga), "refused", workspace_id=cast.elsewhere.pk, subject=("user", cast.riley.pk), why="not-found")
    assert told == {404} and AuditEntry.objects.filter(verb="refused", workspace=cast.elsewhere).count() == len(asked) + 1
    table = olga.get("/permissions/log?what=refused").content.decode()
    for log in (table, olga.get("/api/v1/audit").content.decode(), exported(olga, "csv").decode()):
        assert "Olga" in log
        for named in (proposed.run.ref, file.name, f"/permissions/roles/{role.pk}", f"/artifacts/{file.pk}", "Riley"):
            assert named not in log, (named, log)


@pytest.mark.parametrize("address", [f"/permissions/roles/{'9' * 25}", f"/permissions/roles/{'9' * 20}/versions/1"])
def test_whatever_somebody_asked_for_and_was_refused_the_log_is_read_and_exported(cast, page, address):
    assert browser(cast.otto).get(address).status_code in (403, 404)
    assert AuditEntry.objects.filter(verb="refused", subject_kind="role").exists()
    assert "Refused:" in page()
    exported = browser(cast.morgan).post("/permissions/log/exports", {"form": "jsonl"})
    assert b"refused" in b"".join(exported.streaming_content)


def test_telling_what_was_refused_makes_no_refusals_however_many_entries_there_are(cast, page):
    entry(cast, cast.riley, "refused", why="role-refused")
    token = heard.set(made := [])
    try:
        assert telling.told(list(AuditEntry.objects.filter(verb="refused")))[0].reason == "This role can't be kept so." and made == []
    finally:
        heard.reset(token)


def test_the_last_day_that_there_is_can_be_asked_for(page):
    assert "no day" not in page("?since=0001-01-01&until=9999-12-31")


def test_no_cell_is_a_formula_wherever_a_spreadsheet_cuts_it(cast):
    for user, name in ((cast.otto, 'Odd; =HYPERLINK("//evil.example")'), (cast.sam, "\uff1d1+1 is odd")):
        User.objects.filter(pk=user.pk).update(name=name)
        entry(cast, user, "signed_in", how="password")
    exported = browser(cast.morgan).post("/permissions/log/exports", {"form": "csv"})
    text = b"".join(exported.streaming_content).decode()
    for cut in ",;\t":
        cells = [cell.strip(' "') for row in csv.reader(io.StringIO(text), delimiter=cut) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\uff1d"))]
