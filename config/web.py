"""The web server: Daphne, as `python -m config.web`, holding bodies to their limit while they come in.

Daphne gathers the whole body of a request, on disk if it is large, before any application hears of it. So an application can refuse what
is too large only after all of it was taken, whoever sent it. Here the first byte beyond the limit, or the length that is announced, is
answered at once, and nothing more is kept.
"""

from daphne import server  # first, for it chooses Twisted's reactor; isort: skip

from daphne.cli import CommandLineInterface
from daphne.http_protocol import HTTPFactory, WebRequest
from twisted.internet import reactor

PATIENCE = 5.0  # seconds in which a caller who goes on sending may read the answer, before the connection is cut


class Measured(WebRequest):
    """A request whose body is counted as it comes in."""

    taken = 0
    refused = False

    def __init__(self, *args: object, **kwargs: object) -> None:
        # Twisted would parse each form in the reactor's thread, before anybody is asked who sent it, and without limits of its own;
        # Django parses it later, where a request can wait for nobody but itself
        super().__init__(*args, **kwargs | {"parsePOSTFormSubmission": False})

    def gotLength(self, length: int | None) -> None:
        """The head was read. `length` is what it announces, None if it does not say."""
        too_large = (length or 0) > _limit()
        super().gotLength(0 if too_large else length)
        if too_large:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:
        self.taken += len(data)
        if not self.refused and self.taken > _limit():
            self._refuse()
        if not self.refused:
            super().handleContentChunk(data)

    def process(self) -> object:
        """All of it has come."""
        if self.refused:
            return self.channel.loseConnection()
        return super().process()

    def handle_exception(self, exception: BaseException) -> None:
        """The application broke. If its answer had begun the connection is cut, so that who reads it sees that it is not whole.

        Daphne would begin another answer, which is an error of its own: the caller would wait for ever, and Daphne would never
        again look after its connections.
        """
        if not self._response_started:
            super().handle_exception(exception)
        elif self.channel is not None:
            self.channel.forceAbortClient()

    def _refuse(self) -> None:
        from config.asgi import too_large

        self.refused = True
        self.requestHeaders.removeHeader(b"expect")  # who asks before sending is told no, and not to go on
        self.content.truncate(0)
        self.channel.transport.write(_answer(*too_large()))
        reactor.callLater(PATIENCE, self._cut)

    def _cut(self) -> None:
        if self.channel is not None:
            self.channel.forceAbortClient()


class Factory(HTTPFactory):
    """Connections whose requests are measured."""

    def buildProtocol(self, addr: object) -> object:
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = Measured
        return protocol


def _limit() -> int:
    from django.conf import settings  # once Daphne has loaded the application

    return settings.BODY_MAX


def _answer(headers: list[tuple[bytes, bytes]], body: bytes) -> bytes:
    lines = [b"HTTP/1.1 413 Content Too Large", *(b"%b: %b" % pair for pair in headers), b"content-length: %d" % len(body)]
    return b"\r\n".join([*lines, b"", body])


if __name__ == "__main__":
    server.HTTPFactory = Factory  # Daphne has no other way to say which one its server uses
    CommandLineInterface.entrypoint()
