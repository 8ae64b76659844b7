"""Starting a run from a message: upload, look at it, start. Nothing runs before the last step; a repeat of it starts nothing more."""

from statistics import median
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from access import rules
from access.errors import BadInput, Forbidden, Refusal
from access.models import Agent, User
from access.rules import Actor
from runs import forms, starting, uploads
from runs.engine.workflow import APPROVAL
from runs.models import Run
from runs.starting import DEFAULT_BUDGETS, WorkflowInfo
from runs.uploads import MAX_MESSAGE, Upload

LOOKED_AT = 20  # earlier runs of a workflow that its usual cost is taken from
ENOUGH = 3


@require_http_methods(["GET", "HEAD", "POST"])
def start(request: HttpRequest) -> HttpResponse:
    rules.require(request.actor, "runs.start")
    if request.method != "POST":
        return _page(request, _uploaded(request))
    return _start(request) if request.POST.get("message") else _upload(request)


def _uploaded(request: HttpRequest) -> Upload | None:
    token = request.GET.get("message", "")
    return uploads.load(token, by=request.actor) if token else None


def _upload(request: HttpRequest) -> HttpResponse:
    form = forms.UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, None, error=BadInput("Choose one .eml file, or paste a message. Nothing was stored."))
    given: dict[str, Any] = form.cleaned_data
    agent = _agent(request.actor, given["agent"])
    raw, name = _message(given)
    try:
        token = uploads.keep(raw, name=name, agent=agent, workflow=_workflow(given["workflow"]).name, by=request.actor)
    except Refusal as refusal:
        return _page(request, None, error=refusal, typed=given)
    return redirect(f"{reverse('runs:start')}?{urlencode({'message': token})}")


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


def _agents(actor: Actor) -> list[Agent]:
    return list(rules.visible(actor, Agent, "runs.start").select_related("owner").order_by("name"))


def _agent(actor: Actor, pk: UUID) -> Agent:
    found = next((agent for agent in _agents(actor) if agent.pk == pk), None)
    if found is None:
        raise Forbidden("This agent is not yours to start. Nothing was stored.")
    return found


def _workflows() -> list[WorkflowInfo]:
    return [info for info in starting.workflow_infos() if info.takes_message]


def _workflow(name: str) -> WorkflowInfo:
    found = next((info for info in _workflows() if info.name == name), None)
    if found is None:
        raise BadInput("This workflow takes no messages. Nothing was stored.")
    return found


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
    agents, infos = _agents(request.actor), _workflows()
    info = next((each for each in infos if upload and each.name == upload.workflow), next(iter(infos), None))
    agent = upload.agent if upload else _usual_agent(agents, info)
    context: dict[str, Any] = {
        "agents": agents,
        "agent": agent,
        "workflows": infos,
        "workflow": info,
        "owners": _owners(request.actor, agent) if agent else [],
        "upload": upload,
        "max_message": MAX_MESSAGE,
        "error": error,
        "typed": typed or {},
        "path": _path(request.actor, info, agent) if info and agent else [],
        "usual": _usual(info, agent) if info and agent else None,
        "limits": DEFAULT_BUDGETS,
        "room": "runs",
    }
    return render(request, "runs/start.html", context, status=error.status if error else 200)


def _usual_agent(agents: list[Agent], info: WorkflowInfo | None) -> Agent | None:
    """The agent that is offered first: the one that is called as the workflow is."""
    named = (agent for agent in agents if info and agent.name == info.name)
    return next(named, next(iter(agents), None))


def _path(actor: Actor, info: WorkflowInfo, agent: Agent) -> list[dict[str, str]]:
    """What will happen, step by step, from the workflow's own plan."""
    steps = [{"icon": "list", "what": "Plans first", "how": "The plan is recorded before it may use a tool."}]
    for step in info.plan:
        if step == APPROVAL:
            steps.append({"icon": "wait", "what": "Waits for a person", "how": _waits(actor, agent), "state": "waiting"})
        else:
            steps.append({"icon": _icon(step), "what": step, "how": ""})
    return [*steps, {"icon": "flag", "what": "Reports", "how": "Every claim cites an event."}]


def _icon(step: str) -> str:
    known = {"read": "file", "check": "search", "draft": "mail", "send": "send", "update": "out"}
    return next((icon for word, icon in known.items() if step.casefold().startswith(word)), "tool")


def _waits(actor: Actor, agent: Agent) -> str:
    people = [
        person for person in rules.holders(agent.workspace_id, "approvals.decide") if person.pk not in (actor.user_id, agent.owner_id)
    ]
    if not people:
        return "Nobody in this workspace may decide yet, so it would wait until it expires."
    names = " or ".join(person.name for person in people) if len(people) < 4 else f"One of {len(people)} reviewers"
    return f"{names} reads the exact action. Not you: you start the run."


def _usual(info: WorkflowInfo, agent: Agent) -> dict[str, Any] | None:
    """Median cost and work of the newest runs of this workflow that came to an end; None if there are too few to say."""
    ended = Run.objects.filter(workspace_id=agent.workspace_id, workflow=info.name, ended_at__isnull=False).order_by("-created_at")
    found = list(ended.values_list("cost_micro", "working_ms")[:LOOKED_AT])
    if len(found) < ENOUGH:
        return None
    costs, work = zip(*found, strict=True)
    return {"cost": f"€{median(costs) / 1_000_000:.2f}", "work": median(work) / 1000, "runs": len(found)}
