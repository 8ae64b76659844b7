"""Ids and digests in what came out: now and then one has any four digits in it by chance."""

import re

_ID = re.compile(
    r"(?<![A-Za-z0-9])(?=[0-9-]*[a-f])[0-9a-f-]{8,}(?![A-Za-z0-9])"
)  # one without a letter may be a number that somebody hides


def without_ids(text: str) -> str:
    """The text without what is written as an id or a digest is: of what is left a few digits mean what they say."""
    return _ID.sub("", text)
