#!/usr/bin/env python
import os
import sys
from pathlib import Path

from config import beside


def main() -> None:
    beside.join(os.environ, sys.argv, Path(__file__).resolve().parent)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
