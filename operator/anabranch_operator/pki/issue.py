"""Keys on the curve P-256, authorities, and the certificates that they issue."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from anabranch.core.types import Nanoseconds
from anabranch_operator.plan.certificates.facts import SECOND

_SIGNS = ("key_cert_sign", "crl_sign")
_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and the key that proves it; the key is never printed."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def found(name: str, not_before: Nanoseconds, not_after: Nanoseconds) -> Identity:
    """A new authority, signed by itself. Its serial number is in its name: two of them that are
    trusted at once must not be taken for one another.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    subject = _name(f"{name} {serial:x}"[:64])
    builder = _built(subject, subject, key.public_key(), not_before, not_after, serial)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(*_SIGNS), critical=True)
    return Identity(builder.sign(key, SHA256()), key)


def issue(
    by: Identity,
    name: str,
    names: Sequence[str],
    not_before: Nanoseconds,
    not_after: Nanoseconds,
) -> Identity:
    """A new key, certified; peers show theirs to each other, so it serves either side."""
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    issuer = by.certificate
    builder = _built(
        _name(name[:64]), issuer.subject, key.public_key(), not_before, not_after, serial
    )
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    key_of = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    extensions: tuple[tuple[x509.ExtensionType, bool], ...] = (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_usage("digital_signature"), True),
        (x509.ExtendedKeyUsage(usages), False),
        (x509.SubjectAlternativeName([_general(each) for each in names]), False),
        (key_of, False),
    )
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, critical=is_critical)
    return Identity(builder.sign(by.key, SHA256()), key)


def _built(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    not_before: Nanoseconds,
    not_after: Nanoseconds,
    serial: int,
) -> x509.CertificateBuilder:
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(serial)
        .not_valid_before(datetime.fromtimestamp(not_before // SECOND, UTC))
        .not_valid_after(datetime.fromtimestamp(not_after // SECOND, UTC))
        .add_extension(identifier, critical=False)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _usage(*usages: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{usage: usage in usages for usage in _USAGES})


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
