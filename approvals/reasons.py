"""What counts as a reason: something that a reader can see."""

from access import characters

MIN_REASON, MAX_REASON = 3, 4000  # characters


def trouble(reason: str, most: int = MAX_REASON) -> str:
    """What is wrong with a reason, as a sentence; empty if nothing is. Characters that can't be seen say nothing."""
    seen, kept = characters.seen_length(reason), len(reason.strip())
    if seen >= MIN_REASON and kept <= most:
        return ""
    count = f"{kept} characters" if kept > most or seen == kept else f"{seen} characters that can be seen"
    return f"The reason has {count}; it needs {MIN_REASON} to {most}."
