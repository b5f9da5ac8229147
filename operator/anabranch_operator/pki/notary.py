"""Performs what the desk of certificates decides. Keys are made here, go into Secrets, and are read
again when they are needed: none is kept, told or logged.
"""

from asyncio import Lock
from collections.abc import Callable
from typing import Any, Protocol, assert_never

from cryptography import x509

from anabranch.core.types import Nanoseconds
from anabranch_operator.pki import documents as keeping
from anabranch_operator.pki import issue
from anabranch_operator.pki.documents import Kept
from anabranch_operator.pki.issue import Identity
from anabranch_operator.pki.parse import Unreadable, fingerprint
from anabranch_operator.plan.certificates.facts import (
    NEW,
    SECRET,
    Arrange,
    CertificateAction,
    CertificateSettings,
    Fingerprint,
    Holdings,
    Inspect,
    Issue,
    Mode,
    Publish,
    Shown,
)
from anabranch_operator.plan.engine.objects import Document, Ref


class Objects(Protocol):
    """The way to the API server."""

    async def find(self, ref: Ref) -> Document | None:
        """None if it isn't there."""
        ...

    async def apply(self, ref: Ref, manifest: Document) -> Document | None:
        """Server-side apply. None if it isn't of the version that the manifest names, or was taken
        away meanwhile.
        """
        ...


class _Changed(Exception):
    """Things aren't as they were seen last."""


class Notary:
    """Answers every action with what is so after it: the part that it changed, or, if things
    weren't as they were thought to be, all of it.
    """

    def __init__(
        self,
        objects: Objects,
        wanted: CertificateSettings,
        namespace: str,
        now: Callable[[], Nanoseconds],
    ) -> None:
        self._objects = objects
        self._wanted = wanted
        self._namespace = namespace
        self._now = now
        self._places: tuple[Ref, ...] = ()
        self._versions: dict[Ref, str] = {}
        """Of everything as it was seen, or written, last."""
        self._known: dict[Fingerprint, x509.Certificate] = {}
        """Those who are trusted anywhere."""
        self._turn = Lock()

    async def perform(self, action: CertificateAction) -> Holdings:
        async with self._turn:
            try:
                match action:
                    case Inspect():
                        return await self._inspect(action.places)
                    case Arrange():
                        return await self._arrange(action)
                    case Issue():
                        return await self._issue(action)
                    case Publish():
                        return await self._publish(action)
                    case _:
                        assert_never(action)
            except _Changed:
                return await self._inspect(self._places)

    async def _inspect(self, places: tuple[Ref, ...]) -> Holdings:
        self._places = places
        self._versions.clear()
        self._known.clear()
        at, authority = self._now(), None
        if self._wanted.mode is Mode.SELF:
            held = await self._found(self._authority)
            authority = keeping.authority(held) if held else None
        leaves = [Ref(SECRET, self._namespace, leaf.secret) for leaf in self._wanted.leaves]
        documents = {ref: await self._found(ref) for ref in dict.fromkeys((*leaves, *places))}
        found = {ref: document for ref, document in documents.items() if document is not None}
        told = tuple(keeping.told(ref, document) for ref, document in found.items())
        shown = tuple(self._shown(found[ref]) for ref in leaves if ref in found)
        return Holdings(authority, shown, told, at, places)

    async def _arrange(self, action: Arrange) -> Holdings:
        document = await self._unchanged(action.ref)
        try:
            able = Kept(document).able
        except Unreadable:
            able = ()
        named = {fingerprint(one.certificate): one for one in able}

        def take(wanted: Fingerprint | None) -> Identity | None:
            if wanted == NEW:
                name = f"{self._namespace}/{action.ref.name}"
                return issue.found(name, action.not_before, action.not_after)
            if wanted is not None and wanted not in named:
                raise _Changed
            return None if wanted is None else named[wanted]

        issuing, coming = take(action.issuing), take(action.coming)
        leaving = self._certificates(action.leaving)
        manifest = keeping.authority_manifest(action.ref, issuing, coming, leaving, self._now())
        return Holdings(keeping.authority(await self._apply(action.ref, manifest)))

    async def _issue(self, action: Issue) -> Holdings:
        held = await self._unchanged(self._authority)
        await self._unchanged(action.ref)
        by = Kept(held).issuing
        if by is None or fingerprint(by.certificate) != action.issuer:
            raise _Changed
        names = action.leaf.names
        leaf = issue.issue(by, names[0], names, action.not_before, action.not_after)
        bundle = keeping.bundled(self._certificates(action.bundle))
        manifest = keeping.leaf_manifest(
            action.ref, leaf.certificate_pem, leaf.key_pem, bundle, self._now()
        )
        return self._part(action.ref, await self._apply(action.ref, manifest))

    async def _publish(self, action: Publish) -> Holdings:
        document = await self._unchanged(action.ref)
        bundle = keeping.bundled(self._certificates(action.bundle))
        manifest = keeping.telling_manifest(action.ref, document, bundle, self._now())
        return self._part(action.ref, await self._apply(action.ref, manifest))

    @property
    def _authority(self) -> Ref:
        return Ref(SECRET, self._namespace, self._wanted.authority)

    async def _found(self, ref: Ref) -> Document | None:
        found = await self._objects.find(ref)
        if found is not None:
            self._note(ref, found)
        return found

    async def _unchanged(self, ref: Ref) -> Document | None:
        found = await self._objects.find(ref)
        version = None if found is None else found["metadata"]["resourceVersion"]
        if version != self._versions.get(ref):
            raise _Changed
        return found

    async def _apply(self, ref: Ref, manifest: dict[str, Any]) -> Document:
        if ref in self._versions:
            manifest["metadata"]["resourceVersion"] = self._versions[ref]
        after = await self._objects.apply(ref, manifest)
        if after is None:
            raise _Changed
        self._note(ref, after)
        return after

    def _note(self, ref: Ref, document: Document) -> None:
        self._versions[ref] = document["metadata"]["resourceVersion"]
        try:
            if ref == self._authority:
                certificates = Kept(document).certificates
            else:
                certificates = keeping.trusted(ref, document)
        except Unreadable:
            return  # what is wrong with it is told where it is read
        self._known |= {fingerprint(one): one for one in certificates}

    def _certificates(self, wanted: tuple[Fingerprint, ...]) -> list[x509.Certificate]:
        if any(each not in self._known for each in wanted):
            raise _Changed
        return [self._known[each] for each in wanted]

    def _part(self, ref: Ref, document: Document) -> Holdings:
        told = (keeping.told(ref, document),)
        return Holdings(shown=(self._shown(document),) if ref.kind == SECRET else (), told=told)

    def _shown(self, document: Document) -> Shown:
        return keeping.shown(document, self._known.values())
