from django.urls import path

from access import account_views, audit_urls, people_views, permission_views, second_views, sso_views, team_views, views

app_name = "access"
urlpatterns = [
    path("sign-in", views.sign_in, name="sign_in"),
    path("sign-in/as", views.sign_in_as, name="sign_in_as"),
    path("sign-in/second", second_views.second, name="second"),
    path("sign-in/passkey", views.sign_in_by_passkey, name="sign_in_by_passkey"),
    path("sign-in/passkey/options", second_views.passkey_options, name="passkey_options"),
    path("sign-in/sso", sso_views.begin, name="sso"),
    path("sign-in/sso/callback", sso_views.callback, name="sso_callback"),
    path("sign-in/forgot", people_views.forgot, name="forgot"),
    path("passwords", people_views.password_link, name="password_link"),
    path("invitations", people_views.invitation, name="invitation"),
    path("people", people_views.people_page, name="people"),
    path("people/invitations", people_views.invite, name="invite"),
    path("people/invitations/<uuid:invitation_id>", people_views.invitation_again, name="invitation_again"),
    path("people/<uuid:user_id>", people_views.person, name="person"),
    path("people/<uuid:user_id>/changes", people_views.change_person, name="change_person"),
    path("sign-out", views.sign_out, name="sign_out"),
    path("confirm", second_views.confirm, name="confirm"),
    path("confirm/passkey/options", second_views.confirm_options, name="confirm_options"),
    path("theme", views.theme, name="theme"),
    path("account", account_views.account, name="account"),
    path("account/sessions/<uuid:session_id>/end", account_views.end_session, name="end_session"),
    path("account/sessions/end-others", account_views.end_other_sessions, name="end_other_sessions"),
    path("account/codes", account_views.codes, name="codes"),
    path("account/recovery-codes", account_views.recovery_codes, name="recovery_codes"),
    path("account/passkeys", account_views.passkeys, name="passkeys"),
    path("account/passkeys/options", account_views.passkey_options, name="new_passkey_options"),
    path("account/factors/<int:factor_id>/removal", account_views.remove_factor, name="remove_factor"),
    path("account/password", account_views.change_password, name="change_password"),
    path("permissions", permission_views.page, name="permissions"),
    path("permissions/history", permission_views.history, name="permissions_history"),
    path("permissions/roles/new", permission_views.new, name="role_new"),
    path("permissions/roles/<int:role_id>", permission_views.role, name="role"),
    path("permissions/roles/<int:role_id>/versions/<int:version>", permission_views.version, name="role_version"),
    path("permissions/teams/new", team_views.new, name="team_new"),
    path("permissions/teams/<uuid:team_id>", team_views.team, name="team"),
    path("permissions/changes/<uuid:change_id>", permission_views.change, name="change"),
]
urlpatterns += audit_urls.urlpatterns
