#!/usr/bin/env python
import os
import sys
from pathlib import Path

from config import beside


def main() -> None:
    beside.join(os.environ, sys.argv, Path(__file__).resolve().parent)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if sys.argv[1:2] == ["up"]:  # it only starts others, and loads the house for itself if it has to
        from config.management.commands.up import Command

        return Command().run_from_argv(sys.argv)
    from django.core.management import execute_from_command_line

    return execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
