"""What a plan may ask for: writes on the API server, requests to the log service."""

from msgspec import Struct

from anabranch_operator.api.anabranch_names import (
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
    """Base of all of them."""


class Apply(Act, frozen=True, kw_only=True):
    """Server-side apply of one of our own objects, with all that we want of it."""

    ref: Ref
    manifest: Document
    anew: bool = False
    """None of ours was seen: what bears its name all the same is somebody else's."""


class Create(Act, frozen=True, kw_only=True):
    """Make an object that isn't there; a conflict if one of its name is, whoever's it may be."""

    ref: Ref
    manifest: Document


class ApplyStatus(Act, frozen=True, kw_only=True):
    """Server-side apply of a resource's status, if it is still the same resource."""

    ref: Ref
    uid: str
    status: Document
    cosmetic: bool = False
    """Nothing but numbers have moved: it may wait."""


class Mark(Act, frozen=True, kw_only=True):
    """Label a resource, and take away the finalizer of earlier versions; others' are left alone."""

    ref: Ref
    uid: str
    made_by: str = ""
    """The label says whether a fork was made by the operator or through the API."""


class Confirm(Act, frozen=True, kw_only=True):
    """Ask the API server, past all caches, for the object of this name and UID. The outcome is the
    object, or None: it is gone.
    """

    ref: Ref
    uid: str


class Delete(Act, frozen=True, kw_only=True):
    """Delete this very object, and no other of its name."""

    ref: Ref
    uid: str
    grace_s: int | None = None


class Announce(Act, frozen=True, kw_only=True):
    """An Event beside a resource, for people: of a transition, never of a state."""

    ref: Ref
    uid: str
    warning: bool
    reason: str
    message: str


class TailLog(Act, frozen=True, kw_only=True):
    """The last lines of a pod's log."""

    ref: Ref
    lines: int


class CreateRoot(Act, frozen=True, kw_only=True):
    name: str
    owner: str
    why: str


class MakeFork(Act, frozen=True, kw_only=True):
    """Idempotent on the owner: however often it is asked, there is one fork."""

    parent: LogId
    kind: Kind
    name: str
    owner: str
    why: str
    past: Position | None = None
    at: Milliseconds | None = None
    promotable: bool = False
    ttl_ms: Milliseconds | None = None
    on_parent_delete: OnParentDelete = OnParentDelete.ORPHAN
    exclusive: bool = False
    quota: LogQuota | None = None


class Describe(Act, frozen=True, kw_only=True):
    log: LogId | str


class Adopt(Act, frozen=True, kw_only=True):
    """Say whose a log is; nobody's if the owner is empty."""

    log: LogId | str
    owner: str


class Promote(Act, frozen=True, kw_only=True):
    log: LogId


class Squash(Act, frozen=True, kw_only=True):
    log: LogId


class DeleteRoot(Act, frozen=True, kw_only=True):
    log: LogId
    force: bool


class SetQuota(Act, frozen=True, kw_only=True):
    log: LogId
    quota: LogQuota


class Trim(Act, frozen=True, kw_only=True):
    log: LogId
    before: Position


class TrimOlder(Act, frozen=True, kw_only=True):
    """Trim what was committed before a time."""

    log: LogId
    before: Milliseconds


class DrainBroker(Act, frozen=True, kw_only=True):
    broker: str
    epoch: int


class ForgetBroker(Act, frozen=True, kw_only=True):
    broker: str
    epoch: int


Write = Apply | Create | ApplyStatus | Mark | Confirm | Delete | Announce | TailLog
"""Done on the API server."""

Ask = (
    CreateRoot
    | MakeFork
    | Describe
    | Adopt
    | Promote
    | Squash
    | DeleteRoot
    | SetQuota
    | Trim
    | TrimOlder
    | DrainBroker
    | ForgetBroker
)
"""Done by the log service."""


class MoveShard(Act, frozen=True, kw_only=True):
    """Base of what a Belfast log is asked to do with a shard."""

    log: Ref
    """Its SequencerSet."""
    url: str
    shard: str


class JoinShard(MoveShard, frozen=True, kw_only=True):
    """Take it back: it had left."""


class LeaveShard(MoveShard, frozen=True, kw_only=True):
    """Let it go at a window's end."""


class Make(Act, frozen=True, kw_only=True):
    """Base of what must be made with randomness before it can be applied, such as keys."""


Action = Write | Ask | JoinShard | LeaveShard | Make


class Plan(Struct, frozen=True):
    """What to do next, one after the other; nothing if all is as it should be."""

    actions: tuple[Action, ...] = ()
    wake_at: Nanoseconds | None = None
    """When to look again though nothing was seen to change."""
