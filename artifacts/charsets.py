"""Bytes to text, whatever charset somebody claimed for them."""

import codecs
from dataclasses import dataclass

_KNOWN = frozenset({
    "ascii", "big5", "cp932", "cp949", "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "hz", "iso2022_jp", "iso2022_kr", "koi8-r",
    "koi8-u", "mac-roman", "shift_jis", "tis-620", "utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be", "utf-32-le", "utf-7",
    "utf-8",
}) | {f"iso8859-{n}" for n in range(1, 17)} | {f"cp{n}" for n in (*range(1250, 1259), 437, 850, 852, 866)}  # fmt: skip
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True)
class Decoded:
    """`text`, and how much of it could not be read: 0 none, 1 all."""

    text: str
    unread: float
    codec: str = "utf-8"

    def size_of(self, start: int, end: int) -> int:
        """How many bytes `text[start:end]` came from; near enough where some could not be read."""
        return len(self.text[start:end].encode(self.codec, "replace"))


def decode(data: bytes, charset: str = "") -> Decoded:
    """Text out of bytes in `charset`, or UTF-8 where that is unknown. A byte-order mark wins. What is no text becomes U+FFFD."""
    codec = next((name for mark, name in _MARKS if data.startswith(mark)), "") or _codec(charset)
    text = data.decode(codec, "replace").removeprefix("\ufeff")
    bad = text.count("\ufffd") - data.count("\ufffd".encode(codec, "ignore") or b"\xef\xbf\xbd")
    return Decoded(text, max(bad, 0) / len(text) if text else 0.0, codec)


def _codec(charset: str) -> str:
    """Only charsets of people's text: Python also counts some programs as such."""
    try:
        name = codecs.lookup(charset.strip().strip("\"'")[:40]).name
    except (LookupError, ValueError, UnicodeError):
        return "utf-8"
    return name if name in _KNOWN else "utf-8"
