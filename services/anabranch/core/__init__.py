"""The cores: plain deterministic Python. No clock, socket, thread, randomness or logger lives
below here.
"""
