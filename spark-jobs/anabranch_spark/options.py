"""The options of reading: their names, what they mean, and which values they take."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Literal, NamedTuple, TypeVar

import msgspec

from anabranch.errors import BadRequest
from anabranch_spark.source.schema import available

Kind = Literal["batch", "stream"]
Word = Literal["earliest", "latest"]
Bound = Word | int | datetime
"""An end of a range of positions: a word, a position, or a time of commit."""

LOGS_MAX = 100
PARTITIONS_MAX = 100_000
LENGTH_S_MAX = 86_400.0
"""The longest time that an option takes."""
_NUMBER_MAX = (1 << 62) - 1
_SHOWN_CHARS = 40

A = TypeVar("A")
B = TypeVar("B")


class Option(NamedTuple):
    """One option as users see it."""

    name: str
    kinds: tuple[Kind, ...]
    default: str
    means: str


_BOTH: tuple[Kind, ...] = ("batch", "stream")
_BATCH: tuple[Kind, ...] = ("batch",)
_STREAM: tuple[Kind, ...] = ("stream",)

OPTIONS = (
    Option(
        "service",
        _BOTH,
        "`ANABRANCH_URL`",
        "The service's URL, as `anabranch.connect` takes it. Executors connect with it too.",
    ),
    Option(
        "log",
        _BOTH,
        "required",
        "The log or fork, by its full name: `orders`, `orders--what-if`. A batch query may read "
        "several, with commas between their names. It then has a first column `log`.",
    ),
    Option(
        "from",
        _BOTH,
        "`earliest`",
        "Where to begin: a position; a time with its zone, such as `2026-11-20T10:00:00Z`, for the "
        "first position that was committed at or after it; `earliest`; or `latest`, for what is "
        "settled when the query starts. A stream with a checkpoint goes on where that stands.",
    ),
    Option(
        "to",
        _BOTH,
        "`latest` in a batch, none in a stream",
        "Where to end, in the same forms. The position itself isn't read. A stream looks `to` up "
        "when it starts, and reads nothing beyond it.",
    ),
    Option(
        "speculative",
        _BATCH,
        "`false`",
        "Read up to the tail, also past what is settled. Records there may still move: a promotion "
        "during the query can end it with `plan-outdated`.",
    ),
    Option(
        "columns",
        _BOTH,
        "all",
        "Names of columns with commas between them. Other columns are neither decoded nor sent.",
    ),
    Option(
        "partitionBytes",
        _BOTH,
        "`128m`",
        "A partition has at most so many stored bytes, or one slice. `k`, `m` and `g` are powers "
        "of 1,024.",
    ),
    Option(
        "minPartitions",
        _BOTH,
        "`1`",
        "Make at least so many partitions, if the scan has as many slices.",
    ),
    Option(
        "planLease",
        _BOTH,
        "`120s`",
        "How long a scan plan lives that nobody renews. Tasks renew it while they read. At most "
        "the service's `plan_lease_ms_max`.",
    ),
    Option(
        "onDataLoss",
        _BOTH,
        "`fail`",
        "What to do if the log was trimmed past the position to begin at: `fail`, or `ignore`, "
        "which goes on at the first position that is there and says so on standard error.",
    ),
    Option(
        "onDamage",
        _BOTH,
        "`ask`",
        "What to do if bytes are missing or damaged in the store: `ask` a broker for these records "
        "once, and say so on standard error; or `fail` at once.",
    ),
    Option(
        "store",
        _BOTH,
        "`presigned`",
        "How bytes are fetched. There is one way: with URLs that the service signs for each task.",
    ),
    Option(
        "pushdown",
        _BATCH,
        "`false`",
        "Let the query's filters on `position` cut the plan. Needs Spark's setting "
        "`spark.sql.python.filterPushdown.enabled`.",
    ),
    Option(
        "maxRecordsPerTrigger",
        _STREAM,
        "no limit",
        "A micro-batch has at most so many records.",
    ),
    Option(
        "maxBytesPerTrigger",
        _STREAM,
        "no limit",
        "A micro-batch has at most so many stored bytes, or one slice.",
    ),
    Option(
        "minRecordsPerTrigger",
        _STREAM,
        "`0`",
        "Begin no micro-batch before there are so many records, or `maxTriggerDelay` is over.",
    ),
    Option(
        "maxTriggerDelay",
        _STREAM,
        "`15m`",
        "How long `minRecordsPerTrigger` holds records back. Units are `ms`, `s`, `m` and `h`.",
    ),
)
"""In the order of the reference page."""

WRITING = ("mode", "writer", "runId")
"""Options of writing, which readers refuse as such."""


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


def read_options(given: Mapping[str, str], kind: Kind | None = None) -> ReadOptions:
    """What these options mean to a batch query or a stream. BadRequest names the first that can't
    be granted. Without a `kind` the options of both are taken: Spark asks for the columns first.
    """
    options = _Given(given, kind)
    logs = options.get("log", _names, None)
    if logs is None:
        raise BadRequest("option log", "it says which log to read, and is missing")
    if kind == "stream" and len(logs) > 1:
        raise BadRequest("option log", "a stream reads one log: unite a stream for each log")
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
    )
    options.get("store", _store, None)
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
                raise BadRequest(f"option {_short(name)}", _unknown(name.lower()))
            if kind is not None and kind not in option.kinds:
                reason = f"it is for a {option.kinds[0]} query only, and this is a {kind}"
                raise BadRequest(f"option {option.name}", reason)
            self._values[option.name] = value

    def get(self, name: str, read: Callable[[str], A], default: B) -> A | B:
        value = self._values.get(name)
        if value is None:
            return default
        try:
            return read(value.strip())
        except ValueError as fault:
            raise BadRequest(f"option {name}={_short(value)}", str(fault)) from None


def _unknown(lower: str) -> str:
    """Why there is no option of this name."""
    if lower in {word.lower() for word in WRITING}:
        return "it is for writing, and a reader was asked for"
    if lower == "path":
        return "load() takes no path: say which log to read with the option log"
    names = {option.name.lower(): option.name for option in OPTIONS}
    close = get_close_matches(lower, names, n=1)
    if close:
        return f"there is none of this name; did you mean {names[close[0]]}?"
    return f"there is none of this name; there are {', '.join(names.values())}"


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
        raise ValueError("this version fetches with signed URLs only: leave the option out")
    if text != "presigned":
        raise ValueError("it must be presigned")


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 3]}..."
