"""Later rules of redaction: renditions are made anew in the background, and nothing that was hidden is ever shown by it."""

import re
from collections import Counter
from io import StringIO

import pytest
from django.core.management import call_command
from hypothesis import given
from hypothesis import strategies as st

from access.models import AuditEntry
from artifacts import redaction, rerendering, ruling, vault
from artifacts.common import common
from artifacts.likeness import likeness
from artifacts.models import Payload
from artifacts.redaction import Policy
from artifacts.rendition import Hidden, Text, marked, segments

db = pytest.mark.django_db
WORDS = st.lists(
    st.one_of(
        st.sampled_from(["Marta", "pays", "4111", "INV-20931", " ", "\n", "⟦", "é", '"', "x"]).map(Text),
        st.sampled_from(["card", "secret", "email"]).map(Hidden),
    ),
    max_size=30,
).map(marked)


def shown(text: str) -> Counter[str]:
    """The words that a rendition lets anybody read."""
    return Counter(word for part in segments(text) if isinstance(part, Text) for word in re.findall(r"\w+", part.text))


@given(old=WORDS, new=WORDS)
def test_what_both_show_is_shown_and_nothing_else(old, new):
    both = common(old, new)
    assert shown(both) <= shown(old) and shown(both) <= shown(new)
    assert common(old, old) == old
    assert shown(common(both, new)) <= shown(both)


@given(text=WORDS)
def test_what_was_wholly_hidden_stays_so(text):
    assert not shown(common("⟦secret⟧", text)) and not shown(common(text, "⟦secret⟧"))


def test_a_place_that_one_of_them_hides_is_hidden_and_the_rest_reads_on():
    old = "Write to ⟦email⟧ about card 4111 1111, today.\nYours"
    new = "Write to marta@fernhill.example about card ⟦card⟧, today.\nYours"
    assert common(old, new) == "Write to ⟦email⟧ about card ⟦card⟧, today.\nYours"
    assert common("all of it ⟦+512⟧", "all of it ⟦+600⟧") == "all of it ⟦+600⟧"
    assert common("a " * 3000 + "b", "c " * 3000 + "d") == "⟦secret⟧", "what differs too much is hidden whole"


@pytest.fixture
def later(monkeypatch):
    """A workspace's own policy: two more kinds are hidden under `internal`, and the built-in rules changed."""

    def take(policy: Policy, version: int = 7) -> None:
        monkeypatch.setattr(ruling, "kept", [lambda _: (version, policy)])

    return take


def kept(cast, text: str, **more: str) -> Payload:
    return vault.keep(cast.workspace.pk, text, **({"label": "internal"} | more))


def rerender() -> str:
    out = StringIO()
    call_command("rerender", stdout=out)
    return out.getvalue()


@db
def test_under_later_rules_renditions_hide_more(cast, later, monkeypatch):
    monkeypatch.setattr(rerendering, "BATCH", 2)
    mails = [kept(cast, f"Number {n}: write to marta@fernhill.example") for n in range(3)]
    plain = kept(cast, "Nothing in here")
    gone = kept(cast, "Write to marta@fernhill.example")
    vault.erase(gone, by=cast.ada)
    assert "marta@" in mails[0].rendition and rerendering.left(cast.workspace.pk) == 0

    later(Policy(kinds={"internal": redaction.PERSONAL}))
    assert "4 of 4 renditions looked at, 3 changed" in rerender()
    rows = {row.pk: row for row in Payload.objects.all()}
    assert all(rows[mail.pk].rendition.endswith("write to ⟦email⟧") and rows[mail.pk].findings == {"email": 1} for mail in mails)
    assert (rows[plain.pk].rendition, rows[gone.pk].rendition) == ("Nothing in here", None)
    assert vault.open_bytes(Payload.objects.select_related("key").get(pk=mails[0].pk)).endswith(b"marta@fernhill.example")
    assert "all renditions are of the rules of now" in rerender()
    assert AuditEntry.objects.get(verb="rerendered").data == {"payloads": 3, "looked": 4, "rules": ruling.BUILT_IN * 1_000_000 + 7}
    assert kept(cast, "To marta@fernhill.example").rendition == "To ⟦email⟧", "new ones are made under them at once"


@db
def test_who_stops_in_the_middle_leaves_in_the_audit_trail_what_was_done(cast, later, monkeypatch):
    monkeypatch.setattr(rerendering, "BATCH", 2)
    for number in range(3):
        kept(cast, f"Number {number}: write to marta@fernhill.example")
    later(Policy(kinds={"internal": redaction.PERSONAL}))
    batches = rerendering.rerender(cast.workspace)
    assert next(batches) == rerendering.Batch(2, 2)
    batches.close()
    assert [(told.data["looked"], told.data["payloads"]) for told in AuditEntry.objects.filter(verb="rerendered")] == [(2, 2)]


@db
def test_rules_that_hide_less_show_nothing_that_was_hidden(cast, later):
    payload = kept(cast, "Write to marta@fernhill.example, card 4111 1111 1111 1111", label="personal")
    assert payload.rendition == "Write to ⟦email⟧, card ⟦card⟧"
    later(Policy(kinds={"personal": frozenset()}))
    rerender()
    assert Payload.objects.get(pk=payload.pk).rendition == "Write to ⟦email⟧, card ⟦card⟧"


@db
def test_a_rendition_of_a_payload_that_was_erased_meanwhile_is_not_brought_back(cast, later):
    payload = kept(cast, "Write to marta@fernhill.example")
    read = Payload.objects.get(pk=payload.pk)
    vault.erase(payload, by=cast.ada)
    assert vault.rerendered([(read, redaction.redact(b"x", media_type="text/plain", label="public"))], 9) == 0
    assert Payload.objects.get(pk=payload.pk).rendition is None


@db
def test_what_earlier_detectors_passed_over_is_no_forgery(cast):
    said = "the p\u0131n: 83645"
    about = {"rendition": said, "findings": {}, "media_type": "text/plain", "label": "internal", "size": len(said.encode())}
    before = Payload(workspace_id=cast.workspace.pk, rules=3_000_000, **about)
    assert likeness(before, said.encode()) == "unknown", "it will be made anew"
    assert likeness(Payload(workspace_id=cast.workspace.pk, rules=ruling.rules(cast.workspace.pk)[0], **about), said.encode()) == "forged"
