"""Telling people what asks something of them: the outbox, who is told when and by which channel, and sending.

notice (written with what it tells) → delivery (one person, one channel) → message (what is sent, once or again under the same id)
"""
