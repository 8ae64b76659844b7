from django.urls import include, path

from config import health, home
from config.api import api

urlpatterns = [
    path("", home.home, name="home"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("api/v1/", api.urls),
    path("", include("access.urls")),
    path("", include("runs.urls")),
    path("", include("approvals.urls")),
    path("", include("approvals.notifications.urls")),
    path("", include("artifacts.urls")),
]

handler500 = "access.pages.broken"
