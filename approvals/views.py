"""The pages of approvals: the inbox with an action open, deciding, claiming, and an attachment's bytes.

Each address answers a browser with a page, and htmx with the part it asked for. GET and HEAD decide nothing, whatever they carry.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from access import rules
from access.errors import Forbidden, NotFound, Refusal
from access.ids import as_uuid
from access.rules import Actor
from approvals import (
    asking,
    changes,
    decisions,
    edit_form,
    editing,
    exact,
    freezes,
    gravity,
    inbox,
    opening,
    presenting,
    reasons,
    taking_back,
    wanted,
    warned,
)
from approvals.course import Mode, Typed, course
from approvals.decisions import No
from approvals.errors import (
    AlreadyClaimed,
    AlreadyDecided,
    DigestChanged,
    EditRefused,
    Frozen,
    NothingChanged,
    NotInGroup,
    OthersApproved,
    ReasonNeeded,
    SelfApproval,
    Unreadable,
    WarningNotTicked,
)
from approvals.forms import DecisionForm
from approvals.models import ProposedAction
from approvals.presenting import Panel
from artifacts import reveal, vault
from artifacts.rendition import plain
from runs import live
from runs.engine.tools import TOOLS

MODES: dict[str, Mode] = {"approve": "armed", "reject": "reject"}
SAFE_TYPES = frozenset({"text/plain", "text/csv", "application/pdf", "image/png", "image/jpeg", "application/json"})


@never_cache
@vary_on_headers("HX-Request", "HX-Target")
@require_safe
def inbox_page(request: HttpRequest) -> HttpResponse:
    """The queue with its first row open; or, asked for `more`, the next rows."""
    rules.require(request.actor, "approvals.view")
    after = as_uuid(request.GET.get("after", ""))
    rows = inbox.queue(request.actor, wanted.read(request.GET.dict()), after=after)
    if _target(request) == "more":
        return render(request, "approvals/_rows.html", {"queue": rows})
    if _target(request) == "queue":
        return render(request, "approvals/_queue.html", {"queue": rows})
    first = presenting.find(request.actor, rows.rows[0].id) if rows.rows and not rows.asks else None
    return _page(request, presenting.panel(first, request.actor) if first else None, rows=rows)


@never_cache
@vary_on_headers("HX-Request", "HX-Target")
@require_safe
def action_page(request: HttpRequest, action_id: UUID) -> HttpResponse:
    """One action. `do=approve` and `do=reject` draw the second step of deciding; they decide nothing."""
    action = presenting.find(request.actor, action_id)
    typed = _step(request, action)
    if _target(request) == f"decide-{action.pk}":
        return _bar(request, action, typed)
    before = _before(request.actor, action, request.GET.get("from", ""))
    drawn = presenting.panel(action, request.actor, typed=typed, before=before)
    moved = typed.mode == "rest" and _target(request)  # of a page that came whole the focus is where a browser puts it
    keep = action.pk if drawn.course.waits else None  # an open row is there, also if it is not what was asked for
    return _page(request, drawn, keep=keep, focus="heading" if moved else "", status=422 if typed.error else 200)


@never_cache
@require_POST
def decision(request: HttpRequest, action_id: UUID) -> HttpResponse:
    """Approve or reject exactly what was drawn. A refusal is shown in place, with what was typed."""
    action = presenting.find(request.actor, action_id, "approvals.decide")
    form = DecisionForm(request.POST)
    if not form.is_valid():
        return _incomplete(request, action, form)
    verdict, digest, reason = (form.cleaned_data[name] for name in ("verdict", "digest", "reason"))
    gravity.check(request, action, verdict)
    typed = Typed("armed" if verdict == "approved" else "reject", reason, tuple(request.POST.getlist("ack")))
    looked = form.seen(presenting.sums(action, request.actor))
    try:
        decided = decisions.decide(
            action,
            reviewer=request.actor,
            verdict=verdict,
            digest=digest,
            reason=reason,
            acks=typed.acks,
            seen=looked,
            nth=form.cleaned_data["nth"],
        )
    except ReasonNeeded:
        return _refused(request, action, Typed("reject", reason, error="Write at least one sentence. The agent reads it."), 422)
    except (WarningNotTicked, Unreadable) as error:
        return _refused(request, action, Typed("rest", reason, typed.acks, error=error.detail), error.status)
    except DigestChanged as error:
        return _changed(request, action, digest, typed, error)
    except Refusal as error:
        kept = typed.mode if not isinstance(error, AlreadyDecided | Frozen | OthersApproved) else "rest"
        return _refused(request, action, Typed(kept, reason, typed.acks, refusal=error), error.status, said=typed)
    return _after(request, decided.action.pk)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, action_id: UUID) -> HttpResponse:
    """The form of another version of an action. Posted, it shows what would change; posted with the digest that it showed, it is put up."""
    action = presenting.find(request.actor, action_id, "approvals.decide")
    may = decisions.may_decide(action, request.actor)
    if isinstance(may, No):
        raise Forbidden(may.why)
    if request.method != "POST" and (action.state != "waiting" or not editing.may_edit(action)):
        return HttpResponseRedirect(reverse("approvals:action", args=(action.pk,)), status=303)
    try:
        fields = editing.form(action)
        return _edited(request, action, fields) if request.method == "POST" else _editing(request, action, fields)
    except DigestChanged as error:
        return _changed(request, action, request.POST.get("digest", ""), Typed("edit"), error)
    except Refusal as error:
        return _refused(request, action, Typed("rest", refusal=error), error.status, said=Typed("edit"))


@never_cache
@require_POST
def ask(request: HttpRequest, action_id: UUID) -> HttpResponse:
    """Put a question to the agent. A refusal stands beside the question, which stays typed."""
    action = presenting.find(request.actor, action_id, "approvals.decide")
    question = request.POST.get("question", "")
    try:
        asking.ask(action, by=request.actor, question=question, digest=request.POST.get("digest", ""))
    except Refusal as error:
        return _asked(request, action, question[: asking.MAX_QUESTION], f"{error} {error.what_next}", error.status)
    return _asked(request, action)


@never_cache
@require_POST
def recall(request: HttpRequest, action_id: UUID) -> HttpResponse:
    """Take an approval back while that is possible. A refusal is shown in place, with what stands."""
    action = presenting.find(request.actor, action_id, "approvals.decide")
    reason = request.POST.get("reason", "")[: reasons.MAX_REASON]
    try:
        taking_back.recall(action, by=request.actor, reason=reason)
    except Refusal as error:
        return _refused(request, action, Typed("rest", reason, refusal=error), error.status)
    return _after(request, action.pk)


@never_cache
@require_POST
def claim(request: HttpRequest, action_id: UUID) -> HttpResponse:
    return _claiming(request, action_id, decisions.claim)


@never_cache
@require_POST
def release(request: HttpRequest, action_id: UUID) -> HttpResponse:
    return _claiming(request, action_id, decisions.release)


@never_cache
@require_safe
def attachment(request: HttpRequest, action_id: UUID, index: int) -> HttpResponse:
    """The exact bytes of an attachment in which nothing is hidden, for who may decide. Never shown by the browser: sandboxed, and saved as
    a file. What holds something hidden opens by a recorded reveal: then it leads to that, or to where it is asked for."""
    action = presenting.find(request.actor, action_id)
    may = decisions.may_read(action, request.actor)
    if isinstance(may, No):
        raise Forbidden(may.why)
    found = exact.attachment(action, index)
    if found is None:
        raise NotFound
    named, payload = found
    if opening.hides(payload):
        row = reveal.live(request.actor, [payload.pk]).get(payload.pk)
        ask = f"{reverse('artifacts:ask')}?place=action:{action.pk}:{index}"
        return HttpResponseRedirect(reverse("artifacts:revealed_content", args=(row.pk,)) if row else ask, status=303)
    kind = named.media_type if named.media_type in SAFE_TYPES else "application/octet-stream"
    return HttpResponse(
        vault.open_bytes(payload),
        content_type=kind,
        headers={
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(named.name, safe='')}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
        },
    )


# answers ---------------------------------------------------------------------------------------------------------------------------


def _page(
    request: HttpRequest,
    panel: Panel | None,
    *,
    rows: inbox.Queue | None = None,
    keep: UUID | None = None,
    focus: str = "",
    status: int = 200,
    more: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """The whole page; for htmx the panel, with the queue beside it."""
    rows = rows or _rows(request, keep)
    opened = panel.action.pk if panel else None
    context: dict[str, Any] = {
        "panel": panel,
        "queue": rows,
        "open_id": opened,
        "next_row": rows.after(panel.action) if panel else None,
        "inbox_count": rows.waiting,
        "title": plain(panel.course.subject) if panel else "Inbox",
        "room": "inbox",
        "typed": panel.typed if panel else Typed(),
        "focus": focus,
        **(more or {}),
    }
    if _target(request) != "panel":
        return render(request, "approvals/inbox.html", context, status=status)
    return render(
        request,
        "approvals/_reply.html",
        context | {"beside": presenting.beside(rows, opened) + presenting.frozen_now(request.actor)},
        status=status,
    )


def _bar(request: HttpRequest, action: ProposedAction, typed: Typed) -> HttpResponse:
    drawn = presenting.bar(action, request.actor, typed)
    rows = _rows(request, action.pk)
    context = {"course": drawn, "next_row": rows.after(action), "queue": rows, "typed": typed, "over": True}
    return render(request, "approvals/_decide.html", context, status=422 if typed.error else 200)


def _after(request: HttpRequest, action_id: UUID) -> HttpResponse:
    """After a decision: the outcome in place; without script, the action's page, which the back button may come to again."""
    if _target(request) != "panel":
        return HttpResponseRedirect(_address(request, action_id), status=303)
    response = _page(request, presenting.panel(presenting.find(request.actor, action_id), request.actor), keep=action_id)
    response["HX-Replace-Url"] = _address(request, action_id)  # it may have been opened as the inbox's first
    return response


def _edited(request: HttpRequest, action: ProposedAction, fields: tuple[edit_form.Field, ...]) -> HttpResponse:
    """Look at what was typed; put it up if that is what was looked at before."""
    digest, checked = request.POST.get("digest", ""), request.POST.get("checked", "")
    typed, arguments = edit_form.read(fields, request.POST.dict())
    if any(field.error for field in typed):
        return _editing(request, action, typed, error="Nothing was changed yet. Mend the fields that are marked.", status=422)
    try:
        if beyond := editing.beyond(action, arguments):
            typed = edit_form.marked(typed, beyond, "Outside this run’s scope")
            told = f"It would touch {', '.join(beyond)[:200]}, outside this run’s scope. Nothing was changed yet."
            return _editing(request, action, typed, error=told, status=422)
        version = editing.version(action, arguments)
        if checked == version.digest:
            made = editing.edit(action, by=request.actor, arguments=arguments, digest=digest)
            return _put_up(request, action, made.action)
    except (EditRefused, NothingChanged) as error:
        return _editing(request, action, typed, error=f"{error} {error.what_next}", status=error.status)
    decisions.check_open(action, request.actor, digest)
    late = "You changed it since you looked at it. This is what it would be now." if checked else ""
    return _editing(request, action, typed, version=version, error=late)


def _editing(
    request: HttpRequest,
    action: ProposedAction,
    typed: tuple[edit_form.Field, ...],
    *,
    version: editing.Version | None = None,
    error: str = "",
    status: int = 200,
) -> HttpResponse:
    changed = changes.between(exact.read(action), version.what, TOOLS.get(action.tool)) if version else None
    form = presenting.Editing(typed, changed, version.digest if version else "", error)
    drawn = presenting.panel(action, request.actor, typed=Typed("edit"), editing=form)
    return _page(request, drawn, keep=action.pk, focus="error" if error else "changes" if version else "field", status=status)


def _put_up(request: HttpRequest, before: ProposedAction, newer: ProposedAction) -> HttpResponse:
    """After an edit: the new action, with what changed."""
    address = f"{reverse('approvals:action', args=(newer.pk,))}?from={before.pk}{wanted.asked(request).more}"
    if _target(request) != "panel":
        return HttpResponseRedirect(address, status=303)
    drawn = presenting.panel(presenting.find(request.actor, newer.pk), request.actor, before=presenting.find(request.actor, before.pk))
    response = _page(request, drawn, keep=newer.pk, focus="heading")
    response["HX-Push-Url"] = address
    return response


def _asked(request: HttpRequest, action: ProposedAction, question: str = "", error: str = "", status: int = 200) -> HttpResponse:
    """What was asked so far, with the form as it was typed if it was refused; without script, the action's page."""
    typed = {"asked_text": question, "asked_error": error, "asked_over": True}
    fresh = presenting.find(request.actor, action.pk)
    if _target(request) == f"thread-{action.pk}":
        drawn = course(fresh, request.actor)
        return render(request, "approvals/_thread.html", typed | {"course": drawn, "focus": "question"}, status=status)
    if not error:
        return HttpResponseRedirect(f"{_address(request, action.pk)}#thread-{action.pk}", status=303)
    return _page(request, presenting.panel(fresh, request.actor), keep=action.pk, focus="question", status=status, more=typed)


def _refused(request: HttpRequest, action: ProposedAction, typed: Typed, status: int, said: Typed | None = None) -> HttpResponse:
    fresh = presenting.find(request.actor, action.pk)
    drawn = presenting.panel(fresh, request.actor, typed=typed, said=said)
    return _page(request, drawn, keep=action.pk, focus="note", status=status)


def _changed(request: HttpRequest, action: ProposedAction, digest: str, typed: Typed, error: DigestChanged) -> HttpResponse:
    """The decision was for other bytes: show the action as it is now, and what changed since."""
    newer = presenting.find(request.actor, UUID(error.extra["action"]))
    others = ProposedAction.objects.select_related(*presenting.RELATED).exclude(pk=newer.pk)
    before = others.filter(run=action.run_id, digest=digest).first()
    again = Typed("reject" if typed.mode == "reject" else "rest", typed.reason, refusal=error)
    drawn = presenting.panel(newer, request.actor, typed=again, before=before, said=typed)
    response = _page(request, drawn, focus="note", status=error.status)
    response["HX-Replace-Url"] = _address(request, newer.pk)
    return response


def _incomplete(request: HttpRequest, action: ProposedAction, form: DecisionForm) -> HttpResponse:
    reason = request.POST.get("reason", "")[: reasons.MAX_REASON]
    error = "The reason is too long." if "reason" in form.errors else "That form was not complete. Nothing was decided."
    mode: Mode = "reject" if request.POST.get("verdict") == "rejected" else "rest"
    return _refused(request, action, Typed(mode, reason, error=error), 422)


def _claiming(request: HttpRequest, action_id: UUID, verb: Any) -> HttpResponse:
    action = presenting.find(request.actor, action_id, "approvals.decide")
    try:
        verb(action, by=request.actor)
        live.wake(action.run_id, action.workspace_id, action.run.seq)  # nothing new in the log, but a row looks different
        status = 200
    except (AlreadyClaimed, NotInGroup, SelfApproval) as error:
        status = error.status
    if request.headers.get("HX-Request") != "true":
        return HttpResponseRedirect(_address(request, action.pk), status=303)
    fresh = presenting.find(request.actor, action_id)
    context = {"course": course(fresh, request.actor)}
    reply = render(request, "approvals/_status.html", context, status=status)
    reply.write(presenting.beside(_rows(request, action.pk), action.pk))
    return reply


# what was asked ------------------------------------------------------------------------------------------------------------------------


def _rows(request: HttpRequest, keep: UUID | None) -> inbox.Queue:
    """The queue of the page that asks, filtered as it is and as long as it is there."""
    shown = request.headers.get("Inbox-Shown", "")
    more = int(shown) if shown.isascii() and shown.isdigit() and len(shown) < 6 else 0
    return inbox.queue(request.actor, wanted.asked(request), keep=keep, shown=more)


def _address(request: HttpRequest, action_id: UUID) -> str:
    """An action's address in the inbox as it is filtered."""
    return reverse("approvals:action", args=(action_id,)) + wanted.asked(request).suffix


def _target(request: HttpRequest) -> str:
    """The element htmx will put the answer into; empty for a browser, also when it restores a page from its history."""
    if request.headers.get("HX-Request") != "true" or request.headers.get("HX-History-Restore-Request") == "true":
        return ""
    return request.headers.get("HX-Target", "")


def _step(request: HttpRequest, action: ProposedAction) -> Typed:
    mode = MODES.get(request.GET.get("do", ""), "rest")
    typed = Typed(mode, acks=tuple(request.GET.getlist("ack")))
    missing = _unticked(action, typed) if mode == "armed" else ""
    if mode == "armed" and (missing or action.locked or freezes.on(action)):
        return Typed("rest", acks=typed.acks, error=missing)
    return typed


def _unticked(action: ProposedAction, typed: Typed) -> str:
    return "Tick the warning first. Nothing was decided." if warned.unticked(action.warnings, typed.acks) else ""


def _before(actor: Actor, action: ProposedAction, earlier: str) -> ProposedAction | None:
    """The action that this one replaced, if the reader comes from there."""
    pk = as_uuid(earlier)
    rows = rules.visible(actor, ProposedAction, "approvals.view").select_related(*presenting.RELATED)
    return rows.filter(pk=pk, superseded_by=action).first() if pk else None
