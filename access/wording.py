"""Words that several rooms put together alike."""

from collections.abc import Sequence


def listed(names: Sequence[str], last: str = "and") -> str:
    """“Riley, Sam and Ada”, or with another word before the last; empty for nobody."""
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
