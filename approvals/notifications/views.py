"""A person's own notifications: what reaches them, when, where it goes, and who decides while they are away. And two pages of a workspace:
what could not be delivered, for operators, and what happens when nobody answers, for admins. GET changes nothing.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from access import places, rules
from access.errors import BadInput, Forbidden, NotSignedIn, Refusal
from access.ids import as_uuid
from access.places import Place
from access.rules import Actor
from approvals.notifications import chasing, delegation, forms, pages, preferences, sending, webhooks
from approvals.notifications.models import CHANNELS, Delegation, EscalationStep, Message


class ForPeople(Forbidden):
    """Only people have notifications."""


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def settings_page(request: HttpRequest) -> HttpResponse:
    """What this person wants. Posted, it is kept; what can't be kept is said in place, with what was chosen."""
    actor = _person(request)
    if request.method != "POST":
        return _page(request, actor)
    wishes, wrong = forms.wishes(request.POST)
    try:
        if wrong:
            raise preferences.OddPreference(wrong)
        preferences.keep(actor, wishes)
    except BadInput as error:
        return _page(request, actor, wishes=wishes, error=error, status=error.status)
    messages.success(request, "Saved. It applies to messages from now on.")
    return _back()


@never_cache
@require_POST
def test(request: HttpRequest) -> HttpResponse:
    """Send this person a message that says how messages look."""
    actor = _person(request)
    channel = request.POST.get("channel", "")
    if channel not in CHANNELS or channel not in preferences.reachable([actor.user_id])[actor.user_id]:
        return _page(request, actor, error=BadInput("That channel is not set up, so nothing was sent."), status=422)
    sending.send_test(actor, _somewhere(actor), channel)
    messages.info(request, "A test is on its way. What became of it stands below, under “Sent lately”.")
    return _back()


@never_cache
@sensitive_variables("secret")
@require_POST
def webhook(request: HttpRequest) -> HttpResponse:
    """Set, change or take away where messages are posted; or make a new secret, which is shown in this answer and never again."""
    actor = _person(request)
    do, url = request.POST.get("do", ""), request.POST.get("url", "").strip()
    try:
        if do == "remove":
            webhooks.remove(by=actor)
            messages.info(request, "Nothing is posted any more.")
            return _back()
        secret = webhooks.rotate(by=actor) if do == "rotate" else webhooks.set_up(_somewhere(actor), by=actor, url=url)
    except BadInput as error:
        return _page(request, actor, hook_error=error, url=url[:500], status=error.status)
    if not secret:
        messages.success(request, "The address is saved. The secret stays as it is.")
        return _back()
    return _page(request, actor, secret=secret)


@never_cache
@require_POST
def delegate(request: HttpRequest) -> HttpResponse:
    """Name who decides while this person is away."""
    actor = _person(request)
    where = rules.require(actor, "approvals.decide")
    zone = preferences.of(actor.user_id).quiet.zone
    try:
        starts_at, ends_at = forms.days(request.POST, zone)
        delegation.delegate(where, by=actor, to=as_uuid(request.POST.get("to", "")), starts_at=starts_at, ends_at=ends_at)
    except Refusal as error:
        return _page(request, actor, away_error=error, typed=request.POST.dict(), status=error.status)
    messages.success(request, "Saved. It ends by itself; you can end it at any time.")
    return _back("#away")


@never_cache
@require_POST
def end_delegation(request: HttpRequest, delegation_id: UUID) -> HttpResponse:
    actor = _person(request)
    found = rules.get(actor, Delegation, delegation_id, "approvals.decide")
    if found.giver_id != actor.user_id:
        raise Forbidden("Only who is away can end it.")
    ended = delegation.end(found, by=actor)
    messages.info(request, "Ended. You decide for yourself again." if ended else "It had ended already.")
    return _back("#away")


@never_cache
@require_http_methods(["GET", "HEAD"])
def undelivered(request: HttpRequest) -> HttpResponse:
    """What could not be delivered for good."""
    rules.require(request.actor, "runs.recover")
    return render(request, "approvals/notify/undelivered.html", {"letters": sending.dead_letters(request.actor), "room": "notifications"})


@never_cache
@require_POST
def try_again(request: HttpRequest, message_id: UUID) -> HttpResponse:
    letter = rules.get(request.actor, Message, message_id, "runs.recover")
    again = sending.try_again(letter, by=request.actor)
    messages.info(request, "It is tried again now." if again else "It was being tried again already.")
    return HttpResponseRedirect(reverse("notifications:undelivered"), status=303)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def chain(request: HttpRequest) -> HttpResponse:
    """When people are reminded, and to whom an action goes when nobody answers."""
    here = places.place(request, "access.manage")
    where = here.id
    if request.method != "POST":
        return _chain(request, here)
    minutes, to = forms.minutes(request.POST.get("minutes", "")), as_uuid(request.POST.get("to", ""))
    step: Callable[[], None] = (
        (lambda: chasing.set_reminder(where, minutes, by=request.actor))
        if request.POST.get("do") == "remind"
        else (lambda: chasing.add_step(where, after=minutes, to=to, by=request.actor))
    )
    try:
        step()
    except BadInput as error:
        return _chain(request, here, error=error, typed=request.POST.dict(), status=error.status)
    messages.success(request, "Saved. It counts for what waits now, too.")
    return HttpResponseRedirect(reverse("notifications:chain") + here.suffix, status=303)


@never_cache
@require_POST
def remove_step(request: HttpRequest, step_id: UUID) -> HttpResponse:
    step = rules.get(request.actor, EscalationStep, step_id, "access.manage")
    chasing.remove_step(step, by=request.actor)
    messages.info(request, "Taken out of the chain.")
    here = places.place(request, "access.manage", within=step.workspace_id)
    return HttpResponseRedirect(reverse("notifications:chain") + here.suffix, status=303)


def _person(request: HttpRequest) -> Actor:
    actor: Actor = request.actor
    if not actor.is_known:
        raise NotSignedIn
    if actor.kind != "human":
        raise ForPeople
    return actor


def _somewhere(actor: Actor) -> UUID:
    """A workspace of theirs: what belongs to a person is kept in one too."""
    if not actor.grants:
        raise Forbidden("You are in no workspace, so there is nothing to be told.")
    return next(iter(actor.grants))


def _back(place: str = "") -> HttpResponse:
    return HttpResponseRedirect(reverse("notifications:settings") + place, status=303)


def _page(request: HttpRequest, actor: Actor, *, status: int = 200, **more: Any) -> HttpResponse:
    context = pages.settings(actor, more.pop("wishes", None)) | {"room": "notifications", "typed": {}} | more
    return render(request, "approvals/notify/settings.html", context, status=status)


def _chain(request: HttpRequest, here: Place, *, status: int = 200, **more: Any) -> HttpResponse:
    context = pages.chain(here.id) | {"place": here} | {"room": "permissions", "typed": {}} | more
    return render(request, "approvals/notify/chain.html", context, status=status)
