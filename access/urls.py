app_name = "access"
urlpatterns = []
