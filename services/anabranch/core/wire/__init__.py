"""Frames: how messages become bytes on a connection, and the bounds on numbers that requests hold.

Engines' protocols build on it.
"""
