"""Typed readers for the environment. Each refuses an odd value with one line that names the variable, what it wants and what it got."""

import os
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class OddSetting(SystemExit):
    """Ends the process with one line on stderr: a traceback through the settings would tell nobody what to change."""

    def __init__(self, line: str) -> None:
        super().__init__(f"Handrail: {line}")


def text(name: str, default: str = "") -> str:
    """The value without surrounding blanks; an empty one counts as not set."""
    return os.environ.get(name, "").strip() or default


def required(name: str, why: str) -> str:
    """The value, or a refusal that says what it is for."""
    return text(name) or _refuse(f"{name} is not set. {why}")


def flag(name: str, default: bool = False) -> bool:
    value = text(name).lower()
    if value in TRUE or value in FALSE:
        return value in TRUE
    return default if not value else _refuse(f"{name} must be 1 or 0, not {_shown(value)}.")


def integer(name: str, default: int, *, low: int, high: int) -> int:
    """A whole number within `low` … `high`, both allowed."""
    value = text(name, str(default))
    if re.fullmatch(r"[0-9]{1,12}", value) and low <= int(value) <= high:
        return int(value)
    return _refuse(f"{name} must be a whole number from {low} to {high}, not {_shown(value)}.")


def choice(name: str, default: str, *, of: Sequence[str]) -> str:
    value = text(name, default)
    return value if value in of else _refuse(f"{name} must be one of {', '.join(of)}, not {_shown(value)}.")


def words(name: str, default: Sequence[str] = (), *, each: str = r"\S+") -> tuple[str, ...]:
    """A comma-separated list whose every word matches the pattern `each`."""
    found = tuple(word.strip() for word in text(name, ",".join(default)).split(",") if word.strip())
    odd = next((word for word in found if not re.fullmatch(each, word)), None)
    return found if odd is None else _refuse(f"{name} is a list with commas between; {_shown(odd)} in it is not understood.")


def secrets(name: str) -> tuple[str, ...]:
    """A comma-separated list of keys. They are never shown, not even an odd one."""
    found = tuple(word.strip() for word in text(name).split(",") if word.strip())
    odd = next((place for place, word in enumerate(found, 1) if not re.fullmatch(r"[\x21-\x7e]{1,500}", word)), None)
    return found if odd is None else _refuse(f"{name} is a list of keys with commas between; number {odd} has characters that no key has.")


def prices(name: str) -> dict[str, tuple[int, int]]:
    """What models cost: `model=in/out`, in euros for a million tokens. Gives millionths of a euro for a million tokens."""
    found: dict[str, tuple[int, int]] = {}
    for word in words(name, each=r"[^=]+=[0-9]{1,6}(\.[0-9]{1,6})?/[0-9]{1,6}(\.[0-9]{1,6})?"):
        model, _, price = word.rpartition("=")
        into, _, out = price.partition("/")
        found[model] = int(Decimal(into) * 1_000_000), int(Decimal(out) * 1_000_000)
    return found


def path(name: str, default: Path) -> Path:
    """An absolute path; `~` is understood."""
    return Path(text(name, str(default))).expanduser().absolute()


def url(name: str, default: str = "", *, schemes: Sequence[str]) -> str:
    """An address with one of `schemes`, and with a host unless it is a unix socket. The value is never shown: it may hold a password."""
    value = text(name, default)
    if not value:
        return value
    try:
        parts = urlsplit(value)
        whole = parts.scheme in schemes and (parts.path if parts.scheme == "unix" else parts.hostname) and (parts.port or True)
    except ValueError:
        whole = False
    return value if whole else _refuse(f"{name} must be an address that starts with {' or '.join(f'{scheme}://' for scheme in schemes)}.")


def _shown(value: str) -> str:
    return repr(value if len(value) <= 40 else f"{value[:37]}…")


def _refuse(line: str) -> NoReturn:
    raise OddSetting(line)
