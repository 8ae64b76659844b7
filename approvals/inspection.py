"""Warnings for what eyes miss in an exact action. Pure: what is known outside of the action comes in as facts.

`lock` locks Approve, `warn` is said beside the thing, `note` is there to read. A warning's path is an RFC 6901 pointer into the
canonical action. Its parameters hold counts, code points, kinds and names of hosts, and never what an argument says: they are stored
where the argument itself must not be.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from access import characters
from access.ids import as_uuid
from approvals import by_kind, domains, letters, sniffing
from approvals.canonical import CanonicalAction, pointer
from approvals.cards import email
from approvals.findings import LOCK, NOTE, SEVERITIES, WARN, Facts, Warning
from approvals.warning_words import WORDS, words
from artifacts import detectors, markup, structured
from artifacts.detectors import CARD, IBAN, PATH, SECRET

__all__ = ["CHECKS", "LOCK", "NOTE", "SEVERITIES", "WARN", "WORDS", "Facts", "Warning", "inspect", "words"]

LARGE = 10 * 1024 * 1024  # bytes of attachments that many mail servers refuse
MANY = 20  # recipients
MAX_WARNINGS = 200
_READ_FOR_SECRETS = 256 * 1024  # of a text attachment
_CODES_SHOWN = 5


def inspect(action: CanonicalAction, *, facts: Facts) -> tuple[Warning, ...]:
    """Everything that should be said about an action, the gravest first, then in the order of the paths. At most MAX_WARNINGS."""
    told: dict[str, bool] = {}  # of this one action: nothing of it may stay in memory
    found = dict.fromkeys(_hashable(warning, told) for check in CHECKS for warning in check(action, facts))
    warnings = [Warning(code, severity, path, dict(params)) for code, severity, path, params in found]
    return tuple(sorted(warnings, key=lambda w: (SEVERITIES.index(w.severity), w.path, w.code))[:MAX_WARNINGS])


def _hashable(warning: Warning, told: dict[str, bool]) -> tuple[str, str, str, tuple[tuple[str, str | int], ...]]:
    return warning.code, warning.severity, _without_secrets(warning.path, told), tuple(warning.params.items())


def _without_secrets(path: str, told: dict[str, bool]) -> str:
    """The path up to the first key that is itself something to hide."""
    steps = path.split("/")
    hidden = next((i for i, step in enumerate(steps) if _is_sensitive(step, told)), len(steps))
    return "/".join(steps[:hidden])


def _is_sensitive(key: str, told: dict[str, bool]) -> bool:
    if key not in told:
        told[key] = bool(detectors.find(key, kinds=_VALUES))
    return told[key]


# The texts of an action


def _texts(action: CanonicalAction) -> Iterator[tuple[str, str]]:
    """Every text with its path. An address that stands in an argument is not looked at again among the recipients."""
    rich = pointer("arguments", email.html_name(action.arguments))
    inside = [(path, _unescaped(text) if path == rich else text) for path, text in _within(action.arguments, pointer("arguments"))]
    yield from inside
    said = " ".join(text for _, text in inside)
    yield from ((pointer("recipients", i), text) for i, text in enumerate(action.recipients) if text not in said)
    for i, attachment in enumerate(action.attachments):
        yield pointer("attachments", i, "name"), attachment.name
        yield pointer("attachments", i, "media_type"), attachment.media_type
    yield from ((pointer(name), getattr(action, name)) for name in ("tool", "target", "credential"))


def _unescaped(source: str) -> str:
    """HTML with the characters that it spells: `&#8238;` turns text around as the character itself does."""
    return html.unescape(source.replace("&nbsp;", " ")) if "&" in source else source


def _within(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield path + pointer(key), key
            yield from _within(item, path + pointer(key))
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _within(item, path + pointer(i))


# Characters

_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_USUAL = frozenset("\u200c\u200d\u200e\u200f\u061c\u00a0\u202f\u2007\u2009\u200a\u3000\u00ad")  # scripts, emoji and typesetters need them


def unseen_characters(action: CanonicalAction, facts: Facts) -> Iterator[Warning]:
    """Controls, bidirectional overrides, tags, and whatever else cannot be seen, anywhere."""
    for path, text in _texts(action):
        hidden = [run for part in characters.parts(text) if not isinstance(part, str) for run in part]
        for code, severity, is_such in _UNSEEN:
            such = [run for run in hidden if is_such(run.char)]
            hidden = [run for run in hidden if not is_such(run.char)]
            if such:
                codes = " ".join(list(dict.fromkeys(run.code for run in such))[:_CODES_SHOWN])
                yield Warning(code, severity, path, {"count": sum(run.count for run in such), "codes": codes})


_UNSEEN: tuple[tuple[str, str, Callable[[str], bool]], ...] = (
    ("bidi_characters", WARN, _BIDI.__contains__),
    ("tag_characters", WARN, lambda char: 0xE0000 <= ord(char) <= 0xE007F),
    ("control_characters", WARN, lambda char: ord(char) < 32 or 0x7F <= ord(char) < 0xA0),
    ("special_spaces", NOTE, _USUAL.__contains__),
    ("invisible_characters", WARN, lambda char: True),
)


# Addresses and links


def doubtful_hosts(action: CanonicalAction, facts: Facts) -> Iterator[Warning]:
    """Names of hosts, in addresses and links, that pass for others."""
    known = _known_domains(facts)
    for path, text in _texts(action):
        for host in domains.hosts(text):
            doubt = domains.doubt(host, known)
            if doubt:
                code, severity = _DOUBTS[doubt.why]
                yield Warning(code, severity, path, {"passes_for": doubt.passes_for[:253], **_odd(host, doubt)})


def names_hosts(action: CanonicalAction) -> bool:
    """Whether any name of a host stands in it: only then it matters which ones are known."""
    return any(True for _, text in _texts(action) for _ in domains.hosts(text))


def _odd(host: str, doubt: domains.Doubt) -> dict[str, int | str]:
    """The character by which a host's name differs from what it passes for: its code, and if they can be laid side by side, its place
    and the code of what the other name has there."""
    at, there = domains.odd_one(host, doubt.passes_for) if doubt.why in ("lookalike", "mixed") else (-1, "")
    if at >= 0:
        return {"char": f"U+{ord(host[at]):04X}", "at": at, "instead": f"U+{ord(there):04X}"}
    odd = next((char for char in host if not char.isascii()), "")
    return {"char": f"U+{ord(odd):04X}"} if odd else {}


_DOUBTS = {
    "lookalike": ("lookalike_domain", WARN),
    "mixed": ("mixed_script_domain", WARN),
    "near": ("similar_domain", WARN),
    "encoded": ("encoded_domain", NOTE),
}


def _known_domains(facts: Facts) -> frozenset[str]:
    addresses = facts.known_addresses or frozenset()
    named = {domain.lower().rstrip(".") for domain in facts.internal_domains | facts.known_domains}
    return frozenset(named | {_domain(address) for address in addresses}) - {""}


def misleading_links(action: CanonicalAction, facts: Facts) -> Iterator[Warning]:
    """Links that show one host and go to another, or that hide the host behind a name and @."""
    for path, text in _texts(action):
        if any(m["user"] and "." in m["user"].partition(":")[0] for m in domains.HOST.finditer(text)):
            yield Warning("link_hides_host", WARN, path)
        for pattern in _LINKS:
            if any(_misleads(m["shown"], m["to"]) for m in pattern.finditer(text)):
                yield Warning("link_goes_elsewhere", WARN, path)
    name = email.html_name(action.arguments)
    if name and any(_misleads(link.shown, link.to) for link in markup.read(action.arguments[name]).links):
        yield Warning("link_goes_elsewhere", WARN, pointer("arguments", name))


_LINKS = (
    re.compile(
        r"<a\s[^<>]{0,300}?href\s{0,4}=\s{0,4}[\"']?(?P<to>[^\s\"'<>]{1,2000})[^<>]{0,300}>(?P<shown>[^<>]{1,500})</a", re.IGNORECASE
    ),
    re.compile(r"(?<!!)\[(?P<shown>[^\[\]\n]{1,300})\]\((?P<to>[^\s()]{1,2000})\)"),
)
_SHOWN_HOST = re.compile(r"(?i)^\s*(?:https?://)?((?:[\w-]{1,63}\.){1,8}[a-z\u0080-\U0010ffff]{2,63})(?=[/:?#\s]|$)")


def _misleads(shown: str, to: str) -> bool:
    return bool(_host(shown)) and not _same_site(_host(shown), _host(to))


def _host(text: str) -> str:
    match = _SHOWN_HOST.match(text)
    return match[1].lower().removeprefix("www.") if match else ""


def _same_site(shown: str, to: str) -> bool:
    return not to or shown == to or to.endswith("." + shown)


# Recipients


def recipients(action: CanonicalAction, facts: Facts) -> Iterator[Warning]:
    """Addresses outside, addresses never written to before, addresses that are more than one, and crowds."""
    for i, text in enumerate(action.recipients):
        path, address = pointer("recipients", i), _bare(text)
        if "@" not in address:
            continue
        if not _is_plain(address):
            yield Warning("odd_address", WARN, path)
        if not _is_inside(_domain(address), facts.internal_domains):
            yield Warning("external_recipient", NOTE, path)
        if facts.known_addresses is not None and address.lower() not in facts.known_addresses:
            yield Warning("first_time_recipient", NOTE, path)
    if len(set(action.recipients)) < len(action.recipients):
        yield Warning("recipient_twice", NOTE, pointer("recipients"))
    if len(action.recipients) > MANY:
        yield Warning("many_recipients", WARN, pointer("recipients"), {"count": len(action.recipients)})


def is_outside(text: str, internal: frozenset[str]) -> bool:
    """Whether an address is outside, or not plainly one address inside."""
    return not (_is_plain(_bare(text)) and _is_inside(_domain(text), internal))


def _bare(text: str) -> str:
    angle = re.search(r"<([^<>]*)>\s*$", text)
    return (angle[1] if angle else text).strip()


def _is_plain(address: str) -> bool:
    """One mailbox, and nothing in it that a mail server could read as a second one, a route or a command."""
    return re.fullmatch(r"[^\s@\"'<>(),:;\\\[\]%!|]{1,64}@[^\s@\"'<>(),:;\\%!|]{1,253}", address) is not None


def _domain(address: str) -> str:
    return _bare(address).rpartition("@")[2].strip().rstrip(".").lower()


def _is_inside(domain: str, internal: frozenset[str]) -> bool:
    return any(domain == own.lower() or domain.endswith("." + own.lower()) for own in internal)


# Attachments


def attachments(action: CanonicalAction, facts: Facts) -> Iterator[Warning]:
    """Files that run, hold macros, are locked, hold such files, are not what they are called, or are large."""
    for i, attachment in enumerate(action.attachments):
        path, content = pointer("attachments", i), facts.contents.get(attachment.commitment)
        sniffed = sniffing.sniff(content) if content is not None else None
        yield from (
            Warning(code, severity, path, params) for code, severity, params in _about_file(attachment.name, attachment.media_type, sniffed)
        )
        if attachment.size > LARGE:
            yield Warning("large_attachment", WARN, path, {"bytes": attachment.size})
        if content is None:
            yield Warning("attachment_not_read", NOTE, path)
    total = sum(attachment.size for attachment in action.attachments)
    if total > LARGE and all(attachment.size <= LARGE for attachment in action.attachments):
        yield Warning("large_attachments", WARN, pointer("attachments"), {"bytes": total})


def _about_file(name: str, media_type: str, sniffed: sniffing.Sniffed | None) -> Iterator[tuple[str, str, dict[str, str | int]]]:
    suffixes = sniffing.extensions(name)
    last = suffixes[-1] if suffixes else ""
    if re.search(r"[/\\]|^\.{1,2}$|[:*?\"<>|]", name):
        yield "attachment_name_is_path", WARN, {}
    if last in sniffing.RUNNABLE or (sniffed and sniffed.runs):
        yield "executable_attachment", WARN, {"kind": sniffed.kind if sniffed and sniffed.runs else last}
    if len(suffixes) > 1 and last in sniffing.RUNNABLE and suffixes[-2] not in sniffing.RUNNABLE:
        yield "double_extension", WARN, {"shown": suffixes[-2], "real": last}
    if last in sniffing.MACROS or (sniffed and sniffed.macros):
        yield "macros_in_attachment", WARN, {}
    if sniffed is None:
        return
    if sniffed.locked:
        yield "locked_attachment", WARN, {"kind": sniffed.kind}
    if sniffed.active:
        yield "active_attachment", WARN, {"kind": sniffed.kind}
    if sniffed.holds:
        yield "archive_holds_executable", WARN, {"kind": sniffing.extensions(sniffed.holds)[-1]}
    if not sniffing.agrees(sniffed.kind, name, media_type):
        yield "attachment_is_something_else", WARN, {"kind": sniffed.kind}


# Values


def sensitive_values(action: CanonicalAction, facts: Facts) -> Iterator[Warning]:
    """What must not leave in an argument: a secret locks; cards, accounts and local paths are said."""
    ours = action.nonce if as_uuid(action.nonce) else ""
    for path, text in _texts(action):
        # a number that we made, as that of a message: of some thousands one has the digits of a card by chance
        text = text.replace(ours, " … ") if ours else text
        for kind in dict.fromkeys(found.kind for found in detectors.find(text, kinds=_VALUES)):
            code, severity = _VALUES[kind]
            yield Warning(code, severity, path)
    yield from (Warning("secret", LOCK, path) for path in _under_secret_keys(action.arguments, pointer("arguments")))
    for i, attachment in enumerate(action.attachments):
        content = facts.contents.get(attachment.commitment, b"")[:_READ_FOR_SECRETS]
        if sniffing.sniff(content).kind in ("text", "script") and detectors.find(content.decode("utf-8", "replace"), kinds=(SECRET,)):
            yield Warning("secret_in_attachment", LOCK, pointer("attachments", i))


_VALUES = {SECRET: ("secret", LOCK), CARD: ("card_number", WARN), IBAN: ("bank_account", NOTE), PATH: ("local_path", WARN)}


def _under_secret_keys(value: Any, path: str, secret: bool = False) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _under_secret_keys(item, path + pointer(key), secret or structured.kind_of_key(key) == SECRET)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _under_secret_keys(item, path + pointer(i), secret)
    elif secret and value and not isinstance(value, bool):
        yield path


# The same again


def repeats(action: CanonicalAction, facts: Facts) -> Iterator[Warning]:
    """The same thing was done before in this run, or was refused before."""
    if facts.executed_same:
        yield Warning("repeat_of_executed", WARN, "", {"count": facts.executed_same})
    if facts.rejected_same:
        yield Warning("repeat_of_rejected", WARN, "", {"count": facts.rejected_same})


Check = Callable[[CanonicalAction, Facts], Iterator[Warning]]
CHECKS: tuple[Check, ...] = (
    unseen_characters,
    doubtful_hosts,
    misleading_links,
    recipients,
    attachments,
    sensitive_values,
    repeats,
    *by_kind.CHECKS,
    *letters.CHECKS,
)
