"""Which runs have compactors, and how long their leases are: drawn by itself, so that a seed's
other options stay what they were.
"""

from random import Random

import msgspec

from anabranch.core.limits import Limits
from anabranch.core.types import MS, Milliseconds
from anabranch_sim.world.faults import CLOCK_ERROR_MAX

SALT = 0xC0021
SHARE = 0.12
"""Of all runs have compactors. No seed that a mutant of something else is known by has."""
ALONE = 0.5
JOBS = 3
"""Of each, one after the other."""
LEASES_MS: tuple[Milliseconds, ...] = (600, 4_000, 15_000)
LONGEST_MS = max(LEASES_MS)
URL_MS: Milliseconds = 1_500
"""A PUT takes no longer, however slow the store is."""


def compactors_of(seed: int) -> int:
    rng = Random(seed ^ SALT)
    return rng.choice((1, 1, 2, 3)) if rng.random() < SHARE else 0


def with_compactors(limits: Limits, seed: int) -> Limits:
    """Extents are small and old enough to be copied, and URLs last longer than clocks differ."""
    if not compactors_of(seed):
        return limits
    # In half of them brokers copy nothing, so that more is left.
    alone = Random(seed ^ SALT ^ 1).random() < ALONE
    url_ms = URL_MS + 2 * CLOCK_ERROR_MAX // MS
    return msgspec.structs.replace(
        limits,
        signed_url_ms=url_ms,
        compact_extents_min=0 if alone else limits.compact_extents_min,
        compact_extent_bytes_max=max(limits.compact_extent_bytes_max, 1_024),
        compact_age_ms=min(limits.compact_age_ms, 500),
    )
