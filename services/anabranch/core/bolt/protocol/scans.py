"""Scan plans: the extents that hold a range of a log, named for readers that get the bytes from the
object store themselves (decision 75).

Structs are arrays on the wire and in the journal: fields are only ever added at the end.
"""

from typing import NewType

import msgspec

from anabranch.core.types import LogId, Milliseconds, ObjectId, Position

SCANS_FORMAT = 10
"""From this format of the cluster's commands on, logs can be planned."""

PlanId = NewType("PlanId", int)
"""Drawn at random, so that only who planned a scan, or may list all plans, can end it."""

AS_FAR = -1
"""In the place of a position: as far as the log can be read in that direction."""

PAGE_SLICES_MAX = 5_000
"""Slices in one page of a plan: larger ones would hold up the metadata's leader."""

SIGNED_SLICES_MAX = 1_000
"""Slices that one request can have signed: their URLs fit into a frame."""


class PlanScan(msgspec.Struct, frozen=True, array_like=True, tag="plan-scan"):
    """Client to broker: plan a scan of these positions, and delete no object that it names.

    Without `speculative` the range ends at the settled position at the latest. The plan ends
    `lease_ms` after it was made or renewed.
    """

    log: LogId
    request: bytes
    """The id under which the scan is planned once."""
    lease_ms: Milliseconds
    start: Position = AS_FAR
    end: Position = AS_FAR
    speculative: bool = False
    by: str = ""
    """Who scans, for whoever lists the plans."""


class BeginPlan(msgspec.Struct, frozen=True, array_like=True, tag="begin-plan"):
    """Broker to metadata: what `PlanScan` asks, under this id."""

    plan: PlanId
    secret: bytes
    """Brokers seal the plan's slices with it. No client ever sees it."""
    log: LogId
    lease_ms: Milliseconds
    start: Position
    end: Position
    speculative: bool
    by: str


class RenewPlan(msgspec.Struct, frozen=True, array_like=True, tag="renew-plan"):
    """Let the plan live for this long from now on, but not beyond `plan_age_ms_max` in all."""

    log: LogId
    plan: PlanId
    lease_ms: Milliseconds


class EndPlan(msgspec.Struct, frozen=True, array_like=True, tag="end-plan"):
    """The scan is over. A plan that has ended already is left alone."""

    log: LogId
    plan: PlanId


class LapsePlans(msgspec.Struct, frozen=True, array_like=True, tag="lapse-plans"):
    """The leader noticed that the leases of these plans are over at the entry's time, or that they
    hold back more garbage than they may.
    """

    plans: list[PlanId]
    held_too_much: bool = False


class EraseGarbage(msgspec.Struct, frozen=True, array_like=True, tag="erase-garbage"):
    """End every plan, and delete what nothing refers to now, without its grace."""

    request: bytes = b""
    """The id under which it is done once; empty in the journal, where the entry has it."""


ScanCommand = BeginPlan | RenewPlan | EndPlan | LapsePlans | EraseGarbage


class Plan(msgspec.Struct, frozen=True, array_like=True, tag="plan"):
    """A scan that is planned."""

    id: PlanId
    log: LogId
    name: str
    """The log's, when the scan was planned."""
    start: Position
    end: Position
    generation: int
    """Of the log's lineage: where it has changed, positions past `settled` may have moved."""
    settled: Position
    """As it was when the scan was planned."""
    began: Milliseconds
    expires: Milliseconds
    by: str


class Erased(msgspec.Struct, frozen=True, array_like=True, tag="erased"):
    """What `EraseGarbage` has set going: the leader deletes these objects at once."""

    plans: int
    """So many have ended."""
    objects: int


ScanOutcome = Plan | Erased


class ReadPlan(msgspec.Struct, frozen=True, array_like=True, tag="read-plan"):
    """A page of a plan: which slices hold its positions from `start` on?"""

    log: LogId
    plan: PlanId
    start: Position
    slices_max: int


class FindPlan(msgspec.Struct, frozen=True, array_like=True, tag="find-plan"):
    """Broker to metadata: the secret of a plan that is alive."""

    log: LogId
    plan: PlanId


class ListPlans(msgspec.Struct, frozen=True, array_like=True, tag="list-plans"):
    """Every plan that is alive, the oldest first."""


class Plans(msgspec.Struct, frozen=True, array_like=True, tag="plans"):
    plans: list[Plan]
    held_objects: int
    """Garbage that became so after the oldest plan was made."""
    held_bytes: int


ScanQuery = ReadPlan | FindPlan | ListPlans


class SealedSlice(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The bytes of one slice, as a page named them."""

    object: ObjectId
    offset: int
    length: int
    seal: int
    """Proves that a page of the plan named them."""


class SignScan(msgspec.Struct, frozen=True, array_like=True, tag="sign-scan"):
    """Say where these slices of a plan can be fetched, without keys of the object store."""

    log: LogId
    plan: PlanId
    slices: list[SealedSlice]


class SignedRange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Bytes of one object, and the URL that fetches them and no others."""

    object: ObjectId
    offset: int
    length: int
    url: str
    """With `Range: bytes=OFFSET-LAST` as a header; of a folder, file:// and the object's path."""


class SignedScan(msgspec.Struct, frozen=True, array_like=True, tag="signed-scan"):
    """The slices that were asked about, in their order; neighbours in one object are one range."""

    ranges: list[SignedRange]
    valid_ms: Milliseconds
    """For so long the URLs can be used to begin a GET."""


ScanRequest = PlanScan | RenewPlan | EndPlan | EraseGarbage | ReadPlan | ListPlans | SignScan
"""What clients ask."""

ScanAnswer = Plan | Erased | Plans | SignedScan
"""What clients are answered, besides pages."""
