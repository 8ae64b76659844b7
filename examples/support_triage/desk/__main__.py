"""`python -m examples.support_triage.desk --data DIR --http-port N --smtp-port N`: run the outside world until SIGTERM."""

import argparse
import asyncio
import errno
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from . import accounts, api, hooks, mailserver
from .seed import ACCOUNTS
from .store import Store
from .web import Server


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the desk. Returns 0 when it was asked to stop, 1 when a port or the folder could not be had."""
    logging.getLogger("mail").setLevel(logging.CRITICAL)  # aiosmtpd's account of every connection
    options = _options(arguments)
    try:
        store = Store(options.data)
        respond = partial(api.respond, store)
        web = _bound("--http-port", options.http_port, lambda port: Server((options.host, port), respond, options.patience))
        family = web.address_family
        smtp = _bound("--smtp-port", options.smtp_port, lambda port: socket.create_server((options.host, port), family=family))
    except (OSError, _Unavailable) as error:
        print(f"desk: {error}", file=sys.stderr)
        return 1
    with store.changing() as db:
        accounts.seed(db, ACCOUNTS)
    asyncio.run(_serve(web, smtp, store, options))
    store.close()
    return 0


Listener = TypeVar("Listener")


class _Unavailable(Exception):
    pass


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="desk", description="A help desk, a CRM and a mailbox: the example's outside world.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder of the desk's own database")
    parser.add_argument("--http-port", type=int, default=8025, metavar="N", help="0 takes a free one")
    parser.add_argument("--smtp-port", type=int, default=2525, metavar="N", help="0 takes a free one")
    parser.add_argument("--host", default="127.0.0.1")
    patience = "how long one request, or one message, may take to arrive"
    parser.add_argument("--patience", type=float, default=20.0, metavar="SECONDS", help=patience)
    return parser.parse_args(arguments)


def _bound(option: str, port: int, bind: Callable[[int], Listener]) -> Listener:
    try:
        return bind(port)
    except OverflowError as error:
        raise _Unavailable(f"{port} is no port number; choose another with {option}.") from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise _Unavailable(f"port {port} is in use; choose another with {option}.") from error
        raise _Unavailable(f"port {port} can't be had ({error.strerror}); choose another with {option}.") from error


async def _serve(web: Server, smtp: socket.socket, store: Store, options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    mail = await mailserver.listen(smtp, store, options.patience)
    threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
    host = f"[{options.host}]" if ":" in options.host else options.host
    print(f"desk: http://{host}:{web.server_address[1]}/ and SMTP on {host}:{smtp.getsockname()[1]}, data in {options.data}", flush=True)
    sender = hooks.Sender(store)
    threading.Thread(target=sender.run, daemon=True).start()
    await stop.wait()
    sender.stop()
    mail.close()
    await asyncio.to_thread(web.shutdown)
    web.server_close()


if __name__ == "__main__":
    sys.exit(main())
