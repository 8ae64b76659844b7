"""What must not be shown, found in text. One small detector a kind of shape; `find` runs them over every way to read the text.

Shapes of tokens are those that their makers publish. Each pattern has a fixed beginning or a look-behind and bounded repeats, so that
the work stays in proportion to the text. `detect-secrets` was weighed and not taken: it reads files line by line, gives no
positions, keeps its settings in the process and was last released in May 2024.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from artifacts import machinery, money, persons, readings
from artifacts.readings import HIDDEN, View

SECRET, PROMPT, CARD, IBAN, PATH, EMAIL, PHONE = "secret", "prompt", "card", "iban", "path", "email", "phone"
KINDS = (SECRET, PROMPT, CARD, IBAN, PATH, EMAIL, PHONE)  # the first wins where two overlap
_SHORTEST = 3  # characters of the shortest thing there is to find: a@b
MAX_LAYERS = 3  # escapes in escapes, blobs in blobs

Spans = Iterator[tuple[int, int]]


@dataclass(frozen=True, order=True)
class Finding:
    """`text[start:end]` is of this kind."""

    start: int
    end: int
    kind: str


class Detector(Protocol):
    def __call__(self, text: str) -> Spans: ...


def find(text: str, *, kinds: Collection[str] = KINDS, has_marks: bool = False) -> tuple[Finding, ...]:
    """Everything of these kinds in `text`, in order and without overlap, also where it is escaped, broken over lines or encoded.

    With `has_marks` the character `readings.HIDDEN` stands for something that is hidden already; without, it is a character like others.
    """
    if len(text) < _SHORTEST:
        return ()
    return _merged(_layers(text if has_marks else text.replace(HIDDEN, "\ufffd"), frozenset(kinds), 0))


def _layers(text: str, kinds: frozenset[str], depth: int) -> Iterator[Finding]:
    view = readings.folded(text)
    yield from _mapped(view, _read(view.text if view else text, kinds, depth))


def _read(text: str, kinds: frozenset[str], depth: int) -> Iterator[Finding]:
    plain = [Finding(*span, kind) for kind, detector in DETECTORS if kind in kinds for span in detector(text)]
    yield from plain
    if joined := readings.joined(text):
        yield from _over_lines(text, joined, kinds, depth)
    if depth == MAX_LAYERS:
        return
    yield from _in_blobs(text, kinds, depth)
    if undone := readings.unescaped(text):
        yield from _mapped(undone, _layers(undone.text, kinds, depth + 1))


def _over_lines(text: str, joined: View, kinds: frozenset[str], depth: int) -> Iterator[Finding]:
    for kind, detector in (*SHAPES, (SECRET, long_values)):
        if kind in kinds:
            for span in detector(joined.text):
                start, end = joined.source(*span)
                yield Finding(start, _where_it_ends(text, start, end), kind)
    if depth < MAX_LAYERS:
        yield from _mapped(joined, _in_blobs(joined.text, kinds, depth))


def _in_blobs(text: str, kinds: frozenset[str], depth: int) -> Iterator[Finding]:
    for start, end, said in readings.blobs(text):
        first = next(_layers(said, kinds, depth + 1), None)
        if first:
            yield Finding(start, end, first.kind)  # part of a blob cannot be hidden


def _mapped(view: View | None, findings: Iterator[Finding]) -> Iterator[Finding]:
    for f in findings:
        yield Finding(*view.source(f.start, f.end), f.kind) if view else f


def _where_it_ends(text: str, start: int, end: int) -> int:
    """A value that goes on after a line break ends where a next line is an ordinary word: “…d4f0\\nThanks” loses only its first line."""
    for gap in _LINE_BREAK.finditer(text, start, end):
        rest = _WORD.match(text, gap.end())
        if rest and not _TOKEN_LIKE.match(rest[0]) and len(rest[0]) < 16:
            return gap.start()
    return end


_LINE_BREAK = re.compile(r"[ \t]{0,8}\\?\r?\n[ \t>|*#]{0,16}")
_WORD = re.compile(r"[^\s]{1,64}")
_TOKEN_LIKE = re.compile(
    r"(?!\d{1,4}[-./:]\d\d?[-./:]\d|\d{1,3}[.:)]?$)(?:.*?\d|.*?[a-z][A-Z]|.*?[A-Z]{4}|.*?[_+/=])"
)  # but no date, no count


def _merged(findings: Iterator[Finding]) -> tuple[Finding, ...]:
    merged: list[Finding] = []
    for found in sorted(findings):
        if merged and found.start < merged[-1].end:
            last = merged[-1]
            kind = min(last.kind, found.kind, key=KINDS.index)
            merged[-1] = Finding(last.start, max(last.end, found.end), kind)
        elif found.end > found.start:
            merged.append(found)
    return tuple(merged)


# Secrets by their shape

_TOKENS: tuple[tuple[str, str], ...] = (  # what it starts with, and the whole of it
    ("hr_", r"hr_[\w-]{40,64}"),
    ("hrp_", r"hrp_[\w-]{40,64}"),
    ("AKIA", r"AKIA[A-Z0-9]{16}"),
    ("ASIA", r"ASIA[A-Z0-9]{16}"),
    ("ABIA", r"ABIA[A-Z0-9]{16}"),
    ("ACCA", r"ACCA[A-Z0-9]{16}"),
    ("gh", r"gh[opsur]_[A-Za-z0-9]{30,255}"),
    ("github_pat_", r"github_pat_\w{22,255}"),
    ("gl", r"gl(?:pat|ptt|dt|rt|oas|ft|soat|imt|agent|cbt)-[\w.-]{16,255}"),
    ("xox", r"xox[a-z](?:\.xox[a-z])?-[\w-]{10,255}"),
    ("xapp-", r"xapp-[\w-]{10,255}"),
    ("hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{10,255}"),
    ("discord", r"discord(?:app)?\.com/api/webhooks/[\w/-]{20,255}"),
    ("_live_", r"(?:sk|rk|pk)_live_[A-Za-z0-9]{8,255}"),
    ("_test_", r"(?:sk|rk|pk)_test_[A-Za-z0-9]{8,255}"),
    ("whsec_", r"whsec_[A-Za-z0-9+/=_-]{16,255}"),
    ("AIza", r"AIza[\w-]{35}"),
    ("GOCSPX-", r"GOCSPX-[\w-]{20,64}"),
    ("ya29.", r"ya29\.[\w-]{20,2048}"),
    ("1//0", r"1//0[\w-]{30,512}"),
    ("sk-", r"sk-[A-Za-z0-9][\w-]{18,255}"),
    ("xai-", r"xai-[A-Za-z0-9]{20,255}"),
    ("gsk_", r"gsk_[A-Za-z0-9]{20,255}"),
    ("hf_", r"hf_[A-Za-z0-9]{30,64}"),
    ("r8_", r"r8_[A-Za-z0-9]{30,64}"),
    ("npm_", r"npm_[A-Za-z0-9]{36}"),
    ("pypi-", r"pypi-[\w-]{50,512}"),
    ("dckr_", r"dckr_(?:pat|oat)_[\w-]{20,128}"),
    ("_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    ("SG.", r"SG\.[\w-]{16,64}\.[\w-]{16,128}"),
    ("key-", r"key-[0-9a-f]{32}"),
    ("SK", r"SK[0-9a-f]{32}"),
    ("shp", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("sq0", r"sq0(?:atp|csp|idp)-[\w-]{22,64}"),
    ("EAAA", r"EAAA[\w-]{56,128}"),
    ("glc_", r"gl(?:c|sa)_[\w+/=-]{32,255}"),
    ("lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    ("ntn_", r"ntn_[A-Za-z0-9]{40,64}"),
    ("hv", r"hv[sbr]\.[\w-]{24,300}"),
    ("dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    ("NRAK-", r"NRAK-[A-Z0-9]{27}"),
    ("AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    (":AA", r"\d{8,10}:AA[\w-]{32,36}"),
    ("eyJ", r"eyJ[\w-]{8,8192}\.[\w-]{2,8192}(?:\.[\w-]{0,8192}){0,3}"),
    ("$2", r"\$2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}"),
    ("$argon2", r"\$argon2(?:id|i|d)\$(?:v=\d+\$)?[\w=,]{5,80}\$[\w+/.-]{8,128}\$[\w+/.-]{8,255}"),
    ("$6$", r"\$6\$[\w$=./]{20,160}"),
    ("$5$", r"\$5\$[\w$=./]{20,160}"),
)
_COMPILED = tuple((start, re.compile(rf"(?<![A-Za-z0-9_]){whole}" if start[0].isalnum() else whole)) for start, whole in _TOKENS)


def tokens(text: str) -> Spans:
    """Keys that carry their maker's mark: of clouds, code hosts, chats, payments and models; JWTs, password hashes, our own keys."""
    for start, whole in _COMPILED:
        if start in text:
            for match in whole.finditer(text):
                yield match.span()


def private_keys(text: str) -> Spans:
    """PEM, OpenSSH, PGP and PuTTY private keys, from their first line to their last; to the end of the text if the last is missing."""
    at = 0
    if "PRIVATE KEY" not in text and "PuTTY" not in text:
        return
    while begin := _KEY_BEGINS.search(text, at):
        end = _KEY_ENDS.search(text, begin.end())
        at = end.end() if end else len(text)
        yield begin.start(), at


_KEY_BEGINS = re.compile(r"-{2,5}\s?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?\s?-{2,5}|PuTTY-User-Key-File-\d")
_KEY_ENDS = re.compile(r"-{2,5}\s?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?\s?-{2,5}|Private-MAC: {0,4}[0-9a-f]{40,64}")


def url_credentials(text: str) -> Spans:
    """The `user:password` of `scheme://user:password@host`."""
    if "://" in text and "@" in text:
        for match in _URL_USER.finditer(text):
            yield match.span(1)


_URL_USER = re.compile(r"(?<=[A-Za-z0-9]://)([^\s/@:\"'<>]{0,200}:(?!\d{1,5}/)[^\s\"'<>]{1,300})@")


# Secrets by the word in front of them

_STRONG = (
    r"pass[ _-]?(?:word|wd|phrase|code)s?|passwort|kennwort|contraseña|contrasena|senha|palavra-passe|mot de passe|hasło|wachtwoord|"
    r"lösenord|пароль|密码|密碼|パスワード|비밀번호|secret|"
    r"(?:api|access|account|private|signing|encryption|master|shared)[ _-]?key(?:[ _-]?id)?|"
    r"(?:auth|access|refresh|id|session|bot|bearer|csrf|security)[ _-]?token|"
    r"session[ _-]?(?:id|key)|connection[ _-]?string|x-amz-(?:signature|credential|security-token)"
)
_WEAK = r"(?<![A-Za-z])(?:pass|pwd|token|credentials|sig|signature|jwt|hmac|otp|pin|tan|cvv2?|cvc2?)"
_LINE = r"(?:(?<![A-Za-z])(?:proxy-)?authorization|(?<![A-Za-z])(?:set-)?cookie)"
_SEPARATOR = r"""["'`\])]{0,2}[ \t]{0,4}(?:=>|:=|={1,2}|:|\|)\s{0,4}"""
_QUOTED = r""""(?P<double>(?:[^"\\\n]|\\.){1,4096})"|'(?P<single>(?:[^'\\\n]|\\.){1,4096})'|`(?P<tick>[^`\n]{1,4096})`"""
# the value stands on the next line; it is looked at and not passed over, for what another name's value takes in may end with this name
_BELOW = r"""["'`\])]{0,2}[ \t]{0,4}(?:=>|:=|={1,2}|:|\|)[ \t]{0,4}\r?\n[ \t>|*#]{0,8}"""
_BARE = r"""(?P<bare>[^\s"'`<>;&|][^\s"'<>;&|]{0,4095})"""


def pairs(text: str) -> Spans:
    """The value in `password=…`, `"secret": "…"`, `--api-key …`, `Authorization: …`, `<password>…</password>`; also in other languages."""
    lowered = readings.lowered(text)
    there = {needle for needle in _ALL_NEEDLES if needle in lowered}
    for pattern, needles, holds in _PAIRS if there else ():
        if not needles.isdisjoint(there):
            for match in pattern.finditer(text):
                start, end = _value_in(match)
                if holds(text[start:end]):
                    yield start, end


def _value_in(match: re.Match[str]) -> tuple[int, int]:
    start, end = match.span(match.lastgroup or 0)
    if match.lastgroup == "bare":
        end = start + len(match["bare"].rstrip(",.)]}\\"))
    return start, end


def _is_value(value: str) -> bool:
    """Not an empty word, a variable's name, a structure, or something that is hidden already."""
    return bool(value) and not _NO_VALUE.match(value) and HIDDEN not in value


_NO_VALUE = re.compile(
    r"(?:null|none|nil|true|false|undefined|required|optional|string)\b|\$\{|\{\{|\{|\[|\*{2,}|%\(|<|\[[\w -]{1,20} hidden\]", re.IGNORECASE
)


def _is_long_value(value: str) -> bool:
    return _is_value(value) and (len(value) >= 8 or any(c.isdigit() for c in value))


def _is_odd_value(value: str) -> bool:
    """What nobody writes after “the password is” unless it is one."""
    return _is_value(value) and len(value) >= 4 and not value.isalpha()


_Pair = tuple[re.Pattern[str], frozenset[str], Callable[[str], bool]]


def _pair(pattern: str, needles: str, holds: Callable[[str], bool] = _is_value) -> _Pair:
    """A pattern that is only tried if one of the needles is in the text."""
    return re.compile(pattern, re.IGNORECASE), frozenset(needles.split()), holds


_NEEDLES = (
    "pass kennwort contrase senha hasło wachtwoord lösenord пароль 密 パスワード 비밀번호 secret key token session connection x-amz pwd"
)
_ANY = rf"(?:{_STRONG}|(?<![A-Za-z])(?:token|pwd|pin|tan))"
_IS = r"(?:is|was|ist|lautet|est|es|è|é)(?:[ \t]{1,4}|[ \t]{0,4}\r?\n[ \t>]{0,8})"
_PAIRS: tuple[_Pair, ...] = (
    _pair(rf"(?:{_STRONG})\d{{0,2}}{_SEPARATOR}(?:{_QUOTED}|{_BARE})", _NEEDLES),
    _pair(rf"{_WEAK}\d{{0,2}}{_SEPARATOR}(?:{_QUOTED}|{_BARE})", "pass pwd token cred sig jwt hmac otp pin tan cv", _is_long_value),
    _pair(rf"{_LINE}{_SEPARATOR}(?:{_QUOTED}|(?P<bare>[^\s\"'<>][^\n\"'<>]{{0,8191}}))", "authorization cookie"),
    _pair(rf"(?:{_STRONG})\d{{0,2}}{_BELOW}(?={_BARE})", _NEEDLES),
    _pair(rf"{_WEAK}\d{{0,2}}{_BELOW}(?={_BARE})", "pass pwd token cred sig jwt hmac otp pin tan cv", _is_long_value),
    _pair(rf"{_LINE}{_BELOW}(?=(?P<bare>[^\s\"'<>][^\n\"'<>]{{0,8191}}))", "authorization cookie"),
    _pair(rf"--?{_ANY}[ \t]{{1,4}}(?:{_QUOTED}|{_BARE})", _NEEDLES + " pin tan"),
    _pair(rf"{_ANY} {{1,2}}{_IS}(?:{_QUOTED}|{_BARE})", _NEEDLES + " pin tan", _is_odd_value),
    _pair(rf"<[\w:.-]{{0,40}}{_ANY}[\w:.-]{{0,20}}(?: [^<>]{{0,200}})?>(?P<bare>[^<]{{1,4096}})<", _NEEDLES + " pin tan"),
    _pair(r"\b(?:bearer|basic|apikey) {1,2}(?P<bare>[A-Za-z0-9._~+/=-]{12,8192})", "bearer basic apikey", _is_long_value),
)
_ALL_NEEDLES = frozenset[str]().union(*(needles for _, needles, _ in _PAIRS))


def long_values(text: str) -> Spans:
    """Of `pairs` those that are so long that a line may have ended within them."""
    return ((start, end) for start, end in pairs(text) if end - start >= _BREAKS)


_BREAKS = 12


def random_after_keyword(text: str) -> Spans:
    """A long random-looking value shortly after a word such as “key”, “auth” or “signature”."""
    lowered = readings.lowered(text)
    for match in _AFTER_KEYWORD.finditer(text) if any(word in lowered for word in _KEYWORDS) else ():
        value = match["value"]
        if not _UUID.fullmatch(value) and _is_random(value):
            yield match.span("value")


_KEYWORDS = ("key", "token", "auth", "cred", "signature", "secret")
_AFTER_KEYWORD = re.compile(
    r"(?i:key|token|auth\w{0,10}|cred\w{0,9}|signature|secret)[^\w\n]{1,8}(?P<value>[A-Za-z0-9+/_.~-]{20,512}={0,2})(?![A-Za-z0-9+/_-])"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _is_random(value: str) -> bool:
    """Letters and digits that change places often: in words, dates and numbers of things they come in stretches."""
    kinds = [0 if c.isdigit() else 1 if c.islower() else 2 for c in value if c.isalnum()]
    changes = sum(a != b for a, b in pairwise(kinds))
    return 0 in kinds and max(kinds, default=0) > 0 and changes >= len(value) / 5 and len(set(value)) >= 10


# Places on a machine

_ROOTS = (
    "home|Users|root|var|tmp|etc|opt|usr|srv|mnt|media|private|proc|sys|dev|run|boot|lib|Library|Volumes|Applications|app|apps|code|data|"
    "work|workspace|workspaces|workdir|repo|repos|src|build|github|nix|snap|sbin|bin|host|config|secrets|app_data|storage|sdcard"
)
_QUOTES = "\"'`\u00ab\u00bb\u2018-\u201f"
_STEP = rf"(?:[^\s{_QUOTES}<>|:;,()\[\]{{}}\x00-\x1f]|[ ](?=[^\s/\\{_QUOTES}<>|:;,]{{1,40}}[/\\]))"
_UNIX = re.compile(
    rf"(?:(?<![\w./~\\:-])|(?<!:/)(?<=/)(?=/))(?:~\w{{0,32}}/|\$HOME/|\$\{{HOME\}}/|/(?:{_ROOTS})/)(?!/){_STEP}{{0,1024}}|(?<![\w./~-])/(?:etc/passwd|root|tmp)(?![\w/])"
)
_WINDOWS = re.compile(
    rf"(?<![A-Za-z0-9])[A-Za-z]:(?:\\{{1,4}}|/)(?![/\s]){_STEP}{{1,1024}}|%(?:APPDATA|LOCALAPPDATA|USERPROFILE|TEMP|PROGRAMDATA|HOMEPATH)%{_STEP}{{0,1024}}",
    re.I,
)
_UNC = re.compile(rf"(?<![\\\w:])\\{{2,4}}[\w.?-]{{1,255}}\\{{1,2}}{_STEP}{{1,1024}}")
_FILE_URL = re.compile(rf"(?<![A-Za-z0-9])(?:file|vscode-remote|vscode-local):/{{1,3}}[^\s{_QUOTES}<>,()\[\]{{}}]{{1,1024}}", re.IGNORECASE)


def paths(text: str) -> Spans:
    """Paths of a machine: Unix from a known root or a home, Windows drives, shares, `file:` addresses."""
    for pattern, needles in ((_UNIX, ("/",)), (_WINDOWS, (":\\", ":/", "%")), (_UNC, ("\\",)), (_FILE_URL, (":/",))):
        if any(needle in text for needle in needles):
            for match in pattern.finditer(text):
                yield match.start(), match.start() + len(match[0].rstrip(" .!?"))


# A kind may have many detectors. SHAPES know where their value ends by its own shape, so that they can be tried over a line break.
SHAPES: tuple[tuple[str, Detector], ...] = ((SECRET, tokens), (SECRET, private_keys), (IBAN, money.ibans))
DETECTORS: tuple[tuple[str, Detector], ...] = (
    *SHAPES,
    (SECRET, url_credentials),
    (SECRET, pairs),
    (SECRET, random_after_keyword),
    (PROMPT, machinery.values),
    (CARD, money.cards),
    (PATH, paths),
    (EMAIL, persons.emails),
    (PHONE, persons.phones),
)
