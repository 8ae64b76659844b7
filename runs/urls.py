from django.urls import path

from runs import compare_views, erasure_views, fork_views, recovery_views, source_views, start_views, undo_views, views, webhook_views

app_name = "runs"
urlpatterns = [
    path("runs", views.runs, name="list"),
    path("runs/counts", views.counts, name="counts"),
    path("runs/new", start_views.start, name="start"),
    path("runs/<uuid:run_id>", views.run, name="run"),
    path("runs/<uuid:run_id>/events", views.events, name="events"),
    path("runs/<uuid:run_id>/events/<int:seq>", views.event, name="event"),
    path("runs/<uuid:run_id>/events/<int:seq>/erasure", erasure_views.event_erasure, name="event_erasure"),
    path("runs/<uuid:run_id>/signals", views.send_signal, name="signals"),
    path("runs/<uuid:run_id>/glances", views.glance, name="glances"),
    path("runs/<uuid:run_id>/answers", views.answer, name="answers"),
    path("runs/<uuid:run_id>/limits", views.set_limits, name="limits"),
    path("runs/<uuid:run_id>/artifacts/<uuid:artifact_id>", views.around, name="around"),
    path("runs/<uuid:run_id>/artifacts/<uuid:artifact_id>/erasure", erasure_views.erasure, name="erasure"),
    path("runs/<uuid:run_id>/forks", fork_views.forks, name="forks"),
    path("runs/<uuid:run_id>/effects/<int:seq>/undo", undo_views.undo, name="undo"),
    path("runs/<uuid:run_id>/compare", compare_views.compare, name="compare"),
    path("runs/<uuid:run_id>/replay", compare_views.replay, name="replay"),
    path("runs/<uuid:run_id>/recovery", recovery_views.choose, name="choose"),
    path("recovery", recovery_views.board, name="recovery"),
    path("webhooks", source_views.sources, name="sources"),
    path("webhooks/<uuid:source_id>", source_views.source, name="source"),
    path("recovery/webhooks/<uuid:webhook_id>", webhook_views.resolve, name="webhook"),
    path("recovery/requeue", recovery_views.requeue, name="requeue"),
    path("r/<str:ref>", views.by_ref, name="by_ref"),
]
