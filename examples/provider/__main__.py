"""`python -m examples.provider --port N`: play a provider of language models until SIGTERM."""

import argparse
import signal
import sys
import threading
from collections.abc import Sequence

from .server import Provider


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it. Returns 0 when it was asked to stop, 1 when the port could not be had."""
    parser = argparse.ArgumentParser(prog="provider", description="Speaks as OpenAI's API does, and answers by fixed rules.")
    parser.add_argument("--port", type=int, default=8003, metavar="N", help="0 takes a free one")
    options = parser.parse_args(arguments)
    try:
        provider = Provider(options.port)
    except (OSError, OverflowError) as error:
        print(f"provider: port {options.port} can't be had ({error}); choose another with --port.", file=sys.stderr)
        return 1
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    provider.start()
    print(f"provider: {provider.url}", flush=True)
    over.wait()
    provider.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
