"""Certificates are read as facts, and what is none is refused in words."""

from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address
from itertools import pairwise

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from anabranch_operator.pki import parse
from anabranch_operator.pki.parse import Unreadable

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = 1_000_000_000


@cache
def key(name: str) -> ec.EllipticCurvePrivateKey:
    """One for each name."""
    del name
    return ec.generate_private_key(ec.SECP256R1())


def issued(
    name: str, by: str, *, days: int = 30, names: tuple[str, ...] = (), of: str | None = None
) -> x509.Certificate:
    """`of`: whose key it is for, if not its own name's."""

    def called(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    builder = (
        x509.CertificateBuilder()
        .subject_name(called(name))
        .issuer_name(called(by))
        .public_key(key(of or name).public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(BEGIN)
        .not_valid_after(BEGIN + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if names:
        general = [
            x509.IPAddress(ip_address(each)) if each[0].isdigit() else x509.DNSName(each)
            for each in names
        ]
        builder = builder.add_extension(x509.SubjectAlternativeName(general), critical=False)
    return builder.sign(key(by), SHA256())


def pem(*certificates: x509.Certificate) -> bytes:
    return b"".join(each.public_bytes(Encoding.PEM) for each in certificates)


def key_pem(
    of: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey,
    encryption: KeySerializationEncryption | None = None,
) -> bytes:
    chosen = encryption or NoEncryption()
    return of.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, chosen)


def test_all_certificates_of_a_file_are_read_in_their_order() -> None:
    made = [issued("leaf", "root"), issued("root", "root")]
    assert list(parse.read(pem(*made))) == made
    assert parse.read(b"") == parse.read(b" \n") == ()
    assert list(parse.read(b"a comment before\n" + pem(*made))) == made


@given(st.binary(min_size=1, max_size=60))
def test_what_is_no_certificate_or_key_is_refused_in_words(content: bytes) -> None:
    if content.strip():
        with pytest.raises(Unreadable, match="isn't a certificate in PEM"):
            parse.read(content)
    with pytest.raises(Unreadable, match="no private key in PEM"):
        parse.read_key(content)


def test_a_key_is_read_if_it_is_of_the_kind_that_the_operator_makes() -> None:
    assert parse.read_key(key_pem(key("a"))).private_numbers() == key("a").private_numbers()
    with pytest.raises(Unreadable, match="a key that the operator hasn't made"):
        parse.read_key(key_pem(rsa.generate_private_key(65_537, 1_024)))
    with pytest.raises(Unreadable, match="can be read"):
        parse.read_key(key_pem(key("a"), BestAvailableEncryption(b"secret")))


def test_a_certificate_and_a_key_belong_together_or_not() -> None:
    certificate = issued("leaf", "root")
    parse.check_pair(certificate, key_pem(key("leaf")))
    with pytest.raises(Unreadable, match="a key that isn't its certificate's"):
        parse.check_pair(certificate, key_pem(key("other")))


def test_the_facts_are_when_for_whom_and_by_whom() -> None:
    names = ("*.demo.svc", "orders.demo.svc", "10.0.0.7")
    certificate = issued("leaf", "root", days=3, names=names)
    found = parse.fact(certificate, "of the root")
    assert found.fingerprint == parse.fingerprint(certificate)
    assert found.issuer == "of the root"
    assert (found.not_after - found.not_before) == 3 * 86_400 * SECOND
    assert found.not_before == int(BEGIN.timestamp()) * SECOND
    assert found.names == names
    assert parse.fact(issued("leaf", "root")).names == ()


def test_fingerprints_are_of_certificates_and_not_of_names() -> None:
    one, other = issued("leaf", "root"), issued("leaf", "root")
    assert parse.fingerprint(one) != parse.fingerprint(other)
    assert len(parse.fingerprint(one)) == 64


def test_who_has_issued_a_certificate_is_told_by_its_signature() -> None:
    root, impostor = issued("root", "root"), issued("root", "root", of="impostor")
    chain = [issued("leaf", "root")]
    assert parse.issuer_of(chain, [impostor, root]) == parse.fingerprint(root)
    assert parse.issuer_of(chain, [impostor]) == ""
    assert parse.issuer_of(chain, []) == ""


def test_of_several_roots_with_one_key_the_one_that_lives_longest_counts() -> None:
    short, long = issued("root", "root", days=5), issued("root", "root", days=50)
    chain = [issued("leaf", "root")]
    for known in ([short, long], [long, short]):
        assert parse.issuer_of(chain, known) == parse.fingerprint(long)


@pytest.mark.parametrize("length", range(7))
def test_others_may_stand_between_a_leaf_and_its_root(length: int) -> None:
    """As many as a chain may have; a longer one is nobody's."""
    names = ["leaf", *(f"between-{number}" for number in range(length)), "root"]
    chain = [issued(name, by) for name, by in pairwise(names)]
    root = issued("root", "root")
    found = parse.issuer_of(chain, [root])
    assert found == (parse.fingerprint(root) if length < 5 else "")
    if length:
        assert parse.issuer_of(chain[:1], [root]) == "", "what stands between isn't there"
