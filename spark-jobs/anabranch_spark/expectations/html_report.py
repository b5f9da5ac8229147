"""A report as one page that needs nothing else: no script, no font, no picture of elsewhere.

Values come from whoever appended them, so all text is escaped, and the page may load nothing.
"""

from collections.abc import Iterator
from html import escape

from anabranch_spark.expectations import svg
from anabranch_spark.expectations.outcome import Report, Result, Status
from anabranch_spark.expectations.words import count, percent, shown

_SYMBOLS = {Status.PASSED: "✓", Status.FAILED: "✗", Status.UNKNOWN: "?"}
_HEADLINES = {
    Status.PASSED: "The fork may be promoted",
    Status.FAILED: "The fork is refused",
    Status.UNKNOWN: "The fork couldn't be judged",
}

_STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1a1d21; --soft: #5b6470; --line: #d9dee4;
  --card: #f6f8fa; --passed: #116b3c; --failed: #a4161a; --unknown: #7a4d00; --keep: #2f7fb8;
  --gone: #d9772b; --mark: #1a1d21; }
@media (prefers-color-scheme: dark) { :root { --page: #12161b; --ink: #e6eaee; --soft: #a3adb8;
  --line: #323a43; --card: #1a2027; --passed: #6fd39b; --failed: #ff9a94; --unknown: #f0c36d;
  --keep: #6cb4e8; --gone: #f0a060; --mark: #e6eaee; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 62rem; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; line-height: 1.25; }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .75rem; }
h3 { font-size: 1rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
p { margin: .25rem 0; overflow-wrap: anywhere; }
.soft, dt, .tick { color: var(--soft); }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .75rem;
  margin: 1.5rem 0; padding: 1rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; }
dt { font-size: .8rem; } dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .5rem .75rem .5rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; font-weight: normal; overflow-wrap: anywhere; }
thead th { color: var(--soft); font-size: .8rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.status { white-space: nowrap; font-weight: 600; }
.passed { color: var(--passed); } .failed { color: var(--failed); }
.unknown { color: var(--unknown); }
.cards { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem),
  1fr)); }
.card { border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; }
svg { max-width: 100%; height: auto; display: block; }
.outside { color: var(--gone); } svg .keep { fill: var(--keep); } svg .miss { fill: var(--gone); }
svg .mark { stroke: var(--mark); stroke-width: 1.5; stroke-dasharray: 3 2; }
svg .axis { stroke: var(--line); }
svg .tick { fill: var(--soft); font: 11px system-ui, sans-serif; }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
@media print { body { max-width: none; padding: 0; } }
"""


def page(report: Report) -> str:
    """The whole page."""
    return "".join(_page(report))


def _page(report: Report) -> Iterator[str]:
    headline = "The fork was promoted" if report.promoted else _HEADLINES[report.verdict]
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>{_text(f'{headline}: {report.log}')}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f'<body>\n<main>\n<h1 class="{report.verdict.value}">'
        f"{_symbol(report.verdict)} {headline}</h1>\n<p>{_text(report.reason, 1_000)}</p>\n"
    )
    yield from _facts(report)
    yield from _table(report)
    yield from _histograms(report)
    yield from _samples(report)
    if report.results:
        yield (
            '<p class="soft">Pictures and samples are of the fork\'s own records. Positions are '
            "those of the fork.</p>\n"
        )
    yield "</main>\n</body>\n</html>\n"


def _facts(report: Report) -> Iterator[str]:
    facts = {"Fork": report.log}
    if report.parent:
        facts["Parent"] = f"{report.parent}, forked at {report.fork_point}"
    if report.log_id:  # otherwise nothing is known of the fork
        facts["Records of its own"] = f"{report.own_records:,}"
        facts["Positions read"] = f"{report.start} to before {report.end}"
    facts |= {"Judged at": report.judged_at, "Attempt": str(report.attempt)}
    yield "<dl>\n"
    for name, value in facts.items():
        yield f"<div><dt>{name}</dt><dd>{_text(value, 300)}</dd></div>\n"
    yield "</dl>\n"


def _table(report: Report) -> Iterator[str]:
    if not report.results:
        return
    yield (
        '<h2>Expectations</h2>\n<div class="scroll"><table>\n<thead><tr><th scope="col">Result</th>'
        '<th scope="col">Expectation</th><th scope="col">Kind</th><th scope="col">Records that '
        'keep to it</th><th scope="col" class="number">Misses</th></tr></thead>\n<tbody>\n'
    )
    for each in report.results:
        status = each.status.value
        misses = "" if each.misses is None else f"{each.misses:,}"
        yield (
            f'<tr><td class="status {status}">{_symbol(each.status)} {status}</td>'
            f'<th scope="row">{_text(each.name)}<br><span class="soft">{_text(each.reason, 300)}'
            f"</span></th><td>{_text(each.expect)}</td><td>{_share(each)}</td>"
            f'<td class="number">{misses}</td></tr>\n'
        )
    yield "</tbody>\n</table></div>\n"


def _share(result: Result) -> str:
    judged, misses = result.judged, result.misses
    if judged is None or misses is None or judged == 0:
        return ""
    share = percent(judged - misses, judged)
    label = f"{share} of {count(judged, 'record')}"
    if result.at_least is not None and result.at_least < 1:
        label += f", {result.at_least * 100:.10g}% must"
    return svg.bar((judged - misses) / judged, result.at_least, label) + _text(label)


def _histograms(report: Report) -> Iterator[str]:
    drawn = [(each, each.histogram) for each in report.results if each.histogram is not None]
    shown_ones = [(each, found) for each, found in drawn if found.bins]
    if not shown_ones:
        return
    yield '<h2>Ranged columns</h2>\n<div class="cards">\n'
    for each, found in shown_ones:
        bins = (found.bins[0].low, found.bins[-1].high)
        low, high = (svg.shown_number(end, times=found.times) for end in bins)
        label = f"{shown(each.name)}: values from {low} to {high}"
        yield (
            f'<section class="card"><h3>{_text(each.name)}</h3>{svg.histogram(found, label)}'
            f'<p class="soft">Values from {_text(low)} to {_text(high)}; the highest column has '
            f"about {count(max(one.count for one in found.bins), 'record')}."
            f"{_bounds(found.min, found.max, times=found.times)}</p></section>\n"
        )
    yield "</div>\n"


def _bounds(low: float | None, high: float | None, *, times: bool) -> str:
    said = [
        f"{word} {svg.shown_number(bound, times=times)}"
        for word, bound in (("at least", low), ("at most", high))
        if bound is not None
    ]
    if not said:
        return ""
    outside = '<span class="outside">what lies outside is orange</span>'
    return f" Expected: {_text(' and '.join(said))}; {outside}."


def _samples(report: Report) -> Iterator[str]:
    with_samples = [each for each in report.results if each.samples]
    if not with_samples:
        return
    yield '<h2>Records that miss</h2>\n<div class="cards">\n'
    for each in with_samples:
        yield (
            f'<section class="card"><h3>{_text(each.name)}</h3><div class="scroll"><table>\n'
            '<thead><tr><th scope="col">Position</th><th scope="col">Value</th></tr></thead>\n'
            "<tbody>\n"
        )
        for one in each.samples:
            yield (
                f'<tr><th scope="row">{one.position}</th><td><code>{_text(one.value)}</code></td>'
                "</tr>\n"
            )
        yield "</tbody></table></div></section>\n"
    yield "</div>\n"


def _symbol(status: Status) -> str:
    return f'<span aria-hidden="true">{_SYMBOLS[status]}</span>'


def _text(text: str, chars_max: int = 120) -> str:
    return escape(shown(text, chars_max), quote=True)
