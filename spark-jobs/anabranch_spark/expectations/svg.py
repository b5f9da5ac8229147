"""Small pictures as inline SVG: bars and histograms, drawn with finite numbers and escaped text.

Colours are classes, so that the page that holds a picture gives it light and dark.
"""

from datetime import UTC, datetime
from html import escape
from math import isfinite

from anabranch_spark.expectations.outcome import Bin, Histogram

WIDTH, HEIGHT = 360, 120
_BASE, _TOP = 96, 18
"""Of the columns; the names of bounds stand above."""
_BAR_WIDTH, _BAR_HEIGHT = 160, 12
_MOMENT_MAX = 253_402_300_799
"""Seconds; later ones are after the year 9999."""


def bar(share: float, least: float | None, label: str) -> str:
    """How large a share keeps to an expectation, with a mark at the share that must."""
    part = min(max(share, 0.0), 1.0) if isfinite(share) else 0.0
    mark = ""
    if least is not None and isfinite(least) and least < 1:
        x = _number(min(max(least, 0.0), 1.0) * _BAR_WIDTH)
        mark = f'<line class="mark" x1="{x}" x2="{x}" y1="0" y2="{_BAR_HEIGHT}"/>'
    kept = _number(part * _BAR_WIDTH)
    return (
        f'<svg class="bar" viewBox="0 0 {_BAR_WIDTH} {_BAR_HEIGHT}" width="{_BAR_WIDTH}" '
        f'height="{_BAR_HEIGHT}" role="img" aria-label="{escape(label)}">'
        f'<rect class="miss" width="{_BAR_WIDTH}" height="{_BAR_HEIGHT}" rx="3"/>'
        f'<rect class="keep" width="{kept}" height="{_BAR_HEIGHT}" rx="3"/>{mark}</svg>'
    )


def histogram(found: Histogram, label: str) -> str:
    """Values by how often they are there; bins outside of the declared bounds look different."""
    if not found.bins:
        return ""
    low, high = found.bins[0].low, found.bins[-1].high
    most = max(1, *(each.count for each in found.bins))
    parts = [_column(each, found, low, high, most) for each in found.bins if each.count]
    for bound, name in ((found.min, "min"), (found.max, "max")):
        if bound is not None and isfinite(bound) and low <= bound <= high and low < high:
            at = _x(bound, low, high)
            # Away from the other bound's words, if the picture has room there.
            room = 140 if found.times else 70
            right = at < room if name == "min" else at < WIDTH - room
            x, side = _number(at), "start" if right else "end"
            words = f"{name} {escape(shown_number(bound, times=found.times))}"
            parts.append(
                f'<line class="mark" x1="{x}" x2="{x}" y1="{_TOP}" y2="{_BASE}"/>'
                f'<text class="tick" x="{x}" y="{_TOP - 6}" text-anchor="{side}">{words}</text>'
            )
    ends = (shown_number(low, times=found.times), shown_number(high, times=found.times))
    return (
        f'<svg class="histogram" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}'
        f'<line class="axis" x1="0" x2="{WIDTH}" y1="{_BASE}" y2="{_BASE}"/>'
        f'<text class="tick" x="0" y="{HEIGHT - 8}">{escape(ends[0])}</text>'
        f'<text class="tick" x="{WIDTH}" y="{HEIGHT - 8}" text-anchor="end">'
        f"{escape(ends[1])}</text></svg>"
    )


def _column(each: Bin, found: Histogram, low: float, high: float, most: int) -> str:
    left = _x(each.low, low, high)
    right = _x(each.high, low, high) if low < high else float(WIDTH)
    # One record among millions is seen as well.
    tall = max((_BASE - _TOP) * (each.count / most), 1.0 if each.count else 0.0)
    inside = (found.min is None or each.high >= found.min) and (
        found.max is None or each.low <= found.max
    )
    ends = (shown_number(each.low, times=found.times), shown_number(each.high, times=found.times))
    title = f"about {each.count:,} from {ends[0]} to {ends[1]}"
    return (
        f'<rect class="{"keep" if inside else "miss"}" x="{_number(left)}" '
        f'y="{_number(_BASE - tall)}" width="{_number(max(right - left - 1, 1.0))}" '
        f'height="{_number(tall)}"><title>{escape(title)}</title></rect>'
    )


def _x(value: float, low: float, high: float) -> float:
    if not high > low:
        return 0.0
    # Halves, because the difference of two finite numbers needn't be finite.
    share = (value / 2 - low / 2) / (high / 2 - low / 2)
    return min(max(share, 0.0), 1.0) * WIDTH if isfinite(share) else 0.0


def _number(value: float) -> str:
    assert isfinite(value)
    return f"{value:.2f}".rstrip("0").rstrip(".")


def shown_number(value: float, *, times: bool) -> str:
    """A number in a few characters, or a moment."""
    if times and 0 <= value <= _MOMENT_MAX:
        moment = datetime.fromtimestamp(value, UTC)
        return moment.strftime("%Y-%m-%d %H:%M:%S")
    return f"{value:,.6g}"
