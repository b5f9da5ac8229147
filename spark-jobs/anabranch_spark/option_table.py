"""All options of the data source, as users see them, and how given ones are looked up."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Literal, NamedTuple

from anabranch.errors import BadRequest

Kind = Literal["batch", "stream"]
Direction = Literal["reading", "writing"]

_SHOWN_CHARS = 40
_SPARKS = frozenset({"checkpointlocation"})
"""Spark hands its own options of a stream on to the sink."""


class Option(NamedTuple):
    """One option as users see it."""

    name: str
    kinds: tuple[Kind, ...]
    default: str
    means: str


_BOTH: tuple[Kind, ...] = ("batch", "stream")
_BATCH: tuple[Kind, ...] = ("batch",)
_STREAM: tuple[Kind, ...] = ("stream",)

READING = (
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
        "How bytes are fetched. There is one way: with URLs that the service signs for each task. "
        "`direct`, with the bucket's own keys, is refused.",
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
    Option(
        "availableNow",
        _STREAM,
        "`false`",
        "Read nothing that is settled after the query has started. `available_now` sets it.",
    ),
)
"""In the order of the reference page."""

WRITING = (
    Option(
        "service",
        _BOTH,
        "`ANABRANCH_URL`",
        "The service's URL, as `anabranch.connect` takes it. Executors connect with it too.",
    ),
    Option("log", _BOTH, "required", "The log or fork to append to, by its full name."),
    Option(
        "mode",
        _BOTH,
        "`direct`",
        "With `direct` readers see records as tasks append them. With `fork` they see a batch "
        "whole, when it is committed.",
    ),
    Option(
        "writer",
        _BOTH,
        "the query's id in a stream, none in a batch",
        "The name under which the log remembers which versions it has. 1 to 150 characters.",
    ),
    Option(
        "forkTtl",
        _BOTH,
        "`3600`",
        "Seconds after which a fork that was left over is squashed. Only with `mode=fork`.",
    ),
    Option(
        "runId",
        _BATCH,
        "none",
        "Identifies a batch write, which appends once however often it is run. 1 to 150 "
        "characters.",
    ),
    Option(
        "version",
        _BATCH,
        "none",
        "Identifies a batch write of `writer`: a whole number that rises with each.",
    ),
)
"""In the order of the reference page."""

_TABLES: dict[Direction, tuple[Option, ...]] = {"reading": READING, "writing": WRITING}


def recognised(given: Mapping[str, str], direction: Direction, kind: Kind | None) -> dict[str, str]:
    """The values by the names of the reference, as Spark takes names in any case. BadRequest says
    which option is none of this direction and kind. Without a `kind` those of both are taken.
    """
    known = {option.name.lower(): option for option in _TABLES[direction]}
    found: dict[str, str] = {}
    for name, value in given.items():
        option = known.get(name.lower())
        if option is None:
            if direction == "writing" and name.lower() in _SPARKS:
                continue
            raise BadRequest(f"option {shortened(name)}", _unknown(name.lower(), direction, kind))
        if kind is not None and kind not in option.kinds:
            reason = f"it is for a {option.kinds[0]} only, and this is a {kind}"
            raise BadRequest(f"option {option.name}", reason)
        found[option.name] = value
    return found


def shortened(text: str) -> str:
    """As much of it as a message shows."""
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 3]}..."


def _unknown(lower: str, direction: Direction, kind: Kind | None) -> str:
    """Why there is no option of this name."""
    if lower == "path":
        return "a log isn't a file: name it with the option log, and leave the path out"
    other: Direction = "writing" if direction == "reading" else "reading"
    if lower in {option.name.lower() for option in _TABLES[other]}:
        return f"it is for {other}, and this is {direction}"
    names = {option.name.lower(): option for option in _TABLES[direction]}
    close = get_close_matches(lower, names, n=1)
    if close:
        return f"there is none of this name; did you mean {names[close[0]].name}?"
    there = [each.name for each in names.values() if kind is None or kind in each.kinds]
    return f"there is none of this name; there are {', '.join(there)}"
