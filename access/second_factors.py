"""What a person has besides a password: an app that shows codes, recovery codes, passkeys.

django-allauth's own classes make and check them, and python-fido2 below those; this adds what the house wants of them: that secrets lie
sealed, that a code counts once whichever process is asked, and what the audit trail says.
"""

import base64
import json
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from allauth.core import context
from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from allauth.mfa.utils import decrypt
from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest

from access import audit, demo, rules
from access.errors import BadInput
from access.models import User
from config import clock

CODES, RECOVERY, PASSKEY = Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES, Authenticator.Type.WEBAUTHN
MOST_JSON = 20_000  # characters of what a browser says about a passkey
MOST_PASSKEYS = 10


class WrongCode(BadInput):
    """That code is not right."""

    what_next = "Codes change every 30 seconds, and each counts once. Type the one that is shown now."


class WrongPasskey(BadInput):
    """That passkey was not accepted."""

    what_next = "Nothing was changed. Try again, or use another way."


class Adapter(DefaultMFAAdapter):
    """How allauth names us and seals its secrets."""

    def encrypt(self, text: str) -> str:
        return _sealer().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _sealer().decrypt(encrypted_text.encode()).decode()

    def get_totp_issuer(self) -> str:
        return "Handrail"

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        """The place that a passkey is for: the host that people open. ALLOWED_HOSTS has looked at it."""
        return {"id": host_of(context.request), "name": "Handrail"}

    def get_public_key_credential_user_entity(self, user: User) -> dict[str, Any]:
        return {"id": user.pk.hex.encode(), "name": user.email, "display_name": user.name}


def _sealer() -> MultiFernet:
    """By a key that is derived from the vault's master key, and those that it came after."""
    keys = (settings.HANDRAIL_VAULT_KEY, *settings.HANDRAIL_VAULT_KEY_OLD)
    derived = (HKDF(SHA256(), 32, salt=None, info=b"handrail second factors").derive(key) for key in keys)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in derived])


@dataclass(frozen=True)
class Held:
    """What somebody has."""

    codes: Authenticator | None
    recovery_left: int | None  # None: none were ever made
    passkeys: tuple[Authenticator, ...]

    @property
    def any(self) -> bool:
        return self.codes is not None or bool(self.passkeys)


def held(user: User) -> Held:
    found = list(Authenticator.objects.filter(user=user).order_by("created_at"))
    recovery = next((each.wrap().get_unused_codes() for each in found if each.type == RECOVERY), None)
    codes = next((each for each in found if each.type == CODES), None)
    return Held(codes, None if recovery is None else len(recovery), tuple(each for each in found if each.type == PASSKEY))


# codes -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setup:
    """What an app needs to show codes: a secret, in letters and as the path of a QR code `size` squares wide."""

    secret: str
    path: str
    size: int


def setup(request: HttpRequest, user: User) -> Setup:
    """The secret of this session, the same until it is used: a person may come back to the page with the app open."""
    from qrcode import QRCode  # here, as it draws with Pillow

    secret = totp.get_totp_secret()
    code = QRCode(border=2)
    code.add_data(Adapter().build_totp_url(user, secret))
    rows = code.get_matrix()
    path = "".join(f"M{x} {y}h1v1h-1z" for y, row in enumerate(rows) for x, dark in enumerate(row) if dark)
    return Setup(" ".join(secret[at : at + 4] for at in range(0, len(secret), 4)), path, len(rows))


def take_codes(request: HttpRequest, user: User, code: str) -> list[str]:
    """Codes are asked for from now on. Gives the recovery codes, which are shown this once."""
    secret = totp.get_totp_secret()
    if not totp.validate_totp_code(secret, code):
        raise WrongCode
    with transaction.atomic():
        Authenticator.objects.filter(user=user, type=CODES).delete()
        totp.TOTP.activate(user, secret)
        _written(user, "second_factor_added", kind="codes")
        fresh = renew_recovery(user)
    totp.clear_totp_secret(request)
    return fresh


def renew_recovery(user: User) -> list[str]:
    """New recovery codes; the old ones are worth nothing."""
    with transaction.atomic():
        Authenticator.objects.filter(user=user, type=RECOVERY).delete()
        codes = RecoveryCodes.activate(user).generate_codes()
        _written(user, "recovery_codes_made", count=len(codes))
    return codes


def check_code(user: User, code: str) -> str:
    """totp or recovery, whichever it was; "" if it is neither. Each counts once, whoever asks at the same time."""
    typed = "".join(code.split())
    if not typed.isascii() or not 6 <= len(typed) <= 20:
        return ""
    with transaction.atomic():
        app = Authenticator.objects.select_for_update().filter(user=user, type=CODES).first()
        if app is not None and _counts(app, typed):
            return "totp"
        recovery = Authenticator.objects.filter(user=user, type=RECOVERY).first()
        if recovery is not None and recovery.wrap().validate_code(typed):
            Authenticator.objects.filter(pk=recovery.pk).update(last_used_at=clock.now())
            return "recovery"
    return ""


def _counts(app: Authenticator, typed: str) -> bool:
    """Whether this is a code of now, later than any that counted. allauth keeps those in a cache, which each process has its own of."""
    secret = decrypt(app.data["secret"])
    places = totp.yield_hotp_counters_from_time()
    right = (at for at in places if compare_user_code(actual=typed, expected=totp.format_hotp_value(totp.hotp_value(secret, at))))
    place = next(right, None)
    if place is None or place <= app.data.get("counted", 0):
        return False
    Authenticator.objects.filter(pk=app.pk).update(data=app.data | {"counted": place}, last_used_at=clock.now())
    return True


# passkeys --------------------------------------------------------------------------------------------------------------------------


def can_have_passkeys(request: HttpRequest) -> bool:
    """A browser binds a passkey to a name; at a bare address there is none to bind it to."""
    return not demo.is_address(host_of(request).strip("[]"))


def at_a_name(request: HttpRequest, path: str) -> str:
    """The same page of the demo under this machine’s name, where a passkey can be bound to it. Empty where there is no need, or no demo."""
    if can_have_passkeys(request) or not demo.is_open(request):
        return ""
    return f"http://localhost{request.get_host().removeprefix(host_of(request))}{path}"


def host_of(request: HttpRequest) -> str:
    return re.sub(r":[0-9]+$", "", request.get_host())


def _webauthn() -> ModuleType:
    """Imported where it is used: python-fido2 takes a while, and most processes never need it."""
    from allauth.mfa.webauthn.internal import auth

    return auth


def new_passkey_options(user: User) -> dict[str, Any]:
    return plain(_webauthn().begin_registration(user, passwordless=True))


def take_passkey(user: User, name: str, said: str) -> None:
    """Keep a passkey that a browser has just made."""
    if Authenticator.objects.filter(user=user, type=PASSKEY).count() >= MOST_PASSKEYS:
        raise WrongPasskey(f"You have {MOST_PASSKEYS}, and that is the most. Remove one first.")
    credential = _read(said)
    try:
        _webauthn().complete_registration(credential)
    except (ValidationError, ValueError, TypeError, KeyError, AttributeError):
        raise WrongPasskey from None
    with transaction.atomic():
        _webauthn().WebAuthn.add(user, name.strip()[:60] or "Passkey", credential)
        _written(user, "second_factor_added", kind="passkey")


def passkey_options(user: User | None = None) -> dict[str, Any]:
    """What a browser is to sign: for this person's passkeys, or for any that it has for this place."""
    return plain(_webauthn().begin_authentication(user))


def by_passkey(said: str) -> User:
    """Whose passkey signed what was asked last in this session."""
    credential = _read(said)
    try:
        user = _webauthn().extract_user_from_response(credential)
        used = _webauthn().complete_authentication(user, credential)
    except (ValidationError, ValueError, TypeError, KeyError, AttributeError):
        raise WrongPasskey from None
    Authenticator.objects.filter(pk=used.pk).update(last_used_at=clock.now())
    return user


def remove(user: User, pk: int) -> bool:
    """Take one away; with the last of them the recovery codes go too. False if it is not there."""
    with transaction.atomic():
        found = Authenticator.objects.select_for_update().filter(user=user, pk=pk).exclude(type=RECOVERY).first()
        if found is None:
            return False
        Authenticator.objects.filter(pk=found.pk).delete()
        if not held(user).any:
            Authenticator.objects.filter(user=user).delete()
        _written(user, "second_factor_removed", kind="codes" if found.type == CODES else "passkey")
    return True


def plain(options: dict[str, Any]) -> dict[str, Any]:
    """What a browser's own parser of such options takes."""
    return json.loads(json.dumps(options, default=dict))["publicKey"]


def _read(said: str) -> dict[str, Any]:
    try:
        credential = json.loads(said[:MOST_JSON])
    except ValueError:
        raise WrongPasskey from None
    if not isinstance(credential, dict) or not isinstance(credential.get("response"), dict):
        raise WrongPasskey
    return credential


def _written(user: User, verb: str, **data: Any) -> None:
    actor = rules.person(user.pk)
    audit.record(actor, verb, workspace_id=actor.home, subject=("user", user.pk), **data)
