"""Anything that has no card of its own."""

from approvals.canonical import CanonicalAction
from approvals.cards.drawing import attachments, how, reaching, rest, running, sum_of
from approvals.cards.parts import Card, Setting


def draw(action: CanonicalAction, setting: Setting) -> Card:
    """Every argument by the title its schema gives it, and by its own name."""
    fields = reaching(action, setting, list(rest(setting, dict(action.arguments))))
    files = attachments(action, setting)
    return Card(
        kind="generic",
        icon="tool",
        heading=setting.title,
        tool=action.tool,
        fields=tuple(fields),
        letter=None,
        files=files,
        folded=how(action),
        lines=(running(action),),
        raw=dict(action.arguments),
        unit="call",
        verb="send" if setting.effect == "send" else "run",
        facts=sum_of((len(action.arguments), "argument"), (len(files), "attachment")),
    )
