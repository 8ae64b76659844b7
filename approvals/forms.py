"""What comes with a decision (the verdict, the digest that was drawn, the reason, what the reviewer had looked at), and with a person's
word about an unknown outcome."""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django import forms

from approvals.execution import MAX_NOTE, MAX_REFERENCE
from approvals.reasons import MAX_REASON

DAY = 24 * 3600
OPENED = 100
ITEM = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9a-f]{64}")


def seen(folds: Mapping[str, Any], *, seconds: int | None, opened: Iterable[str], acks: Iterable[str]) -> dict[str, Any]:
    """What is kept with a decision of what was looked at. Only what the card has is believed; the rest is dropped."""
    return {
        "shown": folds.get("shown", 0),
        "folded": folds.get("folded", 0),
        "opened": sorted(set(opened) & set(folds.get("paths", ()))),
        "seconds": seconds,
        "acknowledged": sorted(set(acks) & set(folds.get("acks", ()))),
    }


class DecisionForm(forms.Form):
    verdict = forms.ChoiceField(choices=[("approved", "approved"), ("rejected", "rejected")])
    digest = forms.RegexField(regex=r"^[0-9a-f]{64}$")
    reason = forms.CharField(required=False, max_length=MAX_REASON, strip=False)
    nth = forms.IntegerField(required=False, min_value=1)  # of several approvals, the how manieth this was said to be

    def seen(self, folds: Mapping[str, Any]) -> dict[str, Any]:
        """What the reviewer had before them. `folds`: the card's sums."""
        opened, acks = self.data.getlist("opened"), self.data.getlist("ack")
        return seen(folds, seconds=self._seconds(), opened=opened[:OPENED], acks=acks[:OPENED])

    def _seconds(self) -> int | None:
        """How long the card was open, as the browser counted; None without script."""
        text = self.data.get("seconds", "")
        return min(int(text), DAY) if text.isascii() and text.isdigit() and len(text) < 9 else None


class BatchForm(forms.Form):
    """One decision on several: each `item` is an action's id and the digest that was drawn, “id:digest”."""

    verdict = forms.ChoiceField(choices=[("approved", "approved"), ("rejected", "rejected")])
    reason = forms.CharField(required=False, max_length=MAX_REASON, strip=False)

    @property
    def digests(self) -> dict[UUID, str]:
        return {UUID(pk): digest for pk, _, digest in (each.partition(":") for each in self.data.getlist("item"))}

    def clean(self) -> dict[str, Any]:
        if not all(ITEM.fullmatch(each) for each in self.data.getlist("item")):
            raise forms.ValidationError("an item is an id and a digest")
        return super().clean() or {}


class OutcomeForm(forms.Form):
    outcome = forms.ChoiceField(choices=[(word, word) for word in ("look_again", "happened", "did_not_happen")])
    note = forms.CharField(required=False, max_length=MAX_NOTE, strip=False)
    reference = forms.CharField(required=False, max_length=MAX_REFERENCE)
