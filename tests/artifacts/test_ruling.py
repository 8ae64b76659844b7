"""Renditions that stand are made anew when the version of our rules is raised: so it is, whenever what is hidden changes."""

import hashlib
from collections.abc import Iterator
from itertools import product

from artifacts import ruling
from tests.artifacts.test_detectors import HARMLESS, SAMPLES
from tests.canaries.garden import Garden
from tests.canaries.test_pipeline import DOCUMENTS, rendition
from tests.canaries.values import BY_KEY, DRESSES, KINDS, PERSONAL

# what all that follows looks like under each version of the rules
LOOKS = {4: "457eb16b7b9f5306"}


def _renditions() -> Iterator[str]:
    garden = Garden()
    planted = [garden.one("here", kind, dress) for kind, dress in product((*KINDS, *PERSONAL, *BY_KEY), DRESSES)]
    texts = [*planted, *(value for _, value in SAMPLES), *HARMLESS]
    for document, text in product((name for name in DOCUMENTS if name != "message"), texts):  # how a message is written is Python's own
        yield rendition(document, text)


def test_whoever_changes_what_is_hidden_raises_the_version_of_the_rules() -> None:
    look = hashlib.sha256("\0".join(_renditions()).encode()).hexdigest()[:16]
    said = "Renditions look otherwise: raise artifacts.ruling.BUILT_IN by one and write the new look above (if samples came, that alone)"
    assert {ruling.BUILT_IN: look} == LOOKS, said
