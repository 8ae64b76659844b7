"""What money is sent to or taken from, in text: payment card numbers and bank account numbers."""

import re
from collections.abc import Iterator
from itertools import pairwise

_RUN = re.compile(r"\d(?:[ \t\r\n>./_|*-]{0,5}\d)+")
_ISSUERS: tuple[tuple[re.Pattern[str], frozenset[int]], ...] = (
    (re.compile(r"4"), frozenset({13, 16, 19})),
    (re.compile(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), frozenset({16})),
    (re.compile(r"3[47]"), frozenset({15})),
    (re.compile(r"30[0-5]|36|38|39"), frozenset({14, 16})),
    (re.compile(r"6011|64[4-9]|65|62|35(?:2[89]|[3-8])|220[0-4]|8[12]|60|508|9792"), frozenset({16, 17, 18, 19})),
    (re.compile(r"5018|5020|5038|5893|6304|6759|676[1-3]|50|5[6-8]|6[37]"), frozenset({13, 14, 15, 16, 17, 18, 19})),
)
_LENGTHS = range(13, 20)


def cards(text: str) -> Iterator[tuple[int, int]]:
    """Payment card numbers (ISO/IEC 7812: an issuer's prefix and length, and the Luhn digit), in groups or not, also over a line break."""
    for run in _RUN.finditer(text):
        at = [i for i, c in enumerate(run[0], run.start()) if c.isdigit()]
        if len(at) < _LENGTHS[0]:
            continue
        digits = "".join(text[i] for i in at)
        sums = _luhn_sums(digits)
        for start, end in _windows(at):
            if _is_card(digits, sums, start, end) and _is_grouped_like_a_card(text, at[start:end]):
                yield at[start], at[end - 1] + 1


def _windows(at: list[int]) -> Iterator[tuple[int, int]]:
    """Stretches of digits that begin and end where groups do; and the first and last sixteen of a group that is longer than any card."""
    edges = [0, *(k for k in range(1, len(at)) if at[k] - at[k - 1] > 1), len(at)]
    ends = frozenset(edges[1:])
    for start in edges[:-1]:
        yield from ((start, start + length) for length in _LENGTHS if start + length in ends)
    for start, end in pairwise(edges):
        if end - start > _LENGTHS[-1]:
            yield from ((start, start + 16), (end - 16, end))


def _luhn_sums(digits: str) -> tuple[list[int], list[int]]:
    """Running sums with every second digit doubled, from either parity: any stretch's Luhn sum is one subtraction."""
    even, odd = [0], [0]
    for i, c in enumerate(digits):
        plain, doubled = int(c), (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)[int(c)]
        even.append(even[-1] + (plain if i % 2 == 0 else doubled))
        odd.append(odd[-1] + (plain if i % 2 else doubled))
    return even, odd


def _is_card(digits: str, sums: tuple[list[int], list[int]], start: int, end: int) -> bool:
    running = sums[(end - 1) % 2]
    if (running[end] - running[start]) % 10:
        return False
    return any(end - start in lengths and prefix.match(digits, start) for prefix, lengths in _ISSUERS)


def _is_grouped_like_a_card(text: str, at: list[int]) -> bool:
    if at[0] >= 2 and text[at[0] - 1] == "." and text[at[0] - 2].isdigit() and at[-1] - at[0] == len(at) - 1:
        return False  # the places after a decimal point
    gaps = [text[a + 1 : b] for a, b in pairwise(at) if b - a > 1]
    if len({gap.strip("\r\n>|*") or "\n" for gap in gaps} - {"\n"}) > 1:
        return False  # a card's groups all have the same thing between them
    return len(gaps) <= 6 or len(gaps) == len(at) - 1  # or each digit stands alone


_IBAN_LENGTHS = {  # ISO 13616, the SWIFT registry
    country: int(length)
    for country, length in re.findall(
        r"([A-Z]{2})(\d\d)",
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 "
        "FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 "
        "LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 "
        "SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30 ",
    )
}
_IBAN_BEGINS = re.compile(r"(?<![A-Za-z0-9])([A-Za-z]{2})[ \t]?\d[ \t]?\d")
_IBAN_CHARS = re.compile(r"([A-Za-z0-9])[ \t\r\n>.|-]{0,4}")


def ibans(text: str) -> Iterator[tuple[int, int]]:
    """International bank account numbers (ISO 13616: the country's length, and a remainder of 1 by 97), in groups or not."""
    for begin in _IBAN_BEGINS.finditer(text):
        length = _IBAN_LENGTHS.get(begin[1].upper())
        if length:
            end, chars = _take(text, begin.start(), length)
            if len(chars) == length and not text[end : end + 1].isalnum() and _is_iban(chars):
                yield begin.start(), end


def _take(text: str, at: int, count: int) -> tuple[int, str]:
    chars, end = "", at
    while len(chars) < count and (match := _IBAN_CHARS.match(text, at)):
        chars += match[1]
        at, end = match.end(), match.end(1)
    return end, chars


def _is_iban(chars: str) -> bool:
    turned = chars[4:] + chars[:4]
    return int("".join(str(int(c, 36)) for c in turned)) % 97 == 1
