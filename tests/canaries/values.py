"""Secret and private values, each made up anew for the place it is planted in, so that one that comes out says where it went in.

`KINDS` has what the house hides everywhere, `PERSONAL` what it hides under the label personal, `BY_KEY` what it knows by its key in
JSON. Each makes a well-formed value out of a number below a million, which is its end.
"""

import base64
import html
import json
import quopri
from collections.abc import Callable, Mapping
from urllib.parse import quote

Make = Callable[[int], str]
_PAD = "Kq7Zw3Xv9Rt5Yp2Lm8Nb4Hd6Jf1Gs"  # what looks like a key


def _luhn(body: str) -> str:
    total = sum(int(c) if i % 2 else sum(divmod(2 * int(c), 10)) for i, c in enumerate(reversed(body)))
    return body + str(-total % 10)


def _card(prefix: str, length: int, *groups: int) -> Make:
    def make(n: int) -> str:
        digits = _luhn((prefix + "739158264")[: length - 7] + f"{n:06d}")
        parts, at = [], 0
        for size in groups or (length,):
            parts.append(digits[at : at + size])
            at += size
        return " ".join(parts)

    return make


def _iban(country: str, bank: str, length: int, *, groups: bool = False) -> Make:
    def make(n: int) -> str:
        account = bank + f"{n:06d}".zfill(length - 4 - len(bank))
        turned = "".join(str(int(c, 36)) for c in account + country + "00")
        whole = f"{country}{98 - int(turned) % 97:02d}{account}"
        return " ".join(whole[i : i + 4] for i in range(0, length, 4)) if groups else whole

    return make


def _key(before: str, length: int, alphabet: str = _PAD) -> Make:
    """A key of some maker: its mark, and so many characters of which the number is the end."""
    return lambda n: before + (alphabet * 9)[: length - 6] + f"{n:06d}"


_B64 = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDqX4Zb"
KINDS: Mapping[str, Make] = {
    "card visa": _card("4", 16, 4, 4, 4, 4),
    "card mastercard": _card("53", 16),
    "card mastercard 2": _card("2223", 16, 4, 4, 4, 4),
    "card amex": _card("37", 15, 4, 6, 5),
    "card discover": _card("6011", 16, 4, 4, 4, 4),
    "card jcb": _card("3530", 16),
    "card unionpay": _card("62", 16, 4, 4, 4, 4),
    "iban german": _iban("DE", "37040044", 22, groups=True),
    "iban british": _iban("GB", "NWBK601613", 22),
    "iban french": _iban("FR", "2004101005", 27, groups=True),
    "iban dutch": _iban("NL", "ABNA", 18, groups=True),
    "iban polish": _iban("PL", "10901014", 28),
    "aws key": _key("AKIA", 16, "QWERTZUIOPASDFGH"),
    "aws secret": _key("aws_secret_access_key=", 40),
    "github": _key("ghp_", 36),
    "github fine": _key("github_pat_", 60),
    "gitlab": _key("glpat-", 20),
    "slack": _key("xoxb-", 40),
    "slack hook": lambda n: f"https://hooks.slack.com/services/T0{n:06d}/B0{n:06d}/{_PAD[:18]}{n:06d}",
    "stripe": _key("sk_live_", 24),
    "stripe hook": _key("whsec_", 32),
    "google": _key("AIza", 35),
    "openai": _key("sk-proj-", 40),
    "anthropic": _key("sk-ant-api03-", 60),
    "hugging face": _key("hf_", 34),
    "npm": _key("npm_", 36),
    "pypi": _key("pypi-AgEIcHlwaS5vcmc", 80),
    "sendgrid": lambda n: f"SG.{_PAD[:22]}.{(_PAD * 2)[:37]}{n:06d}",
    "twilio": _key("SK", 32, "0a1b2c3d4e5f"),
    "shopify": _key("shpat_", 32, "0a1b2c3d4e5f"),
    "digitalocean": _key("dop_v1_", 64, "0a1b2c3d4e5f"),
    "telegram": lambda n: f"8123{n:06d}:AA{_PAD[:27]}{n:06d}",
    "vault": _key("hvs.", 40),
    "handrail key": _key("hr_", 43),
    "handrail provisioner": _key("hrp_", 43),
    "jwt": lambda n: f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{_PAD}Q{n:06d}",
    "private key": lambda n: f"-----BEGIN PRIVATE KEY-----\n{_B64}\n{_PAD}{n:06d}\n-----END PRIVATE KEY-----",
    "ssh key": lambda n: f"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n{_PAD}{n:06d}\n-----END OPENSSH PRIVATE KEY-----",
    "password": _key("password: ", 16),
    "password in a url": lambda n: f"postgres://app:pwQ7x{_PAD[:6]}{n:06d}@db.northwind.example/app",
    "password in words": lambda n: f"the password is Tr0ub4dor{n:06d}",
    "connection string": lambda n: f"Server=db.northwind.example;Uid=sa;Pwd=Zebra{_PAD[:5]}{n:06d}",
    "bearer": lambda n: f"Authorization: Bearer {_PAD}{n:06d}",
    "cookie": lambda n: f"Cookie: sid={_PAD[:12]}{n:06d}",
    "header key": lambda n: f"X-Api-Key: {_PAD[:12]}{n:06d}",
    "path unix": lambda n: f"/home/canary/acme/plan{n:06d}",
    "path var": lambda n: f"/var/lib/canary/state/db{n:06d}",
    "path windows": lambda n: f"C:\\Users\\canary\\acme\\plan{n:06d}",
    "path share": lambda n: f"\\\\canaryserver\\finance\\plan{n:06d}",
    "path file": lambda n: f"file:///srv/canary/state{n:06d}",
    "path home": lambda n: f"~/canary/.acme/plan{n:06d}",
}
PERSONAL: Mapping[str, Make] = {
    "email": lambda n: f"canary.person{n:06d}@northwind.example",
    "email odd": lambda n: f"jörg+canaryperson{n:06d}@müller.example",
    "phone plus": lambda n: f"+49 30 7391 {n:06d}",
    "phone zero": lambda n: f"0049 170 7391{n:06d}",
    "phone brackets": lambda n: f"+1 (555) 739-1{n // 1000:03d}-{n % 1000:03d}",
    "phone link": lambda n: f"tel:+441632739{n:06d}",
}
# only by the key in front of them can anybody know these
BY_KEY: Mapping[str, Callable[[int], str]] = {
    "prompt": lambda n: json.dumps({"system_prompt": f"You are the helpful canary number{n:06d}"}),
    "hook body": lambda n: json.dumps({"hook_body": {"on": "start", "run": f"canaryhook number{n:06d}"}}),
    "password by key": lambda n: json.dumps({"db_password": f"zebra canary{n:06d}"}),
    "internal score": lambda n: json.dumps({"internal_score": float(f"0.7391582640{n:06d}1")}),
}


def core(kind: str, value: str) -> str:
    """What of a value must not be seen: without the words around it that make it known."""
    if kind == "slack hook":
        return value[-24:]
    if kind.endswith("key") and "BEGIN" in value:
        return value.split("\n")[2]
    if kind == "password in a url":
        return value.partition("app:")[2].partition("@")[0]
    if kind.startswith("email"):
        return value.partition("@")[0]
    if kind in BY_KEY:
        return value.rstrip('}"')
    return value.rpartition("=")[2] if "=" in value else value


# How a value is dressed ------------------------------------------------------------------------------------------------------------------


def _split(value: str) -> str:
    """Broken to fit, as mail and terminals do, where a reader would join it again."""
    at = len(value) - 9
    at = value.rfind(" ", 0, at) + 1 or at
    return value[:at].rstrip(" ") + "\n" + value[at:]


DRESSES: Mapping[str, Callable[[str], str]] = {
    "plain": str,
    "split": _split,
    "base64": lambda value: base64.b64encode(f"you see {value} there".encode()).decode(),
    "url": lambda value: quote(value, safe=""),
    "entities": lambda value: "".join(f"&#{ord(c)};" for c in value),
    "escaped": lambda value: html.escape(value),
    "quoted-printable": lambda value: quopri.encodestring(value.encode(), quotetabs=True).decode().replace("=20", " "),
    "json in a string": lambda value: json.dumps(json.dumps({"said": f"it is {value} ."})),
    "key": lambda value: json.dumps({value: 1}),
    "hex": lambda value: f"you see {value} there".encode().hex(),
}
