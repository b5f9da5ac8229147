"""What runs machines: the driver, its storage threads, timers, the clock, randomness, failpoints.

It knows no engine. Every process uses it.
"""
