"""The data directory: claimed once, so that nothing is ever written into, or removed from, a directory that is not ours.

`python3 -m config.datadir reset DIR` empties it; it needs nothing but the standard library.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from config.env import OddSetting

MARK = ".handrail"
LOCK = "up.lock"
SOCKET_MAX = 100  # bytes in the path of a unix socket; the kernel's limit is 107, 103 on macOS


def claim(data: Path) -> Path:
    """Make the directory if need be and mark it as ours. Refuses one that holds other things or cannot be written."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (data / MARK).exists():
            if any(data.iterdir()):
                raise OddSetting(f"DATA_DIR={data} holds other things than Handrail's. Choose an empty or a new directory.")
            (data / MARK).write_text("Handrail keeps its data here. `make reset` empties this directory.\n")
        _try_to_write(data)
    except OSError as error:
        raise OddSetting(f"DATA_DIR={data} cannot be used: {error.strerror}. Choose another one: DATA_DIR=…") from None
    return data


def secret(data: Path, name: str, make: Callable[[], str]) -> str:
    """The secret of that name, made by `make` the first time. Kept readable by its owner only; whoever is first wins."""
    kept = data / name
    if not kept.exists():
        draft, drafted = tempfile.mkstemp(dir=data, prefix=f".{name}-")  # mode 0600 from the start
        try:
            with os.fdopen(draft, "w") as file:
                file.write(make())
                file.flush()
                os.fsync(file.fileno())
            os.link(drafted, kept)  # all or nothing, and never over another process's
        except FileExistsError:
            pass
        finally:
            Path(drafted).unlink()
    return kept.read_text().strip()


def lock(data: Path, *, patience: float = 3.0) -> int:
    """The descriptor of a lock that lasts until the last process that inherited it has ended. Waits `patience` seconds for dying ones."""
    descriptor = os.open(data / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            if time.monotonic() > until:
                holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
                raise OddSetting(
                    f"already running on DATA_DIR={data} (process {holder}). Stop that one, or choose another DATA_DIR=…"
                ) from None
            time.sleep(0.05)
        else:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return descriptor


def in_use(data: Path) -> bool:
    """Whether something runs on this directory now."""
    if not (data / LOCK).is_file():
        return False
    with (data / LOCK).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def socket_path(data: Path) -> Path:
    """Where our Valkey listens: in the data directory or, when that path is too long for a socket, in a private temporary one."""
    inside = data / "valkey.sock"
    if len(os.fsencode(inside)) <= SOCKET_MAX:
        return inside
    short = hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"handrail-{os.getuid()}-{short}" / "valkey.sock"


def reset(data: Path) -> int:
    """Remove everything in the directory, and return how many entries that were. Refuses what is not ours or is in use."""
    if not data.exists():
        return 0
    if not (data / MARK).is_file():
        raise OddSetting(f"DATA_DIR={data} does not look like Handrail's (no {MARK} in it). Nothing was removed.")
    held = lock(data, patience=1.0)
    entries = sorted(entry for entry in data.iterdir() if entry.name != MARK)
    try:
        for entry in entries:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
    except OSError as error:
        raise OddSetting(f"DATA_DIR={data} cannot be emptied: {error.strerror} ({error.filename}).") from None
    finally:
        os.close(held)
    return len([entry for entry in entries if entry.name != LOCK])


def _try_to_write(data: Path) -> None:
    # os.access() says yes to root even where the file system is read-only or full; only a write tells
    with tempfile.TemporaryFile(dir=data) as file:
        file.write(b"?")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "reset":
        raise SystemExit("usage: python3 -m config.datadir reset DIR")
    where = Path(sys.argv[2]).expanduser().absolute()
    removed = reset(where)
    print(f"Emptied {where}." if removed else f"{where} is empty already.")
