"""The one source of randomness of a real process; a simulation has its own, seeded."""

import os


def randbits(count: int) -> int:
    """A number of so many random bits."""
    # `secrets` does the same, and is slower to import than all else a small program needs of us.
    size = (count + 7) // 8
    return int.from_bytes(os.urandom(size), "big") >> (8 * size - count)
