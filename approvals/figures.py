"""Numbers in sentences. Pure."""

NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")


def number(count: int) -> str:
    """As a sentence begins with it: “Two”; beyond twelve in figures."""
    return NUMBERS[count] if 0 <= count < len(NUMBERS) else str(count)


def ordinal(count: int) -> str:
    return {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}.get(count, f"{count}th")
