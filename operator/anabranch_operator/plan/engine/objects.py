"""Objects of the API server as the operator sees them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct

from anabranch_operator.api.anabranch_names import Milliseconds
from anabranch_operator.api.common import instant

Json = Mapping[str, Any] | Sequence[Any] | str | float | bool | None
Document = Mapping[str, Any]
"""What the API server is given or gives."""


NOTHING: Mapping[str, Any] = MappingProxyType({})


class Ref(NamedTuple):
    """What an object is found by."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else self.name


class Observed(Struct, frozen=True, kw_only=True):
    """An object as it was at one version of it."""

    ref: Ref
    uid: str
    version: int
    """Of two observations of one object the one with the higher version is the later: resource
    versions are etcd's revisions, and since Kubernetes 1.35 promised to be comparable.
    """
    generation: int = 0
    created_at: Milliseconds = 0
    deleting: bool = False
    ends_at: Milliseconds = 0
    """When it will be gone, if it is being deleted and has its grace."""
    labels: Mapping[str, str] = NOTHING
    annotations: Mapping[str, str] = NOTHING
    finalizers: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    """The UIDs of its owners."""
    body: Document = NOTHING
    """All but its metadata."""

    @property
    def spec(self) -> Document:
        return self.body.get("spec") or {}

    @property
    def status(self) -> Document:
        return self.body.get("status") or {}

    def condition(self, of_type: str) -> Document | None:
        """The condition of this type, if it is there and true."""
        for each in self.status.get("conditions") or ():
            if each["type"] == of_type and each["status"] == "True":
                found: Document = each
                return found
        return None


def observe(document: Document) -> Observed:
    """What of a document is looked at."""
    meta = document["metadata"]
    ref = Ref(document["kind"], meta.get("namespace", ""), meta["name"])
    return Observed(
        ref=ref,
        uid=meta["uid"],
        version=int(meta["resourceVersion"]),
        generation=meta.get("generation", 0),
        created_at=instant(meta["creationTimestamp"]),
        deleting="deletionTimestamp" in meta,
        ends_at=instant(meta["deletionTimestamp"]) if "deletionTimestamp" in meta else 0,
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
        finalizers=tuple(meta.get("finalizers") or ()),
        owners=tuple(owner["uid"] for owner in meta.get("ownerReferences") or ()),
        body={
            key: value
            for key, value in document.items()
            if key not in {"apiVersion", "kind", "metadata"}
        },
    )


def contains(observed: Json, desired: Json) -> bool:
    """Is everything that is wanted there? What others or the API server added doesn't count.

    The API server doesn't keep lists and objects that are empty.
    """
    if isinstance(desired, Mapping):
        there = observed if isinstance(observed, Mapping) else NOTHING
        if observed is not None and there is NOTHING:
            return False
        return all(contains(there.get(key), each) for key, each in desired.items())
    if isinstance(desired, list | tuple):
        these = observed or ()
        if not isinstance(these, list | tuple):
            return False
        return len(these) == len(desired) and all(map(contains, these, desired))
    return observed == desired
