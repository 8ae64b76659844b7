"""What a page shows of something that may be hidden: its redacted rendition, or, for a time and to one person, the revealed one."""

from dataclasses import dataclass
from functools import cached_property

from access.errors import Refusal
from access.rules import Actor
from artifacts import reveal, revealing, sheets
from artifacts.models import Reveal
from artifacts.reveal import Revealed
from artifacts.revealing import May, MayNot, Place
from artifacts.sheets import Sheet


@dataclass
class Box:
    """The part of a page in which something can be revealed, as it is for one person now. `row` and `shown`: while it is."""

    at: Place
    may: May | MayNot
    row: Reveal | None = None
    shown: Revealed | None = None

    @property
    def text(self) -> str:
        """What is shown of it: the revealed rendition, else the redacted one."""
        return self.shown.text if self.shown else self.at.payload.rendition or ""

    @cached_property
    def sheet(self) -> Sheet:
        return sheets.sheet(self.at.payload.media_type, self.text)

    @property
    def hidden(self) -> int:
        """How many places are hidden, also those that nobody may see."""
        return self.shown.left if self.shown else sum(self.at.payload.findings.values())

    @cached_property
    def reveals(self) -> list[Reveal]:
        """To whom it was shown, the newest first."""
        return reveal.of_payload(self.at.payload.pk)

    @property
    def allowed(self) -> bool:
        return isinstance(self.may, May)


def box(actor: Actor, at: Place, row: Reveal | None = None, *, else_hidden: bool = False) -> Box:
    """Hidden, unless `row` is a reveal that lasts. What can't be shown after all raises, or is hidden as before."""
    may = revealing.may(actor, at)
    if row is None or not isinstance(may, May):
        return Box(at, may)
    try:
        return Box(at, may, row, reveal.read(at))
    except Refusal:
        if not else_hidden:
            raise
        return Box(at, may)


def standing(actor: Actor, at: Place) -> Box:
    """The same for a page that comes anew: what was asked for with a reason stands until its time; the rest is hidden by a reload."""
    row = reveal.live(actor, [at.payload.pk]).get(at.payload.pk)
    return box(actor, at, row if row and row.reason else None, else_hidden=True)
