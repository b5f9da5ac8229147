"""Which rights a request needs, in the words of Kubernetes' RBAC (docs/decisions/0022-rights.md).

What needs none is open to whoever is let in: finding brokers, and what concerns only one's own
requests.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from anabranch.core.bolt.protocol import messages
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import ClientMessage
from anabranch.core.machine import Value
from anabranch.core.types import Kind, LogId

GROUP = "anabranch.dev"
LOGS, FORKS, POOLS = "logs", "forks", "brokerpools"

_OWNER = "k8s"
_RESOURCES = {"Log": LOGS, "Fork": FORKS}


class Verb(StrEnum):
    GET = "get"
    LIST = "list"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    APPEND = "append"
    READ = "read"
    FORK = "fork"
    PROMOTE = "promote"
    TRIM = "trim"


class Subject(Value, frozen=True):
    """What a right is about, as RBAC names it."""

    resource: str
    name: str = ""
    """Empty: all of them."""
    namespace: str = ""
    """Empty: the service's own."""


class Right(Value, frozen=True):
    verb: Verb
    subject: Subject


class Claim(Value, frozen=True):
    """Any of these verbs is enough."""

    about: Subject | LogId | str
    """A log by its id or name is known by its description only."""
    verbs: tuple[Verb, ...]


_SEEING = (Verb.GET, Verb.READ, Verb.APPEND, Verb.FORK, Verb.PROMOTE, Verb.TRIM, Verb.DELETE)
"""Whoever may do anything with a log must be able to look it up."""
_POOL = Claim(Subject(POOLS), (Verb.UPDATE,))


def subject_of(log: Description) -> Subject:
    """The resource that declares it; else one of its own name, beside the service."""
    beside = Subject(LOGS if log.kind is Kind.ROOT else FORKS, log.name)
    return declared(log.owner) or beside


def subject_named(name: str) -> Subject:
    """Of a log that isn't there: who may not know of it shan't learn that it isn't."""
    return Subject(FORKS if "--" in name or "@" in name else LOGS, name)


def declared(owner: str) -> Subject | None:
    """The resource that an owner names: `k8s/<namespace>/<Kind>/<name>/<uid>`."""
    match owner.split("/"):
        case [mark, namespace, kind, name, _] if mark == _OWNER and kind in _RESOURCES:
            return Subject(_RESOURCES[kind], name, namespace) if namespace and name else None
        case _:
            return None


def listed(owner: str) -> Subject:
    """What is told of by a list of all logs whose owners begin so."""
    match owner.split("/"):
        case [mark, namespace, _, *_] if mark == _OWNER and namespace:
            return Subject(LOGS, namespace=namespace)
        case _:
            return Subject(LOGS)


def needs(message: ClientMessage) -> tuple[Claim, ...]:
    """All of these must hold."""
    return _NEEDS[type(message)](message)


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
    return (_POOL,) if owner.startswith(f"{_OWNER}/") else ()


def _creating(message: messages.CreateLog) -> tuple[Claim, ...]:
    return _owning(message.owner) or (Claim(Subject(LOGS, message.name), (Verb.CREATE,)),)


def _forking(message: messages.Fork) -> tuple[Claim, ...]:
    return (Claim(message.parent, (Verb.FORK,)), *_owning(message.owner))


def _adopting(message: messages.Adopt) -> tuple[Claim, ...]:
    return (Claim(message.log, (Verb.UPDATE,)), *_owning(message.owner))


def _nothing(message: Any) -> tuple[Claim, ...]:
    return ()


_NEEDS: dict[type, Callable[[Any], tuple[Claim, ...]]] = {
    messages.Hello: _nothing,
    messages.Credit: _nothing,
    messages.Cancel: _nothing,
    messages.Ping: _nothing,
    messages.Survey: _nothing,
    messages.ListBrokers: _nothing,
    messages.Append: _on(Verb.APPEND),
    messages.Read: _on(Verb.READ),
    messages.Subscribe: _on(Verb.READ),
    messages.PositionAt: _on(Verb.READ),
    messages.ReadCursors: _on(Verb.READ),
    messages.CommitCursor: _on(Verb.READ),
    messages.DeleteCursor: _on(Verb.UPDATE),
    messages.Compare: lambda each: (Claim(each.a, (Verb.READ,)), Claim(each.b, (Verb.READ,))),
    messages.Redeem: lambda each: (Claim(each.receipt.log, (Verb.APPEND, Verb.READ)),),
    messages.Describe: _on(*_SEEING),
    messages.ListLogs: lambda each: (Claim(listed(each.owner), (Verb.LIST,)),),
    messages.CreateLog: _creating,
    messages.DeleteLog: _on(Verb.DELETE),
    messages.Squash: _on(Verb.DELETE),
    messages.Fork: _forking,
    messages.Promote: _on(Verb.PROMOTE),
    messages.Trim: _on(Verb.TRIM),
    messages.SetQuota: _on(Verb.UPDATE),
    messages.Adopt: _adopting,
    messages.DrainBroker: lambda _: (_POOL,),
    messages.ForgetBroker: lambda _: (_POOL,),
    messages.Guarded: lambda each: (_POOL, *needs(each.message)),
}
