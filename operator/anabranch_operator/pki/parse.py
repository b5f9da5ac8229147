"""Certificates as facts: what Secrets and bundles hold, without their keys."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from anabranch.core.types import Nanoseconds
from anabranch_operator.plan.certificates.facts import SECOND, Certificate, Fingerprint

_CHAIN_MAX = 5


class Unreadable(Exception):
    """What it holds isn't what it should be; the message says what is wrong."""


def read(pem: bytes) -> tuple[x509.Certificate, ...]:
    """All certificates of a file, none if it is empty."""
    if not pem.strip():
        return ()
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except ValueError:
        raise Unreadable("holds what isn't a certificate in PEM") from None


def read_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """An authority's key, which is one of ours."""
    key = _key(pem)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise Unreadable("holds a key that the operator hasn't made")
    return key


def check_pair(certificate: x509.Certificate, key_pem: bytes) -> None:
    """Raises unless the key is the certificate's."""
    if _der(_key(key_pem).public_key()) != _der(certificate.public_key()):
        raise Unreadable("holds a key that isn't its certificate's")


def fact(certificate: x509.Certificate, issuer: Fingerprint = "") -> Certificate:
    return Certificate(
        fingerprint(certificate),
        issuer,
        _instant(certificate.not_valid_before_utc),
        _instant(certificate.not_valid_after_utc),
        _names(certificate),
    )


def fingerprint(certificate: x509.Certificate) -> Fingerprint:
    return certificate.fingerprint(SHA256()).hex()


def issuer_of(chain: Sequence[x509.Certificate], known: Iterable[x509.Certificate]) -> Fingerprint:
    """Which of those known has issued the first of a chain, by others of the chain if need be; of
    several with one key the one that lives longest.
    """
    by_end = sorted(known, key=lambda one: one.not_valid_after_utc, reverse=True)
    one = chain[0]
    for _ in range(_CHAIN_MAX):
        for issuer in by_end:
            if _has_issued(issuer, one):
                return fingerprint(issuer)
        between = (each for each in chain[1:] if each != one and _has_issued(each, one))
        above = next(between, None)
        if above is None:
            return ""
        one = above
    return ""


def _has_issued(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        told = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    addresses = told.get_values_for_type(x509.IPAddress)
    return (*told.get_values_for_type(x509.DNSName), *map(str, addresses))


def _key(pem: bytes) -> PrivateKeyTypes:
    try:
        return load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise Unreadable("holds no private key in PEM that can be read") from None


def _der(public: PublicKeyTypes) -> bytes:
    return public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _instant(at: datetime) -> Nanoseconds:
    return int(at.timestamp()) * SECOND
