"""The people of a workspace, for who manages them; and the two links that are sent: an invitation, a new password."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from access import invitations, links, paging, people, places, resets, rules, second_admin, sso, step_up
from access.change_models import AskedChange
from access.errors import BadInput, Refusal
from access.forms import Address
from access.models import Membership, Role, User
from access.people import MANAGE
from access.people_models import Invitation
from access.places import Place


@never_cache
@require_safe
def people_page(request: HttpRequest) -> HttpResponse:
    return _people(request, places.place(request, MANAGE))


@require_POST
def invite(request: HttpRequest) -> HttpResponse:
    """Somebody by their address. Without a mail server the link is shown, once, to hand over."""
    here = places.place(request, MANAGE)
    step_up.require(request)
    form = Address(request.POST)
    try:
        role = _role(here.id, request.POST.get("role", ""))
        if not form.is_valid():
            raise BadInput("Nobody was invited: that is no e-mail address.")
        email = form.cleaned_data["email"]
        given = {"email": email, "role": role, "by_mail": settings.HANDRAIL_MAIL, "why": request.POST.get("why", "")}
        made = invitations.ask(here.id, by=request.actor, **given)
    except Refusal as error:
        return _people(request, here, status=error.status, error=error, typed=request.POST)
    return _sent(request, here, made) if isinstance(made, Invitation) else _waits(request, made)


def _waits(request: HttpRequest, change: AskedChange) -> HttpResponse:
    messages.info(request, "Asked. Nothing changes until another admin confirms it.")
    return redirect("access:asked", change.pk)


@require_POST
def invitation_again(request: HttpRequest, invitation_id: UUID) -> HttpResponse:
    """do=again sends another link, do=withdraw takes it back."""
    found = rules.get(request.actor, Invitation, invitation_id, MANAGE)
    here = places.place(request, MANAGE, within=found.workspace_id)
    step_up.require(request)
    if request.POST.get("do") == "withdraw":
        done = invitations.withdraw(found, by=request.actor)
        messages.success(request, "The invitation is withdrawn; its link opens nothing." if done else "It was not open any more.")
        return redirect(_list(here))
    try:
        return _sent(request, here, invitations.again(found, by=request.actor, by_mail=settings.HANDRAIL_MAIL))
    except Refusal as error:
        return _people(request, here, status=error.status, error=error)


@never_cache
@require_safe
def person(request: HttpRequest, user_id: UUID) -> HttpResponse:
    here = places.place(request, MANAGE)
    return _person(request, here, people.one(request.actor, here.id, user_id))


@require_POST
def change_person(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """do: role, deactivate, reactivate, factors, link. Each but the last with a reason."""
    here = places.place(request, MANAGE)
    member = people.one(request.actor, here.id, user_id)
    step_up.require(request)
    do, by, why = request.POST.get("do", ""), request.actor, request.POST.get("why", "")
    waits, did = None, do
    try:
        match do:
            case "role":
                waits = people.ask_role(member, _role(member.workspace_id, request.POST.get("role", "")), by=by, why=why)
            case "deactivate":
                did = do if people.deactivate(member, by=by, why=why) else "deactivate here"
            case "reactivate":
                waits = people.ask_back(member, by=by, why=why)
            case "factors":
                waits = people.ask_factors(member, by=by, why=why)
            case "link":
                return _password_link(request, here, member)
            case _:
                raise BadInput("Nothing was changed: say what to do.")
    except Refusal as error:
        member = people.one(request.actor, here.id, user_id)
        return _person(request, here, member, status=error.status, error=error, did=do, typed=request.POST)
    if waits is not None:
        return _waits(request, waits)
    messages.success(request, DONE[did].format(name=member.user.name))
    return redirect(_at(here, user_id))


DONE = {
    "role": "The role of {name} is changed. It counts from now on, in whatever they have open too.",
    "deactivate": "{name} is deactivated. Their sessions have ended and what they had open is closed.",
    "deactivate here": "{name} is deactivated here, and what they had open here is closed. They are of another workspace too: "
    "there they are signed in still.",
    "reactivate": "{name} may come in again.",
    "factors": "The passkeys and codes of {name} open nothing any more, and their sessions have ended.",
}


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest) -> HttpResponse:
    """Coming in. GET uses nothing up, so that a mail server which looks at links takes no invitation away."""
    found = invitations.find(request.GET.get("link", ""))
    account = User.objects.by_email(found.email).first()
    if account is not None:
        return _joining(request, found, account)
    error = None
    if request.method == "POST" and "password" in settings.HANDRAIL_SIGN_IN:
        try:
            invitations.accept(request, found, name=request.POST.get("name", ""), password=request.POST.get("password", ""))
            messages.success(request, "You are in. Add a passkey or codes here: then a password alone opens nothing.")
            return redirect("access:account")
        except BadInput as refusal:
            error = refusal
    context = {
        "invitation": found,
        "error": error,
        "name": request.POST.get("name", ""),
        "sso": sso.name() if sso.is_offered() else "",
        "passwords": "password" in settings.HANDRAIL_SIGN_IN,
    }
    return render(request, "access/invitation.html", context, status=error.status if error else 200)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def forgot(request: HttpRequest) -> HttpResponse:
    form = Address(request.POST or None)
    if request.method == "POST" and form.is_valid():
        if settings.HANDRAIL_MAIL:
            resets.count(request)
            resets.ask(form.cleaned_data["email"])
        return render(request, "access/forgot.html", {"asked": True, "mail": settings.HANDRAIL_MAIL})
    wrong = request.method == "POST"
    context = {"form": form, "mail": settings.HANDRAIL_MAIL, "wrong": wrong}
    return render(request, "access/forgot.html", context, status=422 if wrong else 200)


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def password_link(request: HttpRequest) -> HttpResponse:
    """Choosing a new password."""
    link, error = resets.find(request.GET.get("link", "")), None
    if request.method == "POST":
        try:
            resets.choose(link, password=request.POST.get("password", ""))
            messages.success(request, "Your new password counts from now on, and your sessions have ended. Sign in with it.")
            return redirect("access:sign_in")
        except BadInput as refusal:
            error = refusal
    return render(request, "access/password_link.html", {"link": link, "error": error}, status=error.status if error else 200)


def _joining(request: HttpRequest, found: Invitation, account: User) -> HttpResponse:
    """An address that has an account here: whoever holds it signs in, and joins."""
    signed_in = request.actor.kind == "human"
    theirs = signed_in and request.actor.user_id == account.pk
    if request.method == "POST" and theirs:
        invitations.accept_as(found, account)
        messages.success(request, f"You are in {found.workspace.name} too.")
        return redirect(settings.LOGIN_REDIRECT_URL)
    return render(request, "access/joining.html", {"invitation": found, "theirs": theirs, "signed_in": signed_in})


def _people(request: HttpRequest, here: Place, status: int = 200, **more: Any) -> HttpResponse:
    asked = {name: request.GET.get(name, "")[:100] for name in ("q", "role")}
    gone = request.GET.get("gone") == "1"
    plain = {name: text.replace("\0", "") for name, text in asked.items()}
    found = people.listed(here.id, search=plain["q"], role=plain["role"], gone=gone, page=request.GET.get("page", ""))
    context = {
        "found": found,
        "kept": paging.kept(here.suffix, gone="1" if gone else "", **plain),
        "asked": asked,
        "gone": gone,
        "roles": people.roles_of(here.id),
        "invited": people.invited(here.id),
        "place": here,
        "seconds": _seconds(request, here.id),
        "mail": settings.HANDRAIL_MAIL,
        "room": "permissions",
        **more,
    }
    return render(request, "access/people.html", context, status=status)


def _sent(request: HttpRequest, here: Place, made: Invitation) -> HttpResponse:
    """By mail it is on its way; else this answer alone has the link."""
    if made.by_mail:
        messages.success(request, f"{made.email} is invited. The link is on its way, and opens for seven days.")
        return redirect(_list(here))
    return _people(request, here, shown=links.address(made), shown_for=made.email)


def _password_link(request: HttpRequest, here: Place, member: Membership) -> HttpResponse:
    people.check_wholly_ours(member, request.actor)
    if not settings.HANDRAIL_MAIL and people.takes_two(member, request.actor):  # else who made it could come in by it
        raise people.TakesTwo(f"{member.user.name} holds rights that a second admin is for, and there is no mail server.")
    made = resets.make(member, by=request.actor, by_mail=settings.HANDRAIL_MAIL)
    if made.by_mail:
        messages.success(request, f"A link for a new password is on its way to {member.user.name}. It opens for a day.")
        return redirect(_at(here, member.user_id))
    return _person(request, here, member, shown=links.address(made))


def _person(request: HttpRequest, here: Place, member: Membership, status: int = 200, **more: Any) -> HttpResponse:
    context = {
        "member": member,
        "agents": people.agents_of(member),
        "roles": people.roles_of(member.workspace_id),
        "waits": second_admin.waits(member.workspace_id, people.BACK if member.deactivated_at else people.GIVEN, member.user_id),
        "seconds": _seconds(request, member.workspace_id),
        "themselves": member.user_id == request.actor.user_id,
        "mail": settings.HANDRAIL_MAIL,
        "place": here,
        "back": _list(here),
        "room": "permissions",
        **more,
    }
    return render(request, "access/person.html", context, status=status)


def _list(here: Place) -> str:
    return reverse("access:people") + here.suffix


def _at(here: Place, user_id: UUID) -> str:
    return reverse("access:person", args=[user_id]) + here.suffix


def _seconds(request: HttpRequest, workspace_id: UUID) -> list[str]:
    """Who could confirm what takes a second admin; nobody where none is asked for."""
    needed = second_admin.is_needed(workspace_id, people.GIVEN)
    return second_admin.seconds(workspace_id, people.GIVEN, request.actor.user_id) if needed else []


def _role(workspace_id: UUID, pk: str) -> Role:
    found = next((each for each in people.roles_of(workspace_id) if str(each.pk) == pk), None)
    if found is None:
        raise BadInput("Nothing was changed: choose a role.")
    return found
