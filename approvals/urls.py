from django.urls import path

from approvals import (
    attachment_views,
    bulk_views,
    freeze_views,
    group_views,
    outcome_views,
    policy_views,
    simulator_views,
    standing_views,
    views,
)

app_name = "approvals"
urlpatterns = [
    path("policies", policy_views.policies, name="policies"),
    path("policies/section", simulator_views.section, name="policies_section"),
    path("policies/simulator", simulator_views.simulator, name="simulator"),
    path("policies/rule", policy_views.rule, name="policy_rule"),
    path("policies/versions/<int:version>", policy_views.version, name="policy_version"),
    path("groups", group_views.groups_page, name="groups"),
    path("groups/new", group_views.new, name="group_new"),
    path("groups/<uuid:group_id>", group_views.group, name="group"),
    path("standing-grants/new", standing_views.new, name="standing_new"),
    path("standing-grants/<uuid:grant_id>", standing_views.grant, name="standing_grant"),
    path("standing-grants/<uuid:grant_id>/revocation", standing_views.revocation, name="standing_revocation"),
    path("inbox", views.inbox_page, name="inbox"),
    path("inbox/alike/<uuid:action_id>", bulk_views.together, name="alike"),
    path("inbox/alike/<uuid:action_id>/looks", bulk_views.look, name="looks"),
    path("inbox/alike/<uuid:action_id>/decisions", bulk_views.decision, name="decisions"),
    path("actions/<uuid:action_id>", views.action_page, name="action"),
    path("actions/<uuid:action_id>/decision", views.decision, name="decision"),
    path("actions/<uuid:action_id>/edit", views.edit, name="edit"),
    path("actions/<uuid:action_id>/questions", views.ask, name="questions"),
    path("actions/<uuid:action_id>/claim", views.claim, name="claim"),
    path("actions/<uuid:action_id>/recall", views.recall, name="recall"),
    path("actions/<uuid:action_id>/release", views.release, name="release"),
    path("actions/<uuid:action_id>/outcome", outcome_views.outcome, name="outcome"),
    path("freezes", freeze_views.freezes_page, name="freezes"),
    path("freezes/<uuid:freeze_id>/lifting", freeze_views.lifting, name="lifting"),
    path("actions/<uuid:action_id>/attachments/<int:index>", views.attachment, name="attachment"),
    path("actions/<uuid:action_id>/html", attachment_views.letter, name="html"),
]
