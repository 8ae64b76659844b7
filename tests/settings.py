"""The settings of the tests: those of config.settings, in the safe topology (not the demo), with services of their own.

HANDRAIL_TEST_DB says which database: `sqlite` (the default) or `postgres`. Nothing of this stays in the environment: a process that a
test starts gets what the test gives it, and cannot touch the tests' own database by mistake.
"""

import os

from tests import migrated, postgres, valkey

KIND = os.environ.setdefault("HANDRAIL_TEST_DB", "sqlite")
if KIND not in ("sqlite", "postgres"):
    raise SystemExit(f"HANDRAIL_TEST_DB must be sqlite or postgres, not {KIND!r}.")


# the workers of pytest-xdist find the services of the process that started them
server = postgres.server() if KIND == "postgres" else ""
migrated.share()
broker = os.environ.get("HANDRAIL_TEST_VALKEY") or valkey.start()
data = migrated.own_directory("handrail-test-")
os.environ["HANDRAIL_TEST_VALKEY"] = broker

OURS = {
    "DATA_DIR": str(data / "data"),
    "DATABASE_URL": server,
    "VALKEY_URL": broker,
    "SECRET_KEY": "for tests only " * 5,
    "HANDRAIL_VAULT_KEY": "dGVzdHMgb25seSwgMzIgYnl0ZXMgb2YgdGV4dCBoZXI=",
    "HANDRAIL_URL": "https://handrail.test",
    "HANDRAIL_WORKFLOWS": "examples.support_triage.workflow",
}
NOT_OURS = (
    "HANDRAIL_DEMO",
    "DEBUG",
    "TRUST_PROXY",
    "HOST",
    "PORT",
    "DATABASE_POOL",
    "REDIS_URL",
    "ALLOWED_HOSTS",
    "LOG_FORMAT",
    "LOG_LEVEL",
    "SMTP_URL",
    "SIGN_IN",
    "SSO_ISSUER",
    "SSO_CLIENT_ID",
    "SSO_CLIENT_SECRET",
    "SSO_NAME",
    "MAIL_FROM",
    "PRIVATE_WEBHOOKS",
    "HANDRAIL_VAULT_KEY_OLD",
    "PAYLOAD_INLINE",
    "WEBHOOKS_A_MINUTE",
    "NOTICES_KEPT_DAYS",
    "UPLOAD_MAX",
    "DECISION_STEP_UP_MINUTES",
    "S3_BUCKET",
    "S3_URL",
    "S3_REGION",
    "S3_KEY",
    "S3_SECRET",
    "WORKERS",
    "LEASE_SECONDS",
    "DATABASE_PREPARE",
    "HANDRAIL_OUTSIDE_TOOLS",
    "HANDRAIL_DESK_URL",
    "HANDRAIL_PLAYED_URL",
    "HANDRAIL_STOP_POINTS",
    "HANDRAIL_MODEL_URL",
    "HANDRAIL_MODEL_NAMES",
    "HANDRAIL_MODEL_KEYS",
    "HANDRAIL_MODEL_FALLBACK_URL",
    "HANDRAIL_MODEL_FALLBACK_NAMES",
    "HANDRAIL_MODEL_FALLBACK_KEYS",
    "HANDRAIL_MODEL_PRICES",
    "HANDRAIL_MODEL_CONTEXT",
    "HANDRAIL_MODEL_OUTPUT",
    "HANDRAIL_MODEL_SECONDS",
)
for name in NOT_OURS:
    os.environ.pop(name, None)
os.environ |= OURS

from config.settings import *  # noqa: E402, F403
from config.settings import DATABASES  # noqa: E402

for name in OURS:
    del os.environ[name]

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the real one is slow on purpose
if KIND == "sqlite":
    DATABASES["default"]["TEST"] = {"NAME": data / "data" / "test.sqlite3"}  # a file: threads and other processes share it, as in life
    # nobody cuts the power of this database; everything else about it is as in life
    DATABASES["default"]["OPTIONS"]["init_command"] = DATABASES["default"]["OPTIONS"]["init_command"].replace("=FULL", "=OFF")
WHITENOISE_AUTOREFRESH = True  # else each test client goes through all static files first
