"""What a reviewer is shown of what a run had before it proposed. Plain values."""

from dataclasses import dataclass

from approvals import wordwise


@dataclass(frozen=True)
class Evidence:
    """Something the run had before it proposed. `quote` is the beginning of what it says, as a rendition."""

    seq: int
    title: str
    kind: str = ""  # draft: a model wrote it; answer: it said it to a reviewer who had asked
    text: str = ""
    quote: str = ""
    stands: tuple[str, ...] = ()  # of what the agent's reason names, what stands in it
    changed: tuple[wordwise.Part, ...] = ()  # of a later version, what went and what is new in it
    changes_left: int = 0  # of those, for which there was no room
    hides: bool = False  # whether both versions have hidden places: what stands in those is not compared
    earlier: str = ""  # the payload that holds the text of the one before
    before: int = 0  # its number
    tool: str = ""  # what gave it
    called: str = ""  # what it is called in a sentence, where its title says what was found
    artifact: str = ""
    name: str = ""  # of the artifact
    outside: bool = False
    private: bool = False
    label: str = ""
    orders: tuple[str, ...] = ()  # what in a text from outside reads like orders to a machine
    hidden: int = 0  # places of the artifact that could be revealed to who decides
    is_file: bool = False  # it has no text: it is opened as a whole
    media_type: str = ""  # of such a file, and its bytes
    size: int = 0

    @property
    def heading(self) -> str:
        if self.changed:
            return f"Changed since {'draft' if self.kind == 'draft' else 'version'} {self.before}"
        return self.title
