"""What a browser calls itself, in words."""

from functools import lru_cache

from ua_parser import parse


@lru_cache(maxsize=1000)
def words(user_agent: str) -> str:
    """Firefox on Linux; “A browser” where it does not say. It says what it likes: a hint for the eye, never a proof."""
    found = parse(user_agent[:300])
    browser = found.user_agent.family if found.user_agent else ""
    system = found.os.family if found.os else ""
    return " on ".join(filter(None, (browser or "A browser", system)))
