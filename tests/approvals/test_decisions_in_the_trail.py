"""What people decide about actions stands in the audit trail too: found and exported there, without a word of the action."""

from datetime import timedelta

import pytest
from django.test import Client

from access.models import AuditEntry
from access.rules import person
from approvals import asking, decisions, editing, policy, taking_back
from approvals.errors import AlreadyDecided
from runs import starting
from runs.engine import executor
from tests import proving
from tests.approvals.mailing import MAIL, propose_mail, rules, text

pytestmark = pytest.mark.django_db(transaction=True)


def verbs() -> list[str]:
    told = ["decided", "action_edited", "agent_asked", "claimed", "claim_released", "recalled", "granted"]
    return list(AuditEntry.objects.filter(verb__in=told).order_by("at", "pk").values_list("verb", flat=True))


def test_each_decision_stands_in_the_trail_without_a_word_of_the_action(cast):
    rules(cast.workspace.pk)
    kept = policy.in_force(cast.workspace.pk, "send_mail")
    delay = {"recall_delay": timedelta(minutes=5), "name": kept.name, "outcome": kept.outcome}
    policy.set_rule(cast.workspace.pk, "send_mail", by=None, **delay)
    mail, riley, sam = propose_mail(cast), person(cast.riley.pk), person(cast.sam.pk)
    decisions.claim(mail.action, by=riley)
    decisions.release(mail.action, by=riley)
    asking.ask(mail.action, by=riley, question="Is she a customer?", digest=mail.action.digest)
    arguments = {name: value for name, value in MAIL.items()} | {"body": "Hello Marta, we are sorry."}
    newer = editing.edit(mail.again(), by=sam, arguments=arguments, digest=mail.action.digest).action
    codes = [warn["code"] for warn in newer.warnings]
    decisions.decide(newer, reviewer=riley, verdict="approved", digest=newer.digest, reason="It is her address.", acks=codes)
    taking_back.recall(newer, by=riley, reason="Marta wrote again.")
    assert verbs() == ["claimed", "claim_released", "agent_asked", "action_edited", "decided", "recalled"]
    entry = AuditEntry.objects.get(verb="decided")
    assert (entry.actor_id, entry.subject_id, entry.data["verdict"], entry.data["digest"]) == (
        riley.id,
        str(newer.pk),
        "approved",
        newer.digest,
    )
    everything = str(list(AuditEntry.objects.values_list("data", flat=True)))
    assert not any(word in everything for word in ("marta@", "Hello", "customer?", "her address", "wrote again"))

    morgan = Client()
    morgan.force_login(cast.morgan)
    page = text(morgan.get("/permissions/log?what=decision"))
    assert "Decided on Send the reply: approved" in page and "It is her address." in page, "the reason as its rendition"
    assert (
        "Edited Send the reply" in page
        and "Recalled an approval of Send the reply" in page
        and "Asked the agent about Send the reply" in page
    )
    assert "Decided on Send the reply" in text(morgan.get(f"/permissions/log?run={mail.run.ref}"))
    told = proving.shown(morgan).post("/permissions/log/exports?what=decision", {"form": "jsonl", "what": "decision"})
    assert b"decided" in b"".join(told.streaming_content)


def test_what_is_refused_or_said_again_leaves_no_decision_there_and_a_policy_s_own_does(cast):
    mail, riley = propose_mail(cast), person(cast.riley.pk)
    digest, codes = mail.action.digest, [warn["code"] for warn in mail.action.warnings]
    for _ in range(2):  # a double click
        decisions.decide(mail.action, reviewer=riley, verdict="rejected", digest=digest, reason="Not now.", acks=codes)
    with pytest.raises(AlreadyDecided):
        decisions.decide(mail.action, reviewer=person(cast.sam.pk), verdict="approved", digest=digest, acks=codes)
    assert verbs() == ["decided"]
    policy.set_rule(cast.workspace.pk, "change_record", name="Notes", outcome="automatic", by=None)
    given = {"change": {"record": "ACC-1", "fields": {"city": "Gdynia"}}}
    more = {"owner": cast.priya, "by": person(cast.priya.pk), "title": "A note", "agent_version": "3.2", "scope": {}}
    run = starting.start(agent=cast.agent, workflow="test-changing", arguments=given, **more)
    assert executor.execute(run.pk) == "succeeded"
    assert verbs() == ["decided", "granted"]
