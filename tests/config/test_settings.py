"""The settings start safe and refuse what is odd, each in a process of its own, as in life."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from config.celery import app

ROOT = Path(__file__).resolve().parents[2]
TEAM = {
    "SECRET_KEY": "s" * 60,
    "HANDRAIL_VAULT_KEY": "dGVzdHMgb25seSwgMzIgYnl0ZXMgb2YgdGV4dCBoZXI=",
    "HANDRAIL_URL": "https://handrail.example",
    "DATABASE_URL": "postgres://someone:hunter2@db.example/handrail",
    "VALKEY_URL": "redis://valkey.example:6379/0",
}
SHOW = "import json, sys; from config import settings; print(json.dumps({n: getattr(settings, n) for n in sys.argv[1:]}, default=str))"


def run(code: str, env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    plain = {"PATH": os.environ["PATH"], **env}
    return subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, env=plain, capture_output=True, text=True, timeout=60)


def settings(env: dict[str, str], *names: str) -> dict[str, object]:
    done = run(SHOW, env, *names)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal(env: dict[str, str]) -> str:
    done = run(SHOW, env, "DEBUG")
    assert done.returncode == 1
    assert done.stderr.startswith("Handrail: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.fixture
def demo(tmp_path: Path) -> dict[str, str]:
    return {"HANDRAIL_DEMO": "1", "DATA_DIR": str(tmp_path / "data")}


def test_a_team_starts_safe() -> None:
    safe = {
        "DEBUG": False,
        "DEMO": False,
        "SESSION_COOKIE_SECURE": True,
        "CSRF_COOKIE_SECURE": True,
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_NAME": "__Host-handrail_session",
        "CSRF_COOKIE_NAME": "__Host-handrail_csrf",
        "SECURE_HSTS_SECONDS": 365 * 24 * 3600,
        "ALLOWED_HOSTS": ["handrail.example"],
        "ATOMIC_REQUESTS": False,
        "CELERY_ACCEPT_CONTENT": ["json"],
        "SECURE_PROXY_SSL_HEADER": None,
    }
    assert settings(TEAM, *safe) == safe


def test_a_process_of_a_worker_that_is_slow_to_start_is_not_killed_for_it() -> None:
    """A machine that is busy takes more than the four seconds that Celery gives it, and then each of them in turn."""
    assert app.conf.worker_proc_alive_timeout >= 60


@pytest.mark.parametrize("name", ["SECRET_KEY", "HANDRAIL_VAULT_KEY", "HANDRAIL_URL"])
def test_a_team_must_give_its_secrets_and_its_address(name: str) -> None:
    assert f"{name} is not set" in refusal({key: value for key, value in TEAM.items() if key != name})


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({"SECRET_KEY": "short"}, "SECRET_KEY must have 50"),
        ({"HANDRAIL_VAULT_KEY": "c2hvcnQ="}, "HANDRAIL_VAULT_KEY must be 32 random bytes"),
        ({"HANDRAIL_VAULT_KEY": "!" * 44}, "HANDRAIL_VAULT_KEY must be 32 random bytes"),
        ({"HANDRAIL_URL": "http://handrail.example"}, "HANDRAIL_URL must be an address that starts with https://"),
        ({"DATABASE_URL": "mysql://someone:hunter2@db/handrail"}, "DATABASE_URL must be an address"),
        ({"VALKEY_URL": "http://:hunter2@valkey"}, "VALKEY_URL must be an address"),
        ({"DEBUG": "maybe"}, "DEBUG must be 1 or 0"),
        ({"PORT": "http"}, "PORT must be a whole number"),
        ({"WORKERS": "0"}, "WORKERS must be a whole number from 1"),
        ({"WEBHOOKS_A_MINUTE": "10001"}, "WEBHOOKS_A_MINUTE must be a whole number from 1 to"),
        ({"LOG_FORMAT": "xml"}, "LOG_FORMAT must be one of line, json"),
        ({"HANDRAIL_WORKFLOWS": "a.b, rm -rf"}, "HANDRAIL_WORKFLOWS is a list"),
        ({"SSO_ISSUER": "http://login.example"}, "SSO_ISSUER must be an address that starts with https://."),
        ({"SSO_ISSUER": "https://login.example"}, "SSO_ISSUER needs SSO_CLIENT_ID and SSO_CLIENT_SECRET"),
        ({"SIGN_IN": "passkey,sso"}, "SIGN_IN leaves no way in for somebody new"),
        ({"SIGN_IN": "magic"}, "SIGN_IN is a list"),
    ],
)
def test_an_odd_setting_is_refused_in_one_line(odd: dict[str, str], said: str) -> None:
    line = refusal(TEAM | odd)
    assert said in line and "hunter2" not in line


def test_the_demo_makes_its_secrets_once_and_keeps_them_to_its_owner(demo: dict[str, str], tmp_path: Path) -> None:
    first = settings(demo, "SECRET_KEY", "HANDRAIL_VAULT_KEY", "DEBUG", "ALLOWED_HOSTS")
    assert settings(demo, "SECRET_KEY", "HANDRAIL_VAULT_KEY", "DEBUG", "ALLOWED_HOSTS") == first
    assert len(first["SECRET_KEY"]) >= 50 and first["DEBUG"] is False and first["ALLOWED_HOSTS"] == ["127.0.0.1", "localhost"]
    for name in ("secret-key", "vault-key"):
        assert stat.S_IMODE((tmp_path / "data" / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "handrail.example", "::"])
def test_the_demo_listens_on_loopback_only(demo: dict[str, str], host: str) -> None:
    assert "127.0.0.1 only" in refusal(demo | {"HOST": host})


def test_a_directory_that_is_not_ours_is_refused(demo: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.odt").touch()
    assert "holds other things" in refusal(demo)


def test_sealed_files_lie_on_the_disk_unless_a_bucket_is_named(demo: dict[str, str], tmp_path: Path) -> None:
    assert settings(demo, "STORAGES")["STORAGES"]["payloads"]["OPTIONS"]["location"] == str(tmp_path / "data" / "payloads")
    bucket = settings(demo | {"S3_BUCKET": "ours", "S3_URL": "https://s3.example", "S3_KEY": "a", "S3_SECRET": "b"}, "STORAGES")["STORAGES"]
    assert bucket["payloads"]["BACKEND"] == "artifacts.storing_s3.Bucket"
    assert bucket["payloads"]["OPTIONS"]["bucket_name"] == "ours" and bucket["payloads"]["OPTIONS"]["endpoint_url"] == "https://s3.example"


def test_sqlite_is_opened_the_durable_way(demo: dict[str, str]) -> None:
    code = (
        "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings'; import django; django.setup()\n"
        "from django.db import connection, transaction\n"
        "cursor = connection.cursor()\n"
        "names = ('journal_mode', 'synchronous', 'recursive_triggers', 'foreign_keys', 'secure_delete', 'busy_timeout')\n"
        "print([cursor.execute(f'PRAGMA {name}').fetchone()[0] for name in names], connection.transaction_mode)"
    )
    done = run(code, demo)
    assert done.stdout.strip() == "['wal', 2, 1, 1, 1, 20000] IMMEDIATE", done.stderr


def test_management_commands_say_one_line_too() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=ROOT, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (1, 1, ""), done.stderr
