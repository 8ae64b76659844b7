"""Whoever changes what somebody may do raises that person's `access_version`, so that streams which are open look again at once."""

from typing import Any

from django.db.models import F, Model, QuerySet
from django.db.models.signals import post_delete, post_save, pre_save
from django.dispatch import Signal as Notice  # the channel has signals of its own

from access.models import Agent, AgentKey, Membership, Role, TeamMember, User

changed = Notice()  # somebody's rights may be others now; sent in the transaction that changes them


def connect() -> None:
    """At start-up. `update()` and `bulk_create()` of a query set send no signal: who uses them calls `raise_versions`."""
    pre_save.connect(_about_to_be_saved, sender=User, dispatch_uid="standing-before-User")
    for model in (User, Membership, Role, TeamMember, Agent, AgentKey):
        post_save.connect(_saved, sender=model, dispatch_uid=f"standing-{model.__name__}")
        post_delete.connect(_saved, sender=model, dispatch_uid=f"standing-gone-{model.__name__}")


def raise_versions(users: QuerySet[User]) -> None:
    """The rights of these people may be others now."""
    users.update(access_version=F("access_version") + 1)
    changed.send(User)


def _about_to_be_saved(sender: type[Model], instance: User, **_: Any) -> None:
    """Somebody read long ago must not bring back the number of then, which a stream may hold."""
    if not instance._state.adding:
        instance.access_version = F("access_version")


def _saved(sender: type[Model], instance: Any, created: bool = False, update_fields: Any = None, **_: Any) -> None:
    signing_in = sender is User and update_fields is not None and set(update_fields) <= {"last_login", "access_version"}
    if not signing_in and (
        sender in (Membership, TeamMember) or not created
    ):  # what is new has no stream open; signing in changes no right
        raise_versions(_people(sender, instance))
    if sender is User and instance.pk and not created:
        instance.access_version = User.objects.values_list("access_version", flat=True).filter(pk=instance.pk).first()


def _people(sender: type[Model], instance: Any) -> QuerySet[User]:
    if sender is User:
        return User.objects.filter(pk=instance.pk)
    if sender is Membership:
        return User.objects.filter(pk=instance.user_id)
    if sender is TeamMember:
        return User.objects.filter(memberships__pk=instance.membership_id)
    if sender is Role:
        return User.objects.filter(memberships__role=instance.pk)
    return User.objects.none()  # keys are looked up by themselves
