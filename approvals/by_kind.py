"""Warnings that belong to one kind of action: a statement, a command, a payment, a change of a record, a request. Pure.

Each looks where the card of its kind looks, so that what is warned of is what is drawn.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from approvals import money
from approvals.canonical import CanonicalAction, canonical_json, pointer
from approvals.cards import command, http, payment, record, sql
from approvals.findings import LOCK, NOTE, WARN, Facts, Warning

SHELLS = frozenset(
    [
        "sh",
        "bash",
        "dash",
        "ash",
        "zsh",
        "ksh",
        "mksh",
        "fish",
        "csh",
        "tcsh",
        "busybox",
        "cmd",
        "cmd.exe",
        "powershell",
        "powershell.exe",
        "pwsh",
        "eval",
        "source",
    ]
)
READERS = {"python": "-c", "perl": "-e", "ruby": "-e", "node": "-e", "php": "-r", "lua": "-e", "awk": "", "gawk": "", "mawk": ""}
OTHERS = frozenset(["sudo", "doas", "su", "runuser", "pkexec", "setpriv"])
AROUND = (
    frozenset(
        [
            "env",
            "nice",
            "nohup",
            "timeout",
            "time",
            "xargs",
            "stdbuf",
            "setsid",
            "ionice",
            "chroot",
            "flock",
            "watch",
            "command",
            "exec",
            "find",
            "parallel",
        ]
    )
    | OTHERS
)
BEFORE = frozenset(["{", "!", "if", "then", "elif", "else", "while", "until", "do"])  # a shell's own words, before a program's name


def statement(action: CanonicalAction, facts: Facts) -> Iterator[Warning]:
    """SQL that reaches every row, changes the tables themselves, is more than one statement, or can't be read."""
    name = next((each for each in sql.STATEMENT if isinstance(action.arguments.get(each), str)), "")
    if facts.kind != "sql" or not name:
        return
    from approvals import statements  # its parser takes a third of a second to load: only who meets SQL waits for it

    for code, word in statements.findings(action.arguments[name], facts.dialect):
        params: dict[str, str | int] = {"count": int(word)} if word.isdecimal() else {"kind": word} if word else {}
        yield Warning(code, WARN, pointer("arguments", name), params)


def commands(action: CanonicalAction, facts: Facts) -> Iterator[Warning]:
    """A command that a shell takes apart, that runs what it is told to, or that runs as somebody else."""
    name = next((each for each in command.COMMAND if command.is_command(action.arguments.get(each))), "")
    if facts.kind != "command" or not name:
        return
    value, path = action.arguments[name], pointer("arguments", name)
    if isinstance(value, list):
        yield from _literal(value, path)
        words = value
    else:
        if marks := _acted_on(value):
            yield Warning("shell_acts_on", WARN, path, {"shown": marks})
        words = _words(value)
        if not words:
            yield Warning("command_not_read", WARN, path)
    yield from (Warning(code, WARN, path, {"kind": kind}) for code, kind in dict.fromkeys(_programs(words)))


_MARKS = re.compile(r"\$\(|\$\{|&&|\|\||>>|<<|[;|&<>`$*?~(){}\[\]!#\n\r\\]")


def _literal(words: list[str], path: str) -> Iterator[Warning]:
    for i, word in enumerate(words):
        if marks := " ".join(dict.fromkeys(each.strip() or "line end" for each in _MARKS.findall(word))):
            yield Warning("shell_marks", NOTE, path + pointer(i), {"shown": marks})


def _acted_on(text: str) -> str:
    """The marks in a text that a shell acts on: between single quotes none, between double quotes those that begin another text."""
    found: list[str] = []
    quote, at = "", 0
    while at < len(text):
        char = text[at]
        mark = _MARKS.match(text, at)
        if char == "\\" and quote != "'":
            at += 2  # the next character stands for itself
            continue
        if char in "'\"" and quote in ("", char):
            quote = "" if quote else char
        elif mark and (not quote or (quote == '"' and char in "$`")):
            found.append(mark[0])
            at = mark.end()
            continue
        at += 1
    return " ".join(dict.fromkeys(each.strip() or "line end" for each in found))


def _words(text: str) -> list[str]:
    """The words of a line as a shell parts them; what begins another command (; | & a bracket, a line end, `) stands by itself."""
    try:
        words = _read(_parted(text))
    except ValueError:
        return []
    if inner := _substituted(text):
        words += [";", *_read(inner)]
    return words


def _read(text: str) -> list[str]:
    reader = shlex.shlex(text, posix=True, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, ""  # a # in the middle of a word begins no comment; what one hides does no harm
    return list(reader)


_OUTSIDE = re.compile(r"\\\n|\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|[\n`]|[^\\'\"\n`]+|.", re.DOTALL)


def _parted(text: str) -> str:
    """The line with each line end and each ` that stands outside quotes as a semicolon, and joined where a backslash ends a line."""
    pieces = (match[0] for match in _OUTSIDE.finditer(text))
    return "".join(" ; " if piece in ("\n", "`") else "" if piece == "\\\n" else piece for piece in pieces)


def _substituted(text: str) -> str:
    """From the first command that stands between double quotes on, without any quotes: more than is run, and never less."""
    for piece in _OUTSIDE.finditer(text):
        if piece[0][0] == '"' and (mark := re.search(r"(?:[^\\]|^)(?:\\\\)*(\$\(|`)", piece[0], re.DOTALL)):
            rest = text[piece.start() + mark.end() :]
            return re.sub(r"['\"\\]", "", rest.replace("\\\n", "")).replace("`", " ; ").replace("\n", " ; ")
    return ""


def _programs(words: list[str]) -> Iterator[tuple[str, str]]:
    """The programs that a command starts which run others, or as somebody else: the first word, and whatever such a program is given."""
    at_start, given = True, False
    last = {sign: max((i for i, word in enumerate(words) if word.startswith(sign)), default=-1) for sign in filter(None, READERS.values())}
    for i, (word, name) in enumerate(zip(words, map(_name, words), strict=True)):
        after_such, given = given, given or name in AROUND  # whether a word so far starts others, so that the next may be what it starts
        if set(word) <= _PARTING and set(word) & _BEGINS:
            at_start = True
            continue
        if not at_start or _is_redirected(words, i):
            continue
        if name in OTHERS:
            yield "runs_as_another", name
        if name in SHELLS:
            yield "runs_what_it_reads", name
        plain = re.sub(r"[\d.]+$", "", name)
        if plain in READERS and (not READERS[plain] or last[READERS[plain]] > i):
            yield "runs_what_it_reads", plain
        at_start = bool(re.match(r"\w+=", word)) or name in AROUND | BEFORE or after_such


_PARTING, _BEGINS = set(";|&()<>\n"), set(";|&(")


def _name(word: str) -> str:
    return re.split(r"[/\\]", word)[-1].lower()


def _is_redirected(words: list[str], at: int) -> bool:
    """Whether this word says where something is read from or written to, as `2 > errors` before the program's name."""
    number = words[at].isdecimal() and at + 1 < len(words) and _REDIRECTION.fullmatch(words[at + 1])
    return bool(number or _REDIRECTION.fullmatch(words[at]) or (at > 0 and _REDIRECTION.fullmatch(words[at - 1])))


_REDIRECTION = re.compile(r"[<>]+")


def amounts(action: CanonicalAction, facts: Facts) -> Iterator[Warning]:
    """Money beyond a limit, beyond what there is, or that can't be read. None of these can be approved. A limit holds on any card."""
    name = next((each for each in payment.AMOUNT if each in action.arguments), "")
    if not name:
        if facts.limit is not None or (facts.looked and facts.looked.left):
            yield Warning("amount_not_read", LOCK, "")  # it could be any amount
        return
    if facts.kind != "payment" and facts.limit is None:
        return
    path, number = pointer("arguments", name), money.read(action.arguments[name])
    if number is None:
        yield Warning("amount_not_read", LOCK, path)
        return
    if number <= 0:
        yield Warning("amount_not_above_zero", LOCK, path)
    if facts.limit is not None:
        yield from _beyond(action, facts, number, path)
    left = money.read(facts.looked.left) if facts.looked else None
    if left is not None and number > left:
        yield Warning("amount_over_left", LOCK, path)
    if facts.paid_before:
        yield Warning("paid_before", NOTE, path, {"count": facts.paid_before})


def _beyond(action: CanonicalAction, facts: Facts, number: Decimal, path: str) -> Iterator[Warning]:
    limit = facts.limit
    if limit is None:
        return
    if payment.currency_of(action) != limit.currency:
        yield Warning("amount_in_other_currency", LOCK, path, {"shown": limit.currency})
        return
    for code, most, moved in (("amount_over_limit", limit.each, Decimal()), ("amount_over_day", limit.a_day, facts.paid_today)):
        if most and number + moved > Decimal(most):
            yield Warning(code, LOCK, path, {"shown": money.spell(Decimal(most), limit.currency)})


def records(action: CanonicalAction, facts: Facts) -> Iterator[Warning]:
    """A record that has moved on since the agent read it, and fields that do not hold what the agent says."""
    looked = facts.looked
    if facts.kind != "record" or looked is None or looked.record is None:
        return
    version = next((each for each in record.VERSION if each in action.arguments), "")
    if version and looked.version is not None and action.arguments[version] != looked.version:
        yield Warning("record_moved_on", WARN, pointer("arguments", version), {"shown": str(looked.version)})
    before = next((each for each in record.BEFORE if isinstance(action.arguments.get(each), Mapping)), "")
    for key, value in action.arguments[before].items() if before else ():
        if key not in looked.record or not _same(value, looked.record[key]):
            yield Warning("before_is_not_so", WARN, pointer("arguments", before, key))


def _same(one: Any, other: Any) -> bool:
    return canonical_json(one) == canonical_json(other)


_HERE = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?", re.IGNORECASE)


def requests(action: CanonicalAction, facts: Facts) -> Iterator[Warning]:
    """A request that anybody on the way can read, or whose host programs disagree on."""
    name = next((each for each in http.URL if isinstance(action.arguments.get(each), str)), "")
    if facts.kind != "http" or not name:
        return
    url, path = action.arguments[name], pointer("arguments", name)
    host = next((text for kind, text in http.pieces(url) if kind == "host"), "")
    if not host:
        yield Warning("odd_url", WARN, path)
    elif url.lower().startswith("http:") and not _HERE.fullmatch(host):
        yield Warning("plain_http", WARN, path)


def looks(action: CanonicalAction, facts: Facts) -> Iterator[Warning]:
    """Whether what should have been looked up could be."""
    if facts.looked is not None and facts.looked.trouble:
        yield Warning("not_looked_up", WARN, "")


Check = Callable[[CanonicalAction, Facts], Iterator[Warning]]
CHECKS: tuple[Check, ...] = (statement, commands, amounts, records, requests, looks)
