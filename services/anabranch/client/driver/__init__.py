"""What moves a session's bytes and keeps its time: asyncio, and a thread for programs without it.

It knows no engine and decides nothing. Each engine's client derives its link from the one here.
"""
