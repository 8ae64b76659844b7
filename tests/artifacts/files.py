"""Files of each kind to look at, small and whole, and hostile ones."""

import io
import struct
import zlib

from PIL import Image

from examples.support_triage.letters import as_pdf

__all__ = ["as_pdf", "image", "locked_pdf", "png_of"]


def image(kind: str = "PNG", size: tuple[int, int] = (60, 40), colour: str = "red", **more: object) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", size, colour).save(made, kind, **more)
    return made.getvalue()


def png_of(wide: int, high: int, rows: bytes = b"") -> bytes:
    """A PNG that says it is so large, whatever is in it."""
    head = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(name, data) for name, data in ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    )


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def locked_pdf() -> bytes:
    """One that opens only with a password, which nobody has."""
    plain = as_pdf([["Secret"]]).decode()
    lock = "<< /Filter /Standard /V 1 /R 2 /P -1 /O <" + "41" * 32 + "> /U <" + "42" * 32 + "> >>"
    return plain.replace("trailer\n<<", f"trailer\n<< /Encrypt {lock} /ID [<00> <00>]").encode()
