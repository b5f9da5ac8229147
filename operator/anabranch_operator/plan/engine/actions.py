"""The actions that a plan may ask for: writes on the API server, requests to the log service."""

from msgspec import Struct

from anabranch_operator.api.anabranch_names import (
    EngineSettings,
    Kind,
    LogId,
    LogQuota,
    Milliseconds,
    Nanoseconds,
    OnParentDelete,
    Position,
)
from anabranch_operator.plan.engine.objects import Document, Ref


class Act(Struct, frozen=True, kw_only=True):
    """Base of all actions."""

    @property
    def target(self) -> tuple[str, ...]:
        """What it is done to: of two actions of one class and target the later one is a retry."""
        return ()


class ObjectAction(Act, frozen=True, kw_only=True):
    """Base of actions on one object of the API server."""

    ref: Ref

    @property
    def target(self) -> tuple[str, ...]:
        return (str(self.ref),)


class NamedLogAction(Act, frozen=True, kw_only=True):
    """Base of actions on a log of the log service, given by its id or name."""

    log: LogId | str

    @property
    def target(self) -> tuple[str, ...]:
        return (str(self.log),)


class LogAction(Act, frozen=True, kw_only=True):
    """Base of actions on a log of the log service, given by its id."""

    log: LogId

    @property
    def target(self) -> tuple[str, ...]:
        return (str(self.log),)


class BrokerAction(Act, frozen=True, kw_only=True):
    """Base of actions on one life of a broker."""

    broker: str
    epoch: int

    @property
    def target(self) -> tuple[str, ...]:
        return (self.broker,)


class Apply(ObjectAction, frozen=True, kw_only=True):
    """Server-side apply of an object that the operator makes, with all fields that it sets."""

    manifest: Document
    anew: bool = False
    """No such object was seen, so one that has this name after all is somebody else's: refuse it.
    """


class Create(ObjectAction, frozen=True, kw_only=True):
    """Create an object; a conflict if one of its name exists, whoever made it."""

    manifest: Document


class ApplyStatus(ObjectAction, frozen=True, kw_only=True):
    """Server-side apply of a resource's status, if it is still the same resource."""

    uid: str
    status: Document
    cosmetic: bool = False
    """Only counters differ, so the write may be deferred."""


class Mark(ObjectAction, frozen=True, kw_only=True):
    """Label a resource, and remove the finalizer of earlier versions. Other finalizers are left."""

    uid: str
    made_by: str = ""
    """The label says whether a fork was made by the operator or through the API."""


class Confirm(ObjectAction, frozen=True, kw_only=True):
    """Ask the API server, past its caches, for the object with this name and UID. The outcome is
    the object, or None if it is gone.
    """

    uid: str


class Delete(ObjectAction, frozen=True, kw_only=True):
    """Delete the object with this UID, and no other of its name."""

    uid: str
    grace_s: int | None = None


class Announce(ObjectAction, frozen=True, kw_only=True):
    """Create an Event about a resource, for people: about a transition, never about a state."""

    uid: str
    warning: bool
    reason: str
    message: str

    @property
    def target(self) -> tuple[str, ...]:
        return (str(self.ref), self.reason)


class TailLog(ObjectAction, frozen=True, kw_only=True):
    """Read the last lines of a pod's log."""

    lines: int


class OwnedLogAction(Act, frozen=True, kw_only=True):
    """Base of actions that make a log for an owner, who has one log however often they are done."""

    name: str
    owner: str
    why: str

    @property
    def target(self) -> tuple[str, ...]:
        return (self.owner,)


class CreateRoot(OwnedLogAction, frozen=True, kw_only=True):
    """Make a root log."""

    engine: str = ""
    """The engine that serves it; empty: Bolt."""
    settings: EngineSettings | None = None
    """How another engine serves it."""
    front: EngineSettings | None = None
    """The lazy front that takes its appends, if they are lazy (Bolt)."""


class MakeFork(OwnedLogAction, frozen=True, kw_only=True):
    """Make a fork of a log."""

    parent: LogId
    kind: Kind
    past: Position | None = None
    at: Milliseconds | None = None
    promotable: bool = False
    ttl_ms: Milliseconds | None = None
    on_parent_delete: OnParentDelete = OnParentDelete.ORPHAN
    exclusive: bool = False
    quota: LogQuota | None = None


class Describe(NamedLogAction, frozen=True, kw_only=True):
    """Ask what is known of a log."""


class Adopt(NamedLogAction, frozen=True, kw_only=True):
    """Say who owns a log; nobody if the owner is empty."""

    owner: str

    @property
    def target(self) -> tuple[str, ...]:
        return (self.owner, str(self.log))


class CountOwn(LogAction, frozen=True, kw_only=True):
    """Ask how many records of its own a fork has now, because a gate's Job starts or has ended."""

    fork: str
    """UID of the Fork."""
    job: str
    """Name of the gate's Job."""
    ended: bool
    """Has the Job ended? Then all records that it can have read are counted."""

    @property
    def target(self) -> tuple[str, ...]:
        return (str(self.log), self.job, str(self.ended))


class Promote(LogAction, frozen=True, kw_only=True):
    """Make a fork's records its parent's."""

    expect_own: int | None = None
    """Refused as `fork-moved` unless the fork has exactly so many records of its own. None: promote
    it with whatever it has.
    """


class Squash(LogAction, frozen=True, kw_only=True):
    """Discard a fork and its own records."""


class DeleteRoot(LogAction, frozen=True, kw_only=True):
    """Delete a root log."""

    force: bool
    """Also if it has forks: they end with it."""


class SetQuota(LogAction, frozen=True, kw_only=True):
    """Replace a log's quota."""

    quota: LogQuota


class SetSettings(LogAction, frozen=True, kw_only=True):
    """Replace how another engine serves a log."""

    settings: EngineSettings
    """All of them, such as the addresses of its sequencers and how many shards it has."""


class SetAppends(LogAction, frozen=True, kw_only=True):
    """Have a lazy front take a log's appends from now on, or have the front that it has end."""

    front: EngineSettings | None
    """None: appends become direct."""


class Trim(LogAction, frozen=True, kw_only=True):
    """Trim the records below a position."""

    before: Position


class TrimOlder(LogAction, frozen=True, kw_only=True):
    """Trim the records that were committed before a time."""

    before: Milliseconds


class DrainBroker(BrokerAction, frozen=True, kw_only=True):
    """Have it hand over what it serves."""


class ForgetBroker(BrokerAction, frozen=True, kw_only=True):
    """Take it out of the pool: its pod is gone, and it serves nothing."""


Write = Apply | Create | ApplyStatus | Mark | Confirm | Delete | Announce | TailLog
"""Actions on the API server."""

Ask = (
    CreateRoot
    | MakeFork
    | Describe
    | Adopt
    | CountOwn
    | Promote
    | Squash
    | DeleteRoot
    | SetQuota
    | SetSettings
    | SetAppends
    | Trim
    | TrimOlder
    | DrainBroker
    | ForgetBroker
)
"""Actions of the log service."""


class MoveShard(Act, frozen=True, kw_only=True):
    """Base of what a log is asked to do with one of its shards."""

    log: Ref
    """The log's SequencerSet."""
    url: str
    shard: str

    @property
    def target(self) -> tuple[str, ...]:
        return (str(self.log), self.shard)


class JoinShard(MoveShard, frozen=True, kw_only=True):
    """Have a shard that had left take records again."""


class LeaveShard(MoveShard, frozen=True, kw_only=True):
    """Have a shard take no new records any more."""


class Make(ObjectAction, frozen=True, kw_only=True):
    """Base of actions that need randomness, such as making keys."""


Action = Write | Ask | JoinShard | LeaveShard | Make


class Plan(Struct, frozen=True):
    """The actions to perform next, independent of each other; none if all is as it should be."""

    actions: tuple[Action, ...] = ()
    wake_at: Nanoseconds | None = None
    """When to plan again although nothing was seen to change."""
