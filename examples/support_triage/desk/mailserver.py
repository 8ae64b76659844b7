"""The SMTP side: takes any message for anybody, keeps it, and only then says so."""

import asyncio
import socket

from aiosmtpd.smtp import SMTP, Envelope, Session

from . import faults, mail
from .store import Store

MAX_MESSAGE = 12 * 1024 * 1024


async def listen(listener: socket.socket, store: Store, patience: float) -> asyncio.Server:
    """Answer SMTP on `listener`. A message whose last dot is not there within `patience` seconds is dropped."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: _smtp(store, patience), sock=listener)


def _smtp(store: Store, patience: float) -> SMTP:
    return SMTP(
        _Mailbox(store),
        data_size_limit=MAX_MESSAGE,
        enable_SMTPUTF8=True,
        hostname="mx.fernhill.example",
        ident="Desk ESMTP",
        timeout=patience,
        loop=asyncio.get_running_loop(),
    )


class _Mailbox:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]) -> str:
        with self._store.changing() as db:
            hitch = faults.strike(db, "smtp", faults.BEFORE, to=(address,))
        if hitch and hitch.full:
            return "552 5.2.2 The mailbox is full"
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        content = envelope.original_content
        assert content is not None
        # No await before the commit: a client that leaves meanwhile can't stop half-way what it has handed over.
        with self._store.changing() as db:
            number = mail.deliver(db, sender=envelope.mail_from or "", recipients=envelope.rcpt_tos, raw=content)
        with self._store.changing() as db:
            hitch = faults.strike(db, "smtp", faults.AFTER, to=envelope.rcpt_tos)
        if hitch and hitch.drop:
            assert server.transport is not None
            server.transport.abort()
            raise asyncio.CancelledError
        return f"250 2.0.0 Kept as delivery {number}"
