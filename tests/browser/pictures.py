"""The pictures of the guides are taken by the stories that show what a guide says, and only when asked for:

HANDRAIL_PICTURES=docs/pictures .venv/bin/python -m pytest tests/browser
"""

import os
from pathlib import Path

from playwright.sync_api import Page

HIGH = 760  # pixels: what a guide shows is the top of a page


def picture(page: Page, name: str) -> None:
    """Save what `page` shows as `<name>.png` in the directory of HANDRAIL_PICTURES, if that is set."""
    if where := os.environ.get("HANDRAIL_PICTURES"):
        Path(where).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(where) / f"{name}.png", clip={"x": 0, "y": 0, "width": page.viewport_size["width"], "height": HIGH})
