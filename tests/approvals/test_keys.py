"""The list of keys says what each key does that some page has, and of no other key."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BY_SCRIPT = {"j", "k"}  # keys.js walks a list with them
BY_BROWSER = {"↵"}  # presses what has the focus
SPELLED = {"Escape": "Esc", "Enter": "↵"}


def test_the_list_of_keys_has_every_key_that_works_and_no_other():
    templates = [path.read_text("utf-8") for path in (ROOT / "templates").rglob("*.html")]
    named = {key for text in templates for key in re.findall(r'data-key="([^"{]+)"', text)}
    named |= {key for text in templates for key in re.findall(r'{% digest [^%]*key="([^"]+)"', text)}  # the button that copies it
    listed = re.findall(r"<dt>(.*?)</dt>", (ROOT / "templates/_keys.html").read_text("utf-8"))
    said = {key for line in listed for key in re.findall(r"<kbd>(.*?)</kbd>", line)}
    assert said == {SPELLED.get(key, key) for key in named} | BY_SCRIPT | BY_BROWSER
