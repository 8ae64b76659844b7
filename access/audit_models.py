"""What stands beside the audit trail: the seals that chain its entries, and how far the sealer has come."""

from django.db import models

from access import append_only
from config import clock


@append_only.protect
class AuditSeal(models.Model):
    """Entry `entry` is number `number` of the chain. Append-only. The order is that of sealing: one that was committed late comes later."""

    number = models.PositiveBigIntegerField(primary_key=True)  # 1, 2, 3 … without a gap
    entry = models.UUIDField(unique=True)  # no foreign key: a seal outlives an entry that somebody removed, and so tells of it
    hash = models.CharField(max_length=64)  # SHA-256 over the hash before, the number and the entry, in hexadecimal

    def __str__(self) -> str:
        return f"#{self.number}"


class Sealer(models.Model):
    """How far the one background sealer has come. Its row is locked while it works."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    number = models.PositiveBigIntegerField(default=0)  # of the last seal, 0 before the first
    hash = models.CharField(max_length=64, default="0" * 64)  # of the last seal
    floor = models.UUIDField(null=True, blank=True)  # every entry with a smaller id was looked at, and is sealed
    looked_at = models.DateTimeField(null=True, blank=True)  # when all entries were looked at last, and none was left

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="sealer_once")]

    def __str__(self) -> str:
        return f"sealed up to #{self.number}"


class RefusalTally(models.Model):
    """Refusals that are alike: the first is an entry, the rest of a minute are counted here and told with the next one, or by the beat."""

    key = models.CharField(max_length=64, primary_key=True)  # SHA-256 of who was refused what
    workspace = models.ForeignKey("access.Workspace", on_delete=models.CASCADE, null=True, related_name="+")
    actor_kind = models.CharField(max_length=12)
    actor_id = models.CharField(max_length=40)
    subject_kind = models.CharField(max_length=40, blank=True)
    subject_id = models.CharField(max_length=40, blank=True)
    told = models.JSONField(default=dict)  # the rest of the entry
    since = models.DateTimeField(default=clock.now)  # when the last entry was written
    more = models.PositiveIntegerField(default=0)  # refused since then

    class Meta:
        # both are asked: how much one actor was refused in a minute, and what has come to rest
        indexes = [models.Index(fields=["actor_id", "since"], name="tally_of_actor"), models.Index(fields=["since"], name="tally_at_rest")]

    def __str__(self) -> str:
        return f"{self.more} more refusals of {self.actor_id}"
