"""The outside world of the example: a help desk, a CRM and a mailbox, as a customer's own systems would be.

A separate process with its own small store. It knows nothing of Handrail and imports nothing of it.
"""
