"""A message that tries everything a text can try."""

import base64

SCRIPT = '<img src=x onerror="window.owned=1"><script>window.owned=1</script>'
BIDI = "pay \u202eevil.example\u202c now\u200b\u2066x\u2069"
TEMPLATE = "{{ 7*7 }} {% debug %} ${7*7} #{7*7}"
ANSI = "\x1b[31mred\x1b[0m\x07"
LONG_LINE = "A" * 1_000_000
INNER = b"From: inner@evil.example\r\nSubject: inner\r\nContent-Type: multipart/mixed; boundary=b2\r\n\r\n--b2\r\n\r\nnested\r\n--b2--\r\n"


def message() -> bytes:
    """Bytes of a message whose headers lie about its parts; no mail library would write it."""
    subject = base64.b64encode(f"{SCRIPT} {BIDI} {TEMPLATE}".encode()).decode()
    head = [
        b'From: "Eve ' + SCRIPT.replace('"', "'").encode() + b'" <eve@evil.example>',
        b"To: support@fernhill.example",
        b"Subject: =?utf-8?b?" + subject.encode() + b"?=",
        b"Message-ID: <hostile-1@evil.example>",
        b"Content-Type: multipart/mixed; boundary=b1",
    ]
    text = f"{SCRIPT}\n{BIDI}\n{TEMPLATE}\n{ANSI}\nINV-66666 1.00 EUR\n{LONG_LINE}\n".encode()
    parts = [
        b"Content-Type: text/plain; charset=no-such-charset\r\n\r\n" + text + b"\x00\xff\xfe\xc3(",
        b"Content-Type: text/html; charset=utf-8\r\n\r\n<svg onload=window.owned=1><b>" + SCRIPT.encode() + b"</b>",
        b"Content-Type: message/rfc822\r\n\r\n" + INNER,
        b'Content-Type: text/html; name="a\r\n\tb<script>.html"\r\n'
        b'Content-Disposition: attachment; filename="../../x<script>.html"\r\n\r\n<script>window.owned=1</script>',
    ]
    body = b"".join(b"--b1\r\n" + part + b"\r\n" for part in parts)
    return b"\r\n".join(head) + b"\r\n\r\n" + body  # and no closing boundary
