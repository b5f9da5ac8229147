"""Bins of equal width, of centroids: how a column's values are spread."""

from collections.abc import Sequence
from math import isfinite

from anabranch_spark.expectations.outcome import Bin

BINS = 24


def rebinned(centroids: Sequence[tuple[float, float]], bins: int = BINS) -> tuple[Bin, ...]:
    """Each centroid (a value, and how many values lie near it) counts in the bin that it lies in.

    No bin if there is no finite value, and a single one if all are the same.
    """
    points = [(x, y) for x, y in centroids if isfinite(x) and isfinite(y) and y > 0]
    if not points:
        return ()
    low, high = min(x for x, _ in points), max(x for x, _ in points)
    width = high / bins - low / bins
    if width <= 0 or low + width == low:
        return (Bin(low, high, round(sum(y for _, y in points))),)
    counts = [0.0] * bins
    for x, y in points:
        counts[min(int((x - low) / width), bins - 1)] += y
    edges = [low + width * index for index in range(bins)] + [high]
    return tuple(Bin(edges[index], edges[index + 1], round(counts[index])) for index in range(bins))
