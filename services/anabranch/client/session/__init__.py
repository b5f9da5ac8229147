"""A client's session: a machine that knows no engine, and what programs pass to it.

It holds calls, lines, deliveries, addresses and settings. `driver` lies above it.
"""
