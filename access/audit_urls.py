from django.urls import path

from access import log_views

urlpatterns = [
    path("permissions/log", log_views.log, name="log"),
    path("permissions/log/exports", log_views.export, name="log_export"),
]
