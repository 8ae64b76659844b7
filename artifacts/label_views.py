"""The sensitivity labels of a workspace on the page of permissions: shown to whom, who may reveal, for how long, how often of late."""

from datetime import timedelta

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from access import permissions, places, rules
from access.models import Role
from artifacts import policy_views
from artifacts.models import Reveal
from config import clock

OF_LATE = timedelta(days=30)


@never_cache
@require_safe
def labels(request: HttpRequest) -> HttpResponse:
    """A part of the page of permissions."""
    where = places.place(request, *permissions.READ)
    roles = Role.objects.filter(workspace_id=where.id, retired_at=None).order_by("name")
    rows = Reveal.objects.filter(workspace_id=where.id, at__gt=clock.now() - OF_LATE).values_list("label").annotate(Count("pk")).order_by()
    counted = dict(rows)
    told = [(*each, counted.get(each[0], 0)) for each in permissions.reveals(roles)]
    sees = any(rules.can(request.actor, each, where.id) for each in policy_views.READ)
    return render(request, "artifacts/_labels.html", {"labels": told, "sees_redaction": sees, "suffix": where.suffix})
