"""SQL, read by a parser: its lines for people, and what in it deserves a warning. Pure.

What the parser cannot read is said to be unread, never taken to be harmless: a database may read it all the same.
"""

import logging
from collections.abc import Iterator

from sqlglot import exp, parse, tokenize
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokens import Token, TokenType

logging.getLogger("sqlglot").disabled = True  # it would write what it can't read, values and all, into the log
LONGEST = 20_000  # characters of a statement that are read
_NOT_WORDS = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER}
_MARKS = {TokenType.PLACEHOLDER, TokenType.PARAMETER, TokenType.COLON}  # what stands for a value: ?, $1, :name


def lines(text: str, dialect: str, *, plain: bool = False) -> tuple[tuple[tuple[str, str], ...], ...]:
    """The statement line by line, in pieces: `b` for the language's own words, `i` for comments. Joined they are the text again."""
    if plain:
        return ((("", text),),)
    found: list[list[tuple[str, str]]] = [[]]
    for kind, piece in _pieces(text, dialect):
        for i, part in enumerate(piece.split("\n")):
            if i:
                found[-1].append(("", "\n"))
                found.append([])
            if part:
                found[-1].append((kind if part.strip() else "", part))
    return tuple(tuple(line) for line in found)


def _pieces(text: str, dialect: str) -> Iterator[tuple[str, str]]:
    at, marked = 0, False
    for token in _tokens(text, dialect):
        if token.start < at:
            continue
        if token.start > at:
            between = text[at : token.start]
            yield "i" if between.strip() else "", between
            marked = False
        written = text[token.start : token.end + 1]
        is_mark = token.token_type in _MARKS
        is_word = token.token_type not in _NOT_WORDS and written[:1].isalpha()
        yield "b" if is_mark or marked or is_word else "", written
        marked = is_mark
        at = token.end + 1
    if at < len(text):
        rest = text[at:]
        yield "i" if at and rest.strip() else "", rest


def _tokens(text: str, dialect: str) -> list[Token]:
    if len(text) > LONGEST:
        return []
    try:
        return tokenize(text, read=dialect or None)
    except (SqlglotError, ValueError, RecursionError):
        return []


SHAPE = {exp.Create: "CREATE", exp.Drop: "DROP", exp.Alter: "ALTER", exp.TruncateTable: "TRUNCATE"}  # changes what holds data, not data
DATA = (exp.Query, exp.Insert, exp.Update, exp.Delete, exp.Merge)  # what else is known well enough to say what it reaches


def findings(text: str, dialect: str) -> tuple[tuple[str, str], ...]:
    """What deserves a warning, as (code, word). The word says which, or how many; it is the language's own and never from a value."""
    try:
        if len(text) > LONGEST:
            return (("sql_not_read", ""),)
        read = [each for each in parse(text, read=dialect or None, error_level=ErrorLevel.IMMEDIATE) if each is not None]
    except (SqlglotError, ValueError, RecursionError):
        return (("sql_not_read", ""),)
    found = [] if read else [("sql_not_read", "")]
    found += [("sql_many", str(len(read)))] if len(read) > 1 else []
    for statement in read:
        found += _of(statement)
    return tuple(dict.fromkeys(found))


def _of(statement: exp.Expression) -> Iterator[tuple[str, str]]:
    if not isinstance(statement, (*DATA, *SHAPE)):
        yield "sql_not_read", ""
    for node in statement.walk():
        if type(node) in SHAPE:
            yield "sql_changes_shape", SHAPE[type(node)]
        elif isinstance(node, exp.Update | exp.Delete):
            yield from _reach(node)


def _reach(node: exp.Expression) -> Iterator[tuple[str, str]]:
    """How far an UPDATE or DELETE reaches."""
    where = node.args.get("where")
    if where is None:
        yield "sql_without_where", node.key.upper()
    elif _always_true(where.this):
        yield "sql_always_true", node.key.upper()


def _always_true(condition: exp.Expression) -> bool:
    """A condition that looks at no column chooses no rows: 1 = 1, 'a' LIKE '%'. Of an OR, one such side is enough."""
    inner = condition.unnest()
    if isinstance(inner, exp.Or):
        return _always_true(inner.left) or _always_true(inner.right)
    if isinstance(inner, exp.And):
        return _always_true(inner.left) and _always_true(inner.right)
    return not any(isinstance(node, exp.Column | exp.Query | exp.Placeholder | exp.Parameter) for node in inner.walk())
