"""The front door."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect


def home(request: HttpRequest) -> HttpResponse:
    """Whoever may decide begins with what waits for them, everybody else with the runs."""
    if request.actor.kind != "human":
        return redirect("access:sign_in")
    return redirect("approvals:inbox" if request.actor.somewhere("approvals.decide") else "runs:list")
