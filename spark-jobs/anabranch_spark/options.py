"""The options of reading: their names, what they mean, and which values they take."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from anabranch.errors import BadRequest
from anabranch_spark.source.schema import available

Kind = Literal["batch", "stream"]
Word = Literal["earliest", "latest"]
Bound = Word | int | datetime
"""An end of a range of positions: a word, a position, or a time of commit."""

BOTH: tuple[Kind, ...] = ("batch", "stream")
BATCH: tuple[Kind, ...] = ("batch",)
STREAM: tuple[Kind, ...] = ("stream",)

LOGS_MAX = 100
PARTS_MAX = 100_000
LEASE_S_MAX = 86_400.0
_NUMBER_MAX = (1 << 62) - 1

A = TypeVar("A")


class Option(NamedTuple):
    """One option as users see it."""

    name: str
    kinds: tuple[Kind, ...]
    default: str
    means: str


OPTIONS = (
    Option("service", BOTH, "`ANABRANCH_URL`", "The service's URL, as `anabranch.connect` takes it."),
    Option("log", BOTH, "", "The log or fork by its full name, `orders` or `orders--what-if`. "
           "Several, with commas between them, give a first column `log`."),
    Option("from", BOTH, "`earliest`", "Where to begin: a position, a time with its zone "
           "(`2026-11-20T10:00:00Z`) that means the first position committed at or after it, "
           "`earliest`, or `latest`, which is what is settled when the query starts. A stream with a "
           "checkpoint goes on where that says."),
    Option("to", BATCH, "`latest`", "Where to end, this position excluded: the same forms."),
    Option("speculative", BATCH, "`false`", "Read to the tail, past what is settled. A promotion "
           "while the query runs may end it with `plan-outdated`."),
    Option("columns", BOTH, "all", "Names of columns with commas between them. The others are "
           "neither decoded nor sent."),
    Option("partitionBytes", BOTH, "`128m`", "A partition has at most so many stored bytes, or one "
           "slice. Units `k`, `m`, `g` are powers of 1,024."),
    Option("minPartitions", BOTH, "`1`", "So many partitions at least, if there are as many slices."),
    Option("planLease", BOTH, "`120s`", "How long the scan plan lives that nobody renews. Tasks "
           "renew it while they read; at most the service's `plan_lease_ms_max`."),
    Option("onDataLoss", BOTH, "`fail`", "What to do if positions that should be read were trimmed: "
           "`fail`, or `ignore` to go on at the first that is there."),
    Option("onDamage", BOTH, "`ask`", "What to do if bytes are missing or damaged in the store: "
           "`ask` the service for these records once, and say so on standard error; or `fail` at once."),
    Option("store", BOTH, "`presigned`", "How bytes are fetched: `presigned`, with URLs that the "
           "service signs for each task."),
    Option("pushdown", BATCH, "`false`", "Let ranges of `position` cut the plan. Needs Spark's "
           "setting `spark.sql.python.filterPushdown.enabled`."),
    Option("maxRecordsPerTrigger", STREAM, "no limit", "A micro-batch has at most so many records."),
    Option("maxBytesPerTrigger", STREAM, "no limit", "A micro-batch has at most so many stored "
           "bytes, but one slice at least."),
    Option("minRecordsPerTrigger", STREAM, "`0`", "No micro-batch begins before there are so many "
           "records, or `maxTriggerDelay` is over."),
    Option("maxTriggerDelay", STREAM, "`15m`", "How long `minRecordsPerTrigger` may hold records "
           "back. Units `ms`, `s`, `m`, `h`."),
)  # fmt: skip
"""In the order of the reference page."""

WRITING = ("mode", "writer", "runId")
"""Options of writing, which readers refuse by that name."""


class ReadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one scan or stream, every one checked."""

    service: str | None
    logs: tuple[str, ...]
    start: Bound
    end: Bound
    speculative: bool
    columns: tuple[str, ...]
    partition_bytes: int
    min_partitions: int
    lease: float
    ignore_loss: bool
    ask_broker: bool
    pushdown: bool
    records_max: int | None
    bytes_max: int | None
    records_min: int
    delay: float


def read_options(given: Mapping[str, str], kind: Kind | None = None) -> ReadOptions:
    """What these options mean to a batch query, or a stream. BadRequest names the first that can't
    be granted. Without a `kind`, as long as only the columns are asked for, those of both are taken.
    """
    options = _Given(given, kind)
    logs = options.parse("log", _names, ())
    if not logs:
        raise BadRequest("option log", "it names the log to read, and is missing")
    columns = available(several=len(logs) > 1)
    found = ReadOptions(
        service=options.parse("service", str, None),
        logs=logs,
        start=options.parse("from", _bound, "earliest"),
        end=options.parse("to", _bound, "latest"),
        speculative=options.parse("speculative", _flag, default=False),
        columns=options.parse("columns", lambda text: _columns(text, columns), columns),
        partition_bytes=options.parse("partitionBytes", _size, 128 << 20),
        min_partitions=options.parse("minPartitions", lambda text: _count(text, 1, PARTS_MAX), 1),
        lease=options.parse("planLease", lambda text: _seconds(text, 1.0, LEASE_S_MAX), 120.0),
        ignore_loss=options.parse(
            "onDataLoss", lambda text: _one_of(text, "fail", "ignore"), "fail"
        )
        == "ignore",
        ask_broker=options.parse("onDamage", lambda text: _one_of(text, "ask", "fail"), "ask")
        == "ask",
        pushdown=options.parse("pushdown", _flag, default=False),
        records_max=options.parse("maxRecordsPerTrigger", _count, None),
        bytes_max=options.parse("maxBytesPerTrigger", _size, None),
        records_min=options.parse("minRecordsPerTrigger", lambda text: _count(text, 0), 0),
        delay=options.parse(
            "maxTriggerDelay", lambda text: _seconds(text, 0.0, LEASE_S_MAX), 900.0
        ),
    )
    options.parse("store", lambda text: _one_of(text, "presigned"), "presigned")
    _check_together(found)
    return found


class _Given:
    """Options as Spark gives them: names in any case, values as text."""

    def __init__(self, given: Mapping[str, str], kind: Kind | None) -> None:
        known = {option.name.lower(): option for option in OPTIONS}
        self._values: dict[str, str] = {}
        for name, value in given.items():
            option = known.get(name.lower())
            if option is None:
                raise BadRequest(f"option {name}", _unknown(name))
            if kind is not None and kind not in option.kinds:
                other = option.kinds[0]
                raise BadRequest(
                    f"option {option.name}", f"it is one of a {other}, not of a {kind}"
                )
            self._values[option.name] = value

    def parse(self, name: str, read: Callable[[str], A], default: A) -> A:
        value = self._values.get(name)
        if value is None:
            return default
        try:
            return read(value.strip())
        except ValueError as fault:
            raise BadRequest(f"option {name}={_shown(value)}", str(fault)) from None


def _unknown(name: str) -> str:
    lower = name.lower()
    if lower in {word.lower() for word in WRITING}:
        return "it is one of writing, not of reading"
    if lower == "path":
        return "name the log with the option log, and call load without an argument"
    names = {option.name.lower(): option.name for option in OPTIONS}
    close = get_close_matches(lower, names, n=1)
    if close:
        return f"there is none of this name; did you mean {names[close[0]]}?"
    return f"there is none of this name; there are {', '.join(names.values())}"


def _check_together(options: ReadOptions) -> None:
    start, end = options.start, options.end
    same = isinstance(start, int) and isinstance(end, int)
    if (same and start > end) or (
        isinstance(start, datetime) and isinstance(end, datetime) and start > end
    ):
        raise BadRequest("options from and to", f"{start} comes after {end}")
    if options.records_max is not None and options.records_min > options.records_max:
        reason = "no micro-batch could have as many"
        raise BadRequest("options minRecordsPerTrigger and maxRecordsPerTrigger", reason)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError("one of the names is empty")
    _refuse_repeated(names)
    if len(names) > LOGS_MAX:
        raise ValueError(f"these are {len(names)} logs, and {LOGS_MAX} are read at a time at most")
    return names


def _columns(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in known:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(known)}")
    _refuse_repeated(names)
    return names


def _refuse_repeated(names: Iterable[str]) -> None:
    seen = set[str]()
    for name in names:
        if name in seen:
            raise ValueError(f"{name} is named twice")
        seen.add(name)


def _bound(text: str) -> Bound:
    if text == "earliest" or text == "latest":  # noqa: PLR1714  # so that the type is known
        return text
    if text.isascii() and text.isdigit():
        return _count(text, 0)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("it is a position, a time, earliest or latest") from None
    if time.tzinfo is None:
        raise ValueError(f"a time says its zone: {text}Z for UTC")
    if time.year < 1970:
        raise ValueError("times begin in 1970")
    return time


def _count(text: str, least: int = 1, most: int = _NUMBER_MAX) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ValueError("it is a whole number")
    if not least <= int(text) <= most:
        raise ValueError(f"it lies between {least} and {most}")
    return int(text)


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d{1,15})([kmg]?)b?", text.lower(), re.ASCII)
    if found is None:
        raise ValueError("it is a number of bytes, such as 1048576, 64k, 128m or 1g")
    size = int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2]]
    if not 0 < size <= _NUMBER_MAX:
        raise ValueError("it is 1 byte at least")
    return size


def _seconds(text: str, least: float, most: float) -> float:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*(ms|s|m|h|)", text.lower(), re.ASCII)
    if found is None:
        raise ValueError("it is a length of time, such as 500ms, 30s, 5m or 1h")
    seconds = float(found[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "": 1.0}[found[2]]
    if not least <= seconds <= most:
        raise ValueError(f"it lies between {least:g} and {most:g} seconds")
    return seconds


def _flag(text: str) -> bool:
    return _one_of(text.lower(), "true", "false") == "true"


def _one_of(text: str, *words: str) -> str:
    if text not in words:
        raise ValueError(f"it is {' or '.join(words)}")
    return text


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
