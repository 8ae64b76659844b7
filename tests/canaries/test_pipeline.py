"""Each kind of secret and private value, in each dress, in a document of each kind: the pipeline lets none of them through."""

import json
import random
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts.redaction import narrow, plain, redact
from tests.canaries.garden import Garden
from tests.canaries.values import BY_KEY, DRESSES, KINDS, PERSONAL


def _message(text: str) -> bytes:
    message = EmailMessage()
    message["From"], message["Subject"] = "someone@northwind.example", "A matter"
    message.set_content(f"Next is {text} as was said.")
    message.add_alternative(f"<p>Next is <b>{text}</b>.</p>", subtype="html")
    return bytes(message)


Document = Callable[[str], bytes | str]
DOCUMENTS: Mapping[str, tuple[str, Document]] = {
    "text": ("text/plain", lambda t: f"Next is {t} as was said."),
    "markdown": ("text/markdown", lambda t: f"# Next\n\n* **{t}**\n* `x`\n"),
    "csv": ("text/csv", lambda t: 'a,b\n1,"' + t.replace('"', '""') + '"\n'),
    "html": ("text/html", lambda t: f"<p title='x'>Next is <b>{t}</b>.</p>"),
    "json": ("application/json", lambda t: json.dumps({"a": f"Next is {t} here", "n": [t]})),
    "json key": ("application/json", lambda t: json.dumps({t: {"x": 1}})),
    "json lines": ("application/x-ndjson", lambda t: json.dumps({"a": t}) + "\n" + json.dumps({"b": 1})),
    "message": ("message/rfc822", _message),
    "yaml": ("application/yaml", lambda t: f"note: |\n  {t}\nother: 1\n"),
}


def rendition(document: str, text: str, label: str = "personal") -> str:
    media_type, made = DOCUMENTS[document][0], DOCUMENTS[document][1](text)
    return plain(redact(made if isinstance(made, bytes) else made.encode(), media_type=media_type, label=label).text)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_kind_in_no_dress_is_in_a_rendition(document: str) -> None:
    garden = Garden()
    texts = [garden.one("here", kind, dress) for kind, dress in product((*KINDS, *PERSONAL), DRESSES)]
    seen = [str(canary) for text in texts for canary in garden.seen_in(rendition(document, text))]
    assert not seen, "\n".join(seen)


@pytest.mark.parametrize("label", ["public", "internal", "personal"])
def test_all_of_them_in_one_document_are_hidden_as_the_label_says(label: str) -> None:
    garden = Garden()
    text = garden.dossier("here", ["plain", "base64", "url", "entities"])
    seen = list(garden.seen_in(rendition("text", text, label)))
    assert {canary.kind for canary in seen} <= (set() if label == "personal" else set(PERSONAL))
    assert len(garden.planted) == 4 * (len(KINDS) + len(PERSONAL)) and len({canary.kind for canary in garden.planted}) >= 40


def test_no_neighbour_takes_away_what_another_is_known_by() -> None:
    """Four on a line, as they fall: what one value takes in may end with the name of the next."""
    rng, garden = random.Random(7), Garden()
    kinds = [kind for kind in (*KINDS, *PERSONAL) if "\n" not in KINDS.get(kind, str)(1)]
    dresses = [dress for dress in DRESSES if dress not in ("key", "json in a string")]
    seen = []
    for _ in range(800):
        text = " and ".join(garden.one("here", rng.choice(kinds), rng.choice(dresses)) for _ in range(4))
        seen += [f"{canary} in {text!r}" for canary in garden.seen_in(rendition("text", text))]
    assert not seen, "\n".join(seen)


@pytest.mark.parametrize("document", ["text", "markdown", "json lines", "html", "csv"])
@pytest.mark.parametrize("dress", ["plain", "json in a string"])
def test_private_machinery_is_hidden_by_its_key_wherever_json_stands(document: str, dress: str) -> None:
    garden = Garden()
    texts = [garden.one("here", kind, dress) for kind in BY_KEY]
    seen = [str(canary) for text in texts for canary in garden.seen_in(rendition(document, text, "public"))]
    assert not seen, "\n".join(seen)


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_canary_spliced_into_any_document_is_not_in_its_rendition(data: st.DataObject) -> None:
    garden = Garden()
    document, dress = data.draw(st.sampled_from(list(DOCUMENTS))), data.draw(st.sampled_from(list(DRESSES)))
    text = garden.one("here", data.draw(st.sampled_from(sorted(KINDS))), dress)
    before, after = data.draw(WORDS), data.draw(WORDS)
    shown = rendition(document, f"{before} {text} {after}")
    assert not list(garden.seen_in(shown)), (document, before, text, after)
    assert not list(garden.seen_in(narrow(shown, label="personal").text))
