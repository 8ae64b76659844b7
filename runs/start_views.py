"""Starting a run from a message: upload, look at it, start. Nothing runs before the last step; a repeat of it starts nothing more."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from access import rules, wording
from access.errors import BadInput, Forbidden, Refusal
from access.ids import as_uuid
from access.models import Agent, User
from access.rules import Actor
from runs import forms, starting, uploads
from runs.engine import models, providers
from runs.engine.prompts import Prompt
from runs.engine.tools import TOOLS, Tool
from runs.engine.workflow import APPROVAL
from runs.meters import no_price
from runs.models import Run
from runs.starting import DEFAULT_BUDGETS, WorkflowInfo
from runs.uploads import MAX_MESSAGE, Upload

LOOKED_AT = 20  # earlier runs of a workflow that its usual cost is taken from
ENOUGH = 3


@dataclass(frozen=True)
class Choice:
    """An agent with a workflow that it runs. `key` is what a form sends."""

    agent: Agent
    info: WorkflowInfo

    @property
    def key(self) -> str:
        return f"{self.agent.pk}/{self.info.name}"

    @property
    def word(self) -> str:
        """support-triage 3; of an agent that is called otherwise, with what it does."""
        named = self.agent.name == self.info.name
        return f"{self.agent.name} {self.info.version}" if named else f"{self.agent.name}, {self.info.title} {self.info.version}"


@require_http_methods(["GET", "HEAD", "POST"])
def start(request: HttpRequest) -> HttpResponse:
    rules.require(request.actor, "runs.start")
    if request.method != "POST":
        return _page(request, _uploaded(request), typed=request.GET.dict())
    return _start(request) if request.POST.get("message") else _upload(request)


def _uploaded(request: HttpRequest) -> Upload | None:
    token = request.GET.get("message", "")
    return uploads.load(token, by=request.actor) if token else None


def _upload(request: HttpRequest) -> HttpResponse:
    form = forms.UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        error = BadInput("Choose one .eml file, or paste a message. Nothing was stored.")
        return _page(request, None, error=error, typed=request.POST.dict())
    given: dict[str, Any] = form.cleaned_data
    raw, name = _message(given)
    try:
        chosen = _chosen(request.actor, given["agent"])
        token = uploads.keep(raw, name=name, agent=chosen.agent, workflow=chosen.info.name, by=request.actor)
    except Refusal as refusal:
        if isinstance(refusal, Forbidden):
            raise
        return _page(request, None, error=refusal, typed=request.POST.dict())
    kept = {"message": token} | ({"owner": str(given["owner"])} if given["owner"] else {})
    return redirect(f"{reverse('runs:start')}?{urlencode(kept)}")


def _message(given: dict[str, Any]) -> tuple[bytes, str]:
    """The bytes of the message and what to call it."""
    if given["source"] == "text" or not given["ticket"]:
        return given["text"].replace("\r\n", "\n").lstrip().encode(), "Pasted text"
    return given["ticket"].read(), given["ticket"].name


def _start(request: HttpRequest) -> HttpResponse:
    form = forms.StartForm(request.POST)
    if not form.is_valid():
        upload = uploads.load(request.POST["message"], by=request.actor)
        return _page(request, upload, error=BadInput(_said(form)), typed=request.POST.dict())
    given = form.cleaned_data
    upload = uploads.load(given["message"], by=request.actor)
    owner = _owner(request.actor, upload.agent, given["owner"])
    try:
        run = starting.start_from_message(
            agent=upload.agent,
            owner=owner,
            by=request.actor,
            workflow=upload.workflow,
            message=upload.raw,
            budgets=form.budgets(DEFAULT_BUDGETS),
            note=given["note"],
        )
    except Refusal as refusal:
        return _page(request, upload, error=refusal, typed=request.POST.dict())
    return redirect("runs:run", run.pk)


def _said(form: forms.StartForm) -> str:
    fields = ", ".join(name for name in form.errors if name != "__all__")
    return f"Check these fields: {fields}. Nothing was started."


# What may be chosen -------------------------------------------------------------------------------------------------------------------


def _choices(actor: Actor) -> list[Choice]:
    """Each workflow that takes a message, with the agents that run it: where one is called as it is, that one alone."""
    agents = list(starting.agents(actor).select_related("owner").order_by("name"))
    found = [Choice(agent, info) for info in starting.workflow_infos() if info.takes_message for agent in agents]
    named = {(choice.agent.workspace_id, choice.info.name) for choice in found if choice.agent.name == choice.info.name}
    return [each for each in found if each.agent.name == each.info.name or (each.agent.workspace_id, each.info.name) not in named]


def _chosen(actor: Actor, key: str) -> Choice:
    """The choice that a form sent. Forbidden if the agent is not this person's to start, BadInput if it does not run this workflow."""
    choices = _choices(actor)
    found = next((choice for choice in choices if choice.key == key), None)
    if found is not None:
        return found
    pk, _, workflow = key.partition("/")
    if as_uuid(pk) not in {agent.pk for agent in starting.agents(actor)}:
        raise Forbidden("This agent is not yours to start. Nothing was stored.")
    raise BadInput(f"This agent does not run “{workflow[:60]}”. Nothing was stored. Choose one that does.")


def _owners(actor: Actor, agent: Agent) -> list[tuple[User, str]]:
    """Who may own the run: the agent's owner, who is asked first, or the person who starts it."""
    me = User.objects.filter(pk=actor.user_id).first() if actor.user_id else None
    people = {agent.owner.pk: (agent.owner, f"{agent.owner.name}, who owns {agent.name}")}
    if me is not None:
        words = f"You, {me.name}" + (f", who owns {agent.name}" if me.pk in people else "")
        people[me.pk] = (me, words)
    return list(people.values())


def _owner(actor: Actor, agent: Agent, pk: UUID) -> User:
    return next((person for person, _ in _owners(actor, agent) if person.pk == pk), agent.owner)


# The page -----------------------------------------------------------------------------------------------------------------------------


def _page(
    request: HttpRequest, upload: Upload | None, *, error: Refusal | None = None, typed: dict[str, Any] | None = None
) -> HttpResponse:
    choices, typed = _choices(request.actor), typed or {}
    wanted = f"{upload.agent.pk}/{upload.workflow}" if upload else str(typed.get("agent", ""))
    chosen = next((choice for choice in choices if choice.key == wanted), None if upload else next(iter(choices), None))
    info, agent = (chosen.info, chosen.agent) if chosen else (None, upload.agent if upload else None)
    context: dict[str, Any] = {
        "choices": choices,
        "chosen": chosen,
        "agent": agent,
        "workflow": info,
        "owners": _owners(request.actor, agent) if agent else [],
        "upload": upload,
        "max_message": MAX_MESSAGE,
        "error": error,
        "typed": typed,
        "path": _path(request.actor, info, agent) if info and agent else [],
        "usual": _usual(info, agent) if info and agent else None,
        "limits": DEFAULT_BUDGETS,
        "no_price": no_price(providers.unpriced()),
        "room": "runs",
    }
    return render(request, "runs/start.html", context, status=error.status if error else 200)


def _path(actor: Actor, info: WorkflowInfo, agent: Agent) -> list[dict[str, str]]:
    """What will happen, step by step, from the workflow's own plan, whose steps are orders; and so are ours."""
    steps = [{"icon": "list", "what": "Record the plan", "how": "Before any tool is used."}]
    decided = False
    for step in info.plan:
        if step == APPROVAL:
            steps.append({"icon": "wait", "what": "Wait for a person", "how": _waits(actor, agent), "state": "waiting"})
            decided = True
        else:
            steps.append({"icon": _icon(step), "what": step, "how": _how(step, info, decided)})
    return [*steps, {"icon": "flag", "what": "Report", "how": "Every claim cites an event."}]


def _icon(step: str) -> str:
    known = {"read": "file", "check": "search", "draft": "mail", "send": "send", "update": "out", "do": "out"}
    return next((icon for word, icon in known.items() if step.casefold().startswith(word)), "tool")


def _how(step: str, info: WorkflowInfo, decided: bool) -> str:
    """What is known of a step by the tool or prompt of its title. `decided`: it is after the approval."""
    tool = _tool(step)
    if tool is None and (prompt := models.titled(step, info.asks)):
        return _writes(prompt)
    if tool is None:
        return "Once, under the approval." if decided else ""
    if tool.effect != "read":
        once = f"Once only. {'Can' if tool.compensate else 'Can’t'} be undone."
        if not decided:
            return f"Before any approval, if it is called for and the policy lets it happen; else a person is asked. {once}"
        return f"Its policy says whether a person is asked for it as well. {once}" if _beside(tool, info.plan) else once
    kinds = ["private data"] * tool.reads_private + ["outside text, never an order"] * tool.reads_untrusted
    return f"From the {tool.target}{': ' if kinds else ''}{' and '.join(kinds)}."


def _beside(tool: Tool, plan: Sequence[str]) -> bool:
    """Whether it is a change beside what is sent after the approval: it is that which was approved, and this has a policy of its own."""
    after = [_tool(step) for step in plan[plan.index(APPROVAL) + 1 :]]
    return tool.effect == "write" and any(each is not None and each.effect == "send" for each in after)


def _tool(title: str) -> Tool | None:
    return next((each for each in TOOLS.values() if each.title == title), None)


def _writes(prompt: Prompt) -> str:
    if not (prompt.words and providers.endpoints(prompt.at)):
        return "A script writes it; no model is asked."
    return "A model that the demo plays writes it, by fixed rules." if prompt.at == providers.PLAYED else "A model writes it."


def _waits(actor: Actor, agent: Agent) -> str:
    people = [
        person
        for person in rules.holders(agent.workspace_id, "approvals.decide", agent.team_id)
        if person.pk not in (actor.user_id, agent.owner_id)
    ]
    if not people:
        return "Nobody in this workspace may decide yet, so it would wait until it expires."
    named = [person.name for person in people]
    names = wording.listed(named, "or") if len(people) < 4 else f"One of {len(people)} reviewers"
    return f"{names} reads the exact action. Not you: you start the run."


def _usual(info: WorkflowInfo, agent: Agent) -> dict[str, Any] | None:
    """Median cost and work of the newest runs of this workflow that came to an end; None if there are too few to
    say, or they cost nothing."""
    ended = Run.objects.filter(workspace_id=agent.workspace_id, workflow=info.name, ended_at__isnull=False).order_by("-created_at")
    found = list(ended.values_list("cost_micro", "working_ms")[:LOOKED_AT])
    if len(found) < ENOUGH:
        return None
    costs, work = zip(*found, strict=True)
    if not (cost := median(costs)):
        return None  # a script answered, or the model's price is not known: neither is what a run costs
    return {"cost": f"€{cost / 1_000_000:.2f}", "work": median(work) / 1000, "runs": len(found)}
