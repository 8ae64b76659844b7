"""Every setting, read from the environment. README.md has the table. It starts safe: a thing that would weaken it has to be asked for."""

import base64
import importlib.util
import secrets
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import dj_database_url

from config import datadir, env

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = env.path("DATA_DIR", BASE_DIR / "data")
DEMO = env.flag("HANDRAIL_DEMO")  # a newcomer's machine: loopback only, sign-in by a click, secrets made and kept in DATA_DIR
DEBUG = env.flag("DEBUG")
LOOPBACK = ("127.0.0.1", "localhost")
HOST = env.text("HOST", "127.0.0.1")
PORT = env.integer("PORT", 8000, low=1, high=65535)

if DEMO and HOST not in LOOPBACK:
    raise env.OddSetting(f"the demo signs anybody in, so it listens on 127.0.0.1 only, not on HOST={HOST}.")
if DEMO or not env.text("DATABASE_URL"):
    datadir.claim(DATA_DIR)

# --- secrets ---------------------------------------------------------------------------------------------------------------------


def _vault_key(value: str, name: str = "HANDRAIL_VAULT_KEY") -> bytes:
    """32 bytes, written in base64."""
    try:
        key = base64.b64decode(value.replace("-", "+").replace("_", "/") + "=" * (-len(value) % 4), validate=True)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise env.OddSetting(f"{name} must be 32 random bytes in base64, as `openssl rand -base64 32` prints them.")
    return key


if DEMO:
    SECRET_KEY = env.text("SECRET_KEY") or datadir.secret(DATA_DIR, "secret-key", lambda: secrets.token_urlsafe(64))
    HANDRAIL_VAULT_KEY = _vault_key(
        env.text("HANDRAIL_VAULT_KEY") or datadir.secret(DATA_DIR, "vault-key", lambda: base64.b64encode(secrets.token_bytes(32)).decode())
    )
else:
    SECRET_KEY = env.required(
        "SECRET_KEY", "It signs sessions and forms: a random text of 50 characters or more, the same for every process."
    )
    HANDRAIL_VAULT_KEY = _vault_key(
        env.required(
            "HANDRAIL_VAULT_KEY", "It wraps the keys of every payload: 32 random bytes in base64, as `openssl rand -base64 32` prints them."
        )
    )
    if len(SECRET_KEY) < 50:
        raise env.OddSetting("SECRET_KEY must have 50 characters or more.")
# those that it came after: what they sealed opens still, until `manage.py vaultkey rewrap-master` has sealed it anew
HANDRAIL_VAULT_KEY_OLD = tuple(_vault_key(each, "Each of HANDRAIL_VAULT_KEY_OLD") for each in env.secrets("HANDRAIL_VAULT_KEY_OLD"))

# --- where people find it --------------------------------------------------------------------------------------------------------

TRUST_PROXY = env.flag("TRUST_PROXY")  # a proxy in front ends TLS and sets X-Forwarded-Proto and -For, whatever a client sent
if DEMO:
    HANDRAIL_URL = f"http://127.0.0.1:{PORT}"
    ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
else:
    HANDRAIL_URL = env.url("HANDRAIL_URL", schemes=("https",)).rstrip("/")
    if not HANDRAIL_URL:
        raise env.OddSetting("HANDRAIL_URL is not set. It is the address people open, as https://handrail.example.org.")
    ALLOWED_HOSTS = [str(urlsplit(HANDRAIL_URL).hostname), *env.words("ALLOWED_HOSTS", each=r"[A-Za-z0-9.:\[\]-]+")]
    CSRF_TRUSTED_ORIGINS = [HANDRAIL_URL]

# --- the house -------------------------------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "allauth.account",  # allauth.mfa reads its models; its pages and addresses are not used
    "allauth.mfa",
    "access",
    "artifacts",
    "runs",
    "approvals",
    "config",
]
EXAMPLES = (
    "examples.support_triage.workflow",
    "examples.support_triage.loop",
    "examples.support_triage.played",
    "examples.support_triage.follow_up",
    "examples.support_triage.renewals",
    "examples.support_triage.terms",
    "examples.back_office.workflow",
    "examples.billing_desk.workflow",
)
HANDRAIL_DESK_URL = env.url("HANDRAIL_DESK_URL", "http://127.0.0.1:8001", schemes=("http",)) if DEMO else ""  # the demo's outside world
HANDRAIL_WORKFLOWS = env.words("HANDRAIL_WORKFLOWS", EXAMPLES if DEMO else (), each=r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
# files that declare the tools which agents outside run themselves; see docs/agents-outside.md
HANDRAIL_OUTSIDE_TOOLS = env.words("HANDRAIL_OUTSIDE_TOOLS", (str(BASE_DIR / "examples/outside_loop/tools.json"),) if DEMO else ())
HANDRAIL_LEASE_SECONDS = env.integer("LEASE_SECONDS", 4, low=1, high=600)  # a worker that is silent for so long has lost its run
HANDRAIL_STOP_POINTS = env.text("HANDRAIL_STOP_POINTS")  # a directory; see runs/engine/points.py. For tests and for showing recovery
# the models that workflows ask: endpoints that speak as OpenAI's API does; without one, scripts answer. See docs/models.md
_MODEL = r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,79}"
HANDRAIL_MODEL_URL = env.url("HANDRAIL_MODEL_URL", schemes=("https", "http"))
HANDRAIL_MODEL_NAMES = env.words("HANDRAIL_MODEL_NAMES", each=_MODEL)
HANDRAIL_MODEL_KEYS = env.secrets("HANDRAIL_MODEL_KEYS")
HANDRAIL_MODEL_FALLBACK_URL = env.url("HANDRAIL_MODEL_FALLBACK_URL", schemes=("https", "http"))
HANDRAIL_MODEL_FALLBACK_NAMES = env.words("HANDRAIL_MODEL_FALLBACK_NAMES", each=_MODEL)
HANDRAIL_MODEL_FALLBACK_KEYS = env.secrets("HANDRAIL_MODEL_FALLBACK_KEYS")
HANDRAIL_MODEL_PRICES = env.prices("HANDRAIL_MODEL_PRICES")  # what is not in it has no known price
HANDRAIL_MODEL_CONTEXT = env.integer("HANDRAIL_MODEL_CONTEXT", 100_000, low=500, high=10_000_000)  # tokens of one request
HANDRAIL_MODEL_OUTPUT = env.integer("HANDRAIL_MODEL_OUTPUT", 4_096, low=16, high=1_000_000)  # tokens of one answer
HANDRAIL_MODEL_SECONDS = env.integer("HANDRAIL_MODEL_SECONDS", 120, low=1, high=1800)  # for one answer
if bool(HANDRAIL_MODEL_URL) != bool(HANDRAIL_MODEL_NAMES):
    raise env.OddSetting("HANDRAIL_MODEL_URL and HANDRAIL_MODEL_NAMES go together: which models are asked, and where.")
if bool(HANDRAIL_MODEL_FALLBACK_URL) != bool(HANDRAIL_MODEL_FALLBACK_NAMES):
    raise env.OddSetting("HANDRAIL_MODEL_FALLBACK_URL and HANDRAIL_MODEL_FALLBACK_NAMES go together.")
if HANDRAIL_MODEL_FALLBACK_URL and not HANDRAIL_MODEL_URL:
    raise env.OddSetting("HANDRAIL_MODEL_FALLBACK_URL is for when HANDRAIL_MODEL_URL fails, and that is not set.")
HANDRAIL_PLAYED_URL = env.url("HANDRAIL_PLAYED_URL", schemes=("http",)) if DEMO else ""  # the demo's own provider, which plays one
MIDDLEWARE = [
    "config.middleware.RequestLog",
    "django.middleware.security.SecurityMiddleware",
    "config.middleware.SafeHeaders",
    "csp.middleware.CSPMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.api.Problems",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "access.middleware.ActorMiddleware",
    "access.refusals.WrittenDown",
    "access.pages.RefusalPages",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,  # every template stands in templates/
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.messages.context_processors.messages",
                "access.context.changes_count",
                "approvals.context.inbox_count",
                "runs.context.recovery_count",
                "config.context.installation",
            ],
            "builtins": ["django.templatetags.static"],
        },
    }
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-gb"
USE_I18N = False

# --- people ----------------------------------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "access.User"
SILENCED_SYSTEM_CHECKS = ["auth.E003", "auth.W004"]  # an address is unique whatever its case: user_email_once on Lower("email")
LOGIN_URL = "access:sign_in"
LOGIN_REDIRECT_URL = "/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator", "OPTIONS": {"user_attributes": ("email", "name")}},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
# too many wrong answers: see access/lockout.py. axes keeps no log of its own, and no word that somebody typed
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
SILENCED_SYSTEM_CHECKS += ["axes.W002"]  # the middleware turns a lock into a page of axes'; ours says it in place
AXES_HANDLER = "access.lockout.Attempts"
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = ["username", "ip_address"]
AXES_USERNAME_FORM_FIELD = "email"
AXES_USERNAME_CALLABLE = "access.lockout.counted_as"
AXES_CLIENT_IP_CALLABLE = "access.addresses.home"
AXES_CLIENT_STR_CALLABLE = "access.lockout.told_as"
AXES_SENSITIVE_PARAMETERS = ["email", "code", "next", "credential", "csrfmiddlewaretoken"]
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False
# second factors: see access/second_factors.py
MFA_ADAPTER = "access.second_factors.Adapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes", "webauthn"]
MFA_TOTP_TOLERANCE = 1  # periods of 30 seconds before and after: the clocks of telephones differ
MFA_RECOVERY_CODE_DIGITS = 10
MFA_WEBAUTHN_USER_VERIFICATION = "required"  # a finger, a face or a PIN: a passkey alone signs in
# ways in that the sign-in page offers; what is not set up is never offered
HANDRAIL_SIGN_IN = env.words("SIGN_IN", ("password", "passkey", "sso"), each="password|passkey|sso")
_SSO_ISSUER = env.url("SSO_ISSUER", schemes=("https", "http")).rstrip("/")
HANDRAIL_SSO = {
    "issuer": _SSO_ISSUER,
    "client_id": env.text("SSO_CLIENT_ID"),
    "client_secret": env.text("SSO_CLIENT_SECRET"),
    "name": env.text("SSO_NAME", "single sign-on"),
}
if not _SSO_ISSUER:
    HANDRAIL_SSO = None
elif _SSO_ISSUER.startswith("http:") and urlsplit(_SSO_ISSUER).hostname not in LOOPBACK:
    raise env.OddSetting("SSO_ISSUER must be an address that starts with https://.")
elif not HANDRAIL_SSO["client_id"] or not HANDRAIL_SSO["client_secret"]:
    raise env.OddSetting("SSO_ISSUER needs SSO_CLIENT_ID and SSO_CLIENT_SECRET: as whom Handrail is known there.")
if "password" not in HANDRAIL_SIGN_IN and not ("sso" in HANDRAIL_SIGN_IN and HANDRAIL_SSO):
    raise env.OddSetting("SIGN_IN leaves no way in for somebody new: name password, or sso and set SSO_ISSUER.")
SESSION_COOKIE_AGE = 12 * 3600
# browsers keep one jar of cookies for all ports of a host: the names keep the demo apart from whatever else runs on this machine,
# and `__Host-` makes browsers refuse a cookie that a neighbouring subdomain or plain HTTP tried to plant
SESSION_COOKIE_NAME = "handrail_session" if DEMO else "__Host-handrail_session"
CSRF_COOKIE_NAME = "handrail_csrf" if DEMO else "__Host-handrail_csrf"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not DEMO
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"

# --- notifications ---------------------------------------------------------------------------------------------------------------

_MAIL = urlsplit(env.url("SMTP_URL", schemes=("smtp", "smtp+tls", "smtps")))  # in the clear, with STARTTLS, in TLS
HANDRAIL_MAIL = bool(_MAIL.hostname)  # without a mail server nobody is told by e-mail, and the settings page says so
EMAIL_HOST, EMAIL_PORT = _MAIL.hostname or "", _MAIL.port or {"smtps": 465, "smtp+tls": 587}.get(_MAIL.scheme, 25)
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = unquote(_MAIL.username or ""), unquote(_MAIL.password or "")
EMAIL_USE_TLS, EMAIL_USE_SSL = _MAIL.scheme == "smtp+tls", _MAIL.scheme == "smtps"
EMAIL_TIMEOUT = 10  # seconds
DEFAULT_FROM_EMAIL = env.text("MAIL_FROM", f"Handrail <handrail@{urlsplit(HANDRAIL_URL).hostname}>")
HANDRAIL_PRIVATE_WEBHOOKS = env.flag("PRIVATE_WEBHOOKS")  # may post to a private network, and without TLS

# --- what a browser may do -------------------------------------------------------------------------------------------------------

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "frame-src": ["'self'"],  # what may be framed says so itself: the HTML of an e-mail, in a sandbox
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    }
}
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_HSTS_SECONDS = 0 if DEMO else 365 * 24 * 3600
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUST_PROXY else None
SECURE_SSL_REDIRECT = TRUST_PROXY  # without a trusted proxy it could not tell HTTPS from HTTP and would redirect for ever
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
BODY_MAX = DATA_UPLOAD_MAX_MEMORY_SIZE = 12 * 1024 * 1024  # bytes; config/asgi.py holds whole requests to it, uploads included

# minutes after which approving something of high risk asks again who it is; other grave things do after 15
HANDRAIL_DECISION_STEP_UP = env.integer("DECISION_STEP_UP_MINUTES", 15, low=1, high=720)

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
HANDRAIL_PAYLOAD_INLINE = env.integer("PAYLOAD_INLINE", 64 * 1024, low=0, high=12 * 1024 * 1024)  # bytes; what is larger lies in a file
HANDRAIL_NOTICES_KEPT = env.integer("NOTICES_KEPT_DAYS", 90, low=1, high=3650)  # days, after they were sent
HANDRAIL_WEBHOOKS_A_MINUTE = env.integer("WEBHOOKS_A_MINUTE", 600, low=1, high=10_000)  # that one source may send
HANDRAIL_UPLOAD_MAX = env.integer("UPLOAD_MAX", 1024**3, low=1024**2, high=64 * 1024**3)  # bytes of an upload in parts
_BUCKET = env.text("S3_BUCKET")
if _BUCKET and importlib.util.find_spec("storages") is None:
    raise env.OddSetting("S3_BUCKET needs django-storages: install handrail[s3].")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},  # nothing but the vault stores files
    # sealed payloads: on the disk, which all machines must share, or in a bucket, which needs handrail[s3]. See docs/vault.md
    "payloads": {
        "BACKEND": "artifacts.storing_s3.Bucket",
        "OPTIONS": {
            "bucket_name": _BUCKET,
            "endpoint_url": env.url("S3_URL", schemes=("https", "http")) or None,
            "region_name": env.text("S3_REGION") or None,
            "access_key": env.text("S3_KEY") or None,  # without one boto3 looks where it always does
            "secret_key": env.text("S3_SECRET") or None,
            "default_acl": None,
        },
    }
    if _BUCKET
    else {
        "BACKEND": "artifacts.storing.Files",
        "OPTIONS": {"location": DATA_DIR / "payloads", "file_permissions_mode": 0o600, "directory_permissions_mode": 0o700},
    },
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True  # served from where they lie: no collectstatic to forget
WHITENOISE_MAX_AGE = 60
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/static/vendor/.+-[0-9.]+(\.min)?\.(js|woff2)$"  # each has its version in its name
WHITENOISE_ALLOW_ALL_ORIGINS = False

# --- database --------------------------------------------------------------------------------------------------------------------


def _sqlite(file: Path) -> dict[str, object]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": file,
        "OPTIONS": {
            "timeout": 20,  # seconds to wait for another writer
            "transaction_mode": "IMMEDIATE",  # DEFERRED fails at once when two transactions turn from reading to writing
            # synchronous=FULL: with NORMAL a power cut may lose the last commits; one of them could be "redeemed", and the
            # message would go out twice. recursive_triggers: without it INSERT OR REPLACE deletes rows past the delete trigger.
            # secure_delete: what was erased is overwritten in the file, too
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA recursive_triggers=ON; PRAGMA foreign_keys=ON; "
            "PRAGMA secure_delete=ON",
        },
        "CONN_MAX_AGE": 0,
    }


def _postgresql(url: str, pool: int) -> dict[str, object]:
    database = dict(dj_database_url.parse(url))
    if database["ENGINE"] != "django.db.backends.postgresql":
        raise env.OddSetting("DATABASE_URL must start with postgres:// or postgresql://. For SQLite leave it out: it lies in DATA_DIR.")
    # a process that was frozen inside a transaction may not hold its locks, and so everybody else, for ever
    options = {
        "options": "-c lock_timeout=10s -c idle_in_transaction_session_timeout=10s",
        "application_name": "handrail",
        "prepare_threshold": DATABASE_PREPARE or None,
    }
    if pool:
        options["pool"] = {"min_size": 1, "max_size": pool, "timeout": 10}
    database["OPTIONS"] = options | database.get("OPTIONS", {})
    # under ASGI each request has a thread of its own, and a connection kept for it would never be used again: hence the pool
    return database | {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": True}


DATABASE_URL = env.url("DATABASE_URL", schemes=("postgres", "postgresql"))
DATABASE_PREPARE = env.integer("DATABASE_PREPARE", 3, low=0, high=1000)  # uses of a statement before the server keeps its plan
DATABASE_POOL = env.integer("DATABASE_POOL", 0, low=0, high=500)  # connections kept by this process; config/asgi.py asks for some
DATABASES = {"default": _postgresql(DATABASE_URL, DATABASE_POOL) if DATABASE_URL else _sqlite(DATA_DIR / "handrail.sqlite3")}
ATOMIC_REQUESTS = False

# --- Valkey or Redis: wake-ups and Celery's broker -------------------------------------------------------------------------------

_OUTSIDE = env.url(
    "VALKEY_URL", env.url("REDIS_URL", schemes=("redis", "rediss", "unix")), schemes=("redis", "rediss", "unix", "valkey", "valkeys")
)
VALKEY_SOCKET = None if _OUTSIDE else datadir.socket_path(DATA_DIR)  # `manage.py up` runs one there when none is named
VALKEY_URL = _OUTSIDE.replace("valkeys:", "rediss:", 1).replace("valkey:", "redis:", 1) or f"unix://{quote(str(VALKEY_SOCKET))}"

CELERY_BROKER_URL = VALKEY_URL.replace("unix://", "redis+socket://", 1)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 6 * 3600,  # seconds; a short one runs live tasks twice, and recovery is by lease and sweep anyway
    "socket_connect_timeout": 2,
    # a call for a worker that can't be sent is dropped at once, for the sweep finds the run; the default keeps the caller for six seconds
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0,
    "interval_max": 0,
    "global_keyprefix": "handrail:",
}
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = False  # the sweep starts the run again; a message that kills its worker must not come back for ever
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONCURRENCY = env.integer("WORKERS", 4, low=1, high=64)
CELERY_WORKER_PROC_ALIVE_TIMEOUT = 60.0  # seconds; a new process that is up later is killed for the next, on a slow machine for ever
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False  # a step goes on while Valkey restarts: its lease is in the database
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "celery.beat:Scheduler"  # intervals only, so there is nothing to keep in a file between starts
CELERY_BEAT_MAX_LOOP_INTERVAL = 1
CELERY_BEAT_SCHEDULE = {
    # `expires`: what piled up while no worker ran is dropped, the next tick does the same work
    "sweep": {"task": "runs.sweep", "schedule": 1.0, "options": {"expires": 5}},
    "expire": {"task": "approvals.expire", "schedule": 3.0, "options": {"expires": 10}},
    "chase": {"task": "approvals.chase", "schedule": 5.0, "options": {"expires": 10}},
    "notify": {"task": "approvals.notify", "schedule": 2.0, "options": {"expires": 10}},
    "links": {"task": "access.send_links", "schedule": 2.0, "options": {"expires": 10}},
    "tidy": {"task": "access.tidy", "schedule": 3600.0, "options": {"expires": 600}},
    "forget": {"task": "approvals.tidy", "schedule": 600.0, "options": {"expires": 600}},
    "rewrap": {"task": "artifacts.rewrap", "schedule": 30.0, "options": {"expires": 30}},
    "rerender": {"task": "artifacts.rerender", "schedule": 60.0, "options": {"expires": 60}},
    "collect": {"task": "artifacts.tidy", "schedule": 600.0, "options": {"expires": 600}},
    "seal": {"task": "access.seal", "schedule": 5.0, "options": {"expires": 10}},
}

DEFAULT_EXCEPTION_REPORTER = "config.reporting.Reporter"

# --- logging ---------------------------------------------------------------------------------------------------------------------

LOG_FORMAT = env.choice("LOG_FORMAT", "line" if DEMO else "json", of=("line", "json"))
LOG_LEVEL = env.choice("LOG_LEVEL", "INFO", of=("DEBUG", "INFO", "WARNING", "ERROR"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"celery": {"()": "config.logs.WithoutTaskValues"}},
    "formatters": {"line": {"()": "config.logs.Line"}, "json": {"()": "config.logs.Json"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["celery"]}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "django": {"handlers": [], "level": LOG_LEVEL, "propagate": True},
        "django.request": {"level": "ERROR"},  # config.middleware.RequestLog has a line for each request already
        "django.server": {"handlers": [], "propagate": True},
        "celery.app.trace": {"level": "WARNING"},  # one line a second for the sweep would bury everything else
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.beat": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "httpcore2": {"level": "WARNING"},
        "openai": {"level": "WARNING"},  # at DEBUG it writes whole requests, prompts and all
        "pydantic_ai": {"level": "WARNING"},
        "mail.log": {"level": "WARNING"},
        "axes": {"level": "ERROR"},
        "allauth": {"level": "WARNING"},
        "authlib": {"level": "WARNING"},
        "urllib3": {"level": "WARNING"},
    },
}
