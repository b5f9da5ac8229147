"""Which rights each request of Bolt needs.

A request that needs none is open to everyone who is let in: finding brokers, and what concerns only
the caller's own requests.
"""

from collections.abc import Callable, Hashable
from typing import Any

from anabranch.core.bolt.protocol import compactors, messages, scans
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.marks import (
    AppendMarked,
    CompleteVersion,
    ReadWriters,
    ReleaseWriter,
)
from anabranch.core.bolt.protocol.messages import ClientMessage
from anabranch.core.bolt.protocol.set_sums import ReadSetSum
from anabranch.core.rights.claims import (
    FORKS,
    LOGS,
    OWNER,
    POOL,
    SEEING,
    Claim,
    Subject,
    Verb,
    declared,
    listed,
)
from anabranch.core.types import Kind
from anabranch.core.wire.session import Cancel, Credit

_KEPT = (messages.Append, AppendMarked, messages.Read, messages.Subscribe, scans.SignScan)


class BoltRights:
    def needs(self, message: ClientMessage) -> tuple[Claim, ...]:
        return needs(message)

    def kept(self, message: ClientMessage) -> Hashable:
        return (type(message), message.log) if isinstance(message, _KEPT) else None


def needs(message: ClientMessage) -> tuple[Claim, ...]:
    """All of these must hold."""
    return _NEEDS[type(message)](message)


def subject_of(log: Description) -> Subject:
    """The resource that declares it; else one of its own name, beside the service."""
    beside = Subject(LOGS if log.kind is Kind.ROOT else FORKS, log.name)
    return declared(log.owner) or beside


def _on(*verbs: Verb) -> Callable[[Any], tuple[Claim, ...]]:
    return lambda message: (Claim(message.log, verbs),)


def _owning(owner: str) -> tuple[Claim, ...]:
    """Whoever may create a resource may have a log in its name.

    An owner that only begins like a resource's is listed among those of its namespace, though no
    right on a resource could be asked for: such owners are for who may do everything.
    """
    subject = declared(owner)
    if subject is not None:
        return (Claim(subject, (Verb.CREATE,)),)
    return (POOL,) if owner.startswith(f"{OWNER}/") else ()


def _creating(message: messages.CreateLog) -> tuple[Claim, ...]:
    """Every client of the log dials the addresses that its maker names, and shows them its token:
    to name them takes the right to put processes there. A black box's address has the service
    itself dial any host that it reaches.
    """
    creating = _owning(message.owner) or (Claim(Subject(LOGS, message.name), (Verb.CREATE,)),)
    settings = message.settings or message.front
    dialed = settings is not None and (settings.addresses or settings.black_box)
    return (*creating, POOL) if dialed and POOL not in creating else creating


def _moving(message: messages.SetSettings) -> tuple[Claim, ...]:
    return (Claim(message.log, (Verb.UPDATE,)), POOL)


def _switching(message: messages.SetAppends) -> tuple[Claim, ...]:
    changing = Claim(message.log, (Verb.UPDATE,))
    dialed = message.front is not None and message.front.addresses
    return (changing, POOL) if dialed else (changing,)


def _forking(message: messages.Fork) -> tuple[Claim, ...]:
    return (Claim(message.parent, (Verb.FORK,)), *_owning(message.owner))


def _writers(message: ReadWriters) -> tuple[Claim, ...]:
    """A writer looks after itself; who lists all learns names that may not be its own."""
    verbs = (Verb.APPEND, Verb.READ) if message.writer else (Verb.READ,)
    return (Claim(message.log, verbs),)


def _adopting(message: messages.Adopt) -> tuple[Claim, ...]:
    return (Claim(message.log, (Verb.UPDATE,)), *_owning(message.owner))


def _pool(message: Any) -> tuple[Claim, ...]:
    return (POOL,)


def _copying(message: compactors.TakeCopies | compactors.AdoptCopy) -> tuple[Claim, ...]:
    """What replaces extents of a log is written by whoever runs the pool; it is read for that."""
    return (POOL, Claim(message.log, (Verb.READ,)))


def _nothing(message: Any) -> tuple[Claim, ...]:
    return ()


_NEEDS: dict[type, Callable[[Any], tuple[Claim, ...]]] = {
    messages.Hello: _nothing,
    Credit: _nothing,
    Cancel: _nothing,
    messages.Ping: _nothing,
    messages.Survey: _nothing,
    messages.ListBrokers: _nothing,
    messages.Append: _on(Verb.APPEND),
    messages.Read: _on(Verb.READ),
    messages.Subscribe: _on(Verb.READ),
    messages.PositionAt: _on(Verb.READ),
    ReadSetSum: _on(Verb.READ),
    messages.ReadCursors: _on(Verb.READ),
    messages.CommitCursor: _on(Verb.READ),
    messages.DeleteCursor: _on(Verb.UPDATE),
    messages.Compare: lambda each: (Claim(each.a, (Verb.READ,)), Claim(each.b, (Verb.READ,))),
    messages.Redeem: lambda each: (Claim(each.receipt.log, (Verb.APPEND, Verb.READ)),),
    messages.Describe: _on(*SEEING),
    messages.ListLogs: lambda each: (Claim(listed(each.owner), (Verb.LIST,)),),
    messages.CreateLog: _creating,
    messages.DeleteLog: _on(Verb.DELETE),
    messages.Squash: _on(Verb.DELETE),
    messages.Fork: _forking,
    messages.Promote: _on(Verb.PROMOTE),
    messages.PromoteIf: _on(Verb.PROMOTE),
    messages.Trim: _on(Verb.TRIM),
    messages.SetQuota: _on(Verb.UPDATE),
    messages.Adopt: _adopting,
    messages.SetSettings: _moving,
    messages.SetAppends: _switching,
    messages.DrainBroker: lambda _: (POOL,),
    messages.ForgetBroker: lambda _: (POOL,),
    messages.FindReceipt: _on(Verb.APPEND, Verb.READ),
    AppendMarked: _on(Verb.APPEND),
    CompleteVersion: _on(Verb.APPEND),
    ReleaseWriter: _on(Verb.APPEND),
    ReadWriters: _writers,
    messages.Order: _on(Verb.ORDER),
    scans.PlanScan: _on(Verb.READ),
    scans.RenewPlan: _on(Verb.READ),
    scans.EndPlan: _on(Verb.READ),
    scans.ReadPlan: _on(Verb.READ),
    scans.SignScan: _on(Verb.READ),
    scans.ListPlans: lambda _: (POOL,),
    scans.EraseGarbage: lambda _: (POOL,),
    compactors.RegisterCompactor: _pool,
    compactors.RenewCompactor: _pool,
    compactors.EndCompactor: _pool,
    compactors.ListCompactors: _pool,
    compactors.SignCopies: _pool,
    compactors.TakeCopies: _copying,
    compactors.AdoptCopy: _copying,
    messages.Guarded: lambda each: (POOL, *needs(each.message)),
}
