"""The vault as the keeper of the reasons that people give in the rooms to the right, which do not know it. See `access.reasons`."""

from collections.abc import Iterable
from uuid import UUID

from access import reasons
from artifacts import vault
from artifacts.redaction import plain


class Reasons:
    def keep(self, workspace_id: UUID, text: str) -> UUID:
        return vault.keep(workspace_id, text, label="internal").pk

    def shown(self, ids: Iterable[UUID]) -> dict[UUID, str]:
        return {pk: plain(found.text) for pk, found in vault.shown(ids).items()}


def register() -> None:
    reasons.register(Reasons())
