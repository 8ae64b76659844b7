from django.urls import path

from artifacts import views

app_name = "artifacts"
urlpatterns = [
    path("artifacts/<uuid:artifact_id>", views.artifact, name="artifact"),
    path("artifacts/<uuid:artifact_id>/content", views.content, name="content"),
]
