"""What scan plans look like in JSON. Numbers that JSON can't hold are text."""

import re
from typing import Annotated, Any, NamedTuple

from fastapi import Path
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from anabranch.apps.http.models import NUMBER_END, RequestModel, ResponseModel, StrictWhole
from anabranch.apps.http.records import AS_READ, Origin
from anabranch.client.bolt.scans import LEASE_S
from anabranch.core.bolt.protocol.scans import SIGNED_SLICES_MAX, Plan, PlanId, SealedSlice
from anabranch.core.errors import BadName
from anabranch.core.records.objects import ObjectName
from anabranch.core.types import LogId

LEASE_MS = round(LEASE_S * 1_000)
_BOUNDED_BY = "At most `plan_lease_ms_max` of the service, by default ten minutes."
_PLAN_END = 1 << 63
_OBJECT_CHARS_MAX = 400
_SEAL = r"^[0-9a-f]{16}$"


class PlanAddress(NamedTuple):
    """Which plan of which log: rights are asked of the log, also when it has lost its name."""

    log: LogId
    plan: PlanId

    @property
    def text(self) -> str:
        return f"{self.log}-{self.plan:016x}"


_ADDRESS = re.compile(r"(0|[1-9][0-9]{0,15})-([0-9a-f]{16})", re.ASCII)


def _address(given: Any) -> PlanAddress:
    found = _ADDRESS.fullmatch(given) if isinstance(given, str) else None
    if found is not None:
        log, plan = int(found[1]), int(found[2], 16)
        if log < NUMBER_END and plan < _PLAN_END:
            return PlanAddress(LogId(log), PlanId(plan))
    raise ValueError("it isn't the id of a scan plan, such as 1-0123456789abcdef")


Address = Annotated[
    Any,
    Path(alias="plan", description="Its `id`.", examples=["1-0123456789abcdef"]),
    BeforeValidator(_address),
    WithJsonSchema({"type": "string", "pattern": _ADDRESS.pattern}),
]


def _object(text: str) -> str:
    try:
        ObjectName.parse(text)
    except BadName:
        raise ValueError("it isn't the name of an object, as a page gave it") from None
    return text


class NewPlan(RequestModel):
    """A range of positions to scan."""

    start: StrictWhole | None = Field(None, description="By default where the log begins.")
    end: StrictWhole | None = Field(
        None,
        description="Not included. By default the settled position; with `speculative` the tail.",
    )
    speculative: bool = Field(
        False,
        strict=True,
        description="May the range go beyond the settled position? What lies there may move when "
        "a promotable fork is promoted; pages asked for after that are refused.",
    )
    lease_ms: int = Field(
        LEASE_MS,
        strict=True,
        ge=1,
        lt=NUMBER_END,
        description=f"The plan ends after so long unless it is renewed. {_BOUNDED_BY}",
    )
    by: str = Field("", description="Who scans: whoever lists the plans is told.")


class Renewal(RequestModel):
    lease_ms: int = Field(
        LEASE_MS,
        strict=True,
        ge=1,
        lt=NUMBER_END,
        description=f"The plan lives so long from now on. {_BOUNDED_BY}",
    )


class PlannedScan(ResponseModel):
    """The objects that a plan names stay in the store until it ends."""

    id: str = Field(
        description="The log's number, and the plan's own as refusals and the command line say it.",
        examples=["1-0123456789abcdef"],
    )
    log: str = Field(description="The log's name when the scan was planned.")
    start: int
    end: int = Field(description="Not included.")
    settled: int = Field(
        description="The log's settled position when the scan was planned: below it no record "
        "moves, so pages there agree with each other whatever becomes of the log."
    )
    generation: int = Field(description="Of the log and those above it; grows with promotions.")
    created_at: int = Field(description="Milliseconds since 1970.")
    expires_at: int = Field(description="When the plan ends unless it is renewed before.")
    by: str

    @classmethod
    def of(cls, plan: Plan) -> "PlannedScan":
        return cls(
            id=PlanAddress(plan.log, plan.id).text,
            log=plan.name,
            start=plan.start,
            end=plan.end,
            settled=plan.settled,
            generation=plan.generation,
            created_at=plan.began,
            expires_at=plan.expires,
            by=plan.by,
        )


class PlannedScans(ResponseModel):
    plans: list[PlannedScan] = Field(description="Those that are alive, the oldest first.")
    held_objects: int = Field(
        description="Objects of garbage that aren't deleted because they became garbage after the "
        "oldest plan was made."
    )
    held_bytes: int


class SliceOut(ResponseModel):
    """Bytes of one object that hold records of the log."""

    first: int = Field(description="Position of the first record that is meant.")
    count: int = Field(description="Records that are meant; their positions follow each other.")
    object: str = Field(
        description="Its name in the bucket.", examples=["main/data/00000001/0000000000012"]
    )
    offset: int
    length: int = Field(description="In bytes: whole record batches.")
    skip: int = Field(description="Records in these bytes before the first that is meant.")
    origin: Origin = Field(description="Of the first record; the others' positions follow.")
    seal: str = Field(description="Proves that the plan named this slice; 16 hexadecimal digits.")


class SlicePage(ResponseModel):
    slices: list[SliceOut] = Field(description="In order of position.")
    next: int = Field(
        description="`from` of the next page; the plan's `end` if this was the last one."
    )


class SliceIn(RequestModel):
    object: Annotated[str, AfterValidator(_object), Field(max_length=_OBJECT_CHARS_MAX)]
    offset: StrictWhole
    length: StrictWhole
    seal: str = Field(pattern=_SEAL)
    first: Any = Field(None, description=AS_READ)
    count: Any = Field(None, description=AS_READ)
    skip: Any = Field(None, description=AS_READ)
    origin: Any = Field(None, description=AS_READ)

    @property
    def sealed(self) -> SealedSlice:
        name = ObjectName.parse(self.object)
        return SealedSlice(name.id, self.offset, self.length, int(self.seal, 16))


class Signing(RequestModel):
    slices: list[SliceIn] = Field(
        min_length=1,
        max_length=SIGNED_SLICES_MAX,
        description="As pages of the plan gave them.",
    )


class RangeOut(ResponseModel):
    """Slices that touch each other in one object are one range."""

    object: str
    offset: int
    length: int
    url: str = Field(
        description="Fetches these bytes, with `range` as a header, and no others. Of a service on "
        "a folder it is a file:// URL of the whole object."
    )
    range: str = Field(description="The header `Range` of the GET.", examples=["bytes=0-4095"])


class SignedRanges(ResponseModel):
    ranges: list[RangeOut] = Field(description="In the order of the slices.")
    valid_ms: int = Field(description="For so long the URLs can be used to begin a GET.")
