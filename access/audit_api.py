"""The audit trail over HTTP, to be read by a person who may."""

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from access import exporting, places, telling, trail
from access.audit_models import AuditSeal

router = Router(tags=["audit"])
MOST = 500


@router.get("/audit", response=Any, summary="The audit trail of a workspace, the newest entries first")
def entries(
    request: HttpRequest,
    before: str = "",
    limit: int = Query(trail.PAGE, ge=1, le=MOST),
    q: str = "",
    who: str = "",
    what: str = "",
    label: str = "",
    since: str = "",
    until: str = "",
    run: str = "",
) -> dict[str, Any]:
    """`next` is the `before` of the page after this one; null at the end. `what` is a group of verbs, `since` and `until` are days in UTC.

    `number` is that of the entry's seal, null while it waits for one; `?workspace=` names the workspace for who may look at several.
    """
    here = places.place(request, "audit.view")
    given = {"q": q, "who": who, "what": what, "label": label, "since": since, "until": until, "run": run}
    page = trail.page(here.id, trail.wanted(given), before=before, size=limit)
    numbers = dict(AuditSeal.objects.filter(entry__in=[each.pk for each in page.entries]).values_list("entry", "number"))
    told = [exporting.as_dict(each, numbers.get(each.entry.pk)) for each in telling.told(page.entries)]
    return {"entries": told, "next": page.older or None}
