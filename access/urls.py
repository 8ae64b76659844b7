from django.urls import path

from access import views

app_name = "access"
urlpatterns = [
    path("sign-in", views.sign_in, name="sign_in"),
    path("sign-in/as", views.sign_in_as, name="sign_in_as"),
    path("sign-out", views.sign_out, name="sign_out"),
    path("theme", views.theme, name="theme"),
]
