"""Expectations are read as they were written, or refused with the line and what could be meant."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import BadRequest
from anabranch_spark.expectations import (
    Bytes,
    Fields,
    Freshness,
    Holds,
    InRange,
    Json,
    Length,
    Matches,
    NotNull,
    OneOf,
    References,
    RowCount,
    Suite,
    Text,
    Unique,
    checked,
    load,
    parsed,
)
from anabranch_spark.expectations.suite import EXPECTATIONS_MAX, PARSED, Nulls
from anabranch_spark.expectations.yaml_tree import BYTES_MAX, DEPTH_MAX

IMPORT = "from anabranch_spark.expectations import *\n"
HEAD = "version: 1\nvalue: {format: text}\nexpectations:\n"
EVERY_KIND = """\
version: 1
value:
  format: json
  schema: "id bigint, amount decimal(10,2), state string, at timestamp"
  at_least: 0.999
samples: 3
expectations:
  - {name: fields, expect: schema, columns: {id: bigint}, others: miss}
  - {name: id is there, expect: not_null, column: id}
  - {name: amount, expect: range, column: amount, min: 0, max: 1e3, at_least: 0.99}
  - {name: state, expect: in, column: state, values: [new, no, "12"], nulls: pass}
  - {name: pattern, expect: regex, column: state, pattern: '^[a-z]+$'}
  - {name: length, expect: length, column: state, max: 10}
  - {name: id is unique, expect: unique, columns: [id]}
  - {name: number, expect: row_count, min: 1}
  - {name: fresh, expect: freshness, within: 15m, column: at}
  - name: customer
    expect: references
    columns: [id]
    to: [customer]
    among: log
    log: customers
    value: {format: json, schema: customer bigint}
    where: "not closed"
  - {name: condition, expect: expression, expression: amount > id}
"""
BUILT = Suite(
    version=1,
    value=Json(
        fields="id bigint, amount decimal(10,2), state string, at timestamp", at_least=0.999
    ),
    samples=3,
    expectations=(
        Fields(name="fields", columns={"id": "bigint"}, others="miss"),
        NotNull(name="id is there", column="id"),
        InRange(name="amount", column="amount", min=0, max=1000.0, at_least=0.99),
        OneOf(name="state", column="state", values=("new", "no", "12"), nulls="pass"),
        Matches(name="pattern", column="state", pattern="^[a-z]+$"),
        Length(name="length", column="state", max=10),
        Unique(name="id is unique", columns=("id",)),
        RowCount(name="number", min=1),
        Freshness(name="fresh", within="15m", column="at"),
        References(
            name="customer",
            columns=("id",),
            to=("customer",),
            among="log",
            log="customers",
            value=Json(fields="customer bigint"),
            where="not closed",
        ),
        Holds(name="condition", expression="amount > id"),
    ),
)


_ODD = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def text_of(tree: Any) -> bytes:
    """As JSON, which is YAML if what YAML doesn't take as it is stands as an escape."""
    text = msgspec.json.encode(tree).decode()
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def test_yaml_and_python_declare_the_same() -> None:
    assert parsed(EVERY_KIND.encode(), "orders.yaml") == BUILT
    assert checked(BUILT, "orders.py") == BUILT


names = st.text("abcdefghij äö_", min_size=1, max_size=20)
columns = st.from_regex(r"[a-z][a-z0-9_]{0,8}(\.[a-z]{1,5})?", fullmatch=True)
shares = st.floats(0.001, 1)
words: list[Nulls] = ["miss", "pass"]
nulls = st.sampled_from(words)
numbers = st.integers(-(10**37), 10**37) | st.floats(allow_nan=False, allow_infinity=False)
values = st.one_of(
    st.builds(Json, fields=st.text(min_size=1, max_size=50), at_least=shares),
    st.builds(Text, at_least=shares),
    st.builds(Bytes, at_least=shares),
)


@st.composite
def expectations(draw: st.DrawFn, name: str) -> Any:
    column, share, null = draw(columns), draw(shares), draw(nulls)
    several = tuple(draw(st.lists(columns, min_size=1, max_size=3, unique=True)))
    each = {"name": name, "at_least": share}
    kind = draw(st.integers(0, 9))
    match kind:
        case 0:
            return Fields(**each, columns=dict.fromkeys(several, "bigint"))
        case 1:
            return NotNull(**each, column=column)
        case 2:
            low, high = sorted((draw(numbers), draw(numbers)))
            return InRange(**each, column=column, min=low, max=high, nulls=null)
        case 3:
            allowed = draw(st.lists(st.text(max_size=9), min_size=1, max_size=5, unique=True))
            return OneOf(**each, column=column, values=tuple(allowed), nulls=null)
        case 4:
            pattern = draw(st.text(min_size=1, max_size=30))
            return Matches(**each, column=column, pattern=pattern, nulls=null)
        case 5:
            return Length(**each, column=column, min=draw(st.integers(0, 1 << 62)))
        case 6:
            return Unique(**each, columns=several, nulls=null)
        case 7:
            return References(**each, columns=several, to=several, among="fork", nulls=null)
        case 8:
            return Holds(**each, expression=draw(st.text(min_size=1, max_size=60)))
        case _:
            return RowCount(name=name, max=draw(st.integers(0, 1 << 62)))


@st.composite
def suites(draw: st.DrawFn) -> Suite:
    named = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    return Suite(
        version=1,
        value=draw(values),
        samples=draw(st.integers(0, 50)),
        expectations=tuple(draw(expectations(name)) for name in named),
    )


@given(suites())
def test_what_is_written_is_read_as_the_same(suite: Suite) -> None:
    assert parsed(text_of(suite), "it.yaml") == suite


@given(suites(), st.data())
def test_a_key_that_nobody_knows_is_refused_wherever_it_stands(
    suite: Suite, data: st.DataObject
) -> None:
    tree = msgspec.to_builtins(suite)
    places = [tree, tree["value"], *tree["expectations"]]
    data.draw(st.sampled_from(places))["surprise"] = 1
    with pytest.raises(BadRequest, match="'surprise' is no key"):
        parsed(text_of(tree), "it.yaml")


@given(suites(), st.data())
def test_an_expectation_without_its_name_or_kind_is_refused(
    suite: Suite, data: st.DataObject
) -> None:
    tree = msgspec.to_builtins(suite)
    key = data.draw(st.sampled_from(["name", "expect"]))
    del data.draw(st.sampled_from(tree["expectations"]))[key]
    with pytest.raises(BadRequest, match=f"`{key}` is missing"):
        parsed(text_of(tree), "it.yaml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("- 1", "line 1: it must have the keys `version`, `value`"),
        ("version: 1\nvalue: {format: text}\n", "`expectations` is missing"),
        ("version: 2\nvalue: {format: text}\nexpectations: []", r"line 1 \(version\)"),
        ("version: 1\nvalue: {format: text}\nexpectations: []", r"line 3 \(expectations\)"),
        ("version: 1\nvalue: {format: jsn}\nexpectations: []", "did you mean 'json'"),
        ("version: 1\nvalue: {format: json}\nexpectations: []", r"line 2 \(value\): `schema`"),
        ("version: 1\nvalue: text\nexpectations: []", r"line 2 \(value\)"),
        (HEAD + "  - {name: a, expect: rang, column: b, min: 1}", "did you mean 'range'"),
        (HEAD + "  - {name: a, expect: range, colum: b, min: 1}", "did you mean 'column'"),
        (HEAD + "  - {name: a, expect: range, column: b, min: [1]}", r"line 4 .*\[0\]\.min"),
        (HEAD + "  - {name: a, expect: range, column: b}", "give `min`, `max` or both"),
        (HEAD + "  - {name: a, expect: range, column: b, min: 2, max: 1}", "nothing lies between"),
        (HEAD + "  - {name: a, expect: range, column: b, min: 1, max: x}", "both be numbers"),
        (HEAD + "  - {name: a, expect: range, column: b, min: 1e999}", "no number"),
        (HEAD + "  - {name: a, expect: not_null, column: b..c}", "is no column"),
        (HEAD + "  - {name: a, expect: not_null, column: 'b`c'}", "is no column"),
        (HEAD + "  - {name: a, expect: not_null, column: b, at_least: 0}", "at_least"),
        (HEAD + "  - {name: a, expect: not_null, column: b, at_least: 1.1}", "at_least"),
        (HEAD + "  - {name: a, expect: in, column: b, values: []}", "values"),
        (HEAD + "  - {name: a, expect: in, column: b, values: [1, x]}", "put text in quotes"),
        (HEAD + "  - {name: a, expect: in, column: b, values: [x, x]}", "is there twice"),
        (HEAD + "  - {name: a, expect: unique, columns: []}", "columns"),
        (HEAD + "  - {name: a, expect: row_count}", "give `min`, `max` or both"),
        (HEAD + "  - {name: a, expect: row_count, min: -1}", "min"),
        (HEAD + "  - {name: a, expect: freshness, within: 15 minutes}", "within"),
        (HEAD + "  - {name: a, expect: references, columns: [b], among: log}", "name the log"),
        (
            HEAD + "  - {name: a, expect: references, columns: [b], log: c}",
            "goes with `among: log`",
        ),
        (HEAD + "  - {name: a, expect: references, columns: [b], to: [c, d]}", "it has 2 columns"),
        (HEAD + f"  - {{name: {PARSED}, expect: row_count, min: 1}}", "use another name"),
        (HEAD + '  - {name: "a\\tb", expect: row_count, min: 1}', "printable"),
        (
            HEAD + "  - {name: a, expect: row_count, min: 1}\n" * 2,
            "line 5 .* has this name already",
        ),
        ("a: &x [1]\nb: *x", "line 1: anchors"),
        ("a: *x", "line 1: aliases"),
        ("a: !!python/object/apply:os.system [x]", "line 1: tags"),
        ("a: 1\nb: 2\na: 3", "line 3: 'a' is there already, at line 1"),
        ("a: 1\n---\nb: 2", "line 2: only one document"),
        ("? [a]\n: b", "line 1: a key must be a word"),
        ("a: [1", "line 1"),
        ("a: \x07", "read it.yaml"),
        ("[" * (DEPTH_MAX + 1), f"deeper than {DEPTH_MAX}"),
    ],
)
def test_a_file_that_cant_be_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        parsed(text.encode(), "it.yaml")


def test_a_file_is_bounded(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="131,073 bytes"):
        parsed(b"#" * (BYTES_MAX + 1), "it.yaml")
    many = "".join(
        f"  - {{name: n{index}, expect: row_count, min: 1}}\n"
        for index in range(EXPECTATIONS_MAX + 1)
    )
    with pytest.raises(BadRequest, match="expectations"):
        parsed((HEAD + many).encode(), "it.yaml")
    with pytest.raises(BadRequest, match="line 2 isn't UTF-8"):
        parsed(b"a: 1\n\xff", "it.yaml")
    wide = tmp_path / "wide.yaml"
    wide.write_bytes(b"#" * 10 * BYTES_MAX)
    with pytest.raises(BadRequest, match="131,073 bytes"):
        load(str(wide))


def test_all_mistakes_are_said_at_once_and_only_so_many() -> None:
    wrong = "".join(f"  - {{name: n{index}, expect: nothing}}\n" for index in range(13))
    with pytest.raises(BadRequest, match="and 3 more") as caught:
        parsed((HEAD + wrong).encode(), "it.yaml")
    assert "line 4" in str(caught.value)
    assert "line 13" in str(caught.value)


def test_words_are_text_unless_json_would_have_them_otherwise() -> None:
    values = "[no, yes, on, off, 12:30, 2026-01-01, 0x10, 1_000, NaN, .inf, '5']"
    text = HEAD + f"  - {{name: a, expect: in, column: value, values: {values}}}"
    found = parsed(text.encode(), "it.yaml").expectations[0]
    assert isinstance(found, OneOf)
    assert all(isinstance(value, str) for value in found.values), found.values


@pytest.mark.parametrize("name", ["orders.json", "orders", "orders.yaml.txt"])
def test_other_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadRequest, match="must end in"):
        load(str(tmp_path / name))


def test_a_file_that_isnt_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"gone.yaml: No such file"):
        load(str(tmp_path / "gone.yaml"))


def test_a_python_file_gives_its_suite(tmp_path: Path) -> None:
    file = tmp_path / "orders.py"
    file.write_text(
        "from anabranch_spark.expectations import NotNull, Suite, Text\n"
        "each = (NotNull(name='a', column='value'),)\n"
        "SUITE = Suite(version=1, value=Text(), expectations=each)\n"
    )
    assert load(str(file)).expectations == (NotNull(name="a", column="value"),)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("", "must set SUITE"),
        ("SUITE = {'version': 1}", "must set SUITE"),
        ("1 / 0", "ZeroDivisionError"),
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("def f(:", "SyntaxError"),
        (
            IMPORT + "SUITE = Suite(version=1, value=Text(), "
            "expectations=[NotNull(name=5, column='v')])",
            r"expectations\[0\].name",
        ),
        (
            IMPORT + "SUITE = Suite(version=1, value=Text(), expectations=[])",
            "expectations",
        ),
    ],
)
def test_a_python_file_without_a_sound_suite_is_refused(
    tmp_path: Path, program: str, words: str
) -> None:
    """One that ends the process with the code 0, too: it would pass."""
    file = tmp_path / "orders.py"
    file.write_text(program)
    with pytest.raises(BadRequest, match=words):
        load(str(file))
