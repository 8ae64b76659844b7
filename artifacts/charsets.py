"""Bytes to text, whatever charset somebody claimed for them."""

import codecs
from dataclasses import dataclass

_KNOWN = frozenset(
    "utf-8 utf-16 utf-16-le utf-16-be utf-32 utf-32-le utf-32-be utf-7 ascii iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 "
    "iso8859-7 iso8859-8 iso8859-9 iso8859-10 iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 "
    "cp1256 cp1257 cp1258 cp437 cp850 cp852 cp866 koi8-r koi8-u mac-roman big5 gb2312 gbk gb18030 hz shift_jis cp932 euc_jp iso2022_jp "
    "euc_kr cp949 iso2022_kr tis-620".split()
)
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True)
class Decoded:
    """`text`, and how much of it could not be read: 0 none, 1 all."""

    text: str
    unread: float
    codec: str = "utf-8"

    def size_of(self, chars: int) -> int:
        """How many bytes the first `chars` characters came from; near enough where some could not be read."""
        return len(self.text[:chars].encode(self.codec, "replace"))


def decode(data: bytes, charset: str = "") -> Decoded:
    """Text out of bytes in `charset`, or UTF-8 where that is unknown. A byte-order mark wins. What is no text becomes U+FFFD."""
    codec = next((name for mark, name in _MARKS if data.startswith(mark)), "") or _codec(charset)
    text = data.decode(codec, "replace").removeprefix("\ufeff")
    return Decoded(text, text.count("\ufffd") / len(text) if text else 0.0, codec)


def _codec(charset: str) -> str:
    """Only charsets of people's text: Python also counts some programs as such."""
    try:
        name = codecs.lookup(charset.strip().strip("\"'")[:40]).name
    except (LookupError, ValueError, UnicodeError):
        return "utf-8"
    return name if name in _KNOWN else "utf-8"
