"""What the desk says no with; each is answered as an RFC 9457 problem and has changed nothing."""


class Problem(Exception):
    """The request can't be carried out. The message says why, in a sentence."""

    status = 422
    title = "Not acceptable as it is"


class Malformed(Problem):
    """The request itself is broken."""

    status = 400
    title = "Malformed request"


class Missing(Problem):
    """There is no such thing here."""

    status = 404
    title = "Not found"


class Outdated(Problem):
    """If-Match names another version than the record has now."""

    status = 412
    title = "The record has changed"


class KeyReused(Problem):
    """This Idempotency-Key came before with another request."""

    title = "Idempotency-Key used for something else"


class Unsupported(Problem):
    """The body is of another media type than this address takes."""

    status = 415
    title = "Unsupported media type"
