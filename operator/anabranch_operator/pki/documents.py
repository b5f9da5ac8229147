"""How Secrets, ConfigMaps and webhooks hold certificates: documents read and written."""

from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from anabranch.core.types import Nanoseconds
from anabranch_operator.api.names import GROUP, MADE_BY, MANAGED_BY
from anabranch_operator.pki import parse
from anabranch_operator.pki.issue import Identity
from anabranch_operator.pki.parse import Unreadable
from anabranch_operator.plan.certificates.facts import (
    CONFIG_MAP,
    SECRET,
    WEBHOOK,
    Authority,
    Shown,
    TrustBundle,
)
from anabranch_operator.plan.engine.objects import Document, Ref

CERTIFICATE, KEY, TRUSTED = "tls.crt", "tls.key", "ca.crt"
"""A leaf's Secret, as Kubernetes and cert-manager lay it out; the authority's has the first two of
who issues, and besides:
"""
NEXT_CERTIFICATE, NEXT_KEY, LEAVING = "next.crt", "next.key", "old.crt"

_EPOCH, _MICROSECOND = datetime.fromtimestamp(0, UTC), timedelta(microseconds=1)
WRITTEN_AT = f"{GROUP}/written-at"
_OPERATOR = "operator"
_API_VERSIONS = {
    SECRET: "v1",
    CONFIG_MAP: "v1",
    WEBHOOK: "admissionregistration.k8s.io/v1",
}


class Kept:
    """The authority as its Secret holds it, keys included."""

    def __init__(self, document: Document | None) -> None:
        data = _bytes(document) if document else {}
        self.issuing = _identity(data, CERTIFICATE, KEY)
        self.coming = _identity(data, NEXT_CERTIFICATE, NEXT_KEY)
        self.leaving = parse.read(data.get(LEAVING, b""))

    @property
    def able(self) -> tuple[Identity, ...]:
        return tuple(one for one in (self.issuing, self.coming) if one is not None)

    @property
    def certificates(self) -> tuple[x509.Certificate, ...]:
        return (*(one.certificate for one in self.able), *self.leaving)


def is_ours(document: Document) -> bool:
    labels: Mapping[str, str] = document["metadata"].get("labels") or {}
    return labels.get(MADE_BY) == _OPERATOR


def authority(document: Document) -> Authority:
    ours = is_ours(document)
    try:
        kept = Kept(document)
    except Unreadable as wrong:
        return Authority(flaw=str(wrong), is_ours=ours)
    if not kept.able:
        return Authority(flaw="holds no authority", is_ours=ours)
    return Authority(
        issuing=parse.fact(kept.issuing.certificate) if kept.issuing else None,
        coming=parse.fact(kept.coming.certificate) if kept.coming else None,
        leaving=tuple(map(parse.fact, kept.leaving)),
        is_ours=ours,
    )


def shown(document: Document, known: Iterable[x509.Certificate]) -> Shown:
    """What a leaf's Secret lets be shown, and by whom of those known it was issued."""
    secret, ours = document["metadata"]["name"], is_ours(document)
    try:
        data = _bytes(document)
        chain = parse.read(data.get(CERTIFICATE, b""))
        if not chain:
            raise Unreadable(f"holds no {CERTIFICATE}")
        parse.check_pair(chain[0], data.get(KEY, b""))
    except Unreadable as wrong:
        return Shown(secret, None, f"{wrong}: provide it anew", ours)
    certificate = parse.fact(chain[0], parse.issuer_of(chain, known))
    return Shown(secret, certificate, "", ours)


def told(place: Ref, document: Document) -> TrustBundle:
    """Whom a place tells to trust; nobody, if it can't be read."""
    notes: Mapping[str, str] = document["metadata"].get("annotations") or {}
    try:
        bundle = tuple(map(parse.fact, trusted(place, document)))
    except Unreadable:
        bundle = ()
    ours = place.kind == WEBHOOK or is_ours(document)
    return TrustBundle(place, bundle, _instant(notes.get(WRITTEN_AT, "")), ours)


def trusted(place: Ref, document: Document) -> tuple[x509.Certificate, ...]:
    match place.kind:
        case "Secret":
            pem = _bytes(document).get(TRUSTED, b"")
        case "ConfigMap":
            data: Mapping[str, str] = document.get("data") or {}
            pem = data.get(TRUSTED, "").encode()
        case _:
            pem = _decoded(_hooks(document)[0]["clientConfig"].get("caBundle", ""))
    return parse.read(pem)


def authority_manifest(
    ref: Ref,
    issuing: Identity | None,
    coming: Identity | None,
    leaving: Sequence[x509.Certificate],
    now: Nanoseconds,
) -> dict[str, Any]:
    data: dict[str, bytes] = {}
    if issuing is not None:
        data |= {CERTIFICATE: issuing.certificate_pem, KEY: issuing.key_pem}
    if coming is not None:
        data |= {NEXT_CERTIFICATE: coming.certificate_pem, NEXT_KEY: coming.key_pem}
    if leaving:
        data[LEAVING] = bundled(leaving)
    return {**_head(ref, now), "type": "Opaque", "data": _encoded(data)}


def leaf_manifest(
    ref: Ref, certificate: bytes, key: bytes, bundle: bytes, now: Nanoseconds
) -> dict[str, Any]:
    data = _encoded({CERTIFICATE: certificate, KEY: key, TRUSTED: bundle})
    return {**_head(ref, now), "type": "kubernetes.io/tls", "data": data}


def telling_manifest(
    place: Ref, document: Document | None, bundle: bytes, now: Nanoseconds
) -> dict[str, Any]:
    """What it holds but for the bundle stays."""
    if place.kind == CONFIG_MAP:
        return {**_head(place, now), "data": {TRUSTED: bundle.decode()}}
    assert document is not None, "a Secret and a webhook are there before they tell anything"
    if place.kind == SECRET:
        data = _bytes(document)
        certificate, key = data.get(CERTIFICATE, b""), data.get(KEY, b"")
        return leaf_manifest(place, certificate, key, bundle, now)
    told = {"caBundle": b64encode(bundle).decode()}
    hooks = [{"name": each["name"], "clientConfig": told} for each in _hooks(document)]
    head = _head(place, now)
    del head["metadata"]["labels"]  # it is the chart's
    return {**head, "webhooks": hooks}


def bundled(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(one.public_bytes(Encoding.PEM) for one in certificates)


def _head(ref: Ref, now: Nanoseconds) -> dict[str, Any]:
    written_at = (_EPOCH + now // 1_000 * _MICROSECOND).isoformat()
    metadata: dict[str, Any] = {
        "name": ref.name,
        "labels": {MADE_BY: _OPERATOR, MANAGED_BY: "anabranch-operator"},
        "annotations": {WRITTEN_AT: written_at},
    }
    if ref.namespace:
        metadata["namespace"] = ref.namespace
    return {"apiVersion": _API_VERSIONS[ref.kind], "kind": ref.kind, "metadata": metadata}


def _identity(data: Mapping[str, bytes], certificate: str, key: str) -> Identity | None:
    found = parse.read(data.get(certificate, b""))
    if not found:
        return None
    parse.check_pair(found[0], data.get(key, b""))
    return Identity(found[0], parse.read_key(data[key]))


def _bytes(document: Document) -> dict[str, bytes]:
    data: Mapping[str, str] = document.get("data") or {}
    return {name: _decoded(value) for name, value in data.items()}


def _decoded(value: str) -> bytes:
    try:
        return b64decode(value)
    except (NoBase64, ValueError):
        raise Unreadable("holds what isn't base64") from None


def _encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    return {name: b64encode(value).decode() for name, value in data.items()}


def _hooks(document: Document) -> Sequence[Document]:
    return document.get("webhooks") or ({"name": "", "clientConfig": {}},)


def _instant(stamp: str) -> Nanoseconds:
    """Nothing that can be read was written long ago."""
    try:
        return (datetime.fromisoformat(stamp) - _EPOCH) // _MICROSECOND * 1_000
    except (ValueError, TypeError):
        return 0
