"""Each expectation judged by Spark, on records that keep to it and on records that don't."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from anabranch.errors import BadRequest
from anabranch_spark.expectations import InRange, Report, Result, Sample, Status, Suite, parsed
from anabranch_spark.expectations.outcome import OfSuite
from anabranch_spark.expectations.suite import PARSED, Nulls
from anabranch_spark.source.schema import COLUMNS

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
PARENT, FORK = 1, 2
JSON = "id bigint, price double, exact decimal(6,2), state string, at timestamp, order bigint"
Given = dict[str, Any] | bytes | None


def frame(spark: Any, inherited: list[Given], own: list[Given], age: timedelta) -> Any:
    rows: list[tuple[Any, ...]] = []
    for position, given in enumerate([*inherited, *own]):
        value = json.dumps(given).encode() if isinstance(given, dict) else given
        origin = PARENT if position < len(inherited) else FORK
        rows.append((position, NOW - age, b"key", value, [], origin, position))
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return spark.createDataFrame(rows, schema)


def suite(expectations: str, value: str | None = None, **more: Any) -> Suite:
    head = value or f'{{format: json, schema: "{JSON}"}}'
    rest = "".join(f"{key}: {each}\n" for key, each in more.items())
    return parsed(f"version: 1\nvalue: {head}\n{rest}expectations:\n{expectations}".encode(), "it")


def judged(
    spark: Any,
    wanted: Suite,
    own: list[Given],
    *,
    inherited: list[Given] | None = None,
    logs: dict[str, list[Given]] | None = None,
    age: timedelta = timedelta(minutes=1),
) -> OfSuite:
    from pyspark.sql import functions as F  # noqa: N812  # as everybody does

    from anabranch_spark.expectations.judge import Records, judge

    whole = frame(spark, inherited or [], own, age)
    records = Records(
        recent=whole.where(F.col("position") >= len(inherited or [])),
        whole=whole,
        own=F.col("origin") == FORK,
        logs=lambda name: frame(spark, (logs or {})[name], [], age),
    )
    found = judge(wanted, records, now=NOW)
    assert found.own_records == len(own)
    return found.of_suite


def by_name(found: OfSuite) -> dict[str, Result]:
    return {result.name: result for result in found.results}


EACH_KIND = """
- {name: fields, expect: schema, columns: {id: bigint, price: double, record.key: binary}}
- {name: no others, expect: schema, columns: {id: bigint, price: double, exact: "decimal(6,2)",
   state: string, at: timestamp, order: bigint}, others: miss}
- {name: there, expect: not_null, column: id}
- {name: price, expect: range, column: price, min: 0, max: 10.5}
- {name: exact, expect: range, column: exact, min: 0.1}
- {name: since, expect: range, column: at, min: "2026-01-01", max: 2026-12-31T00:00:00+01:00}
- {name: state, expect: in, column: state, values: [new, no]}
- {name: letters, expect: regex, column: state, pattern: '^[a-z]+$'}
- {name: key, expect: regex, column: record.key, pattern: '^key$'}
- {name: short, expect: length, column: state, min: 1, max: 3}
- {name: cheap, expect: expression, expression: price * 2 <= 21}
- {name: once, expect: unique, columns: [id]}
- {name: order, expect: references, columns: [order], to: [id]}
- {name: listed, expect: references, columns: [state], among: log, log: states}
- {name: number, expect: row_count, min: 2, max: 2}
- {name: fresh, expect: freshness, within: 5m}
"""
GOOD: dict[str, Any] = {
    "id": 2,
    "price": 10.5,
    "exact": 0.1,
    "state": "new",
    "at": "2026-02-03T00:00:00Z",
    "order": 1,
}
STATES: dict[str, list[Given]] = {"states": [{"state": "new"}, {"state": "no"}]}


def test_each_kind_passes_on_records_that_keep_to_it(spark: Any) -> None:
    own: list[Given] = [GOOD, {**GOOD, "id": 3, "state": "no", "price": 0}]
    found = judged(spark, suite(EACH_KIND), own, inherited=[{**GOOD, "id": 1}], logs=STATES)
    assert {
        name: result.reason for name, result in by_name(found).items() if result.status != "passed"
    } == {}
    assert found.verdict is Status.PASSED
    assert found.reason == "all 17 expectations pass"


def test_each_kind_fails_on_one_record_that_misses_it(spark: Any) -> None:
    bad: list[Given] = [
        {**GOOD, "more": 1},
        {
            "price": 10.6,
            "exact": 0.09,
            "state": "LONG ",
            "at": "2025-12-31T23:59:59Z",
            "order": 7,
        },
        {**GOOD, "id": 1},
    ]
    found = judged(
        spark,
        suite(EACH_KIND),
        bad,
        inherited=[{**GOOD, "id": 1}],
        logs=STATES,
        age=timedelta(minutes=6),
    )
    results = by_name(found)
    assert results.pop(PARSED).status is Status.PASSED
    assert results.pop("key").status is Status.PASSED
    assert {name for name, result in results.items() if result.status != "failed"} == set()
    assert found.verdict is Status.FAILED
    for name in ("fields", "there", "price", "exact", "since", "state", "letters", "order"):
        assert results[name].misses == 1, name
        assert [each.position for each in results[name].samples] == [2], name
    assert results["once"].misses == 2
    assert results["no others"].misses == 2
    assert results["price"].samples == (Sample(2, "10.6"),)
    assert results["state"].samples == (Sample(2, '"LONG "'),)
    assert results["there"].samples == (Sample(2, "null"),)
    assert results["number"].reason == "3 records of its own, 2 to 2 expected"


def test_a_histogram_counts_each_value_of_a_ranged_column_once(spark: Any) -> None:
    wanted = suite("- {name: price, expect: range, column: price, min: 0, max: 50}")
    own: list[Given] = [{"id": n, "price": float(n)} for n in range(100)]
    found = by_name(judged(spark, wanted, own))["price"]
    assert found.histogram is not None
    assert sum(each.count for each in found.histogram.bins) == 100
    assert found.histogram.bins[0].low == pytest.approx(0, abs=3)
    assert (found.histogram.min, found.histogram.max) == (0, 50)
    assert found.misses == 49


ONE_OBJECT: list[Given] = [
    b'{"id": 1}',
    b' {"id": 1}\n',
    b"{}",
    b'{"id": null, "more": [1, {"a": "}"}]}',
    b'{"state": 5}',
]
NOT_ONE_OBJECT: list[Given] = [
    b'{"id": 1',
    b'{"id": 1} {"id": 2}',
    b'{"id": 1}, "v": {"id": 2}',
    b'{"id": 1}]',
    b'{"id": 1}}',
    b'{"id": 1}, {"id": 2}',
    b'[{"id": 1}]',
    b"[]",
    b"null",
    b"1",
    b"",
    b" ",
    None,
    b'{"id": "x"}',
    b'{"id": 1.5}',
    b'{"price": "dear"}',
    b'{"price": NaN}',
    b"{'id': 1}",
    b'{"state": "\xff"}',
    b"\xef\xbb\xbf{}",
    b'{"id": 99999999999999999999}',
]


def test_a_value_parses_if_it_is_one_json_object_of_the_schema(spark: Any) -> None:
    """That a field has a wrong type counts, too, though nothing is expected of it."""
    wanted = suite("- {name: number, expect: row_count, min: 1}", samples=50)
    found = by_name(judged(spark, wanted, [*ONE_OBJECT, *NOT_ONE_OBJECT]))[PARSED]
    positions = [each.position for each in found.samples]
    assert positions == [*range(len(ONE_OBJECT), len(ONE_OBJECT) + len(NOT_ONE_OBJECT))]
    assert (found.status, found.misses) == (Status.FAILED, len(NOT_ONE_OBJECT))


def test_values_that_dont_parse_are_counted_and_allowed_up_to_a_rate(spark: Any) -> None:
    rows: list[Given] = [GOOD, b"garbage\x1b[2J", GOOD, GOOD]
    wanted = "- {name: there, expect: not_null, column: id}"
    strict = by_name(judged(spark, suite(wanted), rows))
    assert strict[PARSED].status is Status.FAILED
    assert strict[PARSED].samples == (Sample(1, "garbage\\x1b[2J"),)
    lax = f'{{format: json, schema: "{JSON}", at_least: 0.75}}'
    found = judged(spark, suite(wanted, lax), rows)
    assert found.verdict is Status.PASSED
    assert by_name(found)["there"].judged == 3
    assert by_name(found)[PARSED].misses == 1


def test_text_must_be_utf8_and_bytes_must_be_there(spark: Any) -> None:
    long = "- {name: long, expect: length, column: value, min: 2}"
    rows: list[Given] = ["ä".encode(), b"\xff", None]
    text = by_name(judged(spark, suite(long, "{format: text}"), rows))
    assert (text[PARSED].misses, text["long"].misses) == (2, 1)
    binary = by_name(judged(spark, suite(long, "{format: bytes}"), rows))
    assert (binary[PARSED].misses, binary["long"].misses) == (1, 1)


def test_no_value_lies_in_a_range(spark: Any) -> None:
    """Spark takes a comparison with null for null, and a double takes any number for infinite."""
    rows: list[Given] = [{"id": 1}, b'{"price": 1e400}']
    wanted = """
- {name: least, expect: range, column: price, min: 0}
- {name: most, expect: range, column: price, max: 10}
- {name: null may be, expect: range, column: price, max: 10, nulls: pass}
- {name: allowed, expect: in, column: price, values: [1, 2]}
- {name: condition, expect: expression, expression: price > 0}
"""
    found = by_name(judged(spark, suite(wanted), rows))
    assert found[PARSED].misses == 0
    misses = {name: result.misses for name, result in found.items() if name != PARSED}
    expected = {"least": 1, "most": 2, "null may be": 1, "allowed": 2, "condition": 1}
    assert misses == expected
    assert found["least"].histogram is not None
    assert found["least"].histogram.bins == ()


@pytest.mark.parametrize("kind", ["double", "float"])
def test_nan_lies_in_no_range(spark: Any, kind: str) -> None:
    """Spark takes it for greater than all numbers."""
    from anabranch_spark.expectations.row_checks import miss

    values = [(float("nan"),), (0.1,), (None,)]
    frame = spark.createDataFrame(values, f"price {kind}")
    cases: list[tuple[Nulls, list[bool]]] = [
        ("miss", [True, False, True]),
        ("pass", [True, False, False]),
    ]
    for low, high in ((0.1, None), (None, 0.1)):
        for nulls, expected in cases:
            ranged = InRange(name="n", column="price", nulls=nulls, min=low, max=high)
            found = frame.select(miss(ranged, frame)).collect()
            assert [row[0] for row in found] == expected


def test_an_empty_fork_passes_but_for_what_asks_for_records(spark: Any) -> None:
    found = by_name(judged(spark, suite(EACH_KIND), [], inherited=[GOOD, GOOD], logs=STATES))
    failed = {name for name, result in found.items() if result.status is Status.FAILED}
    assert failed == {"number", "fresh"}
    assert found["there"].reason == "there is no record to judge"


def test_an_overflow_leaves_one_expectation_unjudged_and_names_it(spark: Any) -> None:
    wanted = """
- {name: sum, expect: expression, expression: id + 9223372036854775807 > 0}
- {name: hashes, expect: expression, expression: abs(xxhash64(state)) >= 0}
- {name: there, expect: not_null, column: price}
"""
    found = judged(spark, suite(wanted), [GOOD, {"id": 1}])
    results = by_name(found)
    assert results["sum"].status is Status.UNKNOWN
    assert "overflow" in results["sum"].reason.lower()
    assert results["hashes"].status is Status.PASSED
    assert results["there"].misses == 1
    assert found.verdict is Status.UNKNOWN


def test_whole_numbers_are_compared_exactly(spark: Any) -> None:
    """As doubles 2^53 and 2^53 + 1 would be the same."""
    big = 2**53
    wanted = f"""
- {{name: least, expect: range, column: id, min: {big + 1}}}
- {{name: between, expect: range, column: id, min: 0.5, max: 9007199254740992.5}}
- {{name: fits, expect: range, column: exact, max: {10**37}}}
"""
    found = by_name(
        judged(spark, suite(wanted), [{"id": big, "exact": 9999.99}, {"id": 0, "exact": 1}])
    )
    assert [found[name].misses for name in ("least", "between", "fits")] == [2, 1, 0]


def test_of_records_with_the_same_values_all_but_one_miss(spark: Any) -> None:
    wanted = """
- {name: one, expect: unique, columns: [id]}
- {name: both, expect: unique, columns: [id, state]}
- {name: nulls, expect: unique, columns: [state], nulls: pass}
"""
    inherited: list[Given] = [{"id": 1, "state": "a"}, {"id": 9}, {"id": 9}, {"id": 9}]
    own: list[Given] = [
        {"id": 1, "state": "b"},
        {"id": 2, "state": "b"},
        {"id": 2, "state": "b"},
        {"state": "c"},
    ]
    found = by_name(judged(spark, suite(wanted), own, inherited=inherited))
    assert [found[name].misses for name in ("one", "both", "nulls")] == [3, 2, 2]
    assert found["one"].samples == (Sample(4, "1"), Sample(6, "2"), Sample(7, "null"))


def test_references_are_looked_for_where_they_may_lead(spark: Any) -> None:
    wanted = """
- {name: inherited, expect: references, columns: [order], to: [id]}
- {name: fork, expect: references, columns: [order], to: [id], among: fork}
- {name: paid, expect: references, columns: [order], to: [id], where: "state = 'paid'"}
- {name: log, expect: references, columns: [order], to: [id], among: log, log: other,
   value: {format: json, schema: "id int"}}
- {name: none, expect: references, columns: [order], to: [id], among: fork, nulls: pass}
"""
    inherited: list[Given] = [{"id": 1, "state": "paid"}, {"id": 2, "state": "new"}, b"garbage"]
    own: list[Given] = [
        {"id": 3, "order": 1},
        {"id": 4, "order": 2},
        {"id": 5, "order": 3},
        {"id": 6},
    ]
    logs: dict[str, list[Given]] = {"other": [{"id": 3}, {"id": 3}, b"no number"]}
    found = by_name(judged(spark, suite(wanted), own, inherited=inherited, logs=logs))
    misses = [found[name].misses for name in ("inherited", "fork", "paid", "log", "none")]
    assert misses == [2, 1, 3, 3, 0]
    assert [each.position for each in found["inherited"].samples] == [5, 6]


@pytest.mark.parametrize(
    ("age", "status"),
    [
        (timedelta(minutes=5), Status.PASSED),
        (timedelta(minutes=5, seconds=1), Status.FAILED),
        (-timedelta(minutes=2), Status.PASSED),
        (-timedelta(days=365 * 5000), Status.FAILED),
    ],
)
def test_moments_far_in_the_past_or_future_arent_fresh(
    spark: Any, age: timedelta, status: Status
) -> None:
    wanted = suite("- {name: fresh, expect: freshness, within: 5m, column: at}")
    moment = (NOW - age).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = by_name(judged(spark, wanted, [{"at": moment}, {"at": None}]))
    assert found["fresh"].status is status, found["fresh"].reason


def test_as_many_samples_are_shown_as_were_asked_for(spark: Any) -> None:
    wanted = """
- {name: there, expect: not_null, column: id}
- {name: once, expect: unique, columns: [id]}
- {name: lost, expect: references, columns: [order], to: [id]}
"""
    rows: list[Given] = [{"order": n} for n in range(20)]
    for at_most in (0, 3):
        found = by_name(judged(spark, suite(wanted, samples=at_most), rows))
        assert [len(found[name].samples) for name in ("there", "once", "lost")] == [at_most] * 3
        assert found["there"].misses == 20
    assert [each.position for each in found["there"].samples] == [0, 1, 2]


def test_long_values_are_shortened(spark: Any) -> None:
    wanted = suite("- {name: short, expect: length, column: state, max: 9}")
    found = by_name(judged(spark, wanted, [{"state": "x" * 100_000}]))
    assert found["short"].samples[0].value == '"' + "x" * 118 + "…"


BEYOND = (
    "(select count(*) from text.`/etc/hostname`) > 0",
    "exists(select 1 from text.`/etc/hostname` where value like 'a%')",
    "id in (table text.`/etc/hostname`)",
    "reflect('java.lang.System', 'exit', 0) is null",
    "java_method('java.lang.System', 'getenv', 'HOME') like '/%'",
    "rand() < 2",
)
"""Conditions that read files, run what they like, or hold today and not tomorrow."""


@pytest.mark.parametrize(
    ("expectation", "words"),
    [
        ("expect: not_null, column: pric", "did you mean 'price'"),
        ("expect: not_null, column: price.x", "has no fields"),
        ("expect: range, column: price, min: cheap", "can't be compared"),
        ("expect: range, column: at, min: yesterday", "ISO 8601"),
        ("expect: range, column: state, min: 1", "can't be compared"),
        ("expect: range, column: id, min: 1.0e+300", "more digits"),
        ("expect: in, column: state, values: [007]", "can't be compared"),
        ("expect: in, column: id, values: [true]", "can't be compared"),
        ("expect: regex, column: id, pattern: x", "a pattern is held against text"),
        ("expect: regex, column: state, pattern: '('", "no regular expression"),
        ("expect: length, column: id, min: 1", "have a length"),
        ("expect: expression, expression: price +", "understand"),
        ("expect: expression, expression: price + 1", "not true or false"),
        ("expect: expression, expression: pric > 1", "pric"),
        *((f'expect: expression, expression: "{each}"', "the record only") for each in BEYOND),
        ("expect: references, columns: [id], where: rand() < 2", "the record only"),
        ("expect: schema, columns: {id: string}", "string is expected"),
        ("expect: schema, columns: {id: strin}", "DDL"),
        ("expect: freshness, within: 1h, column: id", "needs a timestamp"),
        ("expect: unique, columns: [idd]", "did you mean 'id'"),
        ("expect: references, columns: [state], to: [id]", "its type is string"),
        ("expect: references, columns: [id], where: nothing = 1", "nothing"),
    ],
)
def test_what_columns_cant_answer_is_refused_before_anything_is_read(
    spark: Any, expectation: str, words: str
) -> None:
    wanted = suite(f"- {{name: odd, {expectation}}}\n- {{name: fine, expect: row_count, min: 0}}")
    with pytest.raises(BadRequest, match=words) as caught:
        judged(spark, wanted, [b"not even read"])
    assert "odd" in str(caught.value)


@pytest.mark.parametrize(
    ("ddl", "words"),
    [
        ("id bigint,", "DDL"),
        ("id bigintt", "DDL"),
        ("id bigint, ID string", "twice"),
        ("record string", "taken"),
        ("_anabranch_own boolean", "taken"),
    ],
)
def test_a_schema_that_cant_be_is_refused(spark: Any, ddl: str, words: str) -> None:
    wanted = suite("- {name: n, expect: row_count, min: 0}", f'{{format: json, schema: "{ddl}"}}')
    with pytest.raises(BadRequest, match=words):
        judged(spark, wanted, [])


def test_a_value_that_strains_a_parser_misses_and_stops_nothing(spark: Any) -> None:
    """Who appends one record mustn't decide that a fork can't be judged."""
    odd: list[Given] = [
        b'{"id":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"id":' + b"9" * 100_000 + b"}",
        b'{"price":1e' + b"9" * 1_000 + b"}",
        b'{"exact":0.' + b"1" * 10_000 + b"}",
        b'{"at":"' + b"9" * 10_000 + b'"}',
        b'{"' + b"k" * 200_000 + b'":1}',
        b'{"state":"\\ud800"}',
        b'{"state":"\\u0000"}',
        b"\x00" * 1_000,
        b"{" * 200_000,
    ]
    wanted = suite("- {name: there, expect: not_null, column: id}")
    found = judged(spark, wanted, [*odd, GOOD])
    assert found.verdict is Status.FAILED, found.reason
    assert by_name(found)[PARSED].judged == len(odd) + 1


def test_an_aggregate_is_no_condition_of_a_record(spark: Any) -> None:
    wanted = "- {name: n, expect: expression, expression: count(*) > 0}\n"
    found = judged(spark, suite(wanted + "- {name: m, expect: not_null, column: id}"), [GOOD])
    assert found.verdict is Status.UNKNOWN
    assert by_name(found)["n"].status is Status.UNKNOWN
    assert by_name(found)["m"].status is Status.PASSED


def test_names_that_are_words_of_sql_are_columns(spark: Any) -> None:
    ddl = "`select` bigint, `a-b` struct<`from`: string>"
    wanted = """
- {name: one, expect: not_null, column: select}
- {name: two, expect: unique, columns: [a-b.from]}
- {name: three, expect: in, column: a-b.from, values: ["x'); drop"]}
"""
    rows: list[Given] = [{"select": 1, "a-b": {"from": "x'); drop"}}]
    found = judged(spark, suite(wanted, f'{{format: json, schema: "{ddl}"}}'), rows)
    assert found.verdict is Status.PASSED, found.reason


def test_reports_have_a_place_for_all_of_it() -> None:
    assert {"results", "verdict", "reason"} <= {*Report.__struct_fields__}
