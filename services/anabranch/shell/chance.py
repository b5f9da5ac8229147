"""The one source of randomness of a real process; a simulation has its own, seeded."""

import secrets


def randbits(count: int) -> int:
    """A number of so many random bits."""
    return secrets.randbits(count)
