"""A back office: six kinds of work that people ask for by e-mail, each done by a tool that asks first.

One small SQLite file holds its customers, payments and stock, and one directory its reports. Each request shows another kind of action:
a change of a record, a refund, an SQL statement, a request to the help desk, a command, and one that has no card of its own.
"""
