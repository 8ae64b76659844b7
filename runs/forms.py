"""What people send to the runs' pages."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.http import QueryDict

from runs import limits
from runs.listing import GROUPS, VIEWS, Wanted
from runs.rawlog import Asked
from runs.recovery import CHOICES
from runs.signals import KINDS

MAX_NOTE = 2000


class SignalForm(forms.Form):
    """A signal from the page."""

    kind = forms.ChoiceField(choices=[(kind, kind) for kind in KINDS])
    key = forms.CharField(max_length=100)
    note = forms.CharField(max_length=MAX_NOTE, required=False, strip=True)


class AnswerForm(forms.Form):
    """An answer to what a run asks."""

    question = forms.UUIDField()
    text = forms.CharField(max_length=4000, strip=True)


class RecoveryForm(forms.Form):
    """What a person chooses for a stuck run. `at` is the event at which it got stuck."""

    choice = forms.ChoiceField(choices=[(choice, choice) for choice in CHOICES])
    at = forms.IntegerField(min_value=1)
    to = forms.UUIDField(required=False)
    step = forms.CharField(max_length=200, required=False)
    note = forms.CharField(max_length=MAX_NOTE, required=False, strip=True)
    sure = forms.BooleanField(required=False)  # that it may end for good


class UndoForm(forms.Form):
    """Why something that was done should be undone."""

    reason = forms.CharField(max_length=MAX_NOTE, strip=True)


START = "start"


class ForkForm(forms.Form):
    """A fork. `place`: the step with which it begins, “start”, or “@17”: after that event; the start is cleaned to nothing."""

    place = forms.CharField(max_length=200)
    key = forms.CharField(max_length=64)
    note = forms.CharField(max_length=MAX_NOTE, required=False, strip=True)
    pause = forms.BooleanField(required=False)

    def clean_place(self) -> str:
        place: str = self.cleaned_data["place"]
        if place.startswith("@") and not number(place[1:]):
            raise forms.ValidationError("no event")
        return "" if place == START else place


class UploadForm(forms.Form):
    """One message, as a file or as text. `agent` names an agent and the workflow that it runs: “<id>/<workflow>”."""

    agent = forms.CharField(max_length=120)
    owner = forms.UUIDField(required=False)
    source = forms.ChoiceField(choices=[("file", "file"), ("text", "text")], required=False)
    ticket = forms.FileField(required=False, allow_empty_file=True)
    text = forms.CharField(max_length=1_000_000, required=False, strip=False)


class Money(forms.DecimalField):
    """An amount with its cents after a point or a comma."""

    def to_python(self, value: Any) -> Any:
        return super().to_python(value.replace(",", ".") if isinstance(value, str) and "." not in value else value)


class LimitsForm(forms.Form):
    """The limits of a run, in euros, minutes, tokens and steps; empty means none."""

    cost = Money(required=False, min_value=Decimal("0.01"), max_value=10_000, max_digits=9, decimal_places=2)
    minutes = forms.IntegerField(required=False, min_value=1, max_value=60 * 24 * 30)
    tokens = forms.IntegerField(required=False, min_value=1, max_value=10**12)
    steps = forms.IntegerField(required=False, min_value=1, max_value=10**6)
    note = forms.CharField(max_length=MAX_NOTE, required=False, strip=True)

    def limits(self) -> dict[str, int]:
        given: dict[str, Any] = self.cleaned_data
        asked = {
            "cost_micro": int(given["cost"] * 1_000_000) if given["cost"] else None,
            "working_ms": given["minutes"] * 60_000 if given["minutes"] else None,
            "tokens": given["tokens"],
            "steps": given["steps"],
        }
        return {name: limit for name, limit in asked.items() if limit}

    def changed(self, stand: Mapping[str, int]) -> dict[str, int]:
        """The limits that are asked for, when those that `stand` are what the form showed: what was left as it was shown stays as it is."""
        asked, shown = self.limits(), limits.shown(stand)
        for name, field in limits.FIELDS.items():
            if str(self.data.get(field, "")).strip() == shown[field]:
                asked.pop(name, None)
                asked |= {name: stand[name]} if name in stand else {}
        return asked


class StartForm(LimitsForm):
    """Start a run from an uploaded message. Limits that are left empty are the usual ones."""

    message = forms.CharField(max_length=2000)
    owner = forms.UUIDField()

    def budgets(self, usual: Mapping[str, int]) -> dict[str, int]:
        return dict(usual) | self.limits()


def wanted(query: QueryDict) -> Wanted:
    """What the address of the list asks for; what makes no sense is left out."""
    start = query.get("n", "1")
    return Wanted(
        q=query.get("q", "").replace("\0", "").strip()[:200],
        group=_one_of(query.get("state", ""), [key for key, _, _ in GROUPS]),
        agents=tuple(query.getlist("agent")[:50]),
        view=_one_of(query.get("view", ""), VIEWS),
        team=" ".join(query.get("team", "").replace("\0", "").split())[:60],
        older=query.get("older", "")[:400],
        newer=query.get("newer", "")[:400],
        start=int(start) if start.isdecimal() and len(start) < 8 else 1,
    )


def asked(query: QueryDict) -> Asked:
    """What the address of the raw log asks for."""
    return Asked(
        q=query.get("q", "").replace("\0", "").strip()[:200],
        groups=tuple(query.getlist("type")[:40]),
        at=number(query.get("at", "")),
        after=number(query.get("after", "")),
        before=number(query.get("before", "")),
    )


def place(query: QueryDict) -> tuple[str, int]:
    """What is looked for in a run, and the event that it is looked at at."""
    return query.get("q", "").replace("\0", "").strip()[:200], number(query.get("at", "").strip().lstrip("#").replace(",", ""))


def number(text: str) -> int:
    """A number of an event; 0 if it is none."""
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 17 else 0


def _one_of(text: str, known: Any) -> str:
    return text if text in known else ""
