"""Figures: one command each, as `python -m bench.append`. docs/performance.md says what each of them measures."""
