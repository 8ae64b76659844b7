"""How to reach a person, in text: e-mail addresses and telephone numbers."""

import re
from collections.abc import Iterator

_EMAIL = re.compile(
    r"(?<![\w.!#$%&*+=?^{|}~-])(?:[\w.!#$%&'*+=?^{|}~-]{1,64}|\"[^\"\n]{1,64}\")@(?:[^\W_](?:[\w-]{0,62}[^\W_])?\.){0,8}[^\W_](?:[\w-]{0,62}[^\W_])?(?![\w-])"
    r"|(?<![\w.!#$%&*+=?^{|}~-])[\w.+-]{1,64}@\[[0-9A-Fa-f:.IPv]{2,60}\]"
)
_PHONE = re.compile(
    r"(?<![\w.+/:-])(?:(?P<sure>\+|00(?=[1-9])|tel:\+?)[ \t]?|(?=[(0-9]))(?:\((?=\d{1,5}\)))?\d(?:[ \t\-./()]{0,3}\d){6,14}(?![\w])"
)
# broken over a line, where what stands before the break is too short to be all of it
_BROKEN_PHONE = re.compile(
    r"(?<![\w.+/:-])(?:\+|00(?=[1-9])|tel:\+?)[ \t]?\(?\d(?:[ \t\-./()]{0,3}\d){0,7}[ \t\-./()]{0,3}"
    r"\r?\n[ \t>]{0,8}\d(?:[ \t\-./()]{0,3}\d){2,12}(?!\w)"
)
# the countries whose tax numbers begin with their letters; what begins with a zero after them is a telephone number all the same
_TAX_NUMBER = re.compile(r"\b(?:AT|BE|BG|CHE|CY|CZ|DE|DK|EE|EL|ES|FI|FR|GB|HR|HU|IE|IT|LT|LU|LV|MT|NL|NO|PL|PT|RO|SE|SI|SK|XI)[ \u00a0-]?$")
_DATE = re.compile(r"\d{4}[-./]\d\d?[-./]\d\d?(?!\d)|\d\d?[-./]\d\d?[-./]\d{4}(?!\d)|\d{1,3}(?:\.\d{1,3}){3}(?![.\d])")


def emails(text: str) -> Iterator[tuple[int, int]]:
    """E-mail addresses, also with letters of other scripts."""
    if "@" in text:
        for match in _EMAIL.finditer(text):
            yield match.span()


def phones(text: str) -> Iterator[tuple[int, int]]:
    """Telephone numbers: with a country's code, a leading zero or bracket, or in three or more groups. Not dates, not IP addresses, and
    not what a country's letters in front make a tax number."""
    for match in _PHONE.finditer(text):
        if _DATE.match(match[0]) or (match[0][0] in "123456789" and _TAX_NUMBER.search(text[max(0, match.start() - 6) : match.start()])):
            continue
        groups = re.findall(r"\d+", match[0])
        if match["sure"] or match[0][0] in "(0" or (len(groups) >= 3 and all(len(group) <= 5 for group in groups)):
            yield match.span()
    if "\n" in text:
        yield from (match.span() for match in _BROKEN_PHONE.finditer(text))
