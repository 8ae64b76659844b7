"""Erasing for good: a page that says what would go, what goes along and what is in its way, and the doing of it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from access import rules, step_up
from access.errors import NotFound, Refusal
from artifacts.models import Artifact, Payload
from artifacts.rendition import plain
from runs import erasing, presenting
from runs.models import Run


@dataclass(frozen=True)
class Thing:
    """What would be erased. `ways`: how much of it can be chosen, (value, words); `what`: which is; `back`: the page it is found on."""

    name: str
    back: str
    ways: tuple[tuple[str, str], ...]
    what: str
    payloads: Collection[UUID]

    @property
    def chosen(self) -> str:
        return dict(self.ways)[self.what]


@require_http_methods(["GET", "HEAD", "POST"])
def erasure(request: HttpRequest, run_id: UUID, artifact_id: UUID) -> HttpResponse:
    """An artifact. `?what=all` is every version of it. Nothing goes without a reason, and only what the page showed."""
    artifact = rules.get(request.actor, Artifact, artifact_id, "payloads.erase", related=("payload",))
    run = rules.get(request.actor, Run, run_id, "payloads.erase", related=("title",))
    if artifact.run_id != run.pk:
        raise NotFound
    versions = Artifact.objects.filter(run_id=run.pk, name=artifact.name).count()
    ways = (("this", f"Version {artifact.version}"), *([("all", f"All {versions} versions")] if versions > 1 else ()))
    what = _what(request, ways)
    payloads = erasing.of_artifact(run, artifact.name, None if what == "all" else artifact.version)
    return _erasure(request, run, Thing(artifact.name, reverse("artifacts:artifact", args=[artifact.pk]), ways, what, payloads))


@require_http_methods(["GET", "HEAD", "POST"])
def event_erasure(request: HttpRequest, run_id: UUID, seq: int) -> HttpResponse:
    """The texts of an event: all, one, what other rooms keep of what it began, or everything that the run holds."""
    run = rules.get(request.actor, Run, run_id, "payloads.erase", related=("title",))
    names = erasing.roles_of(run, seq)
    if names is None:
        raise NotFound
    kept = erasing.parts_of(run, seq)
    all_of = [("texts", f"All texts of #{seq:,}")] if len(names) > 1 else []
    ways = (
        *((f"text:{name}", f"The text “{name.replace('_', ' ')}” of #{seq:,}") for name in names),
        *all_of,
        *((f"part:{at}", words[:1].upper() + words[1:]) for at, words in enumerate(kept)),
        ("run", f"All that {run.ref} holds: texts, arguments, artifacts, tickets, what its steps gave"),
    )
    what = _what(request, ways)
    kind, _, which = what.partition(":")
    found = {"texts": lambda: erasing.of_event(run, seq), "text": lambda: erasing.of_event(run, seq, which)}
    found |= {"part": lambda: list(kept.values())[int(which)], "run": lambda: erasing.of_runs([run.pk])}
    return _erasure(request, run, Thing(f"texts of #{seq:,}", reverse("runs:event", args=[run.pk, seq]), ways, what, found[kind]()))


def _what(request: HttpRequest, ways: Collection[tuple[str, str]]) -> str:
    """How much of it is chosen; the first, if nothing that there is."""
    asked = (request.POST if request.method == "POST" else request.GET).get("what")
    known = [value for value, _ in ways]
    return asked if asked in known else known[0]


def _erasure(request: HttpRequest, run: Run, thing: Thing) -> HttpResponse:
    if request.method != "POST":
        return _page(request, run, thing)
    step_up.require(request)
    try:
        if "sure" not in request.POST:
            raise erasing.NotSaidWhy("Say that you know it can’t be undone.")
        said = {"reason": request.POST.get("reason", ""), "words": request.POST.get("words", ""), "shown": request.POST.get("shown", "")}
        done = erasing.erase(run, thing.payloads, by=request.actor, **said)
    except Refusal as refusal:
        return _page(request, run, thing, refusal=refusal)
    copies = f", and {len(done.copies)} more in which the same text stood" if done.copies else ""
    messages.success(request, f"Erased {len(done.chosen)} payload{'s' * (len(done.chosen) > 1)}{copies}.")
    return redirect(thing.back)


def _page(request: HttpRequest, run: Run, thing: Thing, *, refusal: Refusal | None = None) -> HttpResponse:
    context: dict[str, Any] = {"run": run, "thing": thing, "refusal": refusal, "room": "runs"}
    context |= {"reasons": erasing.REASONS.items(), "typed": request.POST, "titled": plain(presenting.title_of(run))}
    try:
        context["plan"] = found = erasing.plan(run, thing.payloads)
        context["size"] = sum(Payload.objects.filter(pk__in=found.chosen).values_list("size", flat=True))
    except Refusal as why:
        context["why_not"] = why
    return render(request, "runs/erasure.html", context, status=refusal.status if refusal else 200)
