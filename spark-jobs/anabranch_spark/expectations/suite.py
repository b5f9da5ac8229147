"""What data must look like, as structs: a YAML file holds them, and a Python file builds them."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

EXPECTATIONS_MAX = 200
NAME_CHARS_MAX = 120
COLUMN_CHARS_MAX = 200
TEXT_CHARS_MAX = 4_000
COLUMNS_MAX = 32
VALUES_MAX = 1_000
SAMPLES_MAX = 50
PARSED = "values parse"
"""The name of the expectation that every suite has: the share of values that parse."""

Bound = int | float | str
"""A number, or text that stands for a moment, a date or a text of the column's type."""
Literals = int | float | bool | str

Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=NAME_CHARS_MAX,
        description="What the report calls the expectation. Names are unique.",
    ),
]
Column = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=COLUMN_CHARS_MAX,
        description="A field of the decoded value, or of `record`. A dot leads into a nested one.",
    ),
]
Columns = Annotated[
    tuple[Column, ...],
    Meta(
        min_length=1,
        max_length=COLUMNS_MAX,
        description="Fields of the decoded value or of `record`, taken together.",
    ),
]
Share = Annotated[
    float,
    Meta(gt=0, le=1, description="The least share of records that must keep to it."),
]
Nulls = Annotated[
    Literal["miss", "pass"],
    Meta(description="Whether a record without the value misses the expectation or passes it."),
]
Count = Annotated[int, Meta(ge=0, le=1 << 62)]
Sql = Annotated[str, Meta(min_length=1, max_length=TEXT_CHARS_MAX)]
Duration = Annotated[str, Meta(pattern=r"^[0-9]{1,9}(ms|s|m|h|d)$")]


class Format(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="format"):
    """How values are decoded, and which share of them must parse."""

    at_least: Annotated[Share, Meta(description="The least share of values that must parse.")] = 1.0


class Json(Format, frozen=True, kw_only=True, tag="json"):
    """Each value is one JSON object, whose fields become columns. Fields that `schema` doesn't name
    are left out. A value that isn't one JSON object, or has a field of another type, doesn't parse.
    """

    fields: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=TEXT_CHARS_MAX,
            description="Fields and their types in Spark's DDL, such as `id bigint, paid boolean`.",
        ),
    ] = field(name="schema")


class Text(Format, frozen=True, kw_only=True, tag="text"):
    """Each value is UTF-8, and becomes the column `value`, a string. Other bytes don't parse."""


class Bytes(Format, frozen=True, kw_only=True, tag="bytes"):
    """Each value is the column `value`, binary. All but null parse."""


Value = Json | Text | Bytes


class Expectation(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="expect"
):
    """Something that must be so of the fork's own records."""

    name: Name


class OfRecords(Expectation, frozen=True, kw_only=True):
    """Judged record by record: the share of those that keep to it counts."""

    at_least: Share = 1.0


class OfColumn(OfRecords, frozen=True, kw_only=True):
    """Judged by one column's value."""

    column: Column


class Fields(OfRecords, frozen=True, kw_only=True, tag="schema"):
    """The columns are there with these types, and each JSON object has these fields."""

    columns: Annotated[
        dict[Column, Annotated[str, Meta(min_length=1, max_length=TEXT_CHARS_MAX)]],
        Meta(
            min_length=1,
            max_length=COLUMNS_MAX,
            description="Spark's type of each column, such as `decimal(10,2)`.",
        ),
    ]
    others: Annotated[
        Literal["pass", "miss"],
        Meta(description="Whether a JSON object may have fields that `columns` doesn't name."),
    ] = "pass"


class NotNull(OfColumn, frozen=True, kw_only=True, tag="not_null"):
    """The value is there. An empty text is there, and so is a NaN."""


class InRange(OfColumn, frozen=True, kw_only=True, tag="range"):
    """The value lies between two bounds, which belong to the range. NaN lies in no range."""

    min: Annotated[Bound | None, Meta(description="The least value; none if left out.")] = None
    max: Annotated[Bound | None, Meta(description="The greatest value; none if left out.")] = None
    nulls: Nulls = "miss"


class OneOf(OfColumn, frozen=True, kw_only=True, tag="in"):
    """The value is one of these."""

    values: Annotated[
        tuple[Literals, ...],
        Meta(min_length=1, max_length=VALUES_MAX, description="All values that are allowed."),
    ]
    nulls: Nulls = "miss"


class Matches(OfColumn, frozen=True, kw_only=True, tag="regex"):
    """The text has a part that matches. `^` and `$` bind the pattern to its beginning and end."""

    pattern: Annotated[Sql, Meta(description="A regular expression, as Java has them.")]
    nulls: Nulls = "miss"


class Length(OfColumn, frozen=True, kw_only=True, tag="length"):
    """A text has so many characters, binary so many bytes, an array or map so many elements."""

    min: Annotated[Count | None, Meta(description="The least length.")] = None
    max: Annotated[Count | None, Meta(description="The greatest length.")] = None
    nulls: Nulls = "miss"


class Holds(OfRecords, frozen=True, kw_only=True, tag="expression"):
    """A condition in Spark's SQL is true. A record for which it is null misses."""

    expression: Annotated[Sql, Meta(description="Such as `price * pieces = total`.")]


class Unique(OfRecords, frozen=True, kw_only=True, tag="unique"):
    """No other record has the same values, neither in the fork nor among those that it inherited.
    Of own records with the same values all but one miss, or all if an inherited one has them too.
    """

    columns: Columns
    nulls: Nulls = "miss"


class References(OfRecords, frozen=True, kw_only=True, tag="references"):
    """The values are found in another record: inherited, of the whole fork, or of another log."""

    columns: Columns
    to: Annotated[
        tuple[Column, ...],
        Meta(
            max_length=COLUMNS_MAX,
            description="The columns to find them in, in the same order. The same names if left "
            "out.",
        ),
    ] = ()
    among: Annotated[
        Literal["inherited", "fork", "log"],
        Meta(
            description="Where to look: in the records that the fork inherited, in these and its "
            "own, or in the log that `log` names."
        ),
    ] = "inherited"
    log: Annotated[
        Name | None, Meta(description="The log to look in, up to what is settled there.")
    ] = None
    value: Annotated[
        Value | None, Meta(description="How that log's values are decoded; as the fork's if none.")
    ] = None
    where: Annotated[
        Sql | None, Meta(description="Which of the records there count, in Spark's SQL.")
    ] = None
    nulls: Nulls = "miss"


class RowCount(Expectation, frozen=True, kw_only=True, tag="row_count"):
    """The fork has so many records of its own, parsed or not."""

    min: Annotated[Count | None, Meta(description="The least number.")] = None
    max: Annotated[Count | None, Meta(description="The greatest number.")] = None


class Freshness(Expectation, frozen=True, kw_only=True, tag="freshness"):
    """The newest moment of the fork's own records is recent, and doesn't lie in the future."""

    within: Annotated[Duration, Meta(description="How old it may be: `90s`, `15m`, `6h`, `2d`.")]
    column: Annotated[Column, Meta(description="A column of type timestamp.")] = "record.timestamp"
    ahead: Annotated[
        Duration, Meta(description="How far in the future it may lie, for clocks that differ.")
    ] = "5m"


AnyExpectation = (
    Fields
    | NotNull
    | InRange
    | OneOf
    | Matches
    | Length
    | Holds
    | Unique
    | References
    | RowCount
    | Freshness
)


class Suite(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is expected of a fork."""

    version: Annotated[Literal[1], Meta(description="Of this format.")]
    value: Annotated[Value, Meta(description="How the records' values are decoded.")]
    expectations: Annotated[
        tuple[AnyExpectation, ...],
        Meta(
            min_length=1,
            max_length=EXPECTATIONS_MAX,
            description="What must be so; each has a `name`, and `expect` says its kind.",
        ),
    ]
    samples: Annotated[
        int,
        Meta(ge=0, le=SAMPLES_MAX, description="Records that the report shows of each failure."),
    ] = 5


def milliseconds(duration: str) -> int:
    """What `15m` and the like stand for."""
    units = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    number = duration.rstrip("msdh")
    return int(number) * units[duration[len(number) :]]
