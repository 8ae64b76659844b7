"""The style that is loaded is there, and what it styles and each template are in use."""

import re
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
CSS = ROOT / "static" / "css"
ROOMS = ("access", "approvals", "artifacts", "config", "runs", "examples")
DJANGOS = {"400", "403", "403_csrf", "404", "500"}  # it finds these templates by their names itself


def test_every_style_file_is_loaded_and_every_loaded_one_is_there():
    loaded = re.findall(r'@import url\("([^"]+)"\);', (CSS / "handrail.css").read_text())
    there = {str(file.relative_to(CSS)) for file in CSS.rglob("*.css")} - {"handrail.css"}
    assert len(loaded) == len(set(loaded)) and set(loaded) == there


def test_each_class_that_is_styled_is_used():
    styled = {(file.name, word) for file in CSS.rglob("*.css") for word in _classes(file.read_text())}
    assert len(styled) > 500, "the search finds nothing any more"
    assert {(file, word) for file, word in styled if word not in _words()} == set()


def test_each_template_is_used():
    there = [file for file in (ROOT / "templates").rglob("*.html") if file.stem not in DJANGOS]
    assert len(there) > 100
    assert [file.name for file in there if file.stem not in _words()] == []


def _classes(style: str) -> set[str]:
    return set(re.findall(r"\.([a-zA-Z][\w-]*)", re.sub(r"/\*.*?\*/|url\([^)]*\)", "", style, flags=re.DOTALL)))


@lru_cache(maxsize=1)
def _words() -> set[str]:
    """All that templates, code and script say."""
    code = [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]
    files = [*(ROOT / "templates").rglob("*.html"), *(ROOT / "examples").rglob("*.html"), *(ROOT / "static/js").rglob("*.js"), *code]
    return {word for file in files for word in re.findall(r"[\w-]+", file.read_text())}
