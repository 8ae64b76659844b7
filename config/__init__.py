"""Imported first by every process of the house."""

import gc

# Python looks for unused cycles after every 700 new objects. Whoever imports or draws as much as we do has it look hundreds of times for
# nothing; so seldom it finds the same garbage, some megabytes of it at a time.
gc.set_threshold(20_000, 20, 20)
