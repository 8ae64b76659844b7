"""The page of an artifact: its redacted rendition, its versions, what changed. Where it came from is the run's to tell."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import content_disposition_header
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from access import rules
from artifacts import revealing, showing
from artifacts.models import Artifact
from artifacts.rendition import plain

RELATED = ("payload", "payload__key", "payload__erased_by")
VERSIONS = 200  # the newest, that the page lists
COMPARED = 400  # lines of a version up to which two are compared


@dataclass(frozen=True)
class Change:
    """Lines that one version has instead of others. Renditions."""

    line: int
    before: str
    after: str
    name: str = ""  # of the row, where a table has one: a number of a line tells nobody which it is


@never_cache
@require_safe
def artifact(request: HttpRequest, artifact_id: UUID) -> HttpResponse:
    found = rules.get(request.actor, Artifact, artifact_id, "artifacts.view", related=RELATED)
    named = Artifact.objects.filter(workspace_id=found.workspace_id, run_id=found.run_id, name=found.name).order_by("-version")
    versions = list(named.only("version", "created_at")[:VERSIONS])
    earlier = named.filter(version__lt=found.version).select_related(*RELATED).first()
    context = {
        "artifact": found,
        "versions": versions,
        "newest": versions[0].version,
        "earlier": earlier,
        "changes": list(changes(earlier, found)) if earlier else [],
        "comparable": earlier is not None and _comparable(earlier, found),
        "box": showing.standing(request.actor, revealing.at_artifact(found)),
        "room": "runs",
    }
    return render(request, "artifacts/artifact.html", context)


@require_safe
def content(request: HttpRequest, artifact_id: UUID) -> HttpResponse:
    """The redacted rendition as a file. Never the bytes, and never anything that a browser would run."""
    found = rules.get(request.actor, Artifact, artifact_id, "artifacts.view", related=RELATED)
    name = f"{found.name.rsplit('.', 1)[0]}-v{found.version}-redacted.txt"
    response = HttpResponse(plain(found.payload.rendition or ""), content_type="text/plain; charset=utf-8")
    response.headers["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'; frame-ancestors 'none'"
    return response


def changes(before: Artifact, after: Artifact) -> Iterator[Change]:
    """What the later version's rendition says instead, line by line; nothing if one is too long or was erased."""
    if not _comparable(before, after):
        return
    old, new = _lines(before), _lines(after)
    for kind, start, end, at, upto in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        rows = 0
        while kind == "replace" and start + rows < end and at + rows < upto and _is_row(old[start + rows]) and _is_row(new[at + rows]):
            yield Change(at + rows + 1, *_cells(old[start + rows], new[at + rows]), _name(old[start + rows], new[at + rows]))
            rows += 1
        was, now = old[start + rows : end], new[at + rows : upto]
        if kind != "equal" and (was or now):
            blank = next((nth for nth, line in enumerate(now) if line.strip()), 0)  # what is above it is no part of it
            yield Change(at + rows + 1 + blank, "\n".join(was).strip("\n"), "\n".join(now).strip("\n"))


def _is_row(line: str) -> bool:
    """Of a table in Markdown."""
    return line.strip().startswith("|")


def _split(row: str) -> list[str]:
    return [cell.strip().strip("*") for cell in row.strip().strip("|").split("|")]


def _name(was: str, now: str) -> str:
    """What both rows begin with."""
    name = _split(now)[0]
    return name if name == _split(was)[0] else ""


def _cells(was: str, now: str) -> tuple[str, str]:
    """The cells of a row that differ; all of them if there are other ones; the lines as they are if their cells say the same."""
    old, new = _split(was), _split(now)
    pairs = list(zip_longest(old, new, fillvalue=""))
    differ = [pair for pair in pairs if pair[0] != pair[1]] if len(old) == len(new) else pairs
    before, after = (", ".join(filter(None, each)) for each in ([a for a, _ in differ], [b for _, b in differ]))
    return (before, after) if before != after else (was, now)


def _comparable(before: Artifact, after: Artifact) -> bool:
    return all(each.payload.rendition is not None and len(_lines(each)) <= COMPARED for each in (before, after))


def _lines(artifact: Artifact) -> list[str]:
    return (artifact.payload.rendition or "").splitlines()
