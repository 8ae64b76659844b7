"""The streams of approvals' pages. `config/asgi.py` mounts them."""

from django.urls import re_path

from approvals.consumers import InboxSocket, OutcomeSocket

websocket_urlpatterns = [
    re_path(r"^ws/pages/inbox$", InboxSocket.as_asgi(), name="inbox_socket"),
    re_path(r"^ws/pages/actions/(?P<action_id>[^/]+)/outcome$", OutcomeSocket.as_asgi(), name="outcome_socket"),
]
