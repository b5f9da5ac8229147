"""A client's session: connections, calls, retries, routes, addresses and settings.

The asyncio driver and the thread for programs without an event loop lie here as well.
"""
