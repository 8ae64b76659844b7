"""Reasons that people give: what counts as one, and where they are kept.

A reason in free text is a payload, and this room does not know the vault. So the vault registers itself at start-up as their keeper; with
none registered nothing that needs a reason is done.
"""

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from access import characters
from access.errors import BadInput

MIN_REASON, MAX_REASON = 3, 500  # characters
_keepers: list["Keeper"] = []


class Keeper(Protocol):
    def keep(self, workspace_id: UUID, text: str) -> UUID:
        """Seal the text, in the caller's transaction. Gives the payload's id."""

    def shown(self, ids: Iterable[UUID]) -> dict[UUID, str]:
        """What may be shown of each, by id. One query."""


class WhyNeeded(BadInput):
    """This needs a reason."""

    what_next = "Nothing was changed. Write at least one sentence; it goes into the history."


def register(keeper: Keeper) -> None:
    _keepers[:] = [keeper]


def trouble(reason: str, most: int = MAX_REASON) -> str:
    """What is wrong with a reason, as a sentence; empty if nothing is. Characters that can't be seen say nothing."""
    seen, kept = characters.seen_length(reason), len(reason.strip())
    if seen >= MIN_REASON and kept <= most:
        return ""
    count = f"{kept} characters" if kept > most or seen == kept else f"{seen} characters that can be seen"
    return f"The reason has {count}; it needs {MIN_REASON} to {most}."


def keep(workspace_id: UUID, text: str | UUID) -> UUID:
    """Keep a reason. WhyNeeded says what is wrong with it. One that was kept when a change was asked for stays as it is."""
    if isinstance(text, UUID):
        return text
    if wrong := trouble(text) or ("It has a character that no text can have." if "\0" in text else ""):
        raise WhyNeeded(wrong)
    if not _keepers:
        raise WhyNeeded("There is nowhere to keep it.")
    return _keepers[0].keep(workspace_id, text.strip())


def shown(ids: Iterable[UUID | None]) -> dict[UUID, str]:
    wanted = {each for each in ids if each is not None}
    return _keepers[0].shown(wanted) if wanted and _keepers else {}
