"""Peers that run in an environment of their own, and import nothing of ours: `bench.durable` says which."""
