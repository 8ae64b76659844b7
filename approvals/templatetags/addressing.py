"""Drawing addresses as they are written, with the character marked by which one passes for another."""

from django import template
from django.utils.html import format_html

from access import characters
from access.templatetags.handrail import glyphs
from approvals.cards.parts import Address
from approvals.templatetags.approving import exactly

register = template.Library()


@register.simple_tag
def addressed(address: Address, full: bool) -> str:
    """As `exactly`; for who may see it in full, with the odd character of a look-alike marked and named."""
    at = address.odd_at
    if not full or at < 0 or not address.text[at].isascii():  # of another script it is marked by itself
        return exactly(address.text, full)
    char = address.text[at]
    mark = format_html('<span class="glyph" title="{}, U+{}">{}</span>', characters.name(char), f"{ord(char):04X}", char)
    return format_html("{}{}{}", glyphs(address.text[:at]), mark, glyphs(address.text[at + 1 :]))
