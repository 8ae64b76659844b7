from django.urls import path

from access import glass_views, key_views, log_views

urlpatterns = [
    path("permissions/log", log_views.log, name="log"),
    path("permissions/log/exports", log_views.export, name="log_export"),
    path("permissions/break-glass", glass_views.glass, name="break_glass"),
    path("permissions/break-glass/<uuid:glass_id>/ending", glass_views.ending, name="glass_ending"),
    path("permissions/break-glass/<uuid:glass_id>/review", glass_views.review, name="glass_review"),
    path("permissions/agents", key_views.agents, name="agents"),
    path("permissions/agents/<uuid:agent_id>/keys", key_views.new_key, name="key_new"),
    path("permissions/provisioners", key_views.new_provisioner, name="provisioner_new"),
    path("permissions/keys/<str:kind>/<uuid:key_id>/rotation", key_views.rotation, name="key_rotation"),
    path("permissions/keys/<str:kind>/<uuid:key_id>/revocation", key_views.revocation, name="key_revocation"),
]
