"""The guides name what is there."""

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

from runs.management.commands.lifecycle import drawn

ROOT = Path(__file__).resolve().parents[1]
GUIDES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_every_test_that_a_guide_names_is_there(guide: Path) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", guide.read_text())
    assert [f"{file}::{name}" for file, name in named if name not in functions(ROOT / file)] == []


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_every_file_page_and_command_that_a_guide_names_is_there(guide: Path) -> None:
    text = guide.read_text()
    named = re.findall(r"(?<![\w/.@-])[\w/-]+\.(?:py|md|html|css|js|sh)\b", text)
    assert [file for file in named if not any(f"/{there}".endswith(f"/{file}") for there in files())] == []
    links = re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (guide.parent / link).exists()] == []
    commands = {file.stem for file in ROOT.glob("*/management/commands/*.py")} | {"changepassword", "migrate"}  # the last two are Django's
    assert set(re.findall(r"manage\.py (\w+)", text)) <= commands


@lru_cache(maxsize=1)
def files() -> list[str]:
    """Every file of the project."""
    tops = [path for path in ROOT.iterdir() if not path.name.startswith(".") and path.name != "data"]
    there = [path for top in tops for path in (top.rglob("*") if top.is_dir() else [top]) if path.is_file()]
    return [path.relative_to(ROOT).as_posix() for path in there]


def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text()) if file.exists() else ast.Module([], [])
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_guide_to_pages_names_each_partial() -> None:
    told = (ROOT / "docs/frontend.md").read_text()
    assert [file.name for file in sorted((ROOT / "templates").glob("_*.html")) if f"`{file.name}`" not in told] == []


def test_what_the_guide_says_that_a_partial_takes_it_reads() -> None:
    rows = re.findall(r"^\| `(_\w+\.html)` \|(.+)\|$", (ROOT / "docs/frontend.md").read_text(), re.MULTILINE)
    read = {name: (ROOT / "templates" / name).read_text() for name, _ in rows}
    assert [(name, word) for name, told in rows for word in re.findall(r"`([a-z_]+)`", told) if word not in read[name]] == []


def test_the_guide_to_approvals_names_tests() -> None:
    assert (ROOT / "docs/approvals.md").read_text().count("::test_") > 25


def test_each_picture_that_a_story_takes_is_shown_in_the_guide_to_stories() -> None:
    guide = (ROOT / "docs/stories.md").read_text()
    taken = {
        name for file in (ROOT / "tests/browser").glob("test_*.py") for name in re.findall(r'picture\(\w+, "(\w+)"\)', file.read_text())
    }
    shown = set(re.findall(r"!\[[^\]]+\]\(pictures/(\w+)\.png\)", guide))
    there = {file.stem for file in (ROOT / "docs/pictures").glob("*.png")}
    assert taken == shown == there
    assert len(shown) >= 9 and guide.count("::test_") == guide.count("![")


def test_the_states_of_a_run_stand_in_the_guide_as_the_code_has_them() -> None:
    guide = (ROOT / "docs/architecture.md").read_text()
    assert guide.partition("<!-- states -->\n")[2].partition("\n<!-- /states -->")[0] == drawn()


def test_every_file_of_the_engine_has_its_line_in_the_guide():
    guide = (ROOT / "docs/architecture.md").read_text()
    assert [file.name for file in (ROOT / "runs/engine").glob("[a-z]*.py") if f"`{file.name}`" not in guide] == []
