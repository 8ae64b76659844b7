"""Nothing is written into, or removed from, a directory that is not ours."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from config import datadir
from config.env import OddSetting

ROOT = Path(__file__).resolve().parents[2]


def names(directory: Path) -> list[str]:
    return [entry.name for entry in directory.iterdir()]


def test_an_empty_directory_is_claimed_and_found_again(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    datadir.claim(data)
    (data / "something").touch()
    assert datadir.claim(data) == data
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_a_directory_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.odt").touch()
    with pytest.raises(OddSetting, match="holds other things"):
        datadir.claim(tmp_path)
    assert names(tmp_path) == ["thesis.odt"]


def test_a_directory_that_cannot_be_made_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OddSetting, match="cannot be used: Not a directory"):
        datadir.claim(tmp_path / "file" / "data")


def test_a_secret_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    first = datadir.secret(tmp_path, "key", lambda: "one")
    assert datadir.secret(tmp_path, "key", lambda: "two") == first == "one"
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert names(tmp_path) == ["key"]


def test_processes_that_start_together_agree_on_a_secret(tmp_path: Path) -> None:
    code = (
        "import sys, secrets, pathlib; from config import datadir; "
        "print(datadir.secret(pathlib.Path(sys.argv[1]), 'key', lambda: secrets.token_hex(32)))"
    )
    started = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    assert len({process.communicate(timeout=60)[0] for process in started}) == 1


def test_the_lock_names_the_process_that_holds_it(tmp_path: Path) -> None:
    held = datadir.lock(tmp_path)
    with pytest.raises(OddSetting, match=f"already running .* \\(process {os.getpid()}\\)"):
        datadir.lock(tmp_path, patience=0)
    os.close(held)
    os.close(datadir.lock(tmp_path, patience=0))


def test_reset_empties_what_is_ours(tmp_path: Path) -> None:
    data = datadir.claim(tmp_path / "data")
    (data / "sub").mkdir()
    (data / "sub" / "file").touch()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (data / "link").symlink_to(outside)
    assert datadir.reset(data) == 2
    assert names(data) == [datadir.MARK]
    assert (outside / "kept").exists()


def test_reset_refuses_what_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "thesis.odt").touch()
    with pytest.raises(OddSetting, match="does not look like Handrail's"):
        datadir.reset(tmp_path)
    assert (tmp_path / "thesis.odt").exists()


def test_reset_refuses_while_it_runs(tmp_path: Path) -> None:
    data = datadir.claim(tmp_path / "data")
    (data / "file").touch()
    held = datadir.lock(data)
    with pytest.raises(OddSetting, match="already running"):
        datadir.reset(data)
    os.close(held)
    assert (data / "file").exists()


def test_a_long_path_gets_a_short_place_for_its_socket(tmp_path: Path) -> None:
    assert datadir.socket_path(Path("/srv/handrail")) == Path("/srv/handrail/valkey.sock")
    long = tmp_path / ("x" * 100)
    short = datadir.socket_path(long)
    assert len(os.fsencode(short)) < datadir.SOCKET_MAX
    assert short == datadir.socket_path(long) != datadir.socket_path(tmp_path / ("y" * 100))
