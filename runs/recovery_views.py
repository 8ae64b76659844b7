"""The page of stuck runs, and what people choose there."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from access import rules
from access.errors import BadInput, Refusal
from access.ids import as_uuid
from access.models import User
from runs import cases, forms, recovery
from runs.models import Run

SAID = {
    "retry": "It is tried again, from the last completed step.",
    "compensate": "It is being undone, the last effect first.",
    "hand_over": "Handed over. It stays stuck until somebody chooses how it goes on.",
    "give_up": "Given up. The run has ended.",
}


@require_safe
def board(request: HttpRequest) -> HttpResponse:
    rules.require(request.actor, "runs.recover")
    return _page(request, request.GET.getlist("shown"))


@require_POST
def choose(request: HttpRequest, run_id: UUID) -> HttpResponse:
    run = rules.get(request.actor, Run, run_id, "runs.recover")
    form = forms.RecoveryForm(request.POST)
    if not form.is_valid():
        raise BadInput("This is not a choice that the page offers. Nothing was changed.")
    given = form.cleaned_data
    if given["choice"] == "give_up" and not given["sure"] and recovery.is_stuck_at(run, given["at"]):
        return _page(request, asked={"run": run.pk, "choice": "give_up", "note": given["note"]}, status=422)  # it is asked once more
    to = User.objects.filter(pk=given["to"]).first() if given["choice"] == "hand_over" and given["to"] else None
    try:
        recovery.choose(run, given["choice"], at=given["at"], by=request.actor, note=given["note"], to=to, step=given["step"])
    except (recovery.AlreadyChosen, recovery.NotPossible, BadInput) as refusal:
        messages.error(request, _told(run, refusal))
    else:
        messages.success(
            request, f"It is tried again, from “{cases.step_title(given['step'])}” on." if given["step"] else SAID[given["choice"]]
        )
    return redirect("runs:recovery")


@require_POST
def requeue(request: HttpRequest) -> HttpResponse:
    """Try all again that were ticked. Each tick names the run and where it got stuck."""
    rules.require(request.actor, "runs.recover")
    ticked = [given.partition("@") for given in request.POST.getlist("case")[: recovery.MOST_AT_ONCE]]
    wanted = {pk: int(at) for run, _, at in ticked if (pk := as_uuid(run)) and at.isdecimal() and at.isascii() and len(at) < 17}
    if not wanted:
        messages.error(request, "Nothing was ticked, so nothing was changed.")
        return redirect("runs:recovery")
    done, left = recovery.requeue(wanted, by=request.actor)
    if done:
        messages.success(request, f"{done} {'run is' if done == 1 else 'runs are'} tried again.")
    if left:
        messages.error(request, f"{left} {'was' if left == 1 else 'were'} left alone: somebody chose how to go on meanwhile.")
    return redirect("runs:recovery")


def _page(request: HttpRequest, shown: Sequence[str] = (), *, asked: Mapping[str, object] | None = None, status: int = 200) -> HttpResponse:
    """`shown`: the cases that a page which is open shows, and asks what is new. `asked`: the run of which to ask once more, and what was
    chosen for it."""
    board = cases.board(request.actor, also=asked["run"] if asked else None)
    if shown:
        board = cases.since(board, shown, request.actor)
    count = board.total + board.stalled + board.unclear + board.dead
    context = {"board": board, "recovery_count": count, "room": "recovery", "asked": asked}
    return render(request, "runs/recovery.html", context, status=status)


def _told(run: Run, refusal: Refusal) -> str:
    chosen = cases.chosen(run) if isinstance(refusal, recovery.AlreadyChosen) else ""
    given = refusal.detail if isinstance(refusal, BadInput) else ""
    return f"{chosen or given or refusal.title} Nothing was changed."
