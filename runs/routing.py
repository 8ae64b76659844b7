"""Long-lived connections: routes to Channels consumers. Sessions and the origin check are put around them by `config/asgi.py`."""

from django.urls import URLPattern

websocket_urlpatterns: list[URLPattern] = []
http_urlpatterns: list[URLPattern] = []
