"""Reports show what was found: values of strangers stay text, numbers of pictures are finite."""

import re
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anabranch_spark.expectations import Report, Result, Sample, Status
from anabranch_spark.expectations.html_report import page
from anabranch_spark.expectations.outcome import Bin, Histogram
from anabranch_spark.expectations.spread import BINS, rebinned
from anabranch_spark.expectations.svg import bar, histogram, shown_number
from anabranch_spark.expectations.text_report import text
from anabranch_spark.expectations.words import percent, shown

ANY = st.floats(allow_nan=True, allow_infinity=True)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NASTY = "</td><script>alert(1)</script><img src=x onerror='a'>&amp;\"'`\x1b[2J\u202e\r\n\x00"
NUMBERS = re.compile(r'\b(?:x|y|x1|x2|y1|y2|width|height|rx)="([^"]*)"')


def report(words: str, **more: object) -> Report:
    result = Result(
        name=words,
        expect=words,
        status=Status.FAILED,
        reason=words,
        judged=10,
        misses=3,
        at_least=0.9,
        samples=(Sample(7, words),),
        histogram=Histogram(bins=(Bin(0, 1, 5), Bin(1, 2, 0)), min=0.5, max=1.5),
    )
    return Report(
        verdict=Status.FAILED,
        reason=words,
        log=words,
        log_id=1,
        parent=words,
        fork_point=3,
        start=0,
        end=9,
        own_records=10,
        judged_at=words,
        results=(result,),
        **more,  # type: ignore[arg-type]
    )


class Seen(HTMLParser):
    """The tags and attributes of a page, and that all are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def seen(html: str) -> Seen:
    found = Seen()
    found.feed(html)
    found.close()
    assert found.open == []
    return found


PLAIN = seen(page(report("plain")))


@given(st.text(max_size=200) | st.just(NASTY))
def test_no_text_becomes_a_tag_or_an_attribute(words: str) -> None:
    html = page(report(words))
    found = seen(html)
    assert found.tags == PLAIN.tags
    assert found.attributes == PLAIN.attributes
    assert "script" not in found.tags
    assert "<script" not in html


@given(st.text(max_size=200) | st.just(NASTY))
def test_no_text_moves_a_terminals_cursor_or_adds_a_line(words: str) -> None:
    for line in text(report(words)).splitlines():
        assert line.isprintable()
    assert text(report(words)).count("\n") == text(report("plain")).count("\n")


@given(st.text(), st.integers(1, 300))
def test_what_is_shown_is_bounded_and_printable(words: str, chars_max: int) -> None:
    found = shown(words, chars_max)
    assert len(found) <= chars_max
    assert found.isprintable()
    if words.isprintable() and len(words) <= chars_max:
        assert found == words


def test_a_page_needs_nothing_else_and_may_load_nothing() -> None:
    html = page(report("plain"))
    assert "default-src 'none'" in html
    assert {"src", "href"} & PLAIN.attributes == set()
    assert "url(" not in html
    assert "prefers-color-scheme: dark" in html
    assert {"lang", "scope", "aria-label", "role"} <= PLAIN.attributes


def test_pictures_say_in_words_what_they_show() -> None:
    html = page(report("price"))
    assert 'aria-label="70% of 10 records, 90% must"' in html
    assert "about 5 from 0 to 1" in html
    assert "price: values from 0 to 2" in html


@pytest.mark.parametrize(
    ("status", "headline"),
    [
        (Status.PASSED, "The fork may be promoted"),
        (Status.FAILED, "The fork is refused"),
        (Status.UNKNOWN, "The fork couldn&#x27;t be judged"),
    ],
)
def test_the_headline_is_the_verdict(status: Status, headline: str) -> None:
    whole = report("x")
    found = Report(**{**{f: getattr(whole, f) for f in whole.__struct_fields__}, "verdict": status})
    assert headline.replace("&#x27;", "'") in page(found).replace("&#x27;", "'")
    assert text(found).endswith(f"{status.value}: x\n")


def test_a_promotion_is_said() -> None:
    assert "The fork was promoted" in page(report("x", promoted=True))
    assert text(report("x", promoted=True)).endswith("promoted with exactly these 10 records\n")


@given(ANY, ANY | st.none())
def test_bars_are_drawn_with_finite_numbers(share: float, least: float | None) -> None:
    drawn = bar(share, least, "<a & b>")
    ET.fromstring(drawn)
    numbers = [float(each) for each in NUMBERS.findall(drawn)]
    assert all(0 <= each <= 160 for each in numbers), drawn


@st.composite
def histograms(draw: st.DrawFn) -> Histogram:
    edges = sorted(draw(st.lists(FINITE, min_size=2, max_size=30)))
    bins = [Bin(a, b, draw(st.integers(0, 10**18))) for a, b in pairwise(edges)]
    low, high = draw(ANY | st.none()), draw(ANY | st.none())
    return Histogram(bins=tuple(bins), min=low, max=high, times=draw(st.booleans()))


@given(histograms())
def test_histograms_are_drawn_with_finite_numbers_inside_of_their_frame(found: Histogram) -> None:
    drawn = histogram(found, "<a & b>")
    tree = ET.fromstring(drawn)
    assert len(tree.findall("rect")) == sum(each.count > 0 for each in found.bins)
    numbers = [float(each) for each in NUMBERS.findall(drawn)]
    assert all(0 <= each <= 361 for each in numbers), drawn


def test_the_widest_histogram_has_its_middle_in_the_middle() -> None:
    """Though the difference of its ends is no finite number."""
    most = 1.7e308
    drawn = histogram(Histogram(bins=(Bin(-most, 0, 1), Bin(0, most, 1))), "x")
    assert [each.get("x") for each in ET.fromstring(drawn).findall("rect")] == ["0", "180"]


def test_no_values_are_no_picture() -> None:
    assert histogram(Histogram(bins=()), "x") == ""


points = st.lists(st.tuples(ANY, st.floats(0, 1e12) | st.just(float("nan"))), max_size=60)


@given(points, st.integers(1, 40))
@example([(float("inf"), 1.0), (0.0, 2.0), (float("nan"), 1.0), (1.0, float("nan"))], 4)
def test_bins_hold_every_finite_value_once(centroids: list[tuple[float, float]], bins: int) -> None:
    found = rebinned(centroids, bins)
    finite = [(x, y) for x, y in centroids if abs(x) <= 1.7976931348623157e308 and y > 0]
    assert len(found) in (0, 1, bins)
    assert bool(found) == bool(finite)
    total = sum(y for _, y in finite)
    assert sum(each.count for each in found) == pytest.approx(total, rel=1e-6, abs=bins)
    for each, after in pairwise(found):
        assert each.low <= each.high == after.low
    if found:
        assert found[0].low == min(x for x, _ in finite)
        assert found[-1].high == max(x for x, _ in finite)


def test_bins_are_of_equal_width() -> None:
    found = rebinned([(float(x), 1.0) for x in range(BINS + 1)])
    assert [each.count for each in found] == [1] * (BINS - 1) + [2]
    assert {each.high - each.low for each in found} == {1.0}


@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_a_share_is_never_rounded_to_all_or_nothing(part: int, whole: int) -> None:
    part = min(part, whole)
    assert (percent(part, whole) == "100%") == (part == whole)
    assert (percent(part, whole) == "0%") == (part == 0)


def test_moments_are_shown_as_moments() -> None:
    assert shown_number(1_767_225_600, times=True) == "2026-01-01 00:00:00"
    assert shown_number(1e300, times=True) == "1e+300"
    assert shown_number(1234567.0, times=False) == "1.23457e+06"


def test_a_report_says_nothing_of_a_fork_that_is_not_known() -> None:
    unknown = Report(
        verdict=Status.UNKNOWN,
        reason="there is no log a--b",
        log="a--b",
        log_id=0,
        parent="",
        fork_point=0,
        start=0,
        end=0,
        own_records=0,
        judged_at="2026-11-20T13:00:00Z",
    )
    assert text(unknown) == "unknown: there is no log a--b\n"
    html = page(unknown)
    assert "forked at" not in html
    assert "Records of its own" not in html
    assert "<table" not in html
