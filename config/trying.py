"""The demo's page “Try it”: tickets to start runs with, and what can be made to go wrong. Elsewhere there is no such page."""

from pathlib import Path

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from access import demo, rules
from access.errors import BadInput, Refusal
from access.models import Agent
from config import clock
from config.misbehaving import NAMES, behave, misbehave
from runs.management.commands.triage import start
from runs.models import Run

WORKFLOW = "support-triage"
DIRECTORY = settings.BASE_DIR / "examples" / "support_triage" / "tickets"
# file → what it is, and what to look for
TICKETS = {
    "duplicate-charge": ("Charged twice", "Two payments for one invoice. The reply names both, from the account."),
    "rueckerstattung": ("A refund, in German", "Answered in German; the note in the CRM is English."),
    "wrong-vat-number": ("HTML with a file", "Answered as text and HTML side by side, with a PDF."),
    "your-statement": ("A look-alike sender", "fernhi1l with a one: the card names the character."),
    "more/orders-inside": (
        "Orders to the agent",
        "In its text, in hidden HTML and in a file’s name. None is followed, and the evidence is marked.",
    ),
    "more/forwarded-thread": ("A forwarded thread", "Only who forwarded it is answered, about the invoice they name first."),
    "more/nova-morada": ("A new address, in Portuguese", "Answered in Portuguese."),
    "more/refund-please": ("A refund", "The request goes to billing: nothing is promised."),
    "more/legal-threat": ("A legal threat", "The reply admits nothing, and the legal department is named."),
    "more/html-only": ("HTML alone", "Read as text, answered as both."),
    "more/encoded-headers": ("Encoded headers", "Japanese, Russian and English in three character sets, and a file’s name in two pieces."),
    "more/very-long": ("A very long one", "700 lines of a log between two sentences that matter."),
    "more/newsletter": ("A newsletter", "Nothing to send: the run ends with a report, and no action."),
    "more/out-of-office": ("An automatic reply", "Nothing to send: an answer could go on for ever."),
    "more/thank-you": ("Thanks", "Nothing to send."),
}


class UnknownTrial(BadInput):
    """There is no such thing to try."""

    what_next = "Nothing was started. Choose one on the page."


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    _enter(request)
    tickets = [{"key": key, "title": title, "watch": watch} for key, (title, watch) in TICKETS.items()]
    wrongs = [{"key": key, "what": one.what[:1].upper() + one.what[1:], "watch": one.watch} for key, one in NAMES.items()]
    return render(request, "config/trying.html", {"tickets": tickets, "wrongs": wrongs, "ahead": clock.offset().days})


@require_POST
def begin(request: HttpRequest) -> HttpResponse:
    """Start a run from a ticket, or one in which something goes wrong; then its page, with what to look for."""
    _enter(request)
    try:
        run, watch = _begun(request.actor, request.POST.get("ticket", ""), request.POST.get("misbehave", ""))
    except Refusal as refusal:
        messages.error(request, refusal.said)
        return redirect("trying")
    messages.info(request, watch)
    return redirect("runs:run", run.pk)


@require_POST
def mend(request: HttpRequest) -> HttpResponse:
    _enter(request)
    try:
        behave()
    except Refusal as refusal:
        messages.error(request, refusal.said)
    else:
        messages.success(request, "The desk does as it is asked again. A run that is stuck is tried again on the page Recovery.")
    return redirect("trying")


def _enter(request: HttpRequest) -> None:
    if not demo.is_open(request):
        raise Http404
    rules.require(request.actor, "runs.start")


def _begun(by: rules.Actor, ticket: str, wrong: str) -> tuple[Run, str]:
    if wrong in NAMES:
        return misbehave(NAMES[wrong], by), f"Now {NAMES[wrong].what}. {NAMES[wrong].watch}"
    if ticket not in TICKETS:
        raise UnknownTrial
    agent = Agent.objects.select_related("owner").get(name=WORKFLOW)
    run = start(agent, WORKFLOW, Path(DIRECTORY / f"{ticket}.eml").read_bytes(), again=True, by=by)
    return run, f"{TICKETS[ticket][0]}. {TICKETS[ticket][1]}"
