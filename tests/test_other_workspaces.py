"""Nothing crosses workspaces, nor teams: whoever belongs to another one is told of each object exactly what they are told of one that is
not there.

Made from the table of all addresses (tests/test_who_may.py), so that a new address is asked for by itself.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from django.db import connection

from access import keys, teams
from access.ids import uuid7
from access.models import Membership, Role, User
from access.rules import ROLES, SCOPED, SYSTEM, TEAM
from tests.cast import member
from tests.factories import actor
from tests.test_who_may import NOBODY, OPEN, STREAMS, TABLE, Who, ask, filled, no_connection_left, people, signed_in, things

__all__ = ["no_connection_left", "people", "things"]  # fixtures

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database, pytest.mark.long, pytest.mark.timeout(600)]
OWN = (
    "<uuid:session_id>",
    "<int:factor_id>",
    "<source_id>",
)  # sessions and factors are a person's own; who sends a webhook shows a signature and is told nothing else
A_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
A_REF = re.compile(r"RN-[0-9A-Z]{4,}")
# what differs between any two answers: tokens of forms, the time, the request's number
PASSING = re.compile(
    rb'(csrfmiddlewaretoken" value="|X-CSRFToken": "|name="now" content=")[^"]+|"request": ?"[0-9a-f]+"|<code>[0-9a-f]{16}</code>'
    rb'|<time datetime="[^"]+" data-time="clock">[^<]+'
)
UNASKED = (
    "SAVEPOINT",
    'UPDATE "access_agentkey"',
    'UPDATE "access_provisionerkey"',
    "access_refusaltally",
    "access_auditentry",
    "BEGIN",
)  # a refusal is written once a minute, and then counted
HEADERS = ("Content-Type", "Cache-Control", "Content-Security-Policy", "Location", "WWW-Authenticate", "Allow")


@pytest.fixture
def outsiders(cast, people) -> dict[str, Who]:
    """A member of the other workspace in each role, one in all of them at once, its agent's key and its provisioner's."""
    told = {role: signed_in(member(cast.elsewhere, f"of-{role}", role)) for role in ROLES}
    _, token = keys.make_provisioner(cast.elsewhere.pk, name="pipeline", owner=cast.olga, by=SYSTEM)
    told |= {"a provisioner's key": {"authorization": f"Bearer {token}"}}
    return told | {"everything": people["olga"], "an agent's key": people["stranger"]}


def named() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The rows of the table whose address names an object: method, address, what is sent."""
    for method, address, _, sent in TABLE:
        if ("<" in address or "(?P" in address) and not any(each in address for each in OWN):
            yield method, address, sent


def missing(path: str, address: str) -> str:
    """The same address of something that is not there, in the same shape."""
    ids: dict[str, str] = {}
    path = A_UUID.sub(lambda found: ids.setdefault(found[0], str(uuid7())), path)
    path = A_REF.sub("RN-7777", path)
    for blank in ("<int:role_id>", "<int:version>", "<version>"):
        if blank in address.partition("?")[0] and not ids:
            path = re.sub(r"/\d+(?=/|$)", "/999999", path, count=1)
    return path


def told(answer: Any) -> tuple[Any, ...]:
    """An answer without what says which object was asked for, and what differs between any two answers."""
    body = PASSING.sub(rb"\1", answer.getvalue() if answer.streaming else answer.content)
    plain = A_REF.sub("RN", A_UUID.sub("ID", body.decode()).replace("/999999", "/N"))
    plain = re.sub(r"(/roles|/versions|policies)/\d+", r"\1/N", plain)
    headers = {name: A_UUID.sub("ID", answer.headers.get(name, "")) for name in HEADERS}
    return answer.status_code, headers, plain


def asked(method: str, path: str, who: Who, sent: Mapping[str, Any]) -> tuple[tuple[Any, ...], int]:
    """What is told, and how many queries that took: the class of time it takes."""
    count = 0

    def counted(execute: Callable[..., Any], *given: Any) -> Any:
        nonlocal count
        count += not any(word in given[0] for word in UNASKED)
        return execute(*given)

    with connection.execute_wrapper(counted):
        answer = ask(method, path, who, sent)
    return told(answer), count


def _differ(one: tuple[tuple[Any, ...], int], other: tuple[tuple[Any, ...], int]) -> str:
    """Where two answers differ, for whoever reads the failure."""
    (status, headers, body), queries = one
    (status2, headers2, body2), queries2 = other
    at = next((i for i, (a, b) in enumerate(zip(body, body2, strict=False)) if a != b), min(len(body), len(body2)))
    words = f"{body[max(at - 40, 0) : at + 80]!r} and {body2[max(at - 40, 0) : at + 80]!r}" if body != body2 else ""
    return f"{status} and {status2}, {queries} and {queries2} queries {words} {'' if headers == headers2 else (headers, headers2)}"


def test_an_object_of_another_workspace_is_told_like_one_that_is_not_there(things, outsiders) -> None:
    wrong = []
    for method, address, sent in named():
        path = filled(address, things)
        for name, who in outsiders.items():
            theirs, none = asked(method, path, who, sent), asked(method, missing(path, address), who, sent)
            if theirs != none:
                wrong.append(f"{method} /{address}, {name}: {_differ(theirs, none)}")
            if name == "everything" and theirs[0][0] != 404:
                wrong.append(f"{method} /{address}: {theirs[0][0]} instead of 404")
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong[:12])


def test_a_stream_of_another_workspace_is_as_closed_as_one_of_nothing(things, outsiders) -> None:
    async def scene() -> list[str]:
        wrong = []
        for kind, address, _ in STREAMS:
            if "(?P" not in address:
                continue
            path = filled(address, things)
            for name, who in outsiders.items():
                theirs, none = await OPEN[kind](path, who), await OPEN[kind](missing(path, address), who)
                if (theirs, none) != ("none", "none"):
                    wrong.append(f"{kind} /{address}, {name}: {theirs}, {none}")
        return wrong

    assert asyncio.run(scene()) == []


def test_a_body_that_names_an_object_of_another_workspace_names_nothing(cast, things, people) -> None:
    """Olga may do everything in her own workspace; what she names in a form or a body is looked for there alone."""
    from runs import starting

    mine = starting.start(agent=cast.other_agent, owner=cast.olga, by=actor(cast.olga), title="Hers", agent_version="1")
    run, action = things["run"], things["action"]
    names: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", f"/runs/{mine.pk}/compare?with={run.pk}", {}),
        ("GET", f"/runs/{mine.pk}/compare?with={run.ref}", {}),
        ("GET", f"/inbox?action={action.pk}", {}),
        ("GET", f"/inbox?open={action.pk}", {}),
        ("GET", f"/runs?agent={cast.agent.name}&q={run.ref}", {}),
        ("GET", f"/reveals/new?place=action:{action.pk}:0", {}),
        (
            "POST",
            "/reveals",
            {"data": {"place": f"artifact:{things['artifact'].pk}", "reason": "decide", "details": "To see the picture.", "token": NOBODY}},
        ),
        ("POST", f"/runs/{mine.pk}/recovery", {"data": {"choice": "hand_over", "at": "1", "to": str(cast.otto.pk)}}),
        ("POST", "/recovery/requeue", {"data": {"case": f"{run.pk}@1"}}),
        ("POST", "/groups/new", {"data": {"name": "Theirs", "members": str(cast.riley.pk)}}),
        ("POST", "/notifications/delegations", {"data": {"to": str(cast.sam.pk)}}),
        ("POST", "/notifications/nobody-answers", {"data": {"minutes": "5", "to": str(cast.sam.pk)}}),
        ("POST", "/webhooks", {"data": {"name": "theirs", "agent": str(cast.agent.pk)}}),
        ("POST", "/freezes", {"data": {"target": f"agent:{cast.agent.pk}", "reason": "Because."}}),
        ("POST", "/policies/rule", {"data": {"tool": "send_mail", "group": str(things["group"].pk)}}),
        ("POST", "/policies/simulator", {"data": {"agent": str(cast.agent.pk), "tool": "send_mail"}}),
        (
            "POST",
            "/api/v1/runs",
            {"json": {"title": "x", "agent_version": "1", "agent": cast.agent.name, "owner": str(cast.priya.pk)}, "key": True},
        ),
        ("POST", "/api/v1/freezes", {"json": {"what": "agent", "agent": str(cast.agent.pk), "reason": "Because."}}),
    ]
    ids = {str(each): str(uuid7()) for each in (run.pk, action.pk, things["artifact"].pk, cast.otto.pk, cast.riley.pk, cast.sam.pk)}
    ids |= {str(each): str(uuid7()) for each in (cast.agent.pk, cast.priya.pk, things["group"].pk)} | {run.ref: "RN-7777"}
    wrong = []
    for method, path, sent in names:
        theirs = asked(method, path, people["olga"], sent)
        none = asked(method, _swapped(path, ids), people["olga"], _swapped(sent, ids))
        if theirs[0] != none[0]:
            wrong.append(f"{method} {path}: {_differ(theirs, none)}")
    assert not wrong, "\n".join(wrong)


def test_a_form_about_people_roles_teams_and_keys_that_names_something_of_another_workspace_names_nothing(cast, things, people) -> None:
    """The same, of what names roles by numbers, people by their addresses, and workspaces."""
    olga, why = people["olga"], "They asked for it."
    mate = member(cast.elsewhere, "mate", "reviewer")
    team = teams.make(cast.elsewhere.pk, "Hers", by=actor(cast.olga), why=why)
    role = {"role": str(things["role"].pk)}, {"role": "999999"}
    rows: list[tuple[str, str, Callable[[Any], dict[str, Any]], tuple[Any, Any]]] = [
        ("POST", "/people/invitations", lambda each: {"data": {"email": "mei@fernhill.example", "why": why} | each}, role),
        ("POST", f"/people/{mate.pk}/changes", lambda each: {"data": {"do": "role", "why": why} | each}, role),
        ("POST", "/permissions/agents", lambda each: {"data": {"name": "x", "owner": each}}, (str(cast.priya.pk), NOBODY)),
        ("POST", "/api/v1/agents", lambda each: {"json": {"name": "x", "owner": each}}, (cast.priya.email, "nobody@fernhill.example")),
        ("GET", "/permissions/log", lambda each: {"data": {"who": f"human:{each}"}}, (str(cast.riley.pk), NOBODY)),
        ("GET", "/permissions/log", lambda each: {"data": {"run": each}}, (things["run"].ref, "RN-7777")),
        ("GET", "/api/v1/audit", lambda each: {"data": {"run": each}}, (str(things["run"].pk), NOBODY)),
    ]
    for do, pk in (("add", cast.riley.pk), ("remove", cast.riley.pk), ("add_agent", cast.agent.pk), ("remove_agent", cast.agent.pk)):
        rows.append(
            ("POST", f"/permissions/teams/{team.pk}", lambda each, do=do: {"data": {"do": do, "who": each, "why": why}}, (str(pk), NOBODY))
        )
    for page in ("/people", "/permissions", "/permissions/log", "/permissions/agents", "/permissions/redaction", "/policies", "/freezes"):
        rows.append(("GET", page, lambda each: {"data": {"workspace": each}}, (cast.workspace.slug, "nowhere")))
    wrong = []
    for method, path, sent, (theirs, none) in rows:
        answers = [asked(method, path, olga, sent(each)) for each in (theirs, none)]
        (status, headers, body), same = answers[0][0], answers[1][0]
        if (status, headers, body.replace(f"workspace={theirs}", f"workspace={none}")) != same:  # the way back to the page
            wrong.append(f"{method} {path} {sent(theirs)}: {_differ(*answers)}")
    assert not wrong, "\n".join(wrong)


def _swapped(value: Any, ids: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for one, other in ids.items():
            value = value.replace(one, other)
        return value
    return {name: _swapped(each, ids) for name, each in value.items()} if isinstance(value, dict) else value


# teams --------------------------------------------------------------------------------------------------------------------------------


async def _streams(things, who: Who) -> dict[str, tuple[str, str]]:
    """What is heard of each stream that names an object, and of the same of something that is not there."""
    paths = {address: (kind, filled(address, things)) for kind, address, _ in STREAMS if "(?P" in address}
    return {each: (await OPEN[kind](path, who), await OPEN[kind](missing(path, each), who)) for each, (kind, path) in paths.items()}


OF_A_RUN = ("run_id", "<str:ref>", "action_id", "artifact_id", "reveal_id", "payload_id")


def test_an_object_of_another_team_is_told_like_one_that_is_not_there(cast, things) -> None:
    """Tess may all that can be narrowed to the own team, and is in another one than the agent whose runs these are."""
    by = actor(cast.ada)
    mine = teams.make(cast.workspace.pk, "Claims", by=by, why="They look after claims.")
    teams.add_agent(things["team"], cast.agent.pk, runs=True, by=by, why="It sends their invoices.")
    role = Role.objects.create(workspace=cast.workspace, name="of a team", capabilities=sorted(each + TEAM for each in SCOPED))
    tess = User.objects.create_user("tess@fernhill.example", "correct horse battery", name="Tess")
    Membership.objects.create(workspace=cast.workspace, user=tess, role=role)
    teams.add(mine, tess.pk, by=by, why="She looks after claims.")
    who, wrong = signed_in(tess), []
    rows = [row for row in named() if any(each in row[1] for each in OF_A_RUN)]
    for method, address, sent in rows:
        path = filled(address, things)
        theirs, none = asked(method, path, who, sent), asked(method, missing(path, address), who, sent)
        if theirs != none:
            wrong.append(f"{method} /{address}: {_differ(theirs, none)}")
    assert len(rows) > 60 and not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong[:12])
    streams = asyncio.run(_streams(things, who))
    assert streams and all(words == ("none", "none") for words in streams.values()), streams
    told_of = [ask("GET", path, who, {}) for path in ("/runs", "/inbox", "/recovery", "/api/v1/runs")]
    run, action = things["run"], things["action"]
    for answer in told_of:
        assert answer.status_code == 200
        assert not any(each in answer.content.decode() for each in (run.ref, str(run.pk), str(action.pk)))
    teams.add(things["team"], tess.pk, by=by, why="She looks after invoices too.")
    for path in (f"/runs/{run.pk}", f"/actions/{action.pk}", f"/artifacts/{things['artifact'].pk}"):
        assert ask("GET", path, who, {}).status_code == 200, path
