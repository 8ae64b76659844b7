from django.urls import path

from artifacts import label_views, policy_views, reveal_views, views

app_name = "artifacts"
urlpatterns = [
    path("artifacts/<uuid:artifact_id>", views.artifact, name="artifact"),
    path("artifacts/<uuid:artifact_id>/content", views.content, name="content"),
    path("permissions/labels", label_views.labels, name="labels"),
    path("permissions/redaction", policy_views.policies, name="redaction"),
    path("permissions/redaction/new", policy_views.new, name="redaction_new"),
    path("permissions/redaction/<uuid:policy_id>/withdrawal", policy_views.withdrawal, name="redaction_withdrawal"),
    path("reveals", reveal_views.reveals, name="reveals"),
    path("reveals/new", reveal_views.ask, name="ask"),
    path("reveals/<uuid:reveal_id>", reveal_views.shown, name="reveal"),
    path("reveals/<uuid:reveal_id>/look", reveal_views.look, name="look"),
    path("reveals/<uuid:reveal_id>/pages/<int:page>", reveal_views.picture, name="picture"),
    path("reveals/<uuid:reveal_id>/content", reveal_views.content, name="revealed_content"),
    path("reveals/<uuid:reveal_id>/ending", reveal_views.ending, name="ending"),
]
