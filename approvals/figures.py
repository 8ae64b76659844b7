"""Numbers and names in sentences. Pure."""

from collections.abc import Sequence

from access import wording

NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")


def number(count: int) -> str:
    """As a sentence begins with it: “Two”; beyond twelve in figures."""
    return NUMBERS[count] if 0 <= count < len(NUMBERS) else str(count)


def ordinal(count: int) -> str:
    return {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}.get(count, f"{count}th")


def listed(names: Sequence[str], most: int = 4) -> str:
    """“Riley, Sam and 3 others”."""
    if not names:
        return ""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} others"
    return wording.listed(names)
