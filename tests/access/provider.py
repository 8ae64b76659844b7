"""A provider of OpenID Connect as a program, for tests: `python -m tests.access.provider --port 4000`. oidc-provider-mock does the work.

It can be told to be wrong: `PUT /faults` with {"nonce": "…"}, {"lasts": -3600}, {"issuer": "…"}, {"key": "another"}, {"auth_time": …}.
It holds callers to PKCE, which oidc-provider-mock does not, and says at `GET /seen` what it was asked for last.
"""

import argparse
import base64
import hashlib
import json
import os
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, urlencode

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # on this machine alone

import oidc_provider_mock
import werkzeug.serving
from authlib.jose import JsonWebKey
from oidc_provider_mock import _app

FAULTS: dict[str, Any] = {}
SEEN: dict[str, str] = {}
Environ, Start = dict[str, Any], Callable[..., Any]

_config = _app.OpenIDCode.get_jwt_config


def config(self: Any, grant: Any, client: Any = None) -> dict[str, Any]:
    told = _config(self, grant, client)
    if "lasts" in FAULTS:
        told["exp"] = FAULTS["lasts"]
    if "issuer" in FAULTS:
        told["iss"] = FAULTS["issuer"]
    if "key" in FAULTS:
        told["key"] = JsonWebKey.generate_key("RSA", 2048, {"kid": told["key"].get("kid")}, is_private=True).as_dict(is_private=True)
    return told


_app.OpenIDCode.get_jwt_config = config
_app.AuthorizationCode.get_auth_time = lambda self: FAULTS.get("auth_time")  # none: now


class Provider:
    def __init__(self) -> None:
        self.inner = oidc_provider_mock.app()

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(body)
        match environ["REQUEST_METHOD"], environ["PATH_INFO"]:
            case "PUT", "/faults":
                FAULTS.clear()
                FAULTS.update(json.loads(body))
                return answer(start, {})
            case "GET", "/seen":
                return answer(start, SEEN)
            case _, "/oauth2/authorize":
                asked = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"]).items()}
                SEEN.clear()
                SEEN.update(asked)
                environ["QUERY_STRING"] = urlencode(asked | ({"nonce": FAULTS["nonce"]} if "nonce" in FAULTS else {}))
            case "POST", "/oauth2/token":
                verifier = parse_qs(body.decode()).get("code_verifier", [""])[0]
                digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
                if SEEN.get("code_challenge_method") != "S256" or SEEN.get("code_challenge") != digest:
                    return answer(start, {"error": "invalid_grant"}, "400 Bad Request")
        return self.inner(environ, start)


def answer(start: Start, told: Any, status: str = "200 OK") -> list[bytes]:
    start(status, [("Content-Type", "application/json")])
    return [json.dumps(told).encode()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    werkzeug.serving.run_simple("localhost", parser.parse_args().port, Provider(), threaded=True)
