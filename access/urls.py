from django.urls import path

from access import account_views, audit_urls, permission_views, views

app_name = "access"
urlpatterns = [
    path("sign-in", views.sign_in, name="sign_in"),
    path("sign-in/as", views.sign_in_as, name="sign_in_as"),
    path("sign-out", views.sign_out, name="sign_out"),
    path("theme", views.theme, name="theme"),
    path("account", account_views.account, name="account"),
    path("account/sessions/<uuid:session_id>/end", account_views.end_session, name="end_session"),
    path("account/sessions/end-others", account_views.end_other_sessions, name="end_other_sessions"),
    path("account/password", account_views.change_password, name="change_password"),
    path("permissions", permission_views.page, name="permissions"),
    path("permissions/history", permission_views.history, name="permissions_history"),
    path("permissions/roles/new", permission_views.new, name="role_new"),
    path("permissions/roles/<int:role_id>", permission_views.role, name="role"),
    path("permissions/roles/<int:role_id>/versions/<int:version>", permission_views.version, name="role_version"),
    path("permissions/changes/<uuid:change_id>", permission_views.change, name="change"),
]
urlpatterns += audit_urls.urlpatterns
