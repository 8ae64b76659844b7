"""The streams that stay open. `config/asgi.py` mounts them; everything else over HTTP is Django's."""

from django.urls import re_path

from runs.consumers import RunPage, RunSocket, RunsPage, RunStream

http_urlpatterns = [
    re_path(r"^api/v1/runs/(?P<run_id>[^/]+)/stream$", RunStream.as_asgi(), name="stream"),
]
websocket_urlpatterns = [
    re_path(r"^ws/runs/(?P<run_id>[^/]+)$", RunSocket.as_asgi(), name="socket"),
    re_path(r"^ws/pages/runs$", RunsPage.as_asgi(), name="list"),
    re_path(r"^ws/pages/runs/(?P<run_id>[^/]+)$", RunPage.as_asgi(), name="page"),
]
