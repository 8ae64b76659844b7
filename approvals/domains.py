"""Domain names that pass for others. `disarm` (MIT, released monthly, Unicode 17) knows the scripts and the confusables of UTS 39;
`confusable-homoglyphs` was last released in January 2024, with the data of Unicode 15.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import disarm

_LONGEST = 253  # RFC 1035
_NEAR = 6  # shorter names are one letter from each other by chance
# scripts that are written together in one word
_TOGETHER = tuple(
    frozenset(scripts) for scripts in (("Han", "Hiragana", "Katakana", "Latin"), ("Han", "Hangul", "Latin"), ("Han", "Bopomofo", "Latin"))
)


@dataclass(frozen=True)
class Doubt:
    """Why a name is not what it seems: `mixed` scripts, a `lookalike`, `near` another, or only `encoded`; and what it passes for."""

    why: str
    passes_for: str = ""


@lru_cache(maxsize=4096)
def _analysed(host: str) -> "disarm.HostnameAnalysis":
    return disarm.is_suspicious_hostname(host, contractions=True)[1]


def doubt(host: str, known: Collection[str]) -> Doubt | None:
    """What is doubtful about a host's name, given names that are known here; None if nothing. Names are in any case, as written."""
    name = host[:_LONGEST].strip().rstrip(".").lower()
    if not name or name in known or any(name.endswith("." + other) for other in known):
        return None
    passes_for = next((other for other in sorted(known) if _skeleton(other) == _skeleton(name)), "")
    if passes_for:
        return Doubt("lookalike", passes_for)
    if not name.isascii() or "xn--" in name:
        found = _by_script(name)
        if found:
            return found
    near = next((other for other in sorted(known) if _is_near(name, other)), "")
    if near:
        return Doubt("near", near)
    return Doubt("encoded", _decoded(name)) if "xn--" in name else None


def _by_script(name: str) -> Doubt | None:
    analysis = _analysed(name)
    if any(len(scripts) > 1 and not any(set(scripts) <= allowed for allowed in _TOGETHER) for scripts in analysis.label_scripts):
        return Doubt("mixed", analysis.canonical)
    *labels, last = name.split(".")
    if last.isascii() and any(analysis.label_whole_script_confusable[: len(labels)]):
        return Doubt("lookalike", analysis.canonical)
    if analysis.has_invisible or analysis.bidi_control or analysis.compat_fold:
        return Doubt("lookalike", analysis.canonical)
    return None


@lru_cache(maxsize=8192)
def _skeleton(name: str) -> str:
    """What a name looks like: look-alike letters and digits folded into one, `rn` into `m`, accents kept."""
    return disarm.skeleton_key(_analysed(_decoded(name)).canonical, digit_policy="tr39")


def _decoded(name: str) -> str:
    return ".".join(map(_label, name.split(".")))


def _label(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return label


def _is_near(name: str, other: str) -> bool:
    if len(other) < _NEAR:
        return False
    if name.startswith(other + ".") or f".{other}." in name or name.startswith(other.replace(".", "-")):
        return True
    if abs(len(name) - len(other)) > 1:
        return False
    return _is_one_step(name, other)


def _is_one_step(a: str, b: str) -> bool:
    """One letter changed, added, left out, or two neighbours swapped."""
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    rest_a, rest_b = a[start:], b[start:]
    if rest_a[1:] == rest_b[1:] or rest_a[1:] == rest_b or rest_a == rest_b[1:]:
        return a != b
    return rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:]


def odd_one(host: str, passes_for: str) -> tuple[int, str]:
    """Where in a host's name, as written, its first character is that another name has another in the place of, and that one's.

    (-1, "") where the two can't be laid side by side: one is longer, or written in another way.
    """
    if len(host) != len(passes_for):
        return -1, ""
    both = enumerate(zip(host.lower(), passes_for.lower(), strict=False))
    return next(((at, there) for at, (here, there) in both if here != there), (-1, ""))


HOST = re.compile(
    r"(?i)\b(?:https?|ftps?|wss?|smtps?|imaps?|ssh|sftp)://(?:(?P<user>[^\s/?#@\"'<>]{0,200})@)?(?P<host>[^\s/?#:@\"'<>\[\]]{1,253})"
)
ADDRESS = re.compile(r"(?<=[^\s@,;<>\"'(])@(?P<host>[^\s@,;<>\"'()\[\]]{1,253})")


def hosts(text: str) -> list[str]:
    """The hosts of the addresses and links in a text, each once, in order."""
    found = [m["host"] for pattern in (ADDRESS, HOST) for m in pattern.finditer(text)]
    return list(dict.fromkeys(host.rstrip(".") for host in found if "." in host or not host.isascii()))
