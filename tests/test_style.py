"""The style that is loaded is there, and each page's file is of a page that exists."""

import re
from pathlib import Path

CSS = Path(__file__).parent.parent / "static" / "css"
SOON = {"ask.css"}  # the thread under an action


def test_every_style_file_is_loaded_and_every_loaded_one_is_there():
    loaded = re.findall(r'@import url\("([^"]+)"\);', (CSS / "handrail.css").read_text())
    there = {str(file.relative_to(CSS)) for file in CSS.rglob("*.css")} - {"handrail.css"}
    assert len(loaded) == len(set(loaded)) and set(loaded) == there


def test_each_page_file_has_a_class_that_a_template_uses():
    pages = [file.read_text() for file in (CSS.parent.parent / "templates").rglob("*.html")]
    used = {word for page in pages for word in re.findall(r"[\w-]+", page)}
    unused = {file.name for file in (CSS / "pages").glob("*.css") if not used & _classes(file)}
    assert unused <= SOON


def _classes(file: Path) -> set[str]:
    """What a file is about: the classes that stand at the top of its rules."""
    return set(re.findall(r"^  \.([\w-]+)", file.read_text(), re.MULTILINE))
