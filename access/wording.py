"""Words that several rooms put together alike."""

from collections.abc import Sequence

MOST = 4  # that a sentence names, if it need not name all


def listed(names: Sequence[str], last: str = "and", *, most: int = 0) -> str:
    """“Riley, Sam and Ada”, or with another word before the last; empty for nobody.

    `most`: of more than so many the first, and how many there are beside: “Riley, Sam, Ada and 2 others”. 0: all.
    """
    if most and len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} others"]
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
