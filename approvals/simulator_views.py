"""Trying an action on a page: what it would need, and why. Nothing is run. And the rules in force, for the page of permissions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from access import audit, places, rules, wording
from access.errors import NotFound, Refusal
from access.ids import as_uuid
from access.places import Place
from access.templatetags.handrail import spell
from approvals import canonical, freezes, policy, policy_views, policy_words, simulating, simulator_fields, trying
from approvals.canonical import NotCanonical
from approvals.models import ProposedAction
from approvals.simulating import CantTry, Simulated, Wanted
from approvals.simulator_fields import Field
from runs.engine.tools import TOOLS, Tool

FIRST = 8  # rules that the page of permissions shows, if there are some more; the rest is folded
RECENT = 20  # past actions that may be chosen
LONGEST = 100_000  # characters of an argument, or of all of them as JSON


@dataclass(frozen=True)
class Typed:
    """The form as it was sent, fit or not."""

    agent: str = ""
    tool: str = ""
    arguments: str = ""
    past: str = ""
    private: bool = False
    untrusted: bool = False
    planned: bool = True


@never_cache
@require_safe
def section(request: HttpRequest) -> HttpResponse:
    """The rules in force, for the page of permissions."""
    found = policy_views.lines_of(request)
    many = len(found["lines"]) - FIRST
    return render(request, "approvals/_policies_section.html", found | {"many": many if many > 2 else 0, "first": FIRST})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def simulator(request: HttpRequest) -> HttpResponse:
    here = places.place(request, "policies.manage")
    recent = trying.last(here.id, most=RECENT)
    if request.method != "POST":
        return _drawn(request, here, _first(recent, request.GET.get("tool", "")), recent)
    typed = _typed(request)
    try:
        wanted = _wanted(request, here, typed)
        found = simulating.simulate(wanted)
    except Refusal as error:
        return _drawn(request, here, typed, recent, error=error)
    if wanted.past is not None:  # what it says tells about arguments that are not shown
        audit.record(request.actor, "action_tried", workspace_id=here.id, subject=("action", wanted.past.pk))
    return _drawn(request, here, typed, recent, found=found, wanted=wanted)


def _drawn(
    request: HttpRequest,
    here: Place,
    typed: Typed,
    recent: Sequence[ProposedAction],
    *,
    found: Simulated | None = None,
    wanted: Wanted | None = None,
    error: Refusal | None = None,
) -> HttpResponse:
    chosen, past = TOOLS.get(typed.tool), wanted.past if wanted else None
    context: dict[str, Any] = {
        "place": here,
        "typed": typed,
        "agents": freezes.agents(here.id),
        "tools": _tools(),
        "fields": _fields(request, typed, chosen),
        "arguments": typed.arguments or (simulator_fields.as_json(chosen) if chosen else "{}"),
        "recent": [(str(each.id), f"{each.ref}, {each.subject}") for each in trying.rows(recent)],
        "found": found,
        "error": error,
        "past": past,
        "title": TOOLS[past.tool].title if past else chosen.title if chosen else typed.tool,
    }
    if found is None and error is None:
        asked = [rule for rule in policy.rules(here.id) if rule.tool in ("", typed.tool)]
        context["asked"] = policy_words.lines(asked)
    if found is not None:
        context |= {"needs": _needs(found), "without": _without(found), "able": wording.listed([user.name for user in found.able], most=6)}
        context |= {"within": spell(found.rule.expires_after.total_seconds()) if found.rule else ""}
    by_htmx = request.headers.get("HX-Request") == "true"  # it draws no answer of another status
    return render(request, "approvals/simulator.html", context, status=error.status if error and not by_htmx else 200)


def _fields(request: HttpRequest, typed: Typed, tool: Tool | None) -> list[Field]:
    """The arguments as fields, unless they were typed as JSON, or are to be."""
    if tool is None or typed.arguments or request.GET.get("as") == "json":
        return []
    return simulator_fields.filled(tool, request.POST.dict()) or simulator_fields.blank(tool)


def _typed(request: HttpRequest) -> Typed:
    sent = request.POST
    flags = {name: bool(sent.get(name)) for name in ("private", "untrusted", "planned")}
    texts = {name: sent.get(name, "")[:most] for name, most in (("agent", 40), ("tool", 60), ("past", 40))}
    return Typed(**texts, arguments=sent.get("arguments", ""), **flags)


def _wanted(request: HttpRequest, here: Place, typed: Typed) -> Wanted:
    flags = {"read_private": typed.private, "read_untrusted": typed.untrusted, "planned": typed.planned}
    if typed.past:
        past = _past(request, here, typed.past)
        return Wanted(past.run.agent, past.tool, {}, past=past, **flags)
    agent = next((each for each in freezes.agents(here.id) if str(each.pk) == typed.agent), None)
    if agent is None:
        raise CantTry("Choose an agent of this workspace.")
    if any(len(text) > LONGEST for text in request.POST.values()):
        raise CantTry(f"At most {LONGEST:,} characters of arguments can be tried here.")
    if typed.tool not in TOOLS:
        return Wanted(agent, typed.tool, {}, **flags)
    if fields := simulator_fields.filled(TOOLS[typed.tool], request.POST.dict()):
        return Wanted(agent, typed.tool, simulator_fields.arguments(fields), **flags)
    try:
        arguments = canonical.parse_json(typed.arguments or "{}")
    except NotCanonical as error:
        raise CantTry(f"The arguments: {error}") from None
    if not isinstance(arguments, dict):
        raise CantTry("The arguments are an object, as {“to”: [“…”]}.")
    return Wanted(agent, typed.tool, arguments, **flags)


def _past(request: HttpRequest, here: Place, pk: str) -> ProposedAction:
    related = ("run__agent__owner", "run__owner")
    try:
        found = rules.get(request.actor, ProposedAction, as_uuid(pk), "policies.manage", related=related)
    except NotFound:
        raise CantTry("That action is not here. Choose one of the list.") from None
    if found.workspace_id != here.id or found.tool not in TOOLS:
        raise CantTry("That action can’t be tried: its tool is not loaded here.")
    return found


def _tools() -> list[tuple[str, str]]:
    """What passes the gate, by title."""
    return sorted(((tool.name, tool.title) for tool in TOOLS.values() if tool.effect != "read"), key=lambda each: each[1].casefold())


def _first(recent: Sequence[ProposedAction], tool: str) -> Typed:
    """The form before anything was typed: of the tool that is asked for, else of what was proposed last, a send before a change."""
    known = [name for name, _ in _tools()]
    if tool in known:
        return Typed(tool=tool)
    found = [each for each in recent if each.tool in known]
    newest = next((each for each in found if TOOLS[each.tool].effect == "send"), found[0] if found else None)
    return Typed(tool=newest.tool, agent=str(newest.run.agent_id)) if newest else Typed(tool=next(iter(known), ""))


def _needs(found: Simulated) -> str:
    """“Two reviewers”, “Two of Finance”."""
    if found.outcome == "reviewers" and found.rule is not None:
        return trying.said(simulating.Judgement("reviewers", found.needs, rule=found.rule))
    return {"refused": "It would be refused", "frozen": "It would wait: frozen", "automatic": "Nobody", "covered": "Nobody now"}[
        found.outcome
    ]


def _without(found: Simulated) -> dict[str, Any] | None:
    other = simulating.without(found)
    if other is None:
        return None
    said, by = trying.said(other.judgement), other.judgement.rule
    word = {"Never": "it would be refused", "Automatic": "nobody would be asked"}.get(said, f"it would need {said[:1].lower()}{said[1:]}")
    return {"place": other.rule.position, "words": word, "by": by.position if by else None, "affected": other.affected}
