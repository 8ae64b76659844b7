"""What the list of runs says that a run waits for, or does, in a few words."""

from access.models import User
from access.rules import Actor
from runs import asked
from runs.asked import Asked
from runs.heard import Heard
from runs.lifecycle import State
from runs.models import Run
from runs.story.draft import PEOPLE

WAITS = {
    "answer": "An answer",
    "budget": "A bigger budget",
    "timer": "A set time",
    "webhook": "A webhook",
    "outcome": "Somebody to say what happened",
    "retry": "The next try",
    "unfreezing": "The end of a freeze",
    "signal": "Somebody to add context",
    "child": "A run that it started",
}


def told(run: Run, heard: Heard, people: Asked | None, actor: Actor) -> tuple[str, bool]:
    """What the run waits for or does; and whether somebody has to do something about it."""
    match State(run.state):
        case _ if asked.decision(run):
            return _reviewers(run, people or Asked(()), actor), False
        case State.WAITING:
            return _waits(run, heard)
        case State.QUEUED | State.RUNNING:
            return _does(heard), False
        case State.PARKED | State.STALLED:
            return "An operator", True
        case State.CANCELLING | State.COMPENSATING if run.waiting.get("on") == "outcome" and not run.waiting.get("until"):
            return WAITS["outcome"], True
        case State.CANCELLING:
            return "The outcome of what is under way", False
        case State.SUCCEEDED if came_to_nothing(run, heard):
            return heard.refused[:1].upper() + heard.refused[1:], False
        case State.CANCELLED if heard.undone and heard.done <= heard.undone:
            return f"{heard.undone} {'thing' if heard.undone == 1 else 'things'} put back", False
        case State.CANCELLED if not heard.done:
            return "Nothing was done outside", False
        case State.FAILED | State.CANCELLED:
            return heard.why, False
    return "", False  # what it was stuck by is no longer so


def _waits(run: Run, heard: Heard) -> tuple[str, bool]:
    on = run.waiting.get("on", "")
    if on == "outcome" and run.waiting.get("until"):
        return "The next look at what became of it", False
    if on == "timer" and run.waiting.get("action"):
        return "The end of the time to recall", False
    if on == "webhook" and heard.step_title:  # the plan says what it is that comes
        return heard.step_title, True
    return WAITS.get(on, "Something"), on in PEOPLE


def _does(heard: Heard) -> str:
    return heard.step_title or ("At work" if heard.steps else "Starting")


def came_to_nothing(run: Run, heard: Heard) -> bool:
    """Whether it ended well, was not allowed what it asked for, and did nothing outside."""
    return run.state == State.SUCCEEDED.value and bool(heard.refused) and heard.done == heard.found


def _reviewers(run: Run, people: Asked, actor: Actor) -> str:
    """Whom a decision waits for, never somebody to whom the run is their own: the one who is left by name, a group by its name."""
    own = {str(run.owner_id), str(run.agent.owner_id), run.starter_id}
    able = [person for person in people.people if str(person.pk) not in own]
    if len(able) < 2:
        return _name(able[0], actor) if able else "Somebody who may decide"
    needs = people.needs or run.waiting.get("needs") or 1
    count = f"{needs} more" if people.given else f"{needs}"
    if people.group:
        return f"{count} in {people.group}"
    if all(str(person.pk) != actor.id for person in able) or needs > 1 and not len(able) == needs < 4:
        return f"{count} reviewer{'' if needs == 1 else 's'}"
    names = [_name(person, actor) for person in sorted(able, key=lambda person: str(person.pk) != actor.id)]
    if needs > 1:
        return " and ".join(names)
    return " or ".join(names) if len(names) < 3 else f"{names[0]}, {names[1]} or {len(names) - 2} more"


def _name(person: User, actor: Actor) -> str:
    return "You" if str(person.pk) == actor.id else person.name
