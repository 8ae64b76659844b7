"""A reply as HTML, word for word what its text says; and a page of PDF. Pure, and the same each time."""

import html
import re
from collections.abc import Sequence

WIDTH, HEIGHT = 595, 842  # points of A4
MARGIN, LEADING, SIZE = 72, 18, 11


def as_html(body: str, strong: Sequence[str] = ()) -> str:
    """The paragraphs of a text as HTML, lines that begin with a bullet as a list. `strong`: words that stand out, wherever they are."""
    blocks = "\n".join(_block(part.split("\n"), strong) for part in body.strip().split("\n\n"))
    return f'<div style="font-family: system-ui, Arial, Helvetica, sans-serif; font-size: 14px; color: #1c2326">\n{blocks}\n</div>\n'


def _block(lines: Sequence[str], strong: Sequence[str]) -> str:
    said = [_line(line, strong) for line in lines]
    if all(line.startswith("• ") for line in lines):
        return "<ul>" + "".join(f"<li>{line.removeprefix('• ')}</li>" for line in said) + "</ul>"
    return f'<p style="margin: 0 0 1em">{"<br>".join(said)}</p>'


def _line(line: str, strong: Sequence[str]) -> str:
    pattern = "|".join(re.escape(each) for each in strong if each)
    pieces = re.split(f"({pattern})", line) if pattern else [line]
    return "".join(f"<b>{html.escape(piece)}</b>" if at % 2 else html.escape(piece) for at, piece in enumerate(pieces))


def as_pdf(pages: Sequence[Sequence[str]]) -> bytes:
    """Lines on pages, in Helvetica, the first of each larger. Only characters of Windows-1252 are drawn; the file itself is plain ASCII."""
    kids = " ".join(f"{4 + 2 * nth} 0 R" for nth in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for nth, lines in enumerate(pages):
        of, drawn = f"/MediaBox [0 0 {WIDTH} {HEIGHT}] /Resources << /Font << /F1 3 0 R >> >>", _drawn(lines)
        objects.append(f"<< /Type /Page /Parent 2 0 R {of} /Contents {5 + 2 * nth} 0 R >>")
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    return _file(objects)


def _drawn(lines: Sequence[str]) -> str:
    shown = [f"({_escaped(line)}) Tj T*" for line in lines]
    shown[:1] = [f"/F1 {SIZE + 6} Tf {shown[0]} /F1 {SIZE} Tf T*"] if shown else []
    return "\n".join([f"BT {MARGIN} {HEIGHT - MARGIN} Td {LEADING} TL", *shown, "ET"])


def _escaped(line: str) -> str:
    codes = line.encode("cp1252", "replace")
    return "".join(chr(code) if 32 <= code < 127 and chr(code) not in "()\\" else f"\\{code:03o}" for code in codes)


def _file(objects: Sequence[str]) -> bytes:
    text, places = "%PDF-1.4\n", []
    for number, said in enumerate(objects, 1):
        places.append(len(text))
        text += f"{number} 0 obj\n{said}\nendobj\n"
    at, table = len(text), "".join(f"{place:010d} 00000 n \n" for place in places)
    text += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n"
    return (text + f"startxref\n{at}\n%%EOF\n").encode("ascii")
