"""Latencies as a picture: in the terminal, or as a PNG."""
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence

import click

from anabranch.cli.bench.load import Measured
from anabranch.cli.render.words import duration

_BARS = " ▁▂▃▄▅▆▇█"
_BINS = 48


def histogram(measured: Measured) -> str:
    """One line: how often which latency was seen, from the shortest to the longest, by powers."""
    latencies = measured.latencies_ns
    shortest, longest = max(1, latencies[0]), max(2, latencies[-1])
    step = (longest / shortest) ** (1 / _BINS)
    counts = [0] * _BINS
    edge, place = shortest * step, 0
    for latency in latencies:
        while latency > edge and place < _BINS - 1:
            edge *= step
            place += 1
        counts[place] += 1
    most = max(counts)
    bars = "".join(_BARS[-(-count * (len(_BARS) - 1) // most)] for count in counts)
    low, high = duration(shortest / 1e9), duration(longest / 1e9)
    return f"{measured.what:28} {low:>8} |{bars}| {high}"


def save(measured: Sequence[Measured], path: str) -> None:
    """The share of operations that took no longer than so much, one line for each load."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise click.UsageError(
            "--plot needs matplotlib: pip install 'anabranch[plot]', or leave it out"
        ) from None
    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    for each in measured:
        count = len(each.latencies_ns)
        shares = [(turn + 1) / count * 100 for turn in range(count)]
        millis = [latency / 1e6 for latency in each.latencies_ns]
        axes.plot(millis, shares, label=f"{each.what}: {each.rate:,.0f}/s", drawstyle="steps-post")
    axes.set(xscale="log", xlabel="latency, ms", ylabel="done within, %", title="anabranch bench")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)
