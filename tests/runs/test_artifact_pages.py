"""The page of an artifact: what changed in it from version to version, and what it came from."""

from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from access.models import User
from artifacts import views
from artifacts.models import Artifact
from tests.cast import Cast
from tests.runs import lines
from tests.runs.played import play

SignIn = Callable[[User], Client]
HEAD = "# Statement\n\n| Date | What | Paid |\n|---|---|--:|\n"


def changes(cast: Cast, old: str, new: str) -> list[tuple[int, str, str]]:
    """What is told of two versions of a statement, whose rows these are: line, before, after."""
    log = lines.begun()
    lines.artifact(log, "statement.md", HEAD + old)
    lines.artifact(log, "statement.md", HEAD + new, version=2)
    play(cast, log)
    before, after = Artifact.objects.filter(name="statement.md").order_by("version")
    return [(each.line, each.before, each.after) for each in views.changes(before, after)]


def test_of_a_row_of_a_table_the_cells_that_differ_are_told_and_of_what_came_in_its_own_line(cast: Cast) -> None:
    old = "| 24 Nov | Refund | €10.00 |\n| 25 Nov | Fee | |\n"
    new = "| 24 Nov | Refund, with VAT | €12.00 |\n| 25 Nov | Fee | |\n\nNet €10.00\n"
    assert changes(cast, old, new) == [
        (5, "Refund, €10.00", "Refund, with VAT, €12.00"),
        (8, "", "Net €10.00"),
    ]


def test_rows_whose_cells_say_the_same_are_told_as_they_are(cast: Cast) -> None:
    assert changes(cast, "| Total | | €10.00 |\n| Fee | |\n", "| **Total** | | €10.00 |\n| Fee | | |\n") == [
        (5, "| Total | | €10.00 |", "| **Total** | | €10.00 |"),
        (6, "| Fee | |", "| Fee | | |"),
    ]


def test_of_many_sources_some_are_folded_and_its_own_earlier_versions_are_none(cast: Cast, sign_in: SignIn) -> None:
    log = lines.begun()
    for name, version in (("a.txt", 1), ("b.txt", 1), ("c.txt", 1), ("d.txt", 1), ("reply.txt", 1), ("e.txt", 1), ("reply.txt", 2)):
        lines.artifact(log, name, name, version=version)
    run = play(cast, log)
    newest = Artifact.objects.filter(name="reply.txt").order_by("-version").first()
    html = sign_in(cast.riley).get(reverse("runs:around", args=(run.pk, newest.pk))).content.decode()
    came = html.partition("Where it came from")[2]
    shown, _, rest = came.partition("<summary")
    folded, _, after = rest.partition("</details>")
    assert "2 more" in folded and "reply.txt" not in came.partition("This version")[0]
    assert [name for name in "abcde" if f"{name}.txt" in shown] == ["a", "b"]
    assert [name for name in "abcde" if f"{name}.txt" in folded] == ["c", "d"]
    assert [name for name in "abcde" if f"{name}.txt" in after] == ["e"]
