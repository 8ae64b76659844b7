"""A command of the machine: the program and each of its arguments on a line of its own, so that no quoting can hide where one ends."""

from typing import Any

from approvals.canonical import CanonicalAction, pointer
from approvals.cards.drawing import attachments, how, reaching, rest, running, sum_of, warns_at
from approvals.cards.parts import Card, Code, Piece, Setting

COMMAND = ("command", "argv", "cmd")  # a list is run as it is; a text is read by a shell


def draw(action: CanonicalAction, setting: Setting) -> Card:
    """The command line by line, and where and how it runs."""
    left = dict(action.arguments)
    name = next((each for each in COMMAND if is_command(left.get(each))), "")
    value = left.pop(name) if name else None
    code = _code(setting, name, value) if name else None
    return Card(
        kind="command",
        icon="tool",
        heading="" if code else setting.title,
        tool=action.tool,
        fields=(),
        letter=None,
        code=code,
        options=tuple(reaching(action, setting, list(rest(setting, left)))),
        files=attachments(action, setting),
        folded=how(action),
        lines=(running(action),),
        raw=dict(action.arguments),
        unit="command",
        verb="run",
        facts=sum_of((len(value) - 1, "argument")) if isinstance(value, list) else "",
        known=(("Read by", "No shell: each line is taken as it is" if isinstance(value, list) else "A shell"),) if code else (),
    )


def is_command(value: Any) -> bool:
    """A text that a shell would read, or a program with its arguments."""
    return isinstance(value, str) and bool(value) or isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)


def _code(setting: Setting, name: str, value: str | list[str]) -> Code:
    path = pointer("arguments", name)
    words = value if isinstance(value, list) else [value]
    lines: list[tuple[Piece, ...]] = [(("", word),) for word in words]
    if isinstance(value, list) and not setting.masked:
        lines[0] = (("b", words[0]),)
    return Code(path, "The command", name, value, tuple(lines), numbered=isinstance(value, list), warns=warns_at(setting, path))
