"""Keys and certificates of a cluster for tests: one authority, and whom it vouches for."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = dt.timedelta(days=3650)
_BEFORE = dt.timedelta(hours=1)
"""Clocks differ."""


class Authority:
    """What it makes lies in its folder: `<name>.crt` and `<name>.key`; itself it is `ca`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _subject("authority")
        builder = _builder(self._subject, self._subject, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.certificate = folder / "ca.crt"
        self._write("ca", self._key, builder)

    def certify(
        self, name: str, subject: str, group: str = "", addresses: Sequence[str] = ()
    ) -> None:
        """For a client, and for a server at these addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _builder(_subject(subject, group), self._subject, key.public_key())
        if addresses:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
            named = x509.SubjectAlternativeName([_named(each) for each in addresses])
            builder = builder.add_extension(named, critical=False)
        self._write(name, key, builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False))

    def pair(self, name: str) -> None:
        """A key pair without a certificate: `<name>.key` and `<name>.pub`."""
        key = ec.generate_private_key(ec.SECP256R1())
        self._write_key(name, key)
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (self.folder / f"{name}.pub").write_bytes(public)

    def _write(
        self, name: str, key: ec.EllipticCurvePrivateKey, builder: x509.CertificateBuilder
    ) -> None:
        self._write_key(name, key)
        certificate = builder.sign(self._key, SHA256())
        (self.folder / f"{name}.crt").write_bytes(certificate.public_bytes(Encoding.PEM))

    def _write_key(self, name: str, key: ec.EllipticCurvePrivateKey) -> None:
        path = self.folder / f"{name}.key"
        path.touch(0o600)
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + _LIFE)
    )


def _subject(name: str, group: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _named(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)
