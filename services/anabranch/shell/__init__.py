"""The shells: asyncio that moves bytes and keeps time for the machines of `core`, and decides
nothing.

Clients and applications import shells; a shell imports cores and `ports`.
"""
