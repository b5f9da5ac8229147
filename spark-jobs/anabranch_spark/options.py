"""The options of reading: their names, what they mean, and which values they take."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal, TypeVar

import msgspec

from anabranch.errors import BadRequest
from anabranch_spark.option_table import Kind, recognised, shortened
from anabranch_spark.source.schema import available

Word = Literal["earliest", "latest"]
Bound = Word | int | datetime
"""An end of a range of positions: a word, a position, or a time of commit."""

LOGS_MAX = 100
PARTITIONS_MAX = 100_000
LENGTH_S_MAX = 86_400.0
"""The longest time that an option takes."""
_NUMBER_MAX = (1 << 62) - 1

A = TypeVar("A")
B = TypeVar("B")


class ReadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one scan or stream, every one checked."""

    service: str | None = None
    logs: tuple[str, ...]
    start: Bound = "earliest"
    end: Bound | None = None
    """None: what is settled when a batch query starts, and no end for a stream."""
    speculative: bool = False
    columns: tuple[str, ...]
    partition_bytes: int = 128 << 20
    min_partitions: int = 1
    lease: float = 120.0
    """Seconds."""
    ignore_loss: bool = False
    ask_broker: bool = True
    pushdown: bool = False
    records_max: int | None = None
    bytes_max: int | None = None
    records_min: int = 0
    delay: float = 900.0
    """Seconds."""
    available_now: bool = False


def read_options(given: Mapping[str, str], kind: Kind | None = None) -> ReadOptions:
    """What these options mean to a batch query or a stream. BadRequest names the first that can't
    be granted. Without a `kind` the options of both are taken: Spark asks for the columns first.
    """
    options = _Given(given, kind)
    logs = options.get("log", _names, None)
    if logs is None:
        raise BadRequest("option log", "it says which log to read, and is missing")
    if kind == "stream" and len(logs) > 1:
        reason = f"a stream reads one log, and {len(logs)} are named: union() a stream for each"
        raise BadRequest("option log", reason)
    columns = available(several=len(logs) > 1)
    start = options.get("from", _bound, None)
    found = ReadOptions(
        service=options.get("service", str, None),
        logs=logs,
        start="earliest" if start is None else start,
        end=options.get("to", _bound, None),
        speculative=options.get("speculative", _flag, False),
        columns=options.get("columns", lambda text: _columns(text, columns), columns),
        partition_bytes=options.get("partitionBytes", _size, 128 << 20),
        min_partitions=options.get("minPartitions", lambda text: _count(text, PARTITIONS_MAX), 1),
        lease=options.get("planLease", lambda text: _seconds(text, least=1.0), 120.0),
        ignore_loss=options.get("onDataLoss", lambda text: _is(text, "ignore", "fail"), False),
        ask_broker=options.get("onDamage", lambda text: _is(text, "ask", "fail"), True),
        pushdown=options.get("pushdown", _flag, False),
        records_max=options.get("maxRecordsPerTrigger", _count, None),
        bytes_max=options.get("maxBytesPerTrigger", _size, None),
        records_min=options.get("minRecordsPerTrigger", lambda text: _count(text, least=0), 0),
        delay=options.get("maxTriggerDelay", _seconds, 900.0),
        available_now=options.get("availableNow", _flag, False),
    )
    options.get("store", _store, None)
    _check_together(found)
    return found


class _Given:
    """The options that were given, each read when it is asked for."""

    def __init__(self, given: Mapping[str, str], kind: Kind | None) -> None:
        self._values = recognised(given, "reading", kind)

    def get(self, name: str, read: Callable[[str], A], default: B) -> A | B:
        value = self._values.get(name)
        if value is None:
            return default
        try:
            return read(value.strip())
        except ValueError as fault:
            raise BadRequest(f"option {name}={shortened(value)}", str(fault)) from None


def _check_together(options: ReadOptions) -> None:
    start, end = options.start, options.end
    numbers = isinstance(start, int) and isinstance(end, int) and start > end
    times = isinstance(start, datetime) and isinstance(end, datetime) and start > end
    if numbers or times:
        raise BadRequest("options from and to", f"{start} comes after {end}")
    if options.records_max is not None and options.records_min > options.records_max:
        what = "options minRecordsPerTrigger and maxRecordsPerTrigger"
        raise BadRequest(what, "a micro-batch can't have more records than it may have")


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    _refuse_repeated(names)
    if len(names) > LOGS_MAX:
        raise ValueError(f"it names {len(names)} logs, and {LOGS_MAX} at most are read at a time")
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
        if not name:
            raise ValueError("one of the names is empty")
        if name in seen:
            raise ValueError(f"{name} is named twice")
        seen.add(name)


def _bound(text: str) -> Bound:
    if text == "earliest" or text == "latest":  # noqa: PLR1714  # the type checker follows this
        return text
    if text.isascii() and text.isdigit():
        return _count(text, least=0)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("it is a position, a time, earliest or latest") from None
    if time.tzinfo is None:
        raise ValueError("a time needs its zone, such as Z for UTC at its end")
    if time < datetime(1970, 1, 1, tzinfo=UTC):
        raise ValueError("times begin in 1970")
    return time


def _count(text: str, most: int = _NUMBER_MAX, *, least: int = 1) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ValueError("it must be a whole number")
    if not least <= int(text) <= most:
        raise ValueError(f"it must lie between {least} and {most}")
    return int(text)


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d{1,15})([kmg]?)b?", text.lower(), re.ASCII)
    if found is None:
        raise ValueError("it must be a number of bytes, such as 1048576, 64k, 128m or 1g")
    size = int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2]]
    if not 0 < size <= _NUMBER_MAX:
        raise ValueError("it must be 1 byte at least")
    return size


def _seconds(text: str, *, least: float = 0.0) -> float:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) *(ms|s|m|h|)", text.lower(), re.ASCII)
    if found is None:
        raise ValueError("it must be a length of time, such as 500ms, 30s, 5m or 1h")
    seconds = float(found[1]) * {"ms": 0.001, "m": 60.0, "h": 3_600.0}.get(found[2], 1.0)
    if not least <= seconds <= LENGTH_S_MAX:
        raise ValueError(f"it must lie between {least:g} and {LENGTH_S_MAX:g} seconds")
    return seconds


def _flag(text: str) -> bool:
    return _is(text.lower(), "true", "false")


def _is(text: str, word: str, other: str) -> bool:
    if text not in (word, other):
        raise ValueError(f"it must be {word} or {other}")
    return text == word


def _store(text: str) -> None:
    if text == "direct":
        reason = "it would take the bucket's keys, which read every log"
        raise ValueError(f"{reason}: tasks fetch with signed URLs only, so leave the option out")
    if text != "presigned":
        raise ValueError("it must be presigned")
