"""The inbox's stream. `config/asgi.py` mounts it."""

from django.urls import re_path

from approvals.consumers import InboxSocket

websocket_urlpatterns = [
    re_path(r"^ws/pages/inbox$", InboxSocket.as_asgi(), name="inbox_socket"),
]
