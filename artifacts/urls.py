app_name = "artifacts"
urlpatterns = []
