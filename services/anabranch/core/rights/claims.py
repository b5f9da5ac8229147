"""What a right is, in the words of Kubernetes' RBAC (docs/decisions/0022-rights.md).

Each engine's `protocol/rights.py` says which of these claims a request needs.
"""

from collections.abc import Hashable
from enum import StrEnum
from typing import Any, Protocol

from anabranch.core.machine import Value
from anabranch.core.types import LogId

GROUP = "anabranch.dev"
LOGS, FORKS, POOLS = "logs", "forks", "brokerpools"

OWNER = "k8s"
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
    ORDER = "order"
    """Commit appends of a log's lazy front, as the front's own processes do."""


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


SEEING = (
    Verb.GET,
    Verb.READ,
    Verb.APPEND,
    Verb.FORK,
    Verb.PROMOTE,
    Verb.TRIM,
    Verb.DELETE,
    Verb.ORDER,
)
"""Whoever may do anything with a log must be able to look it up."""
POOL = Claim(Subject(POOLS), (Verb.UPDATE,))


def subject_named(name: str) -> Subject:
    """Of a log that isn't there: who may not know of it shan't learn that it isn't."""
    return Subject(FORKS if "--" in name or "@" in name else LOGS, name)


def declared(owner: str) -> Subject | None:
    """The resource that an owner names: `k8s/<namespace>/<Kind>/<name>/<uid>`."""
    match owner.split("/"):
        case [mark, namespace, kind, name, _] if mark == OWNER and kind in _RESOURCES:
            return Subject(_RESOURCES[kind], name, namespace) if namespace and name else None
        case _:
            return None


def listed(owner: str) -> Subject:
    """What is told of by a list of all logs whose owners begin so."""
    match owner.split("/"):
        case [mark, namespace, _, *_] if mark == OWNER and namespace:
            return Subject(LOGS, namespace=namespace)
        case _:
            return Subject(LOGS)


class Rights(Protocol):
    """What the requests of one engine need."""

    def needs(self, message: Any) -> tuple[Claim, ...]:
        """All of these must hold. A request that needs none is open to everyone who is let in."""
        ...

    def kept(self, message: Any) -> Hashable:
        """The key under which a connection remembers that such a request is allowed; None if it
        asks each time.
        """
        ...
