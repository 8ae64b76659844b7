from django.urls import path

from approvals.notifications import views

app_name = "notifications"
urlpatterns = [
    path("notifications", views.settings_page, name="settings"),
    path("notifications/test", views.test, name="test"),
    path("notifications/webhook", views.webhook, name="webhook"),
    path("notifications/delegations", views.delegate, name="delegate"),
    path("notifications/delegations/<uuid:delegation_id>/end", views.end_delegation, name="end_delegation"),
    path("notifications/undelivered", views.undelivered, name="undelivered"),
    path("notifications/undelivered/<uuid:message_id>", views.try_again, name="try_again"),
    path("notifications/nobody-answers", views.chain, name="chain"),
    path("notifications/nobody-answers/<uuid:step_id>/remove", views.remove_step, name="remove_step"),
]
