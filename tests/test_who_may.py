"""Who may what: every address that there is × every kind of person, in one table. An address without a row fails the test.

ok: let in (what was asked for may still be wrong) · in: sign in first · no: seen, but not allowed · none: as if it were not there
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.db import connections
from django.http import HttpResponse
from django.test import Client
from django.urls import get_resolver

from access import break_glass, invitations, keys, roles, second_admin, teams
from access.models import Agent, AgentKey, AskedChange, BreakGlass, RoleChange, User
from access.people_models import Invitation
from access.rules import SYSTEM, Actor, authenticate, person
from approvals import groups, standing_grants
from approvals.models import ProposedAction, StandingGrant
from approvals.notifications import chasing, delegation, sending
from approvals.notifications.models import Delegation, EscalationStep
from artifacts import redaction_policies, reveal, revealing, uploading, vault
from artifacts.models import Artifact, RedactionPolicy, Reveal
from config import asgi, clock
from config.api import api
from runs import starting, webhooks
from runs.models import ReceivedWebhook, Run
from tests import proving
from tests.approvals.lettering import propose_letter
from tests.approvals.mailing import propose_mail
from tests.approvals.test_freezing import frozen
from tests.artifacts.files import image
from tests.cast import member

pytestmark = pytest.mark.any_database

PEOPLE = ["nobody", "gone", "olga", "riley", "morgan", "otto", "ada", "priya", "agent", "colleague", "stranger", "expired"]
# gone: was deactivated while signed in. agent: the key of the agent whose run it is; colleague: another agent's of the same workspace;
# stranger: of another workspace's. The rest are the cast's: olga is of another workspace, riley reviews, morgan and priya manage
EVERYBODY = "ok " * 12
PERSONS = "in in ok ok ok ok ok ok in in in in"
THOSE_WHO_SEE = "in in none ok ok ok ok ok ok none none in"
THOSE_WHO_SEE_APPROVALS = "in in none ok ok ok ok ok none none none in"
THE_ONE_IT_IS_FOR = "in in none ok none none none none none none none in"
NOBODY = "00000000-0000-0000-0000-000000000000"
STEP = {"token": 9, "key": "a", "input": "0" * 64}
LOOK_AT_IT = {"reason": "decide", "details": "To see the picture."}
SAID = {"outcome": "did_not_happen", "note": "Nothing arrived."}

# method, address, what each of PEOPLE gets, and what is sent
TABLE: list[tuple[str, str, str, dict[str, Any]]] = [
    ("GET", "healthz", EVERYBODY, {}),
    ("GET", "readyz", EVERYBODY, {}),
    ("GET", "", "in in ok ok ok ok ok ok in in in in", {}),
    ("GET", "sign-in", EVERYBODY, {}),
    ("POST", "sign-in", EVERYBODY, {"data": {"email": "a@b.example", "password": "wrong"}}),
    ("POST", "sign-in/as", "none " * 12, {"data": {"as": "riley"}}),  # there is no such thing outside the demo
    ("GET", "demo", "none " * 12, {}),  # nor of this
    ("POST", "demo/runs", "none " * 12, {"data": {"misbehave": "killed-worker"}}),
    ("POST", "demo/desk", "none " * 12, {}),
    ("POST", "theme", EVERYBODY, {"data": {"theme": "dark"}}),
    # a person's own account; an agent has none
    ("GET", "account", PERSONS, {}),
    ("POST", "account/sessions/<uuid:session_id>/end", PERSONS, {}),
    ("POST", "account/sessions/end-others", PERSONS, {}),
    ("GET", "account/codes", PERSONS, {}),
    ("POST", "account/codes", PERSONS, {"data": {"code": "x"}}),
    ("POST", "account/recovery-codes", PERSONS, {}),
    ("POST", "account/passkeys", PERSONS, {"data": {"credential": "x"}}),
    ("POST", "account/passkeys/options", PERSONS, {}),
    ("POST", "account/factors/<int:factor_id>/removal", PERSONS, {}),
    ("GET", "confirm", PERSONS, {}),
    ("POST", "confirm", PERSONS, {"data": {"hr_with": "x"}}),
    ("POST", "confirm/passkey/options", PERSONS, {}),
    ("GET", "sign-in/second", "in " * 12, {}),  # first the password
    ("POST", "sign-in/second", "in " * 12, {"data": {"code": "000000"}}),
    ("POST", "sign-in/passkey", EVERYBODY, {"data": {"credential": "x"}}),
    ("POST", "sign-in/passkey/options", EVERYBODY, {}),
    # the people of a workspace, and what lets somebody in
    ("GET", "people", "in in ok no no no ok no no no no in", {}),
    ("POST", "people/invitations", "in in ok no no no ok no no no no in", {"data": {"email": "x"}}),
    ("POST", "people/invitations/<uuid:invitation_id>", "in in none none none none ok none none none none in", {"data": {"do": "again"}}),
    ("GET", "people/<uuid:user_id>", "in in none no no no ok no no no no in", {}),
    ("POST", "people/<uuid:user_id>/changes", "in in none no no no ok no no no no in", {"data": {"do": "x"}}),
    ("GET", "invitations", EVERYBODY, {}),
    ("POST", "invitations", EVERYBODY, {}),
    ("GET", "passwords", EVERYBODY, {}),
    ("POST", "passwords", EVERYBODY, {"data": {"password": "x"}}),
    ("GET", "sign-in/forgot", EVERYBODY, {}),
    ("POST", "sign-in/forgot", EVERYBODY, {"data": {"email": "riley@fernhill.example"}}),
    ("GET", "sign-in/sso", "none " * 12, {}),  # it is not set up
    ("GET", "sign-in/sso/callback", "none " * 12, {}),
    ("POST", "account/password", PERSONS, {"data": {"old": "x", "new": "y"}}),
    # permissions
    ("GET", "permissions", "in in ok no ok no ok ok no no no in", {}),
    ("GET", "permissions/history", "in in ok no ok no ok ok no no no in", {}),
    ("GET", "permissions/log", "in in ok no ok no ok ok no no no in", {}),
    ("POST", "permissions/log/exports", "in in ok no ok no ok ok no no no in", {"data": {"form": "csv"}}),
    ("GET", "permissions/agents", "in in ok no no no ok no no no no in", {}),
    ("POST", "permissions/agents", "in in ok no no no ok no no no no in", {"data": {"name": ""}}),
    ("POST", "permissions/agents/<uuid:agent_id>/keys", "in in none none none none ok none none none none in", {"data": {"name": ""}}),
    ("POST", "permissions/provisioners", "in in ok no no no ok no no no no in", {"data": {"name": ""}}),
    ("POST", "permissions/keys/<str:kind>/<uuid:key_id>/rotation", "in in none none none none ok none none none none in", {"data": {}}),
    ("POST", "permissions/keys/<str:kind>/<uuid:key_id>/revocation", "in in none none none none ok none none none none in", {}),
    ("GET", "permissions/break-glass", "in in ok ok ok ok ok ok no no no in", {}),
    ("POST", "permissions/break-glass", "in in ok ok ok ok ok ok no no no in", {"data": {"reason": ""}}),
    ("POST", "permissions/break-glass/<uuid:glass_id>/review", "in in none no no none ok no none none none in", {"data": {"note": "x"}}),
    ("POST", "permissions/break-glass/<uuid:glass_id>/ending", "in in none ok no none ok no none none none in", {}),
    ("GET", "permissions/roles/new", "in in ok no no no ok no no no no in", {}),
    ("POST", "permissions/roles/new", "in in ok no no no ok no no no no in", {"data": {"name": ""}}),
    ("GET", "permissions/roles/<int:role_id>", "in in none none ok none ok ok none none none in", {}),
    ("POST", "permissions/roles/<int:role_id>", "in in none none no none ok no none none none in", {"data": {"name": ""}}),
    ("GET", "permissions/roles/<int:role_id>/versions/<int:version>", "in in none none ok none ok ok none none none in", {}),
    ("GET", "permissions/teams/new", "in in ok no no no ok no no no no in", {}),
    ("POST", "permissions/teams/new", "in in ok no no no ok no no no no in", {"data": {"name": ""}}),
    ("GET", "permissions/teams/<uuid:team_id>", "in in none none ok none ok ok none none none in", {}),
    ("POST", "permissions/teams/<uuid:team_id>", "in in none none no none ok no none none none in", {"data": {"do": "x"}}),
    ("GET", "permissions/changes/<uuid:change_id>", "in in none none ok none ok ok none none none in", {}),
    ("POST", "permissions/changes/<uuid:change_id>", "in in none none no none ok no none none none in", {"data": {"do": "x"}}),
    ("GET", "permissions/asked/<uuid:asked_id>", "in in none none ok none ok ok none none none in", {}),
    ("POST", "permissions/asked/<uuid:asked_id>", "in in none none no none ok no none none none in", {"data": {"do": "x"}}),
    # the pages of runs
    ("GET", "runs", "in in ok ok ok ok ok ok ok ok ok in", {}),
    ("GET", "runs/counts", "in in ok ok ok ok ok ok ok ok ok in", {}),
    ("GET", "runs/new", "in in ok no no ok no no ok ok ok in", {}),
    ("GET", "runs/<uuid:run_id>", THOSE_WHO_SEE, {}),
    ("GET", "runs/<uuid:run_id>/events", THOSE_WHO_SEE, {}),
    ("GET", "runs/<uuid:run_id>/events/<int:seq>", THOSE_WHO_SEE, {}),
    ("GET", "runs/<uuid:run_id>/artifacts/<uuid:artifact_id>", THOSE_WHO_SEE, {}),
    ("GET", "runs/<uuid:run_id>/artifacts/<uuid:artifact_id>/erasure", "in in none no no no ok no none none none in", {}),
    (
        "POST",
        "runs/<uuid:run_id>/artifacts/<uuid:artifact_id>/erasure",
        "in in none no no no ok no none none none in",
        {"data": {"reason": ""}},
    ),
    ("GET", "runs/<uuid:run_id>/events/<int:seq>/erasure", "in in none no no no ok no no none none in", {}),
    ("POST", "runs/<uuid:run_id>/events/<int:seq>/erasure", "in in none no no no ok no no none none in", {"data": {"reason": ""}}),
    ("GET", "r/<str:ref>", THOSE_WHO_SEE, {}),
    ("POST", "runs/<uuid:run_id>/signals", "in in none no no ok no no ok none none in", {"data": {"kind": "pause", "key": "a"}}),
    ("POST", "runs/<uuid:run_id>/glances", THOSE_WHO_SEE, {"data": {"seq": "1"}}),
    ("POST", "runs/<uuid:run_id>/limits", "in in none no no ok no no no none none in", {"data": {"tokens": "5"}}),
    ("POST", "runs/<uuid:run_id>/answers", "in in none no no ok no no no none none in", {"data": {"question": "x", "text": "y"}}),
    ("GET", "runs/<uuid:run_id>/forks", "in in none no no ok no no ok none none in", {}),
    ("POST", "runs/<uuid:run_id>/forks", "in in none no no ok no no ok none none in", {"data": {"place": "", "key": ""}}),
    ("GET", "runs/<uuid:run_id>/effects/<int:seq>/undo", "in in none no no ok no no no none none in", {}),
    ("POST", "runs/<uuid:run_id>/effects/<int:seq>/undo", "in in none no no ok no no no none none in", {"data": {"reason": "x"}}),
    ("GET", "runs/<uuid:run_id>/compare", THOSE_WHO_SEE, {}),
    ("GET", "runs/<uuid:run_id>/replay", THOSE_WHO_SEE, {}),
    ("GET", "recovery", "in in ok no no ok no no no no no in", {}),
    ("POST", "runs/<uuid:run_id>/recovery", "in in none no no ok no no no none none in", {"data": {"choice": "retry", "at": "1"}}),
    ("GET", "webhooks", "in in ok no no no ok no no no no in", {}),
    ("POST", "webhooks", "in in ok no no no ok no no no no in", {"data": {"name": ""}}),
    ("POST", "webhooks/<uuid:source_id>", "in in none none none none ok none none none none in", {"data": {"do": "x"}}),
    ("POST", "recovery/webhooks/<uuid:webhook_id>", "in in none none none ok none none none none none in", {"data": {"choice": "x"}}),
    ("POST", "recovery/requeue", "in in ok no no ok no no no no no in", {"data": {"case": "x"}}),
    ("GET", "artifacts/<uuid:artifact_id>", THOSE_WHO_SEE_APPROVALS, {}),
    ("GET", "artifacts/<uuid:artifact_id>/content", THOSE_WHO_SEE_APPROVALS, {}),
    ("GET", "permissions/redaction", "in in ok no ok no ok ok no no no in", {}),
    ("GET", "permissions/redaction/new", "in in ok no no no ok no no no no in", {}),
    ("POST", "permissions/redaction/new", "in in ok no no no ok no no no no in", {"data": {"do": "try", "path": "$.a"}}),
    ("POST", "permissions/redaction/<uuid:policy_id>/withdrawal", "in in none none none none ok none none none none in", {"data": {}}),
    ("GET", "permissions/labels", "in in ok no ok no ok ok no no no in", {}),
    ("GET", "reveals/new?place=artifact:<uuid:artifact_id>", "in in none ok ok ok ok ok no no no in", {}),
    ("POST", "reveals", "in in none none none none none none no no no in", {"data": {"place": "x"}}),
    ("GET", "reveals/<uuid:reveal_id>", THE_ONE_IT_IS_FOR, {}),
    ("GET", "reveals/<uuid:reveal_id>/look", THE_ONE_IT_IS_FOR, {}),
    ("GET", "reveals/<uuid:reveal_id>/pages/<int:page>", THE_ONE_IT_IS_FOR, {}),
    ("GET", "reveals/<uuid:reveal_id>/content", THE_ONE_IT_IS_FOR, {}),
    ("POST", "reveals/<uuid:reveal_id>/ending", THE_ONE_IT_IS_FOR, {}),
    # the pages of approvals
    ("GET", "policies", "in in ok ok ok ok ok ok no no no in", {}),
    ("GET", "policies/section", "in in ok ok ok ok ok ok no no no in", {}),
    ("GET", "policies/simulator", "in in ok no no no ok no no no no in", {}),
    ("POST", "policies/simulator", "in in ok no no no ok no no no no in", {"data": {"agent": "x"}}),
    ("GET", "policies/rule", "in in ok no no no ok no no no no in", {}),
    ("POST", "policies/rule", "in in ok no no no ok no no no no in", {}),
    ("GET", "policies/versions/<int:version>", "in in none ok ok ok ok ok no no no in", {}),
    ("POST", "policies/versions/<int:version>", "in in none no no no ok no no no no in", {}),
    ("GET", "inbox", "in in ok ok ok ok ok ok no no no in", {}),
    ("GET", "inbox/alike/<uuid:action_id>", "in in none ok no no no no none none none in", {}),
    ("POST", "inbox/alike/<uuid:action_id>/looks", "in in none ok no no no no none none none in", {}),
    ("POST", "inbox/alike/<uuid:action_id>/decisions", "in in none ok no no no no none none none in", {}),
    ("GET", "actions/<uuid:action_id>", THOSE_WHO_SEE_APPROVALS, {}),
    ("GET", "actions/<uuid:action_id>/attachments/<int:index>", "in in none ok no no no no none none none in", {}),
    ("GET", "actions/<uuid:action_id>/html", "in in none ok no no no no none none none in", {}),
    ("GET", "actions/<uuid:action_id>/edit", "in in none ok no no no no none none none in", {}),
    ("POST", "actions/<uuid:action_id>/edit", "in in none ok no no no no none none none in", {}),
    ("POST", "actions/<uuid:action_id>/questions", "in in none ok no no no no none none none in", {}),
    ("POST", "actions/<uuid:action_id>/claim", "in in none ok no no no no none none none in", {}),
    ("POST", "actions/<uuid:action_id>/release", "in in none ok no no no no none none none in", {}),
    ("POST", "actions/<uuid:action_id>/recall", "in in none ok no no no no none none none in", {"data": {"reason": "No."}}),
    ("GET", "groups", "in in ok ok ok ok ok ok no no no in", {}),
    ("GET", "groups/new", "in in ok no no no ok no no no no in", {}),
    ("POST", "groups/new", "in in ok no no no ok no no no no in", {"data": {"name": ""}}),
    ("GET", "groups/<uuid:group_id>", THOSE_WHO_SEE_APPROVALS, {}),
    ("POST", "groups/<uuid:group_id>", "in in none no no no ok no none none none in", {"data": {"name": ""}}),
    ("GET", "standing-grants/new", "in in ok ok no no no no no no no in", {}),
    ("POST", "standing-grants/new", "in in ok ok no no no no no no no in", {}),
    ("GET", "standing-grants/<uuid:grant_id>", THOSE_WHO_SEE_APPROVALS, {}),
    ("POST", "standing-grants/<uuid:grant_id>/revocation", "in in none ok no no ok no none none none in", {}),
    ("GET", "freezes", "in in ok ok ok ok ok ok no no no in", {}),
    ("POST", "freezes", "in in ok no no ok ok no no no no in", {"data": {"target": "x"}}),
    ("POST", "freezes/<uuid:freeze_id>/lifting", "in in none no no ok ok no none none none in", {"data": {"reason": ""}}),
    ("POST", "actions/<uuid:action_id>/decision", "in in none ok no no no no none none none in", {"data": {"verdict": "rejected"}}),
    ("GET", "actions/<uuid:action_id>/outcome", THOSE_WHO_SEE_APPROVALS, {}),
    # a person's own notifications, and the two pages of a workspace
    ("GET", "notifications", "in in ok ok ok ok ok ok no no no in", {}),
    ("POST", "notifications", "in in ok ok ok ok ok ok no no no in", {"data": {"zone": "UTC"}}),
    ("POST", "notifications/test", "in in ok ok ok ok ok ok no no no in", {"data": {"channel": "x"}}),
    ("POST", "notifications/webhook", "in in ok ok ok ok ok ok no no no in", {"data": {"do": "set", "url": "x"}}),
    ("POST", "notifications/delegations", "in in ok ok no no no no no no no in", {"data": {"to": "x"}}),
    ("POST", "notifications/delegations/<uuid:delegation_id>/end", "in in none ok no no no no no no no in", {}),
    ("GET", "notifications/undelivered", "in in ok no no ok no no no no no in", {}),
    ("POST", "notifications/undelivered/<uuid:message_id>", "in in none none none ok none none none none none in", {}),
    ("GET", "notifications/nobody-answers", "in in ok no no no ok no no no no in", {}),
    ("POST", "notifications/nobody-answers", "in in ok no no no ok no no no no in", {"data": {"minutes": "x"}}),
    ("POST", "notifications/nobody-answers/<uuid:step_id>/remove", "in in none none none none ok none none none none in", {}),
    ("POST", "actions/<uuid:action_id>/outcome", "in in none no no ok no no none none none in", {"data": SAID}),
    # the API
    ("GET", "api/v1/", "none " * 12, {}),
    ("GET", "api/v1/openapi.json", "in in ok ok ok ok ok ok ok ok ok in", {}),
    ("GET", "api/v1/audit", "in in ok no ok no ok ok no no no in", {}),
    ("GET", "api/v1/agents", "in in ok no no no ok no no no no in", {}),
    ("POST", "api/v1/agents", "in in ok no no no ok no no no no in", {"json": {"name": ""}}),
    ("POST", "api/v1/agents/<agent_id>/keys", "in in none none none none ok none none none none in", {"json": {"name": "x"}}),
    (
        "POST",
        "api/v1/agents/<agent_id>/keys/<key_id>/rotations",
        "in in none none none none ok none none none none in",
        {"json": {"overlap_minutes": 0}},
    ),
    ("DELETE", "api/v1/agents/<agent_id>/keys/<key_id>", "in in none none none none ok none none none none in", {}),
    ("GET", "api/v1/runs", "in in ok ok ok ok ok ok ok ok ok in", {}),
    ("POST", "api/v1/runs", "in in ok no no ok no no ok ok ok in", {"json": {"title": "x", "agent_version": "1"}, "key": True}),
    ("GET", "api/v1/runs/<run_id>", THOSE_WHO_SEE, {}),
    ("GET", "api/v1/runs/<run_id>/events", THOSE_WHO_SEE, {}),
    ("POST", "api/v1/runs/<run_id>/events", "in in none no no no no no ok none none in", {"json": {"id": "a", "type": "note.posted"}}),
    ("GET", "api/v1/runs/<run_id>/artifacts", THOSE_WHO_SEE, {}),
    ("POST", "api/v1/runs/<run_id>/artifacts?name=a.txt", "in in none no no no no no ok none none in", {"data": "text", "key": True}),
    ("GET", "api/v1/runs/<run_id>/artifacts/<artifact_id>/content", "in in none no no no no no ok none none in", {}),
    ("HEAD", "api/v1/runs/<run_id>/artifacts/<artifact_id>/content", "in in none no no no no no ok none none in", {}),
    ("POST", "api/v1/runs/<run_id>/uploads", "in in none no no no no no ok none none in", {"json": {"name": "a", "size": 9}, "key": True}),
    ("GET", "api/v1/uploads/<upload_id>", "in in none none none none none none ok none none in", {}),
    ("HEAD", "api/v1/uploads/<upload_id>", "in in none none none none none none ok none none in", {}),
    ("PATCH", "api/v1/uploads/<upload_id>", "in in none none none none none none ok none none in", {"data": "x", "offset": True}),
    ("POST", "api/v1/uploads/<upload_id>/finish", "in in none none none none none none ok none none in", {"json": {"sha256": "0" * 64}}),
    ("DELETE", "api/v1/uploads/<upload_id>", "in in none none none none none none ok none none in", {}),
    ("GET", "api/v1/runs/<run_id>/evidence", THOSE_WHO_SEE, {}),
    ("POST", "api/v1/runs/<run_id>/signals", "in in none no no ok no no ok none none in", {"json": {"kind": "pause"}, "key": True}),
    ("POST", "api/v1/runs/<run_id>/updates", "in in none no no ok no no no none none in", {"json": {"budgets": {"steps": 5}}}),
    ("POST", "api/v1/runs/<run_id>/answers", "in in none no no ok no no no none none in", {"json": {"question": NOBODY, "text": "y"}}),
    ("GET", "api/v1/runs/<run_id>/reveals", "in in none no ok no ok ok no none none in", {}),
    ("POST", "api/v1/payloads/<payload_id>/reveals", "in in none ok no no no no no no no in", {"json": LOOK_AT_IT}),
    ("GET", "api/v1/runs/<run_id>/forks", THOSE_WHO_SEE, {}),
    ("POST", "api/v1/runs/<run_id>/forks", "in in none no no ok no no ok none none in", {"json": {}, "key": True}),
    ("GET", "api/v1/runs/<run_id>/replay", THOSE_WHO_SEE, {}),
    ("GET", "api/v1/runs/<run_id>/recovery", "in in none no no ok no no no none none in", {}),
    ("POST", "api/v1/runs/<run_id>/recovery", "in in none no no ok no no no none none in", {"json": {"choice": "retry", "parked": 1}}),
    ("POST", "api/v1/runs/<run_id>/lease", "in in none no no no no no ok none none in", {"json": {"holder": "one"}}),
    ("PUT", "api/v1/runs/<run_id>/lease", "in in none no no no no no ok none none in", {"json": {"token": 9}}),
    ("DELETE", "api/v1/runs/<run_id>/lease?token=9", "in in none no no no no no ok none none in", {}),
    ("GET", "api/v1/runs/<run_id>/steps", "in in none no no no no no ok none none in", {}),
    ("POST", "api/v1/runs/<run_id>/steps", "in in none no no no no no ok none none in", {"json": STEP}),
    (
        "POST",
        "api/v1/runs/<run_id>/steps/outcome",
        "in in none no no no no no ok none none in",
        {"json": {"token": 9, "key": "a", "outcome": "failed"}},
    ),
    ("POST", "api/v1/runs/<run_id>/notes", "in in none no no no no no ok none none in", {}),
    ("POST", "api/v1/webhooks/<source_id>", "in " * 12, {"json": {}}),  # the signature lets in, and nothing else
    ("POST", "api/v1/runs/<run_id>/undos", "in in none no no ok no no no none none in", {"json": {"effect": 1, "reason": "x"}}),
    ("POST", "api/v1/runs/<run_id>/ending", "in in none no no no no no ok none none in", {"json": {"outcome": "failed"}}),
    ("GET", "api/v1/actions/<action_id>", "in in none ok ok ok ok ok ok none none in", {}),
    (
        "POST",
        "api/v1/actions/<action_id>/decisions",
        "in in none ok no no no no no no no in",
        {"json": {"verdict": "approved", "digest": "0" * 64}},
    ),
    ("POST", "api/v1/actions/<action_id>/edits", "in in none ok no no no no no no no in", {"json": {"digest": "0" * 64, "arguments": {}}}),
    (
        "POST",
        "api/v1/actions/<action_id>/questions",
        "in in none ok no no no no no no no in",
        {"json": {"digest": "0" * 64, "question": "Why?"}},
    ),
    (
        "POST",
        "api/v1/runs/<run_id>/actions",
        "in in none no no no no no ok none none in",
        {"json": {"tool": "made_up", "tool_schema": 1, "arguments": {}}, "key": True},
    ),
    (
        "POST",
        "api/v1/actions/<action_id>/answers",
        "in in none no no no no no ok none none in",
        {"json": {"question": "018f0000-0000-7000-8000-000000000000", "answer": "No."}},
    ),
    (
        "POST",
        "api/v1/actions/<action_id>/redemption",
        "in in none no no no no no ok none none in",
        {"json": {"digest": "0" * 64, "holder": "one-of-the-holders"}},
    ),
    (
        "POST",
        "api/v1/actions/<action_id>/outcome",
        "in in none no no no no no ok none none in",
        {"json": {"holder": "one-of-the-holders", "outcome": "executed"}},
    ),
    ("POST", "api/v1/actions/<action_id>/resolution", "in in none no no ok no no no no no in", {"json": SAID}),
    ("POST", "api/v1/actions/<action_id>/recall", "in in none ok no no no no no no no in", {"json": {"reason": "No."}}),
    ("POST", "api/v1/actions/<action_id>/withdrawal", "in in none no no no no no ok none none in", {"json": {"reason": ""}}),
    ("GET", "api/v1/policies", "in in ok ok ok ok ok ok no no no in", {}),
    ("GET", "api/v1/policies/<version>", "in in none ok ok ok ok ok no no no in", {}),
    ("GET", "api/v1/groups", "in in ok ok ok ok ok ok no no no in", {}),
    ("GET", "api/v1/groups/<group_id>", "in in none ok ok ok ok ok none none none in", {}),
    ("GET", "api/v1/standing-grants", "in in ok ok ok ok ok ok no no no in", {}),
    ("GET", "api/v1/standing-grants/<grant_id>", "in in none ok ok ok ok ok none none none in", {}),
    ("GET", "api/v1/freezes", "in in ok ok ok ok ok ok no no no in", {}),
    ("POST", "api/v1/freezes", "in in ok no no ok ok no no no no in", {"json": {"what": "workspace", "reason": ""}}),
    ("POST", "api/v1/freezes/<freeze_id>/lifting", "in in none no no ok ok no no no no in", {"json": {"reason": ""}}),
    ("GET", "api/v1/redaction-policies", "in in ok no ok no ok ok no no no in", {}),
    ("POST", "api/v1/redaction-policies", "in in ok no no no ok no no no no in", {"json": {"path": "a", "why": "", "version": 0}}),
    (
        "POST",
        "api/v1/redaction-policies/<policy_id>/withdrawal",
        "in in none none none none ok none none none none in",
        {"json": {"why": "", "version": 9}},
    ),
    # last, for it ends the sessions
    ("POST", "sign-out", "in " * 12, {}),
]
STREAMS: list[tuple[str, str, str]] = [
    ("http", "api/v1/runs/(?P<run_id>[^/]+)/stream", THOSE_WHO_SEE),
    ("websocket", "ws/runs/(?P<run_id>[^/]+)", THOSE_WHO_SEE),
    ("websocket", "ws/pages/runs", "in in ok ok ok ok ok ok ok ok ok in"),
    ("websocket", "ws/pages/runs/(?P<run_id>[^/]+)", THOSE_WHO_SEE),
    ("websocket", "ws/pages/inbox", "in in ok ok ok ok ok ok no no no in"),
    ("websocket", "ws/pages/actions/(?P<action_id>[^/]+)/outcome", THOSE_WHO_SEE_APPROVALS),
]
Who = Mapping[str, str]  # headers


@pytest.fixture
def people(cast) -> dict[str, Who]:
    gone = User.objects.create_user("gone@fernhill.example", "correct horse battery")
    users = {name: getattr(cast, name) for name in ["olga", "riley", "morgan", "otto", "ada", "priya"]}
    told = {name: signed_in(user) for name, user in (users | {"gone": gone}).items()}
    User.objects.filter(pk=gone.pk).update(is_active=False)
    colleague = Agent.objects.create(workspace=cast.workspace, name="notes", owner=cast.priya)
    agents = {"agent": cast.agent, "colleague": colleague, "stranger": cast.other_agent, "expired": cast.agent}
    told |= {name: with_key(agent, expired=name == "expired") for name, agent in agents.items()}
    return {"nobody": {}} | told


def signed_in(user: User) -> Who:
    browser = Client()
    browser.force_login(user)
    proving.shown(browser)  # the table is about rights; what is asked for again is told in tests/access
    return {"cookie": f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"}


def with_key(agent: Agent, *, expired: bool) -> Who:
    key, token = keys.make(agent, name="test", by=SYSTEM)
    if expired:
        AgentKey.objects.filter(pk=key.pk).update(expires_at=clock.now() - timedelta(seconds=1))
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def things(cast, people) -> dict[str, Any]:
    """What the addresses name: a run of our workspace with an action that waits, and one that an agent outside works on."""
    proposed = propose_mail(cast, file="a,b\n1,2\n")
    by = Actor("agent", str(cast.agent.pk), cast.agent.name)
    outside = starting.start(agent=cast.agent, owner=cast.priya, by=by, title="Outside", agent_version="1")
    ask("POST", f"/api/v1/runs/{outside.pk}/artifacts?name=a.txt", people["agent"], {"data": "text", "key": True})
    upload = {"sender": "a", "name": "a", "label": "internal", "media_type": "text/plain", "size": 9, "outside": False}
    letter = propose_letter(cast, files=[("a.png", "image/png", image())]).action
    return {
        "run": proposed.run,
        "outside": outside,
        "kept": Artifact.objects.get(run_id=outside.pk),
        "upload": uploading.begin(workspace_id=cast.workspace.pk, agent_id=cast.agent.pk, run_id=outside.pk, **upload),
        "action": proposed.action,
        "letter": letter,
        "reveal": shown_to_riley(cast, letter, people["riley"]["cookie"].partition("=")[2]),
        "freeze": frozen(cast),
        "grant": standing_grant(cast),
        "group": groups.make(cast.workspace.pk, name="Finance", members=[cast.riley.pk], by=None),
        "artifact": Artifact.objects.filter(run_id=proposed.run.pk).earliest("created_at"),
        "delegation": away(cast),
        "invitation": invited(cast),
        "message": sending.send_test(person(cast.riley.pk), cast.workspace.pk, "mail"),
        "step": step(cast),
        "webhook": dead_letter(cast),
        "redaction": redaction_policy(cast),
        "change": role_change(cast),
        "asked": asked_change(cast),
        "role": cast.workspace.roles.get(name="operator"),
        "key": keys.make(cast.agent, name="spare", by=SYSTEM)[0],
        "glass": broken_glass(cast),
        "team": teams.make(cast.workspace.pk, "Billing", by=person(cast.ada.pk), why="They look after invoices."),
    }


def shown_to_riley(cast, letter: ProposedAction, session_key: str) -> Reveal:
    actor = authenticate({"headers": [], "user": cast.riley, "session": SessionStore(session_key)})
    at = revealing.place(actor, f"action:{letter.pk}:0")
    return reveal.make(actor, at, token=uuid4(), reason="decide", details="To see the picture.")


def broken_glass(cast) -> BreakGlass:
    """One that is over; it changes nobody's rights here."""
    made = break_glass.take(cast.workspace.pk, ["runs.recover"], by=person(cast.riley.pk), reason="Nobody else is here.")
    break_glass.end(made, by=person(cast.riley.pk))
    return made


def role_change(cast) -> RoleChange:
    member(cast.workspace, "rafael", "admin")
    wanted = roles.Wanted("operator", frozenset({"runs.view"}))
    asked = roles.ask(cast.workspace.pk, cast.workspace.roles.get(name="operator"), wanted, base=1, by=person(cast.ada.pk), why="To see.")
    return asked.change


def asked_change(cast) -> AskedChange:
    fields = {"event": "*", "tool": "*", "path": "$.b", "kind": "secret"}
    return second_admin.ask(cast.workspace.pk, "hidden", wanted=fields, by=person(cast.ada.pk), why="To see.", base=1)


def redaction_policy(cast) -> RedactionPolicy:
    given = {"event": "", "tool": "nothing", "path": "$.a", "kind": "secret", "why": "Because."}
    return redaction_policies.make(cast.workspace.pk, by=person(cast.ada.pk), base=0, **given)


def dead_letter(cast) -> ReceivedWebhook:
    source, _ = webhooks.make_source(cast.agent, "desk", by=SYSTEM)
    body = vault.keep(cast.workspace.pk, b"{}", label="personal", media_type="application/json")
    return ReceivedWebhook.objects.create(source=source, delivery="a", digest="0" * 64, body=body, state="dead")


def invited(cast) -> Invitation:
    ada, reviewer = person(cast.ada.pk), cast.workspace.roles.get(name="reviewer")
    return invitations.invite(cast.workspace.pk, email="new@fernhill.example", role=reviewer, by=ada, by_mail=True)


def standing_grant(cast) -> StandingGrant:
    of = standing_grants.wanted(cast.workspace.pk, tool="send_mail", asks=[], budget=1, lasts=timedelta(hours=1))
    riley = person(cast.riley.pk)
    return standing_grants.make(of, by=riley, shown=standing_grants.token(of, riley))


def away(cast) -> Delegation:
    now = clock.now()
    return delegation.delegate(cast.workspace.pk, by=person(cast.riley.pk), to=cast.sam.pk, starts_at=now, ends_at=now + timedelta(days=1))


def step(cast) -> EscalationStep:
    chasing.add_step(cast.workspace.pk, after=timedelta(hours=1), to=cast.sam.pk, by=person(cast.ada.pk))
    return EscalationStep.objects.get()


def filled(address: str, things: Mapping[str, Any]) -> str:
    run: Run = things["outside" if address.startswith("api/v1/runs/") else "run"]
    action: ProposedAction = things["letter" if address.endswith("/html") else "action"]
    values = {"(?P<run_id>[^/]+)": run.pk, "<uuid:run_id>": run.pk, "<run_id>": run.pk, "<str:ref>": run.ref, "<int:seq>": 1}
    values |= {"<uuid:reveal_id>": things["reveal"].pk, "<payload_id>": things["reveal"].payload_id}
    values |= {"<uuid:artifact_id>": things["artifact"].pk, "<int:index>": 0, "<int:page>": 1}
    values |= {"<artifact_id>": things["kept"].pk, "<upload_id>": things["upload"].pk}
    named = ("delegation", "message", "step", "webhook", "change", "asked", "team")
    values |= {f"<uuid:{name}_id>": things[name].pk for name in named}
    values |= {"<int:role_id>": things["role"].pk, "<str:kind>": "agent"}
    values |= {blank: things["key"].agent_id for blank in ("<uuid:agent_id>", "<agent_id>")}
    values |= {"<uuid:glass_id>": things["glass"].pk}
    values |= {blank: things["key"].pk for blank in ("<uuid:key_id>", "<key_id>")}
    values |= {"<int:version>": 1, "<version>": 1, "<uuid:grant_id>": things["grant"].pk, "<grant_id>": things["grant"].pk}
    values |= {"(?P<action_id>[^/]+)": action.pk, "<uuid:action_id>": action.pk, "<action_id>": action.pk}
    values |= {"<source_id>": NOBODY, "<uuid:source_id>": things["webhook"].source_id}
    values |= {"<uuid:group_id>": things["group"].pk, "<group_id>": things["group"].pk}
    values |= {"<uuid:invitation_id>": things["invitation"].pk, "<uuid:user_id>": things["invitation"].invited_by_id}
    values |= {"<uuid:session_id>": NOBODY, "<int:factor_id>": 0}
    values |= {"<uuid:freeze_id>": things["freeze"].pk, "<freeze_id>": things["freeze"].pk}
    values |= {"<uuid:policy_id>": things["redaction"].pk, "<policy_id>": things["redaction"].pk}
    for blank, value in values.items():
        address = address.replace(blank, str(value))
    return f"/{address}"


def test_every_address_has_a_row() -> None:
    rows = {(method, address.partition("?")[0]) for method, address, *_ in TABLE}
    assert {address for _, address in rows} == {address for address, _ in addresses()}
    operations = {
        (method.upper(), path.removeprefix("/").replace("{", "<").replace("}", ">"))
        for path, methods in api.get_openapi_schema(path_prefix="/api/v1/")["paths"].items()
        for method in methods
    }
    assert operations - rows == set()
    streams = {("http", route_of(each)) for each in asgi.http.routes} | {("websocket", route_of(each)) for each in asgi.sockets}
    assert {each for each in streams if each[1]} == {(kind, address) for kind, address, _ in STREAMS}


def addresses(patterns: Any = None, before: str = "") -> Iterator[tuple[str, str]]:
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        if hasattr(pattern, "url_patterns"):
            yield from addresses(pattern.url_patterns, before + str(pattern.pattern))
        else:
            yield before + str(pattern.pattern), pattern.name


def route_of(route: Any) -> str:
    return str(route.pattern).removeprefix("^").removesuffix("$")


@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
def test_each_person_gets_at_each_address_what_the_table_says(people, things) -> None:
    wrong = []
    for method, address, expected, sent in TABLE:
        for name, wanted in zip(PEOPLE, expected.split(), strict=True):
            got = word(ask(method, filled(address, things), people[name], sent))
            if got != wanted:
                wrong.append(f"{method} /{address}: {name} gets {got}, not {wanted}")
    assert not wrong, "\n".join(wrong)


PROVISIONERS = {("GET", "api/v1/openapi.json"), ("GET", "api/v1/agents"), ("POST", "api/v1/agents")}  # where a provisioner's key gets in


@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
def test_a_provisioners_key_makes_agents_and_their_keys_and_gets_nowhere_else(cast, people, things) -> None:
    """Another agent's keys it does not see; where everybody gets in, it does too."""
    _, token = keys.make_provisioner(cast.workspace.pk, name="pipeline", owner=cast.priya, by=SYSTEM)
    key, got = {"authorization": f"Bearer {token}"}, set()
    for method, address, expected, sent in TABLE:
        if expected.split()[PEOPLE.index("nobody")] != "ok" and word(ask(method, filled(address, things), key, sent)) == "ok":
            got.add((method, address))
    assert got == PROVISIONERS


BROWSER = Client()  # one for all, for it takes in all of the middleware; who asks is in the headers


def ask(method: str, path: str, who: Who, sent: Mapping[str, Any]) -> HttpResponse:
    body = {"data": sent["json"], "content_type": "application/json"} if "json" in sent else {"data": sent.get("data")}
    if isinstance(body["data"], str):
        body["content_type"] = "text/plain"
    headers = dict(who) | ({"Idempotency-Key": "a"} if sent.get("key") else {}) | ({"Upload-Offset": "0"} if sent.get("offset") else {})
    BROWSER.cookies.clear()
    return getattr(BROWSER, method.lower())(path, **{name: value for name, value in body.items() if value}, headers=headers, secure=True)


def word(answer: HttpResponse) -> str:
    to_sign_in = answer.status_code == 302 and answer["Location"].startswith("/sign-in")
    if to_sign_in or answer.status_code == 401:
        return "in"
    assert answer.status_code < 500, answer.content
    return {403: "no", 404: "none"}.get(answer.status_code, "ok")


@pytest.mark.django_db(transaction=True)
def test_each_person_gets_at_each_stream_what_the_table_says(people, things) -> None:
    async def scene() -> list[str]:
        wrong = []
        for kind, address, expected in STREAMS:
            for name, wanted in zip(PEOPLE, expected.split(), strict=True):
                got = await OPEN[kind](filled(address, things), people[name])
                if got != wanted:
                    wrong.append(f"{kind} /{address}: {name} gets {got}, not {wanted}")
        return wrong

    wrong = asyncio.run(scene())
    assert not wrong, "\n".join(wrong)


async def by_http(path: str, who: Who) -> str:
    asked = {"type": "http", "method": "GET", "http_version": "1.1", "scheme": "https", "path": path, "query_string": b""}
    stream = ApplicationCommunicator(asgi.application, asked | {"headers": as_scope(who)})
    await stream.send_input({"type": "http.request"})
    answer = await stream.receive_output(10)
    await closed(stream)
    return {200: "ok", 401: "in", 403: "no", 404: "none"}[answer["status"]]


async def by_socket(path: str, who: Who) -> str:
    """Closed with 4000 + the status, or spoken to."""
    socket = WebsocketCommunicator(asgi.application, path, headers=as_scope(who | {"origin": settings.HANDRAIL_URL}))
    assert (await socket.connect(10))[0]
    await socket.send_to(text_data='{"open": null, "state": ""}')  # what the inbox says, and is answered
    said = await socket.receive_output(10)
    if said["type"] == "websocket.send" and b'"problem"' in (said.get("text") or "").encode():
        said = await socket.receive_output(10)
    await closed(socket)
    return "ok" if said["type"] == "websocket.send" else {4401: "in", 4403: "no", 4404: "none"}[said["code"]]


OPEN = {"http": by_http, "websocket": by_socket}


def as_scope(who: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in (dict(who) | {"host": "handrail.test"}).items()]


async def closed(communicator: Any) -> None:
    with suppress(asyncio.CancelledError):
        await communicator.send_input({"type": communicator.scope["type"] + ".disconnect", "code": 1000})
        await communicator.wait(10)


@pytest.fixture(autouse=True)
def no_connection_left() -> Iterator[None]:
    yield
    connections.close_all()
