"""What logs look like in JSON: requests are checked against these, answers are made of them."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
)

from anabranch.core.bolt.protocol import commands
from anabranch.core.bolt.protocol.commands import BOLT, Description, Receipt
from anabranch.core.bolt.protocol.queries import ELSEWHERE, BrokerSeat, Census
from anabranch.core.errors import BadRequest
from anabranch.core.quota import BURST_MS_MAX, RATE_MAX, Quota
from anabranch.core.types import Kind, Milliseconds, OnParentDelete, OnPromote, Position

NUMBER_END = 1 << 53
"""Numbers in JSON are exact below it, whoever reads them."""

WAIT_MS_MAX = 600_000
"""Far above what the log's own limits allow; those cut it short without a word."""

_TTL_S_MAX = 1e9

_1970 = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def _moment(given: Any) -> Milliseconds:
    if isinstance(given, str) and not given.isdecimal():
        try:
            time = datetime.fromisoformat(given)
        except ValueError:
            raise ValueError(
                f"{given[:40]!r} is neither a number nor a time in RFC 3339, such as "
                "2026-07-01T12:00:00Z"
            ) from None
        if time.tzinfo is None:
            raise ValueError("it must say its time zone, as in 2026-07-01T12:00:00Z")
        milliseconds = (time - _1970) // _MILLISECOND
    elif isinstance(given, str | int) and not isinstance(given, bool):
        milliseconds = int(given)
    else:
        raise ValueError("a time is RFC 3339 text or milliseconds since 1970")
    if not 0 <= milliseconds < NUMBER_END:
        raise ValueError("a time lies between 1970 and 2^53 milliseconds after it")
    return milliseconds


class Since(NamedTuple):
    """A time at which a read begins."""

    at: Milliseconds


def _start(given: Any) -> "Position | Since":
    if not isinstance(given, str) or not given.isdecimal():
        return Since(_moment(given))
    position = int(given)
    if position >= NUMBER_END:
        raise ValueError("a position lies below 2^53")
    return position


def _receipt(text: str) -> str:
    try:
        Receipt.parse(text)
    except BadRequest as error:
        raise ValueError(error.facts["reason"]) from None
    return text


_WHOLE = {"type": "integer", "minimum": 0, "exclusiveMaximum": NUMBER_END}

Whole = Annotated[int, Field(ge=0, lt=NUMBER_END)]
"""In a path or query."""
StrictWhole = Annotated[int, Field(strict=True, ge=0, lt=NUMBER_END)]
"""In JSON, where a number isn't text."""
Moment = Annotated[
    int,
    BeforeValidator(_moment),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string", "format": "date-time"}, _WHOLE],
            "description": "RFC 3339, or milliseconds since 1970.",
            "examples": ["2026-07-01T12:00:00Z", 1_782_907_200_000],
        }
    ),
]
Start = Annotated[
    Any,
    BeforeValidator(_start),
    WithJsonSchema(
        {
            "anyOf": [_WHOLE, {"type": "string", "format": "date-time"}],
            "examples": [1_234, "2026-07-01T12:00:00Z"],
        }
    ),
]
"""Where a read begins: at a position, or at the first that was committed at a time or later."""
ReceiptText = Annotated[
    str, AfterValidator(_receipt), Field(max_length=80, examples=["1.0.12"], description="As given")
]


class RequestModel(BaseModel):
    """A request's body: what it doesn't know it refuses."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ResponseModel(BaseModel):
    model_config = ConfigDict(frozen=True, from_attributes=True)


Rate = Annotated[int | None, Field(strict=True, ge=1, le=RATE_MAX)]
"""None is no limit."""


class NewQuota(RequestModel):
    """What may be appended and read in a second; what isn't given isn't limited."""

    append_bytes_per_s: Rate = Field(None, description="Of batches as they are stored.")
    append_records_per_s: Rate = None
    read_bytes_per_s: Rate = Field(None, description="Of batches as they are stored.")
    burst_ms: int = Field(
        Quota().burst_ms,
        strict=True,
        ge=1,
        le=BURST_MS_MAX,
        description="What wasn't used in so long may be used at once.",
    )

    @property
    def quota(self) -> Quota:
        return Quota(
            self.append_bytes_per_s,
            self.append_records_per_s,
            self.read_bytes_per_s,
            self.burst_ms,
        )


class NewDeployment(RequestModel):
    """How a log of another engine than Bolt is to be served."""

    shards: int = Field(1, description="Parts of the log that take appends side by side.")
    replicas: int | None = Field(
        None,
        ge=1,
        description="Of each shard. By default 1 in the service's own process, or else 2.",
    )
    sequencers: int | None = Field(
        None,
        ge=1,
        description="Members of the group that orders the records. By default 1 in the service's "
        "own process, or else 3.",
    )
    addresses: tuple[str, ...] = Field(
        (), description="Of its sequencers, if it runs elsewhere.", examples=[["host:7440"]]
    )
    cluster: str = Field(
        "", description="By which its nodes know each other, if it runs elsewhere."
    )

    mode: Literal["", "m", "st"] = Field(
        "",
        description="Of an Erwin log. `m`, the default: records go through the sequencers. `st`: "
        "to the shards at once, and only their ids through the sequencers.",
    )
    durability: Literal["", "fsync", "memory"] = Field(
        "",
        description="Of an Erwin log, or of lazy appends. `fsync`, the default: an append is on "
        "the disks of all sequencers when it is acknowledged. `memory`: in their memory.",
    )
    black_box: str = Field(
        "",
        description="Of an Erwin log: its shards keep their records in Kafka topics or Bolt logs, "
        "one each, named `TOPIC-0` and so on. Empty: in journals of their own.",
        examples=["kafka://host:9092/TOPIC", "anabranch://host:7420/LOG"],
    )

    def chosen(self) -> commands.EngineSettings:
        return commands.EngineSettings(
            self.shards,
            self.replicas or 0,
            self.sequencers or 0,
            self.addresses,
            self.cluster,
            mode=self.mode,
            durability=self.durability,
            black_box=self.black_box,
        )


class NewLog(RequestModel):
    name: str = Field(examples=["orders"])
    by: str = Field("", description="Who makes it.")
    why: str = Field("", description="What it is for.")
    engine: str = Field(
        "bolt", description="The engine that serves it: `bolt`, `belfast` or `erwin`."
    )
    append: Literal["direct", "lazy"] = Field(
        "direct",
        description="Of a Bolt log. `lazy`: appends are acknowledged in one round trip, and get "
        "their positions later; of `settings` only `sequencers` and `durability` may be given.",
    )
    settings: NewDeployment | None = Field(
        None,
        description="Of a log that isn't Bolt's, or of lazy appends; null is one shard, and all "
        "defaults.",
    )


class NewFork(RequestModel):
    name: str | None = Field(
        None,
        description="Its own name; `what-if` makes `orders--what-if`. Without one it is given one.",
        examples=["what-if"],
    )
    kind: Kind = Field(
        Kind.CONTINUOUS,
        description="`continuous`: goes on receiving its parent's records. `severed`: doesn't.",
    )
    past: StrictWhole | None = Field(
        None, description="The last position that a severed fork inherits; by default all."
    )
    at: Moment | None = Field(
        None, description="Instead: a severed fork inherits what was committed before this time."
    )
    promotable: bool = Field(
        False, description="May a continuous fork be promoted? Until decided it holds its parent."
    )
    ttl_s: float | None = Field(
        None, gt=0, le=_TTL_S_MAX, description="Seconds after which it is squashed."
    )
    on_parent_delete: OnParentDelete = Field(
        OnParentDelete.ORPHAN,
        description="What a severed fork does when its parent goes: keep what it needs, or go too.",
    )
    exclusive: bool = Field(
        False, description="Have a broker of its own serve it; refused if none is free."
    )
    quota: NewQuota | None = Field(
        None, description="Its own; without one it gets as large a one as its parent has."
    )
    by: str = Field("", description="Who makes it.")
    why: str = Field("", description="What it is for.")


class Promoting(RequestModel):
    expect_own: StrictWhole | None = Field(
        None,
        description="Promote the fork only if it has exactly so many records of its own, or else "
        "refuse as `fork-moved`. Take it from `own_records` of GET /v1/logs/{log} before you read "
        "what you judge, so that nothing is promoted that was appended since.",
    )


class Squashing(RequestModel):
    by: str = Field("", description="Who squashes it: whoever asks for it later is told.")


class Trimming(RequestModel):
    before: StrictWhole = Field(description="The first position that can still be read.")


class CursorMove(RequestModel):
    position: StrictWhole = Field(description="Of the next record to be read; it must be settled.")
    on_promote: OnPromote | None = Field(
        None,
        description="`follow`: of a fork, it becomes its parent's when the fork is promoted; of a "
        "parent that has one of the same name, it goes on where the fork's was, if that is "
        "further. `stay`: of a fork, it ends with it; of a parent, it stays where it is. As it was "
        "chosen before, or else `follow` in a promotable fork and `stay` elsewhere.",
    )


class Redeeming(RequestModel):
    receipt: ReceiptText
    wait_ms: int = Field(
        0,
        strict=True,
        ge=0,
        le=WAIT_MS_MAX,
        description="How long to wait if the position is withheld.",
    )


class LogQuota(ResponseModel):
    """What may be appended and read in a second; null is no limit."""

    append_bytes_per_s: int | None
    append_records_per_s: int | None
    read_bytes_per_s: int | None
    burst_ms: int = Field(description="What wasn't used in so long may be used at once.")


class Deployment(ResponseModel):
    """How another engine than Bolt serves a log."""

    shards: int
    replicas: int = Field(description="Of each shard.")
    sequencers: int
    addresses: tuple[str, ...] = Field(
        description="Where its sequencers are dialed. One that begins with `/` is a node behind "
        "this service's own address. Empty: its processes are being started."
    )
    cluster: str = Field(description="By which its nodes know each other.")
    embedded: bool = Field(description="Does this service run it in its own process?")
    mode: str = Field(description="Of an Erwin log, how records reach its shards: `m` or `st`.")
    durability: str = Field(
        description="Of an Erwin log, what an acknowledgement promises: `fsync` or `memory`."
    )
    black_box: str = Field(
        description="Of an Erwin log, where its shards keep their records; empty: in journals of "
        "their own."
    )


class Front(ResponseModel):
    """The sequencers that acknowledge a Bolt log's appends before these are in the log."""

    sequencers: int
    durability: str = Field(description="What an acknowledgement promises: `fsync` or `memory`.")


class Log(ResponseModel):
    """A log or fork."""

    id: int = Field(description="Never used again.")
    name: str = Field(examples=["orders--what-if"])
    kind: Kind
    root: str
    parent: str | None
    fork_point: int = Field(
        description="Below it, positions are the parent's; of an orphan, those of "
        "the log that it was forked from, which is gone."
    )
    start: int | None = Field(
        description="The first position that can be read. This and the three below are null for a "
        "log of another engine than Bolt, whose own nodes know them: HTTP doesn't ask those."
    )
    tail: int | None = Field(description="The position that the next record gets.")
    settled: int | None = Field(description="Reads end here: below it nothing ever changes.")
    own_records: int | None = Field(
        description="Appended here, or promoted into it; not inherited."
    )
    promotable: bool
    depth: int
    forks: int = Field(description="Its direct forks.")
    generation: int = Field(description="Grows with every promotion into it.")
    created_at: int = Field(description="Milliseconds since 1970.")
    by: str
    why: str
    on_parent_delete: OnParentDelete
    expires_at: int | None = Field(description="When it is squashed, if it has a time to live.")
    undecided: str | None = Field(description="The fork that keeps `settled` below `tail`.")
    append_blocked_by: str | None = Field(description="The fork that keeps appends waiting.")
    broker: str = Field(description="Who serves it best: any broker can.")
    address: str = Field(description="Where that broker is reached; empty: through this server.")
    quota: LogQuota | None = Field(description="Null if nothing is limited.")
    owner: str = Field(description="Who declares it, if somebody does.")
    engine: str = Field(description="The engine that serves it.")
    settings: Deployment | None = Field(description="Null for a log of Bolt's.")
    front: Front | None = Field(description="Of lazy appends; null if appends are direct.")

    @classmethod
    def of(cls, description: Description) -> Self:
        log = cls.model_validate(description)
        return log if log.engine == BOLT else log.model_copy(update=dict.fromkeys(ELSEWHERE))


class Logs(ResponseModel):
    logs: list[Log]
    next: str | None = Field(description="Give it as `after` to get more; null if that is all.")


class Tree(ResponseModel):
    """A root and all its forks, each after its parent."""

    root: str
    logs: list[Log]
    complete: bool = Field(description="False if there are more than an answer holds.")


class Range(ResponseModel):
    first: int
    end: int = Field(description="Not included.")


class Diff(ResponseModel):
    """Settled records only. Records are compared by identity, not by what is in them."""

    since: int = Field(
        description="0, or where the log begins that was trimmed further: positions below it "
        "aren't compared."
    )
    shared: int = Field(description="From `since` up to here both logs are the same.")
    only_a: list[Range] = Field(
        description="Positions of the first log whose records aren't among the settled ones of the "
        "second, and never were: an undecided promotable fork may withhold some of them for now."
    )
    only_b: list[Range] = Field(description="And the other way round.")
    trimmed_a: list[Range] = Field(
        description="Positions of the first log that can't be compared: the second may have had "
        "their records, and trimmed them."
    )
    trimmed_b: list[Range] = Field(description="And the other way round.")
    complete: bool = Field(description="False if there is more than one answer looks at.")
    next: str | None = Field(description="`after` of the next page, if there is one.")


class Promoted(ResponseModel):
    into: str = Field(description="The log that has the records now.")
    fork_point: int
    records: int = Field(description="How many of the fork's own it got.")
    squashed: list[str] = Field(description="The other promotable forks, which are gone.")
    cursors: list[str] = Field(description="Those that are now where the fork's were.")


class Cursor(ResponseModel):
    position: int
    on_promote: OnPromote = Field(description="What it does on a promotion.")


class Cursors(ResponseModel):
    cursors: dict[str, int] = Field(examples=[{"billing": 17}])
    on_promote: dict[str, OnPromote] = Field(
        description="What each does on a promotion.", examples=[{"billing": "stay"}]
    )


class Place(ResponseModel):
    log: str
    position: int


class At(ResponseModel):
    position: int


class Counts(ResponseModel):
    """Of the whole cluster."""

    cluster: str
    logs: int
    forks: int
    extents: int
    garbage_objects: int
    producers: int
    applied: int = Field(description="Commands since the cluster began.")

    @classmethod
    def of(cls, census: Census) -> Self:
        return cls.model_validate(census)


class Broker(ResponseModel):
    """One of the pool, and how much is placed on it."""

    name: str = Field(examples=["broker-0"])
    address: str = Field(description="Where clients reach it; empty if it lives in this server.")
    epoch: int = Field(description="Grows with each of its lives.")
    state: str = Field(description="`ready`, `draining` or `lost`.")
    roots: int
    trees: int = Field(description="Trees whose forks it serves.")
    exclusive: int = Field(description="Forks that it serves alone.")

    @classmethod
    def of(cls, seat: BrokerSeat) -> Self:
        return cls.model_validate(seat)


class Brokers(ResponseModel):
    brokers: list[Broker] = Field(description="In order of name.")


class Welcome(ResponseModel):
    cluster: str
    version: str
    links: dict[str, str]


class Health(ResponseModel):
    status: str = Field(examples=["ok"])
