"""The vendored scripts and fonts are the published ones, and each is loaded."""

import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENDOR = ROOT / "static" / "vendor"


def test_each_vendored_file_is_as_published_and_has_its_licence():
    sums = dict(reversed(line.split()) for line in re.findall(r"^[0-9a-f]{64}  \S+$", (VENDOR / "README.md").read_text(), re.M))
    assert {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in VENDOR.iterdir() if file.suffix in (".js", ".woff2")
    } == sums
    for name in sums:
        assert (VENDOR / f"{re.sub(r'-([0-9]|latin|cyrillic|greek).*', '', name)}-LICENSE.txt").exists()


def test_every_script_that_a_page_names_is_there_and_every_script_is_named():
    pages = (ROOT / "templates").rglob("*.html")
    named = {name for page in pages for name in re.findall(r"""static ['"]([^'"]+\.js)['"]""", page.read_text())}
    there = {str(file.relative_to(ROOT / "static")) for file in (ROOT / "static").rglob("*.js")}
    assert named == there


def test_every_font_that_the_style_names_is_there_and_every_font_is_named():
    css = (ROOT / "static" / "css" / "fonts.css").read_text()
    named = re.findall(r'url\("\.\./vendor/([^"]+)"\)', css)
    assert sorted(named) == sorted(file.name for file in VENDOR.glob("*.woff2"))
    preloaded = re.findall(r"static 'vendor/([^']+\.woff2)'", (ROOT / "templates" / "base.html").read_text())
    assert len(preloaded) == 1 and set(preloaded) < set(named)


def test_no_template_has_script_style_or_handler_in_it():
    for file in (ROOT / "templates").rglob("*.html"):
        html = file.read_text()
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|hx-on|javascript:|<script(?![^>]*\ssrc=)", html), file
        assert not re.search(r"\|safe\b|autoescape off|mark_safe", html), file
