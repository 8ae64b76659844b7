"""What trying an action says is what the gate then does: rules, taint, limits, groups, freezes, standing grants. It does none of it."""

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.test import Client
from pydantic import BaseModel

from access.models import Agent
from access.rules import SYSTEM, person
from approvals import decisions, freezes, gate, groups, policy, simulating, simulator_fields, simulator_views, standing_grants
from approvals.freezes import Freeze
from approvals.models import Grant, ProposedAction, StandingUse
from approvals.policy import PolicySet
from approvals.simulating import CantTry, Simulated, Wanted
from artifacts.models import Payload
from runs import log, starting
from runs.engine import gates
from runs.engine.gates import Proposal
from runs.engine.tools import TOOLS, Tool
from runs.models import Event, Run
from tests.approvals.mailing import change_record, propose_mail, read_account, read_mail, send_mail, text
from tests.approvals.test_freezing import frozen
from tests.approvals.test_looking import refund
from tests.cast import Cast, member
from tests.ids import without_ids

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
ACTIONS, IN_ONE_SET = 500, 20
GHOST = replace(send_mail, name="ghost_tool")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_simulator_agrees_with_the_engine_on_500_generated_actions(cast: Cast) -> None:
    dice = random.Random(6)
    house = House(cast, dice)
    met: Counter[str] = Counter()
    for number in range(ACTIONS):
        if number % IN_ONE_SET == 0:
            house.change()
        run, tool, arguments = dice.choice(house.runs), dice.choice((send_mail, change_record, refund, refund, GHOST)), {}
        arguments = house.arguments(tool)
        wanted = Wanted(run.agent, tool.name, arguments, *house.read(run), planned=run.plans > 0, owner=run.owner)
        said = simulating.simulate(wanted)
        done = house.propose(run, tool, arguments, number)
        assert comparable(said) == done, f"action {number}: {tool.name} {arguments}, rules {[each.name for each in house.rules()]}"
        met[said.outcome] += 1
        met["locked"] += bool(said.locks)
        met["tainted"] += said.tainted
        met["of a group"] += bool(said.outcome == "reviewers" and said.rule and said.rule.group_id)
        met["beyond a limit"] += "a day" in said.why
        met["self"] += any("own" in why for _, why in said.unable)
        met["unclear"] += any(each.said == "unclear" for each in said.trace)
    rare = {what for what in ("refused", "frozen", "automatic", "covered", "reviewers", "locked", "tainted", "of a group") if met[what] < 5}
    rare |= {what for what in ("beyond a limit", "self", "unclear") if met[what] < 3}
    assert not rare, met


def comparable(said: Simulated) -> tuple[Any, ...]:
    if said.outcome == "refused":
        return ("refused", said.why if said.rule else "")
    if said.outcome == "frozen":
        return ("frozen", "")
    rule = said.rule.pk if said.rule else None
    within = said.rule.expires_after if said.rule else None
    able = sorted(user.name for user in said.able) if said.outcome == "reviewers" else []
    return (said.outcome, rule, said.needs, within, bool(said.locks), said.warnings, able)


class House:
    """A workspace in which rules, freezes and standing grants change, and runs that have read this or that."""

    def __init__(self, cast: Cast, dice: random.Random) -> None:
        self.cast, self.dice, self.frozen, self.at = cast, dice, list[Freeze](), cast.workspace.pk
        member(cast.workspace, "nora", "reviewer")
        rileys = Agent.objects.create(workspace=cast.workspace, name="rileys-own", owner=cast.riley)
        self.group = groups.make(self.at, name="Finance", members=[cast.riley.pk, cast.sam.pk], by=None)
        used = ([], [read_mail.name], [read_account.name], [read_mail.name, read_account.name])
        self.runs = [self.run(agent, tools, plans) for agent in (cast.agent, rileys) for tools in used for plans in (0, 1)]

    def run(self, agent: Agent, tools: list[str], plans: int) -> Run:
        given = {"workflow": "test-mailing", "arguments": {"mail": {}, "file": ""}, "agent_version": "3.2"}
        made = starting.start(agent=agent, owner=agent.owner, by=SYSTEM, title="Ticket", **given)
        Run.objects.filter(pk=made.pk).update(tools=tools, plans=plans)
        return Run.objects.select_related("agent__owner", "owner").get(pk=made.pk)

    def read(self, run: Run) -> tuple[bool, bool]:
        return read_account.name in run.tools, read_mail.name in run.tools

    def rules(self) -> list[policy.Policy]:
        return policy.rules(self.at)

    def change(self) -> None:
        """Other rules, other freezes, and now and then a standing grant."""
        now, ada = policy.newest(self.at), person(self.cast.ada.pk)
        drafted = [self.rule(number) for number in range(self.dice.randint(2, 6))]
        policy.put_in_force(self.at, drafted, by=ada, why="Other rules.", base=now.version if now else 0)
        while self.frozen:
            freezes.lift(self.frozen.pop(), by=ada, reason="Enough of it.")
        if self.dice.random() < 0.3:
            self.frozen.append(frozen(self.cast, self.dice.choice(("tool", "agent"))))
        if self.dice.random() < 0.7:
            giver, tool = person(self.dice.choice((self.cast.riley.pk, self.cast.sam.pk))), self.dice.choice((send_mail, change_record))
            of = standing_grants.wanted(self.at, tool=tool.name, asks=[], budget=3, lasts=timedelta(hours=1))
            standing_grants.make(of, by=giver, shown=standing_grants.token(of, giver))

    def rule(self, number: int) -> policy.Policy:
        dice = self.dice
        tool = dice.choice(("", send_mail.name, send_mail.name, change_record.name, refund.name, refund.name))
        outcome = dice.choice(("automatic", "automatic", "reviewers", "reviewers", "reviewers", "never"))
        group = self.group if outcome != "never" and dice.random() < 0.3 else None
        limits = {"a_day": dice.choice((None, None, 1, 3))} | ({"a_day_amount": "400 EUR"} if dice.random() < 0.3 else {})
        asks = [dice.choice(CONDITIONS) for _ in range(dice.choice((0, 0, 1, 2)))]
        more = {"plan_first": dice.random() < 0.1, "expires_after": timedelta(hours=dice.randint(1, 9)), "grant_lasts": timedelta(hours=1)}
        return policy.rule(
            self.at,
            name=f"{number}: {outcome} for {tool or 'any'}",
            tool=tool,
            conditions=asks,
            outcome=outcome,
            quorum=dice.choice((1, 1, 2)),
            group=group,
            **limits,
            **more,
        )

    def arguments(self, tool: Tool) -> dict[str, Any]:
        dice = self.dice
        if tool is refund:
            amount, currency = dice.choice(("12.50", "350.00", "1284.00", "2500.00", "1e3")), dice.choice(("EUR", "EUR", "PLN"))
            return {"account": dice.choice(("417", "418")), "amount": amount, "currency": currency}
        if tool is change_record:
            note = dice.choice(("", "sk_live_4eC39HqLyjWDarjtT1zdp7dcabcd", "plain", "a\u202eb"))
            return {
                "record": dice.choice(("ACC-1", "ACC-2")),
                "fields": {"city": "Gdynia"},
                "note": note,
                "tags": dice.choice(([], ["vip"])),
            }
        to = dice.choice(("marta@brightwater.example", "sam@fernhill.example", "m\u0430rta@brightwater.example"))
        return {"to": [to], "subject": dice.choice(("Your charge", "Refund")), "body": "Hello."}

    def propose(self, run: Run, tool: Tool, arguments: dict[str, Any], number: int) -> tuple[Any, ...]:
        """What the gate does, in the words of `comparable`."""
        checked, nonce = tool.checked(**arguments), f"nonce-{number}"
        proposal = Proposal(tool, tool.prepare(checked, nonce) if tool.prepare else checked, "", nonce)
        with log.holding(run.pk) as held:
            answer = gates.current().propose(held, proposal)
        if isinstance(answer, gates.Refused):
            return ("refused", answer.detail if answer.reason != "unregistered" else "")
        if isinstance(answer, gates.Frozen):
            return ("frozen", "")
        action = ProposedAction.objects.select_related("policy__group", "run__agent").get(pk=answer.action_id)
        covered = StandingUse.objects.filter(action=action).exists()
        outcome = "covered" if covered else "automatic" if Grant.objects.filter(action=action).exists() else "reviewers"
        event = Event.objects.get(run_id=run.pk, seq=action.proposed_seq)
        able = sorted(user.name for user in decisions.who_may(action)) if outcome == "reviewers" else []
        needs = orjson.loads(event.body)["data"]["needs"]
        return (outcome, action.policy_id, needs, action.policy.expires_after, action.locked, len(action.warnings), able)


CONDITIONS = (
    {"what": "recipients", "test": "is", "value": "outside"},
    {"what": "recipients", "test": "is", "value": "new"},
    {"what": "leg", "test": "is", "value": "private"},
    {"what": "leg", "test": "is_not", "value": "untrusted"},
    {"what": "agent", "test": "is", "value": "rileys-own"},
    {"what": "effect", "test": "is", "value": "write"},
    {"what": "label", "test": "at_least", "value": "personal"},
    {"what": "amount", "test": "more", "value": "1000 EUR"},
    {"what": "amount", "test": "at_most", "value": "400 EUR"},
    {"what": "argument", "path": "$.account", "test": "is", "value": "417"},
    {"what": "argument", "path": "$.tags[*]", "test": "is", "value": "vip"},
    {"what": "argument", "path": "$.subject", "test": "contains", "value": "refund"},
    {"what": "argument", "path": "$.fields", "test": "is", "value": "x"},
)


# the form -------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def ada(cast: Cast) -> Client:
    browser = Client()
    browser.force_login(cast.ada)
    return browser


MAIL = {"to": ["marta@brightwater.example"], "subject": "Your charge", "body": "Hello."}


def form(cast: Cast, **changes: str) -> dict[str, str]:
    return {"agent": str(cast.agent.pk), "tool": "send_mail", "arguments": orjson.dumps(MAIL).decode(), "planned": "1"} | changes


def counted() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (ProposedAction, Grant, Payload, Run, Event, PolicySet, StandingUse))


def test_trying_says_what_it_needs_who_could_decide_and_what_would_be_without_the_rule_and_does_nothing(
    cast: Cast, ada: Client, django_assert_max_num_queries: Any
) -> None:
    propose_mail(cast)
    stated = {"why": "To see.", "by": person(cast.ada.pk)}
    two = policy.rule(
        cast.workspace.pk,
        name="Outside, and private data read",
        tool="send_mail",
        conditions=[{"what": "leg", "test": "is", "value": "private"}],
        outcome="reviewers",
        quorum=2,
        expires_after=timedelta(hours=1),
        grant_lasts=timedelta(hours=1),
    )
    policy.put_in_force(cast.workspace.pk, [two, *policy.rules(cast.workspace.pk)], base=policy.newest(cast.workspace.pk).version, **stated)
    before = counted()
    with django_assert_max_num_queries(60):
        page = ada.post("/policies/simulator", form(cast, private="1", untrusted="1"))
    said = text(page)
    assert page.status_code == 200 and "Two reviewers, within 1 h" in said and "2 people could decide: Riley and Sam." in said
    assert "1 Outside, and private data read Matched" in said and "2 Outside e-mail, known customer Would match, not reached" in said
    assert "Without rule 1 it would need one reviewer, by rule 2. In the last 7 days that is 1 action." in said
    assert "One reviewer" in text(ada.post("/policies/simulator", form(cast)))
    Agent.objects.filter(pk=cast.agent.pk).update(owner=cast.riley)
    assert "Riley couldn’t, because they own the agent." in text(ada.post("/policies/simulator", form(cast)))
    assert counted() == before


def test_before_it_is_tried_the_page_names_the_rules_of_what_was_proposed_last(
    cast: Cast, ada: Client, django_assert_max_num_queries: Any
) -> None:
    propose_mail(cast)
    said = text(ada.get("/policies/simulator"))
    assert "1 rule would be asked. 1 Outside e-mail, known customer Whatever its arguments One reviewer" in said
    for _ in range(6):
        propose_mail(cast)
    with django_assert_max_num_queries(20):
        assert "1 rule would be asked" in text(ada.get("/policies/simulator?tool=send_mail"))
    none = {"base": policy.newest(cast.workspace.pk).version, "why": "To see.", "by": person(cast.ada.pk)}
    policy.put_in_force(cast.workspace.pk, [], **none)
    assert "no rule covers it, so it is refused" in text(ada.get("/policies/simulator"))


def test_what_a_tool_needs_is_typed_in_fields_and_kept_in_them(cast: Cast, ada: Client) -> None:
    propose_mail(cast)
    page = ada.get("/policies/simulator").content.decode()
    assert 'name="arg-to"' in page and 'name="arg-subject"' in page and 'name="arguments"' not in page
    given = {"agent": str(cast.agent.pk), "tool": "send_mail", "planned": "1", "arg-to": "a@example.org, b@example.org"}
    given |= {f"arg-{name}": "Hello" for name, value in MAIL.items() if isinstance(value, str)}
    answer = ada.post("/policies/simulator", given)
    assert answer.status_code == 200 and "2 people could decide" in text(answer)
    assert ">a@example.org, b@example.org</textarea>" in answer.content.decode()
    as_json = ada.get("/policies/simulator?tool=send_mail&as=json").content.decode()
    assert 'name="arguments"' in as_json and "arg-to" not in as_json


def test_the_past_actions_to_choose_from_are_read_once_and_no_more_of_them_than_are_listed(
    cast: Cast, ada: Client, django_assert_max_num_queries: Any
) -> None:
    propose_mail(cast)
    with django_assert_max_num_queries(40) as asked:
        ada.get("/policies/simulator")
    [read] = [each["sql"] for each in asked if 'ORDER BY "approvals_proposedaction"."proposed_at" DESC' in each["sql"]]
    assert read.endswith(f"LIMIT {simulator_views.RECENT}")


def test_what_is_too_long_to_be_tried_is_refused_and_not_cut(cast: Cast, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    propose_mail(cast)
    monkeypatch.setattr(simulator_views, "LONGEST", 300)
    given = {"agent": str(cast.agent.pk), "tool": "send_mail", "planned": "1", "arg-to": "a@example.org", "arg-subject": "Hello"}
    assert "could decide" in text(ada.post("/policies/simulator", given | {"arg-body": "x" * 300}))
    long = orjson.dumps(MAIL | {"body": "x" * 300}).decode()
    for more in ({"arg-body": "x" * 301}, {"arguments": long}):
        page = ada.post("/policies/simulator", given | more if "arg-body" in more else form(cast, **more))
        assert page.status_code == 422 and "At most 300 characters" in text(page) and "x" * 300 in text(page)


def test_fields_stand_for_texts_whole_numbers_and_lists_of_texts_alone() -> None:
    class Plain(BaseModel):
        to: list[str]
        times: int
        note: str
        more: dict[str, str] = {}

    class Deep(BaseModel):
        rows: list[dict[str, str]]

    plain, deep = replace(TOOLS["send_mail"], arguments=Plain), replace(TOOLS["send_mail"], arguments=Deep)
    sent = {"arg-to": "a\nb,,c", "arg-times": " 3 ", "arg-note": "x\r\ny"}
    assert simulator_fields.arguments(simulator_fields.filled(plain, sent)) == {"to": ["a", "b", "c"], "times": 3, "note": "x\ny"}
    assert simulator_fields.arguments(simulator_fields.filled(plain, sent | {"arg-times": "many"}))["times"] == "many"
    assert simulator_fields.blank(deep) == [] and '"rows": []' in simulator_fields.as_json(deep)


def test_a_past_action_is_tried_without_showing_its_arguments(cast: Cast, ada: Client) -> None:
    past = propose_mail(cast, body="Code 4711 for Hutnicza 12").action
    page = ada.post("/policies/simulator", form(cast, past=str(past.pk), arguments=""))
    assert page.status_code == 200 and "One reviewer" in text(page) and "4711" not in without_ids(page.content.decode())
    assert ada.post("/policies/simulator", form(cast, past=str(cast.agent.pk))).status_code == 422


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arguments": "{"}, "not JSON"),
        ({"arguments": "[]"}, "an object"),
        ({"arguments": '{"to": []}'}, "not its arguments"),
        ({"arguments": '{"too": []}'}, "takes no “too”"),
        ({"agent": "x"}, "Choose an agent"),
        ({"tool": "no_such"}, "not registered"),
    ],
)
def test_what_can_not_be_tried_says_why_and_keeps_what_was_typed(cast: Cast, ada: Client, changes: dict[str, str], words: str) -> None:
    page = ada.post("/policies/simulator", form(cast, **changes))
    assert words in text(page) and page.status_code == (200 if "tool" in changes else 422)


def test_an_argument_that_does_not_fit_is_no_action_at_all(cast: Cast) -> None:
    with pytest.raises(CantTry, match="takes no “nothing”"):
        simulating.simulate(Wanted(cast.agent, "change_record", {"nothing": 1}))
    told = "amount: String should match pattern '^[0-9]{1,9}$'; account: Field required"
    assert simulating.PATTERN.sub("not so", told) == "amount: not so; account: Field required", "who tries is no program"
    assert simulating.simulate(Wanted(cast.agent, "no_such_tool", {})).outcome == "refused"
    assert "no_such_tool" not in TOOLS and gate.NEVER
