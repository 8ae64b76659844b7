"""The HTML of a message in a frame, for who may decide on it to look at. It is an argument, and so theirs to read in full.

Nothing here decides or records anything, and nothing that somebody else wrote comes before a browser as it is: it is framed where it can
neither run nor load. Files are opened by a recorded reveal: `artifacts/reveal_views.py`.
"""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

from access.errors import Forbidden, NotFound
from approvals import decisions, exact, presenting
from approvals.cards import email
from approvals.decisions import No
from approvals.models import ProposedAction
from artifacts import preview
from artifacts.reveal_views import SANDBOXED

MAX_PAGE = 10_000


@never_cache
@require_safe
@xframe_options_sameorigin
def letter(request: HttpRequest, action_id: UUID) -> HttpResponse:
    """The HTML of an e-mail, to be framed by the page of its action. Its policy lets nothing run and nothing be loaded."""
    what = exact.whole(_readable(request, action_id))
    name = email.html_name(what.arguments)
    if not name:
        raise NotFound
    framed = preview.letter(what.arguments[name])
    return HttpResponse(framed.document, headers=SANDBOXED | {"Content-Security-Policy": framed.policy})


def _readable(request: HttpRequest, action_id: UUID) -> ProposedAction:
    """The action, for who may read it exactly. Forbidden says why not."""
    action = presenting.find(request.actor, action_id)
    may = decisions.may_read(action, request.actor)
    if isinstance(may, No):
        raise Forbidden(may.why)
    return action
