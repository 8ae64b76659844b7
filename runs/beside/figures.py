"""Two runs in figures, since they parted."""

from collections.abc import Iterator
from dataclasses import dataclass

from access.templatetags.handrail import spell
from config import clock
from runs import evidence
from runs.beside.legs import Side
from runs.story.people import amount
from runs.story.shapes import Text


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    name: str
    first: str
    second: str
    weighs: bool = False  # what somebody compares them for: it is marked where it differs

    @property
    def same(self) -> bool:
        return self.first == self.second


def figures(first: Side, second: Side) -> Iterator[Figure]:
    """What two runs came to, figure by figure; the two that matter most first."""
    yield Figure("Report", *map(_report, (first, second)), weighs=True)
    yield Figure("Left the company", *map(_left, (first, second)), weighs=True)
    yield Figure("People who decided", *map(_people, (first, second)))
    yield Figure("Cost", *map(_cost, (first, second)))
    yield Figure("Models and tools worked", *map(_worked, (first, second)))
    yield Figure("Took", *map(_took, (first, second)))
    yield Figure("Evidence checks", *(evidence.summary(side.view.checks) for side in (first, second)))
    yield Figure("Plan", *map(_plan, (first, second)))


def _report(side: Side) -> str:
    """What it reported last, in its own words: a rendition."""
    titles = [_words(text) for line in side.own if line.type == "report.published" and (text := line.text("title"))]
    return titles[-1] if titles else "None" if side.run.ended_at else "None yet"


def _left(side: Side) -> str:
    done = [row for row in side.view.ledger if row.effect.seq > side.after and row.state in ("done", "undone", "failed")]
    named = [(row, _words(row.effect.subject) if row.effect.subject else row.effect.tool) for row in done]
    words = [name + (", undone" if row.state == "undone" else "") for row, name in named]
    return "; ".join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "") if words else "Nothing"


def _words(text: Text) -> str:
    return "Erased" if text.erased else text.text


def _people(side: Side) -> str:
    decided = [line for line in side.own if line.type == "action.decided"]
    who = len({line.who.id for line in decided})
    people = f"{who} {'person' if who == 1 else 'people'}" if who else "Nobody"
    times = f", {len(decided)} decisions" if len(decided) > who else ""
    return people + times + ("; somebody is asked now" if side.view.story.now.waits_for == "decision" else "")


def _cost(side: Side) -> str:
    calls = [line for line in side.own if line.type == "model.called"]
    if all(line.flag("scripted") for line in calls):
        return "None, a script answered" if calls else "None, no model was asked"
    tokens = sum(line.count("tokens_in") + line.count("tokens_out") for line in calls)
    cost = sum(line.count("cost_micro") for line in calls)
    priced = f"{amount('cost_micro', cost)}, " if cost else ""  # no price of it is known
    return f"{priced}{tokens:,} tokens, {len(calls)} model call{'' if len(calls) == 1 else 's'}"


def _worked(side: Side) -> str:
    seconds = sum(line.count("ms") for line in side.own if line.type in ("tool.ended", "model.called")) / 1000
    return in_seconds(seconds)


def _took(side: Side) -> str:
    own = side.own
    if not own:
        return "–"
    until = own[-1].at if side.run.ended_at else clock.now()  # it goes on while it waits, too
    told = in_seconds((until - own[0].at).total_seconds())
    return told if side.run.ended_at else f"{told} so far"


def in_seconds(seconds: float) -> str:
    """In whole seconds: by less two runs differ that did the same."""
    return spell(round(seconds)) if seconds >= 1 else "Under a second"


def _plan(side: Side) -> str:
    plan = side.view.story.plan
    return f"Version {plan.version}, {len(plan.steps)} steps" if plan else "None"
