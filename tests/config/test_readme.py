"""The README says what is so."""

import ast
import re
from pathlib import Path

import tests.settings

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def variables_read() -> set[str]:
    """The names that the settings read from the environment."""
    calls = (node for node in ast.walk(ast.parse((ROOT / "config/settings.py").read_text())) if isinstance(node, ast.Call))
    readers = (call for call in calls if isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "env")
    values = {call.args[0].value for call in readers if call.args and isinstance(call.args[0], ast.Constant)}
    return {value for value in values if re.fullmatch(r"[A-Z0-9_]+", value)}  # the others are what it says when it refuses


def test_the_table_has_every_setting_and_no_other() -> None:
    table = README.partition("## Settings")[2].partition("## The house")[0]
    cells = re.findall(r"^\| ([^|]*)\|", table, re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`([A-Z0-9_]+)`", cell)}
    assert named == variables_read() | {"HANDRAIL_CLOCK_FILE"}  # read by config/clock.py, which imports nothing


def test_the_tests_take_no_setting_from_the_environment_that_they_find() -> None:
    assert variables_read() <= {*tests.settings.OURS, *tests.settings.NOT_OURS}


def test_the_quick_start_has_two_commands() -> None:
    quick_start = README.partition("## Quick start")[2].partition("\n## ")[0]
    commands = [
        line.split("#")[0].strip() for block in re.findall(r"```sh\n(.*?)```", quick_start, re.DOTALL) for line in block.splitlines()
    ]
    assert commands == ["make demo", "make test"]


def test_every_link_and_file_it_names_is_there() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    named = re.findall(r"`([a-z_]+/[\w./-]*)`", README)
    missing = [path for path in links + named if not (ROOT / path).exists() and path != "data/"]
    assert links and not missing
