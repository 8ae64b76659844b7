"""What a file is by its first bytes, and what it brings with it. Reads the head, the tail and the table of contents; never unpacks.

Only what a reviewer must be told is told apart: kinds that run, that hold other files, that hold macros, that people exchange.
`filetype` was last released in 2022 and `puremagic` guesses among hundreds of kinds; neither says what an archive holds.
"""

import io
import re
import zipfile
from dataclasses import dataclass
from pathlib import PurePosixPath

MAX_NAMES = 2_000  # of an archive's contents
_TAIL = 64 * 1024

# Extensions that a double click runs, on one system or another
# fmt: off
RUNNABLE = frozenset((
    "exe", "dll", "com", "scr", "pif", "cpl", "msi", "msix", "msp", "appx", "sys", "bat", "cmd", "ps1", "psm1", "vbs", "vbe", "js",
    "jse", "mjs", "wsf", "wsh", "hta", "lnk", "url", "scf", "reg", "inf", "gadget", "jar", "jnlp", "app", "dmg", "pkg", "command",
    "sh", "bash", "run", "elf", "deb", "rpm", "apk", "ipa", "appimage", "desktop", "py", "pyc", "pl", "rb", "php", "ade", "adp",
    "iso", "img", "vhd", "vhdx", "one", "chm", "hlp", "xll", "wll", "application", "appref-ms", "settingcontent-ms", "library-ms",
    "search-ms", "msc",
))
MACROS = frozenset(("docm", "dotm", "xlsm", "xltm", "xlam", "xlsb", "pptm", "potm", "ppam", "ppsm", "sldm"))
# fmt: on

# What the bytes at an offset say, the surest first
_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"MZ", "windows-program"),
    (0, b"\x7fELF", "unix-program"),
    (0, b"\xfe\xed\xfa\xce", "mac-program"),
    (0, b"\xfe\xed\xfa\xcf", "mac-program"),
    (0, b"\xce\xfa\xed\xfe", "mac-program"),
    (0, b"\xcf\xfa\xed\xfe", "mac-program"),
    (0, b"\xca\xfe\xba\xbe", "java-program"),
    (0, b"#!", "script"),
    (0, b"L\x00\x00\x00\x01\x14\x02\x00", "windows-shortcut"),
    (0, b"!<arch>\ndebian", "package"),
    (0, b"\xed\xab\xee\xdb", "package"),
    (0, b"dex\n", "java-program"),
    (0, b"\x00asm", "web-program"),
    (0, b"ITSF", "windows-help"),
    (0, b"%PDF-", "pdf"),
    (0, b"PK\x03\x04", "zip"),
    (0, b"PK\x05\x06", "zip"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old-office"),
    (0, b"Rar!\x1a\x07", "rar"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z"),
    (0, b"\x1f\x8b", "gzip"),
    (0, b"BZh", "bzip2"),
    (0, b"\xfd7zXZ\x00", "xz"),
    (0, b"\x28\xb5\x2f\xfd", "zstd"),
    (0, b"MSCF", "cab"),
    (257, b"ustar", "tar"),
    (32_769, b"CD001", "disk-image"),
    (0, b"\x89PNG\r\n\x1a\n", "png"),
    (0, b"\xff\xd8\xff", "jpeg"),
    (0, b"GIF87a", "gif"),
    (0, b"GIF89a", "gif"),
    (8, b"WEBP", "webp"),
    (0, b"BM", "bmp"),
    (0, b"II*\x00", "tiff"),
    (0, b"MM\x00*", "tiff"),
    (4, b"ftyp", "mp4"),
    (0, b"ID3", "mp3"),
    (0, b"OggS", "ogg"),
    (8, b"WAVE", "wav"),
    (0, b"{\\rtf", "rtf"),
    (0, b"SQLite format 3\x00", "sqlite"),
)
RUNS = frozenset(
    {"windows-program", "unix-program", "mac-program", "java-program", "script", "windows-shortcut", "package", "windows-help"}
)

# The kinds that a media type or an extension may turn out to be
_EXPECTED: dict[str, frozenset[str]] = {
    "pdf": frozenset({"pdf"}),
    "png": frozenset({"png"}),
    "jpeg": frozenset({"jpeg"}),
    "jpg": frozenset({"jpeg"}),
    "gif": frozenset({"gif"}),
    "webp": frozenset({"webp"}),
    "bmp": frozenset({"bmp"}),
    "tiff": frozenset({"tiff"}),
    "tif": frozenset({"tiff"}),
    "mp4": frozenset({"mp4"}),
    "mp3": frozenset({"mp3", "unknown"}),
    "wav": frozenset({"wav"}),
    "zip": frozenset({"zip"}),
    "x-zip-compressed": frozenset({"zip"}),
    "gzip": frozenset({"gzip"}),
    "gz": frozenset({"gzip"}),
    "x-7z-compressed": frozenset({"7z"}),
    "7z": frozenset({"7z"}),
    "rtf": frozenset({"rtf"}),
    **dict.fromkeys(("docx", "xlsx", "pptx", "odt", "ods", "odp", "docm", "xlsm", "pptm", "epub"), frozenset({"zip", "old-office"})),
    **dict.fromkeys(("doc", "xls", "ppt", "msword", "vnd.ms-excel", "vnd.ms-powerpoint"), frozenset({"old-office", "rtf", "zip", "text"})),
    **dict.fromkeys(("txt", "csv", "md", "json", "xml", "html", "htm", "eml", "ics", "vcf", "log", "yaml", "yml"), frozenset({"text"})),
}
_TEXT_TYPES = ("text/", "message/")


@dataclass(frozen=True)
class Sniffed:
    """What a file is: its kind by content, whether it runs, holds macros, is locked by a password, and what runs inside of it."""

    kind: str
    runs: bool = False
    macros: bool = False
    locked: bool = False
    active: bool = False  # a document that carries a script, or starts something when it is opened
    holds: str = ""  # the first name within an archive that a double click would run


def sniff(content: bytes) -> Sniffed:
    """Look at a file's bytes. Never raises: what cannot be read is of the kind `unknown`."""
    kind = _kind(content)
    if kind == "zip":
        return _in_zip(content)
    if kind == "old-office":
        return Sniffed(kind, macros=_has_old_macros(content), locked=b"E\0n\0c\0r\0y\0p\0t\0e\0d\0P\0a\0c\0k\0a\0g\0e\0" in content)
    if kind == "pdf":
        return Sniffed(kind, active=bool(_ACTIVE_PDF.search(content)), locked=b"/Encrypt" in content[-_TAIL:])
    if kind in ("rar", "7z"):
        return Sniffed(kind)
    return Sniffed(kind, runs=kind in RUNS, active=kind == "text" and bool(_ACTIVE_TEXT.search(content[:_TAIL])))


def agrees(kind: str, name: str, media_type: str) -> bool:
    """Whether a file of this kind may have this name and this media type. What nothing is known of agrees."""
    claimed = media_type.partition(";")[0].strip().lower()
    if claimed.startswith(_TEXT_TYPES) and kind not in ("text", "empty", "script"):
        return False
    wanted = [_EXPECTED[claim] for claim in (claimed.rpartition("/")[2], *extensions(name)[-1:]) if claim in _EXPECTED]
    return kind == "empty" or all(kind in kinds for kinds in wanted)


def extensions(name: str) -> list[str]:
    """`invoice.pdf.exe` → pdf, exe. What a person does not see in a name does not count."""
    clean = "".join(char for char in name if char.isprintable()).rstrip(". ")
    return [suffix[1:].strip().lower() for suffix in PurePosixPath(clean.replace("\\", "/")).suffixes]


_ACTIVE_PDF = re.compile(rb"/(?:JavaScript|JS|Launch|EmbeddedFile|OpenAction|AA|RichMedia|XFA)\b")
_ACTIVE_TEXT = re.compile(rb"<script\b|\bon(?:load|error|click)\s*=|javascript:|<!ENTITY", re.IGNORECASE)


def _kind(content: bytes) -> str:
    if not content:
        return "empty"
    found = next((kind for at, magic, kind in _MAGIC if content.startswith(magic, at)), "")
    if found == "windows-program" and b"PE\0\0" not in content[:4096] and _is_text(content):
        found = ""  # a text that begins with the letters MZ
    return found or ("text" if _is_text(content) else "unknown")


def _is_text(content: bytes) -> bool:
    head = content[:4096]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    if b"\0" in head:
        return False
    odd = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    return odd * 50 <= len(head)


def _in_zip(content: bytes) -> Sniffed:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()[:MAX_NAMES]
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, EOFError, IndexError, UnicodeError):
        return Sniffed("zip")
    names = [entry.filename for entry in entries]
    return Sniffed(
        "zip",
        runs="META-INF/MANIFEST.MF" in names and any(name.endswith(".class") for name in names),
        macros=any(name.lower().endswith(("vbaproject.bin", "vbadata.xml")) or "/macrosheets/" in name.lower() for name in names),
        locked=any(entry.flag_bits & 1 for entry in entries),
        active=any("/embeddings/" in name or "/activex/" in name.lower() for name in names),
        holds=next((name[:200] for name in names if extensions(name)[-1:] and extensions(name)[-1] in RUNNABLE | MACROS), ""),
    )


def _has_old_macros(content: bytes) -> bool:
    return any(mark in content for mark in (b"V\0B\0A\0", b"_\0V\0B\0A\0_\0P\0R\0O\0J\0E\0C\0T\0", b"M\0a\0c\0r\0o\0s\0"))
