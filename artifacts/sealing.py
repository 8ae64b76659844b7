"""One sealed box: nonce ‖ ciphertext ‖ tag of AES-256-GCM. It opens only with the same key and the same `bound_to`."""

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE = 12


def seal(key: bytes, data: bytes, bound_to: bytes) -> bytes:
    nonce = secrets.token_bytes(_NONCE)
    return nonce + AESGCM(key).encrypt(nonce, data, bound_to)


def unseal(key: bytes, sealed: bytes, bound_to: bytes) -> bytes:
    """InvalidTag if anything of it was changed, or cut."""
    if len(sealed) < _NONCE + 16:
        raise InvalidTag
    return AESGCM(key).decrypt(sealed[:_NONCE], sealed[_NONCE:], bound_to)


def new_key() -> bytes:
    return AESGCM.generate_key(256)
