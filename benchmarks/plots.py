"""Charts as SVG and PNG, side by side with the figures they show."""
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import Chart


def draw(charts: Sequence[Chart], path: Path) -> None:
    """All charts of one benchmark in one picture, if it has any."""
    if not charts:
        return
    import matplotlib as mpl

    mpl.use("agg")
    # Equal figures give equal files: no date, no ids made up by chance.
    mpl.rcParams["svg.hashsalt"] = path.name
    mpl.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot as plt

    count = len(charts)
    figure, grid = plt.subplots(
        1, count, figsize=(8 * count, 4.6), layout="constrained", squeeze=False
    )
    for axes, chart in zip(grid[0], charts, strict=True):
        _draw_one(axes, chart)
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=120)
    plt.close(figure)


def _draw_one(axes, chart: Chart) -> None:  # pyright: ignore[reportMissingParameterType]
    words = any(isinstance(x, str) for line in chart.lines for x, _ in line.points)
    for line in chart.lines:
        places = [x for x, _ in line.points]
        values = [y for _, y in line.points]
        if words:
            axes.bar(places, values, width=0.6, label=line.label)
        else:
            axes.plot(places, values, marker="o", label=line.label)
    if chart.log_x:
        axes.set_xscale("symlog", linthresh=10)
    if chart.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set(title=chart.title, xlabel=chart.x, ylabel=chart.y)
    axes.grid(alpha=0.3)
    if len(chart.lines) > 1:
        axes.legend()
