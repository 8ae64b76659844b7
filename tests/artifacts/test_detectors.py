"""What must not be shown is found, however it is dressed; what may be shown is left alone."""

import base64
import html
import json
import quopri
import re
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts import detectors, machinery, readings
from artifacts.detectors import CARD, EMAIL, IBAN, KINDS, PATH, PHONE, SECRET, find

# Made up, and written in two parts so that no scanner takes them for real ones
TOKENS = [
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ASIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_" + "11AAAAAAA0abcdefghijkl_mnopqrstuvwxyz",
    "glpat-" + "x1Y2z3A4b5C6d7E8f9G0",
    "xoxb-" + "123456789012-abcdefABCDEF",
    "https://hooks.slack.com/" + "services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    "sk_live_" + "51Habcdefghijkl",
    "rk_test_" + "51Habcdefghijkl",
    "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "GOCSPX-" + "abcdefghijklmnopqrstuvwxyz12",
    "ya29." + "a0AfH6SMBabcdefghijklmnopqrst",
    "sk-" + "proj-abcdefghij1234567890",
    "sk-ant-" + "api03-abcdefghij1234567890",
    "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "SG." + "abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789abcdefg",
    "dop_v1_" + "0123456789abcdef" * 4,
    "shpat_" + "0123456789abcdef" * 2,
    "hr_" + "Zk3mP0s7w9dQeXr5tYu2iOa8LbNcVf4hJg6kM1zRTqW",
    "hrp_" + "Zk3mP0s7w9dQeXr5tYu2iOa8LbNcVf4hJg6kM1zRTqW",
    "8123456789:" + "AAF1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P",
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "$2b$12$" + "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQ",
    "$argon2id$" + "v=19$m=65536,t=3,p=4$c29tZXNhbHQ$RdescudvJCsgt3ub",
]
CARDS = [
    "4111 1111 1111 1111",
    "4111-1111-1111-1111",
    "4111111111111111",
    "4111.1111.1111.1111",
    "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
    "5555 5555 5555 4444",
    "2223 0031 2200 3222",
    "3782 822463 10005",
    "378282246310005",
    "6011 1111 1111 1117",
    "3530 1113 3330 0000",
    "3056 930902 5904",
    "6200 0000 0000 0005",
    "4000 0000 0000 0000 006",
    "4111 11\n11 1111 1111",
    "4111 1111 1111\r\n> 1111",
    "41111111\n11111111",
]
IBANS = [
    "DE89 3704 0044 0532 0130 00",
    "DE89370400440532013000",
    "de89370400440532013000",
    "GB29 NWBK 6016 1331 9268 19",
    "FR14-2004-1010-0505-0001-3M02-606",
    "NO93 8601 1117 947",
    "MT84 MALT 0110 0001 2345 MTLC AST0 01S",
    "NL91 ABNA 0417\n1643 00",
]
PATHS = [
    "/home/marta/notes.txt",
    "/Users/Marta Oyelaran/Documents/plan.txt",
    "/var/log/syslog",
    "/tmp/x",
    "/etc/passwd",
    "~/.ssh/id_ed25519",
    "$HOME/.aws/credentials",
    r"C:\Users\marta\secret.docx",
    "D:/build/agent/out.log",
    r"\\fileserver\finance\2026.xlsx",
    "%APPDATA%\\Agent\\state.db",
    "file:///srv/agent/state.json",
    "/opt/agent/venv/lib/python3.11/site-packages/x.py",
]
EMAILS = [
    "marta@northwind.example",
    "m.o+tickets@sub.northwind.example",
    "jörg@müller.example",
    "用户@例子.example",
    "root@localhost",
    '"odd name"@northwind.example',
    "ops@[192.0.2.7]",
]
PHONES = [
    "+49 30 901820",
    "+1 (555) 010-0199",
    "0049 170 1234567",
    "030 901 820 11",
    "(0)20 7946 0958",
    "tel:+441632960961",
    "555-010-0199",
]

SAMPLES = [
    *((SECRET, value) for value in TOKENS),
    *((CARD, value) for value in CARDS),
    *((IBAN, value) for value in IBANS),
    *((PATH, value) for value in PATHS),
    *((EMAIL, value) for value in EMAILS),
    *((PHONE, value) for value in PHONES),
]


@pytest.mark.parametrize(("kind", "value"), SAMPLES, ids=lambda v: ascii(v)[:40])
@pytest.mark.parametrize("around", ["{}", "It is {} as told.", "a: <{}>, b", "«{}»", "\n{}\n", "({})", "“{}”.", "x,{},y", "[{}]"])
def test_a_value_is_found_whole_in_running_text(kind: str, value: str, around: str) -> None:
    text = around.format(value)
    found = [f for f in find(text, kinds={kind}) if f.kind == kind]
    assert [text[f.start : f.end] for f in found] == [value.removeprefix("https://")]


PAIRS = {
    "password=hunter2": "hunter2",
    "Password: hunter": "hunter",
    'DB_PASSWORD="two words"': "two words",
    "dbPassword = 'x'": "x",
    "passphrase: correct-horse": "correct-horse",
    "Passwort: geheim": "geheim",
    "Kennwort lautet geheim1": "geheim1",
    "mot de passe : azerty": "azerty",
    "contraseña: clave": "clave",
    "пароль: секрет": "секрет",
    "密码:abc": "abc",
    "パスワード:ひみつ": "ひみつ",
    "The password is hunter2.": "hunter2",
    "api_key=abc": "abc",
    "X-Api-Key: abc123": "abc123",
    "apiKey: 'abc'": "abc",
    "client_secret=q": "q",
    "https://x.example/cb?access_token=abc&state=1": "abc",
    "https://x.example/?sig=abcdefgh1&x=1": "abcdefgh1",
    '{"secret": "a \\" b"}': 'a \\" b',
    "Authorization: Digest username=x, response=y": "Digest username=x, response=y",
    "Cookie: sid=1; theme=dark": "sid=1; theme=dark",
    "--password hunter2 --verbose": "hunter2",
    "--api-key=abc": "abc",
    "<password>hunter2</password>": "hunter2",
    '<db:Password type="x">hunter2</db:Password>': "hunter2",
    "| Password | hunter2 |": "hunter2",
    "Password:\n  hunter2": "hunter2",
    "PIN: 4711": "4711",
    "CVV 2: no": "",
    "cvv: 123": "123",
    "Server=db;Uid=sa;Pwd=abc12345;Timeout=3": "abc12345",
    "DefaultEndpointsProtocol=https;AccountKey=abc==;x=1": "abc==",
    "Authorization: Bearer abcdefghijkl123": "Bearer abcdefghijkl123",
    "curl -H 'Bearer abcdefghijkl123'": "abcdefghijkl123",
    "signing key -> Zx81kQ92mmP0aL3bT7yU": "Zx81kQ92mmP0aL3bT7yU",
    "postgres://app:s3cr3t@db.example/app": "app:s3cr3t",
    "https://:tok@x.example": ":tok",
    "amqp://u:p@ss@x.example": "u:p@ss",
}


@pytest.mark.parametrize(("text", "value"), PAIRS.items())
def test_a_secret_is_known_by_the_word_in_front_of_it(text: str, value: str) -> None:
    found = [text[f.start : f.end] for f in find(text, kinds={SECRET})]
    assert found == ([value] if value else [])


CASES = [("i", "\u0131"), ("I", "\u0130"), ("s", "\u017f"), ("k", "\u212a"), ("о", "\u1c82")]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("signature", "aB3dE5fG7hI9jK1lM2nO3pQ4"),
        ("SIGNATURE", "aB3dE5fG7hI9jK1lM2nO3pQ4"),
        ("pin", "83645"),
        ("SESSION-ID", "abc-12345"),
        ("cookie", "x=12345678"),
        ("пароль", "abc-12345"),
        ("internal_score", "8"),
        ("system_prompt", "Be brief."),
    ],
)
@pytest.mark.parametrize(("letter", "odd"), CASES)
def test_a_word_is_known_in_every_letter_that_is_one_of_its_own_in_another_case(word: str, value: str, letter: str, odd: str) -> None:
    text = f"{word.replace(letter, odd)}: {value}"
    assert [text[found.start : found.end] for found in find(text)] == [value]


def test_what_is_looked_for_first_is_there_in_whatever_case_a_pattern_takes() -> None:
    every = "".join(map(chr, range(0x110000)))
    for letter in {letter for needle in detectors._ALL_NEEDLES.union(detectors._KEYWORDS, machinery._MACHINES) for letter in needle}:
        same = re.findall(re.escape(letter), every, re.IGNORECASE)
        assert {readings.lowered(each) for each in same} == {letter}


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("About Authorization: Bearer abc1234567890 and Cookie:\nsid=QWERTZ123456, they said", "About Authorization: \n"),
        ("Cookie:\nsid=1 Cookie:\n> sid=2", "Cookie:\n\n> "),
        ("api_key=abc1,password:\nhunter2 was it", "api_key=\n was it"),
        ("token=abcdefgh1,pwd:\r\nhunter22", "token=\r\n"),
    ],
)
def test_a_name_that_stands_at_the_end_of_another_secret_tells_of_the_next_line(text: str, rest: str) -> None:
    assert _without(text, {SECRET}) == rest


PEM = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\nAAAAMwAAAAtzc2gt\n-----END OPENSSH PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"before\n{PEM}\nafter", "before\n\nafter"),
        (f"a {PEM} b {PEM} c", "a  b  c"),
        (PEM.split("-----END")[0] + "and everything after it", ""),
        (json.dumps({"key": PEM}), '{"key": ""}'),
        (PEM.replace("OPENSSH ", "").replace("\n", " "), ""),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQdGBF\n-----END PGP PRIVATE KEY BLOCK-----", ""),
    ],
)
def test_a_private_key_is_hidden_from_its_first_line_to_its_last(text: str, rest: str) -> None:
    assert _without(text, {SECRET}) == rest


HARMLESS = [
    "Please reset my password, I forgot it.",
    "The password is wrong.",
    "password: null",
    "password: ${DB_PASSWORD}",
    "password={{ vault.db }}",
    "password: [secret hidden]",
    'has_password: true, "token": null',
    "Secret Santa was fun",
    "max_tokens=1000, total_tokens: 5321",
    "token_count: 12",
    "The compass: north",
    "Order 4111 1111 1111 1112",  # Luhn fails
    "Invoice 20240501123000 of 2024-05-01",
    "1717171717171717",  # a time in microseconds
    "0.4111111111111111",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "0198c0de-7000-7000-8000-000000000001",
    "Idempotency-Key: 0198c0de-7000-7000-8000-000000000001",
    "key: reports/2026/november/INV-21077.pdf",
    "Message key order-2026-support-triage-001",
    "DE89 3704 0044 0532 0130 01",  # the remainder is not 1
    "XX89 3704 0044 0532 0130 00",
    "ISO 13616, RFC 8785, INV-21077, RN-7Q4K",
    "GET /api/v1/runs/7 HTTP/1.1",
    "https://x.example/home/user/page",
    "https://handrail.example:8443/@team/x",
    "and/or, 1/2, n/a, km/h",
    "a C: drive, 12:30",
    "git commit 4f2a9c1d8e",
    "version 3.11.7, 192.0.2.10, 2026-11-29 14:12, 29.11.2026",
    "€1,284.00 and 1.284,00 EUR",
    "PT 509 442 013",
    "@mention and a @ b",
    "dGhpcyBpcyBqdXN0IGEgc2VudGVuY2U=",  # this is just a sentence
    "aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ=",
    "",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_is_left_alone(text: str) -> None:
    kinds = set(KINDS) - {PHONE}
    assert [(f.kind, text[f.start : f.end]) for f in find(text, kinds=kinds)] == []


@pytest.mark.parametrize(
    "text", ["2026-11-29", "29.11.2026", "192.0.2.10", "12:30", "INV-21077", "€1,284.00", "0.25", "RN-7Q4K", "12 345", "v3.11.7", "1284.00"]
)
def test_dates_amounts_and_addresses_of_machines_are_no_telephone_numbers(text: str) -> None:
    assert find(f"On {text} we wrote.", kinds={PHONE}) == ()


@pytest.mark.parametrize("number", ["PT 509 442 013", "PT509 442 013", "DE 812 345 678", "IT 123 456 789 01"])
def test_a_tax_number_is_no_telephone_number(number: str) -> None:
    assert find(f"Our number is {number}.", kinds={PHONE}) == ()
    assert find(f"Call {number.split()[0][:2]} 0{number[3:]}.", kinds={PHONE}) != ()


# Disguises


def _fullwidth(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def _digits_of(script: str) -> Callable[[str], str]:
    zero = ord(script)
    return lambda text: "".join(chr(zero + int(c)) if c.isdigit() else c for c in text)


DISGUISES: dict[str, Callable[[str], str]] = {
    "base64": lambda t: base64.b64encode(f"x: {t} y".encode()).decode(),
    "base64url": lambda t: base64.urlsafe_b64encode(f"x: {t} ÿ?".encode()).decode().rstrip("="),
    "base64 in lines": lambda t: base64.encodebytes(f"{'some text in front of it. ' * 6}{t} y".encode()).decode(),
    "base64 of base64": lambda t: base64.b64encode(base64.b64encode(f"see {t} !".encode())).decode(),
    "base64 of utf-16": lambda t: base64.b64encode(f"see {t} !".encode("utf-16-le")).decode(),
    "hex": lambda t: f"see {t} !".encode().hex(),
    "url": lambda t: urllib.parse.quote(f" {t} ", safe=""),
    "url twice": lambda t: urllib.parse.quote(urllib.parse.quote(f" {t} ", safe=""), safe=""),
    "every character url": lambda t: "".join(f"%{b:02x}" for b in f" {t} ".encode()),
    "html entities": lambda t: "".join(f"&#{ord(c)};" for c in t),
    "html entities in hex": lambda t: "".join(f"&#x{ord(c):x};" for c in html.unescape(t)),
    "json escapes": lambda t: "".join(f"\\u{ord(c):04x}" for c in t),
    "json in a string": lambda t: json.dumps(json.dumps({"note": f"see {t} there"})),
    "quoted-printable": lambda t: quopri.encodestring("".join(f"={b:02X}" for b in t.encode()).encode()).decode().replace("=3D", "="),
    "fullwidth": _fullwidth,
    "zero-width spaces": lambda t: "\u200b".join(t),
    "soft hyphens": lambda t: "\u00ad".join(t),
    "bidi marks": lambda t: "\u202e" + "\u2066".join(t),
    "tag characters": lambda t: "\U000e0061".join(t),
    "variation selectors": lambda t: "\ufe0f".join(t),
    "combining marks": lambda t: "\u0336".join(t),
    "null bytes": lambda t: "\0".join(t),
    "object replacements": lambda t: "\ufffc".join(t),
    "bytes that are no text": lambda t: "\ufffd".join(t),
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("value", ["4111 1111 1111 1111", "DE89370400440532013000", TOKENS[0], TOKENS[7], TOKENS[2], "password=hunter2"])
def test_a_disguised_value_does_not_show(value: str, disguise: str) -> None:
    text = f"before {DISGUISES[disguise](value)} after"
    rest = _without(text, set(KINDS), readings.HIDDEN)
    assert find(text), text
    assert rest.startswith("before")
    assert rest.endswith("after") or disguise == "base64 in lines"  # where a block of lines ends cannot be known
    assert find(rest, has_marks=True) == (), rest
    assert value.removeprefix("password=").replace(" ", "") not in _laid_bare(rest).replace(" ", "")


@pytest.mark.parametrize("value", [PATHS[0], EMAILS[0], r"C:\Users\marta\x"])
@pytest.mark.parametrize("disguise", ["base64", "url", "html entities", "json in a string", "fullwidth", "zero-width spaces"])
def test_a_disguised_path_or_address_does_not_show(value: str, disguise: str) -> None:
    assert find(f"see {DISGUISES[disguise](value)} !", kinds={PATH, EMAIL})


@pytest.mark.parametrize("script", ["٠", "۰", "०", "０", "𝟎", "𝟘"])
def test_digits_of_other_scripts_are_digits(script: str) -> None:
    text = _digits_of(script)("4111 1111 1111 1111")
    assert _without(f"a {text} b", {CARD}) == "a  b"


@pytest.mark.parametrize("cut", range(1, 30, 3))
@pytest.mark.parametrize("break_", ["\n", "\r\n", "  \n  ", "\n> ", "=\n", "\\\n", '" +\n  "', "' + '"])
def test_a_key_broken_over_two_lines_does_not_show(cut: int, break_: str) -> None:
    key = TOKENS[2]
    text = f'"{key[:cut]}{break_}{key[cut:]}" is it'
    rest = _without(text, {SECRET})
    assert key[cut:] not in rest if cut < 15 else key[:cut] not in rest


def test_a_key_at_the_end_of_a_line_does_not_swallow_the_next_word() -> None:
    text = f"My key is {TOKENS[7]}\nThanks, Marta"
    assert _without(text, {SECRET}) == "My key is \nThanks, Marta"


@given(st.data())
def test_disguises_over_disguises_are_seen_through(data: st.DataObject) -> None:
    value = data.draw(st.sampled_from(["4111 1111 1111 1111", TOKENS[0], "DE89370400440532013000"]))
    names = data.draw(
        st.lists(st.sampled_from(["base64", "url", "hex", "json in a string", "html entities in hex", "zero-width spaces"]), max_size=3)
    )
    text = value
    for name in names:
        text = DISGUISES[name](text)
    assert find(text), (names, text)


# Views


@given(st.text(), st.data())
def test_a_view_knows_where_each_stretch_of_it_came_from(text: str, data: st.DataObject) -> None:
    for make in (readings.folded, readings.unescaped, readings.joined):
        view = make(text)
        if view and view.text:
            start = data.draw(st.integers(0, len(view.text) - 1))
            end = data.draw(st.integers(start + 1, len(view.text)))
            begin, until = view.source(start, end)
            assert 0 <= begin < until <= len(text)
            if start == 0 and end == len(view.text):
                assert make(text[begin:until]) is None or make(text[begin:until]).text == view.text  # type: ignore[union-attr]


@given(st.text(st.characters(codec="utf-8")))
@settings(max_examples=300)
def test_findings_are_in_order_and_do_not_overlap(text: str) -> None:
    _check(text)


WORDS = st.sampled_from(
    [
        *TOKENS,
        *CARDS,
        *IBANS,
        *PATHS,
        *EMAILS,
        *PHONES,
        *PAIRS,
        *HARMLESS,
        "⟦card⟧",
        "\n",
        " ",
        "=",
        ":",
        '"',
        "\\",
        "%20",
        "&#52;",
        "<b>",
        "\ufffc",
    ]
)


@given(st.lists(WORDS, max_size=8).map("".join))
@settings(max_examples=300, deadline=None)
def test_findings_of_pieced_together_text_are_in_order(text: str) -> None:
    _check(text)


# Work: eight times the text may take sixteen times the time. A pattern that tries each end for each beginning would take sixty-four times

HOSTILE = {
    "letters": "a",
    "digits": "4",
    "spaced digits": "4 ",
    "dashes": "-",
    "at signs": "@",
    "a@": "a@",
    "a@a.": "a@a.",
    "dots": ".",
    "slashes": "/",
    "/home/": "/home/",
    "backslashes": "\\",
    "C:\\": "C:\\a ",
    "quotes": '"',
    "escaped quotes": '\\"',
    "newlines": "\n",
    "a newline": "a\n",
    "spaces": " ",
    "password": "password ",
    "password=": "password=",
    'password="': 'password="',
    "password is": "password is ",
    "key": "key",
    "token:": "token:",
    "eyJ": "eyJ",
    "eyJa.": "eyJaaaaaaaaa.",
    "AKIA": "AKIA",
    "sk-": "sk-",
    "ghp_": "ghp_",
    "xoxb-": "xoxb-",
    "private keys": "-----BEGIN PRIVATE KEY-----",
    "://": "a://",
    "://a:": "a://a:",
    "tags": "<a",
    "password tags": "<password>",
    "percent": "%",
    "%2": "%2",
    "%41": "%41",
    "ampersands": "&",
    "&amp;": "&amp;",
    "&#": "&#4",
    "iban": "DE89",
    "iban apart": "DE89 ",
    "plus": "+1",
    "brackets": "(1)",
    "zero-width": "\u200b",
    "combining": "a\u0336",
    "hex": "ab",
    "base64": "QUJD",
    "base64 words": "QUJDREVGR0hJSktM ",
    "marks": "⟦",
    "pipes": "| ",
    "equals": "=",
    "cookie": "cookie: ",
    "names over lines": "cookie:\npassword:\n",
    "bearer": "bearer ",
    "doubled quotes": 'a""',
    "hook bodies": "hook_body:",
    "prompts": '"prompt": {',
    "quoted prompts": '"prompt": "',
    "phones over lines": "+49 1\n",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_the_work_stays_in_proportion_to_the_text(unit: str) -> None:
    small, large = (unit * (size // len(unit)) for size in (8_000, 64_000))
    assert _steps(large) <= _steps(small) * 8 * 2 + 2_000


def _steps(text: str) -> int:
    """The work for a text, as the processor's time in microseconds: best of three, so that only the ratio of two of them counts."""
    import time

    def once() -> int:
        begin = time.process_time_ns()
        find(text)
        return (time.process_time_ns() - begin) // 1_000

    return min(once() for _ in range(3))


def _check(text: str) -> None:
    at = 0
    for found in find(text):
        assert at <= found.start < found.end <= len(text)
        assert found.kind in KINDS
        at = found.end


def _without(text: str, kinds: set[str], mark: str = "") -> str:
    parts, at = [], 0
    for found in find(text, kinds=kinds):
        parts += [text[at : found.start], mark]
        at = found.end
    return "".join([*parts, text[at:]])


def _laid_bare(text: str) -> str:
    """The text in every reading of it, one after the other."""
    texts, said = [text], [text]
    for _ in range(3):
        views = [make(text) for text in texts for make in (readings.folded, readings.unescaped, readings.joined)]
        texts = [view.text for view in views if view] + [blob for text in texts for *_, blob in readings.blobs(text)]
        said += texts
    return "\n".join(said)


def test_each_detector_finds_something_that_no_other_needs_to() -> None:
    assert {kind for kind, _ in detectors.DETECTORS} == set(KINDS)
