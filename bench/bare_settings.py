"""The settings of the house, with nothing behind its addresses but the peer."""

from config.settings import *  # noqa: F403

ROOT_URLCONF = "bench.bare"
