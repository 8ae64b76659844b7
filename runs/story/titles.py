"""What tools and steps are called now, by the titles that they are declared with."""

from runs.engine import models
from runs.engine.tools import TOOLS
from runs.story.shapes import Code, Elsewhere, One, Rich, Step, Tool
from runs.story.wire import spoken

APPROVED = "what was approved"
# what one of a kind of card is called
UNITS = {"email": "e-mail", "record": "change", "payment": "payment", "sql": "statement", "http": "request", "command": "command"}
DONE = {"email": "The e-mail is sent", "payment": "The payment is made", "record": "The change is made"}
NOTHING = {"payment": "Nothing is paid", "record": "Nothing is changed"}
OWNERS = ("email", "address", "customer", "person", "account")  # arguments that say whose it is


def of_tool(name: str) -> str:
    """What a tool is called; its name in words if it is not loaded here."""
    return TOOLS[name].title if name in TOOLS else spoken(name)


def one_of(name: str) -> str:
    """What is decided on: “one e-mail”."""
    return f"one {UNITS.get(TOOLS[name].card, 'action') if name in TOOLS else 'action'}"


def of_step(step: Step) -> str:
    """The title of what a step does: of its tool, of its prompt; a step that does what was approved may not say which tool that is."""
    if step.tool:
        return of_tool(step.tool)
    kind, _, named = step.name.rpartition("/")[2].partition("#")[0].partition(".")  # of an undo, behind the branch that it stands in
    if kind == "model":
        return of_prompt(named)
    if kind == "perform":
        return APPROVED
    if kind == "parallel":
        return "several things"
    if kind == "wait":
        return "what people add" if named == "signal" else f"a webhook from {named}"
    if kind == "child":
        return spoken(named)
    return of_tool(named if kind == "propose" else kind)


def of_prompt(name: str) -> str:
    try:
        return models.named(name).title
    except models.UnknownPrompt:
        return spoken(name)


def will_do(title: str) -> str:
    """What the tool of this title will do to the world, and whether that can be undone. Empty if no tool is called so, or several are."""
    found = [tool for tool in TOOLS.values() if tool.title.casefold() == title.casefold()]
    if len(found) != 1 or found[0].effect == "read":
        return ""
    tool = found[0]
    does = "Sent once" if tool.effect == "send" else f"Changes the {tool.target}" if tool.target else "Changes something outside"
    through = f", through the {tool.target}" if tool.effect == "send" and tool.target else ""
    return f"{does}{through}. {'Can be undone.' if tool.can_undo else 'Can’t be undone.'}"


def with_argument(title: str, given: Rich) -> Rich:
    """What a tool was used for, as a sentence: “Read ticket ZN-4823”. `given`: its arguments in a line, as of `short_arguments`."""
    if len(given) != 2 or not isinstance(given[0], str):
        return (f"{title}: ", *given)
    name = given[0].strip().lower()
    noun = name.split(" ")[0]
    if title.endswith(f" the {noun}"):
        return (f"{title.removesuffix(f'the {noun}')}{noun} ", given[1])
    return (f"{title} of ", given[1]) if noun in OWNERS and " the " in title else (f"{title}, {name} ", given[1])


def plain(rich: Rich) -> str:
    """The words of ours in a sentence, for searching: with the titles of tools and steps, without what somebody wrote."""
    return "".join(_plain(part) for part in rich)


def _plain(part: object) -> str:
    match part:
        case str():
            return part
        case Tool(name):
            return of_tool(name)
        case One(tool):
            return one_of(tool)
        case Step():
            return of_step(part)
        case Code(text):
            return text
        case Elsewhere(ref=ref):
            return ref
    return ""
