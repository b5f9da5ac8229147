"""The API server's memory: versions, generations, finalizers, owners, and what watchers are told.

What the operator relies on is here as the real one does it: an apply that changes nothing makes no
version; the generation counts changes of the spec; what has a finalizer lingers; what has an owner
follows it; an amount is kept in the API server's own words, and a volume never shrinks.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from msgspec import Struct

from anabranch.core.types import Milliseconds
from anabranch_operator.api import names
from anabranch_operator.plan.engine.events import CONFLICT, INVALID, NOT_FOUND, Refusal
from anabranch_operator.plan.engine.objects import Document, Observed, Ref, observe
from anabranch_operator.plan.engine.status import stamp
from anabranch_operator.plan.manifests.quantities import whole

Check = Callable[[Ref, Mapping[str, Any]], str | None]
"""Why the API server wouldn't take a document."""

_LINGER = ("Pod",)
"""What is ended by somebody, and deleted by whoever ended it."""


class Change(Struct, frozen=True):
    """What a watch tells."""

    version: int
    object: Observed
    gone: bool = False


class Kube:
    """Objects by reference, each a document; every change is kept for whoever watches."""

    def __init__(
        self,
        check: Check | None = None,
        *,
        collects: bool = True,
        clock: Callable[[], Milliseconds] | None = None,
    ) -> None:
        """`collects`: what has lost its owner goes at once, and not when somebody collects it.
        `clock`: in place of `now`.
        """
        self.documents: dict[Ref, dict[str, Any]] = {}
        self.changes: list[Change] = []
        self.on_change: Callable[[Change], None] | None = None
        """Told of every change as it happens."""
        self.version = 0
        self.writes = 0
        """Requests that would change something, whether they did or not."""
        self.now: Milliseconds = 0
        self._check = check
        self._clock = clock
        self.collects = collects
        self._uids = 0

    @property
    def time(self) -> Milliseconds:
        return self.now if self._clock is None else self._clock()

    def get(self, ref: Ref) -> Observed | None:
        document = self.documents.get(ref)
        return None if document is None else observe(document)

    def of_kind(self, kind: str) -> list[Observed]:
        return [observe(each) for ref, each in self.documents.items() if ref.kind == kind]

    def list(self) -> list[Observed]:
        return [observe(document) for document in self.documents.values()]

    def apply(self, ref: Ref, manifest: Document) -> Observed | Refusal:
        """Server-side apply by one manager: what isn't said is left as it is."""
        self.writes += 1
        wrong = self._check(ref, manifest) if self._check else None
        if wrong is not None:
            return Refusal(INVALID, wrong)
        new = copied(dict(manifest))
        old = self.documents.get(ref)
        if old is None:
            if "uid" in new["metadata"]:
                return Refusal(CONFLICT, f"{ref} isn't there")
            return self._create(ref, new)
        made = copied(old)
        for key, value in new.items():
            if key == "metadata":
                self._merge_metadata(made["metadata"], value)
            elif key not in {"apiVersion", "kind", "status"}:
                made[key] = _merged(made.get(key), value)
        if _storage(made) < _storage(old):
            return Refusal(INVALID, f"{ref}: field can not be less than previous value")
        return self._replace(ref, old, made)

    def create(self, ref: Ref, manifest: Document) -> Observed | Refusal:
        """Only where nothing is."""
        if ref in self.documents:
            self.writes += 1
            return Refusal(CONFLICT, f"{ref} already exists")
        return self.apply(ref, manifest)

    def apply_status(self, ref: Ref, uid: str, status: Document) -> Observed | Refusal:
        self.writes += 1
        found = self._same(ref, uid)
        if isinstance(found, Refusal):
            return found
        return self._report(ref, found, status)

    def mark(self, ref: Ref, uid: str, made_by: str) -> Observed | Refusal | None:
        """A label; the finalizer that the same manager once put beside it goes."""
        self.writes += 1
        found = self._same(ref, uid)
        if isinstance(found, Refusal):
            return found
        meta = found["metadata"]
        labels = {key: each for key, each in meta.get("labels", {}).items() if key != names.MADE_BY}
        if made_by:
            labels[names.MADE_BY] = made_by
        return self._hold(ref, found, names.FINALIZER, held=False, labels=labels)

    def hold(self, ref: Ref, finalizer: str, *, held: bool) -> None:
        """Somebody else has a finalizer of theirs on it, or takes it away."""
        self._hold(ref, self.documents[ref], finalizer, held=held)

    def delete(self, ref: Ref, uid: str | None = None) -> Observed | Refusal | None:
        """None: it is gone already."""
        self.writes += 1
        found = self.documents.get(ref) if uid is None else self._same(ref, uid)
        if found is None:
            return Refusal(NOT_FOUND, f"{ref} isn't there")
        if isinstance(found, Refusal):
            return found
        if not found["metadata"].get("finalizers") and ref.kind not in _LINGER:
            return self._remove(ref)
        made = copied(found)
        grace_ms = found.get("spec", {}).get("terminationGracePeriodSeconds", 0) * 1_000
        made["metadata"].setdefault("deletionTimestamp", stamp(self.time + grace_ms))
        return self._replace(ref, found, made)

    def end(self, ref: Ref) -> None:
        """What was being deleted has ended."""
        if ref in self.documents:
            self._remove(ref)

    def collect(self) -> None:
        """What has lost all its owners goes."""
        uids = {each["metadata"]["uid"]: None for each in self.documents.values()}
        for ref, document in list(self.documents.items()):
            meta = document["metadata"]
            owners = [owner["uid"] for owner in meta.get("ownerReferences") or ()]
            if owners and "deletionTimestamp" not in meta and not any(o in uids for o in owners):
                self.delete(ref)

    def edit(self, ref: Ref, **spec: Any) -> Observed | Refusal:
        """Somebody patches a spec."""
        found = self.documents[ref]
        made = copied(found)
        made["spec"] = {**made.get("spec", {}), **spec}
        return self._replace(ref, found, made)

    def annotate(self, ref: Ref, **annotations: str) -> None:
        found = self.documents[ref]
        made = copied(found)
        kept = made["metadata"].get("annotations", {})
        made["metadata"]["annotations"] = {
            **kept,
            **{f"{names.GROUP}/{key}": value for key, value in annotations.items()},
        }
        self._replace(ref, found, made)

    def report(self, ref: Ref, status: Document) -> None:
        """Another controller, or a kubelet, tells how something is."""
        self._report(ref, self.documents[ref], status)

    def _report(self, ref: Ref, found: dict[str, Any], status: Document) -> Observed:
        made = {**found, "metadata": dict(found["metadata"]), "status": copied(dict(status))}
        return self._replace(ref, found, made)

    def _hold(
        self,
        ref: Ref,
        found: dict[str, Any],
        finalizer: str,
        *,
        held: bool,
        labels: dict[str, str] | None = None,
    ) -> Observed | Refusal | None:
        made = copied(found)
        meta = made["metadata"]
        if labels is not None:
            meta["labels"] = labels
        before: list[str] = meta.get("finalizers") or []
        if held and "deletionTimestamp" in meta and finalizer not in before:
            return Refusal(INVALID, "no new finalizers can be added if the object is being deleted")
        others = [each for each in before if each != finalizer]
        meta["finalizers"] = [*others, finalizer] if held else others
        if "deletionTimestamp" in meta and not meta["finalizers"]:
            return self._remove(ref)
        return self._replace(ref, found, made)

    def _create(self, ref: Ref, document: dict[str, Any]) -> Observed:
        self._uids += 1
        document.pop("status", None)
        document["metadata"] |= {
            "uid": f"00000000-0000-4000-8000-{self._uids:012d}",
            "generation": 1,
            "creationTimestamp": stamp(self.time),
        }
        return self._keep(ref, document)

    def _replace(self, ref: Ref, old: dict[str, Any], new: dict[str, Any]) -> Observed:
        if new == old:
            return observe(old)
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        return self._keep(ref, new)

    def _keep(self, ref: Ref, document: dict[str, Any]) -> Observed:
        self.version += 1
        document["metadata"]["resourceVersion"] = str(self.version)
        if _storage(document):
            requests = document["spec"]["resources"]["requests"]
            requests["storage"] = canonical(requests["storage"])
        self.documents[ref] = document
        seen = observe(document)
        self._tell(Change(self.version, seen))
        return seen

    def _remove(self, ref: Ref) -> None:
        gone = observe(self.documents.pop(ref))
        self.version += 1
        self._tell(Change(self.version, gone, gone=True))
        if not self.collects:
            return
        for child in [child for child, each in self.documents.items() if _owned(each, gone.uid)]:
            self.delete(child)

    def _tell(self, change: Change) -> None:
        self.changes.append(change)
        if self.on_change is not None:
            self.on_change(change)

    def _same(self, ref: Ref, uid: str) -> dict[str, Any] | Refusal:
        found = self.documents.get(ref)
        if found is None:
            return Refusal(NOT_FOUND, f"{ref} isn't there")
        if found["metadata"]["uid"] != uid:
            return Refusal(CONFLICT, f"{ref} is another by now")
        return found

    @staticmethod
    def _merge_metadata(have: dict[str, Any], want: Mapping[str, Any]) -> None:
        for key in ("labels", "annotations"):
            if key in want:
                have[key] = {**have.get(key, {}), **want[key]}
        if "ownerReferences" in want:
            have["ownerReferences"] = want["ownerReferences"]


def copied(document: Any) -> Any:
    """As `deepcopy`, of what a document consists of."""
    if isinstance(document, Mapping):
        parts = cast("Mapping[str, Any]", document)
        return {key: copied(value) for key, value in parts.items()}
    if isinstance(document, list):
        return [copied(each) for each in cast("list[Any]", document)]
    return document


def canonical(amount: str) -> str:
    """With the largest suffix that leaves it whole; of the same base."""
    base, units = (1_024, _BINARY) if amount.endswith("i") else (1_000, _DECIMAL)
    number, power = whole(amount), 0
    assert number is not None
    while number and number % base == 0 and power + 1 < len(units):
        number, power = number // base, power + 1
    return f"{number}{units[power]}"


_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")


def _storage(document: Mapping[str, Any]) -> int:
    """What a claim asks for; 0: it is none."""
    if document["kind"] != "PersistentVolumeClaim":
        return 0
    return whole(document["spec"]["resources"]["requests"]["storage"]) or 0


def _merged(have: Any, want: Any) -> Any:
    if isinstance(have, dict) and isinstance(want, Mapping):
        known, new = cast("dict[str, Any]", have), cast("Mapping[str, Any]", want)
        return {**known, **{key: _merged(known.get(key), new[key]) for key in new}}
    return want


def _owned(document: Mapping[str, Any], uid: str) -> bool:
    owners = document["metadata"].get("ownerReferences") or ()
    return any(owner["uid"] == uid for owner in owners)
