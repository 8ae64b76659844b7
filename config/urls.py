from django.urls import include, path

from config import health, home, trying
from config.api import api

urlpatterns = [
    path("", home.home, name="home"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("demo", trying.page, name="trying"),
    path("demo/runs", trying.begin, name="trying_begin"),
    path("demo/desk", trying.mend, name="trying_mend"),
    path("api/v1/", api.urls),
    path("", include("access.urls")),
    path("", include("runs.urls")),
    path("", include("approvals.urls")),
    path("", include("approvals.notifications.urls")),
    path("", include("artifacts.urls")),
]

handler500 = "access.pages.broken"
