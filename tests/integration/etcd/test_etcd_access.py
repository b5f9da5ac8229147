"""TLS both ways, user and password, and what a wrong one is told."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from queue import Queue

import msgspec
import pytest
from tests.etcd_groups import WAIT_S, Group
from tests.servers import needs

from anabranch.apps.processes.binaries import ETCD
from anabranch.apps.processes.ports import HOST, free_ports
from anabranch.apps.processes.servers import EtcdGroup
from anabranch.core.errors import AccessDenied, BadRequest, Unavailable
from anabranch.shell.etcd.api.client import EtcdClient
from anabranch.shell.etcd.api.settings import EtcdSettings
from anabranch.shell.etcd.api.watch import Changed, WatchEvent
from anabranch.shell.etcd.archive.snapshots import BridgedBlobs

PASSWORD = "anabranch's own"
DEADLINE_MS = 10_000


@dataclass(frozen=True)
class Certificates:
    """An authority of our own, and what it has signed."""

    ca: Path
    other_ca: Path
    cert: Path
    key: Path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    names = folder / "names"
    names.write_text(f"subjectAltName=IP:{HOST}\n")
    ca, ca_key = folder / "ca.pem", folder / "ca.key"
    other_ca, other_key = folder / "other.pem", folder / "other.key"
    cert, key, request = folder / "cert.pem", folder / "cert.key", folder / "cert.csr"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    signed = ["-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-extfile", names, "-days", "9"]
    self_signed = ["req", "-x509", *curve, "-days", "9"]
    for command in (
        [*self_signed, "-subj", "/CN=ca", "-keyout", ca_key, "-out", ca],
        [*self_signed, "-subj", "/CN=other", "-keyout", other_key, "-out", other_ca],
        ["req", *curve, "-subj", "/CN=etcd", "-keyout", key, "-out", request],
        ["x509", "-req", "-in", request, *signed, "-out", cert],
    ):
        try:
            subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True)
        except FileNotFoundError:
            pytest.skip("certificates are made by openssl, which isn't installed")
    return Certificates(ca, other_ca, cert, key)


@pytest.fixture(scope="module")
def secure(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[EtcdGroup]:
    """A member that speaks TLS only, and only to who has a certificate."""
    needs(ETCD)
    ports = free_ports(3)
    group = EtcdGroup(
        tmp_path_factory.mktemp("secure") / "etcd",
        1,
        ports,
        unsafe_no_fsync="true",
        listen_client_urls=f"https://{HOST}:{ports[0]}",
        advertise_client_urls=f"https://{HOST}:{ports[0]}",
        cert_file=str(certificates.cert),
        key_file=str(certificates.key),
        trusted_ca_file=str(certificates.ca),
        client_cert_auth="true",
    )
    try:
        group.start()
        yield group
    finally:
        group.kill()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdGroup]:
    """A member that knows root, and a user who may only touch our keys."""
    needs(ETCD)
    group = EtcdGroup(
        tmp_path_factory.mktemp("guarded") / "etcd", 1, unsafe_no_fsync="true", bcrypt_cost="4"
    )
    try:
        group.start()
        address = group.addresses[0]
        for user, role in (("root", "root"), ("anabranch", "ours"), ("stranger", "none")):
            ask(address, "user/add", name=user, password=PASSWORD)
            ask(address, "role/add", name=role)
            ask(address, "user/grant", user=user, role=role)
        ours = {"permType": "READWRITE", "key": "L2FuYWJyYW5jaC8=", "range_end": "L2FuYWJyYW5jaDA="}
        ask(address, "role/grant", name="ours", perm=ours)
        ask(address, "enable")
        yield group
    finally:
        group.kill()


def ask(address: str, what: str, **told: object) -> None:
    """By etcd's own HTTP door, because our client has no need to make users."""
    connection = HTTPConnection(address, timeout=WAIT_S)
    try:
        connection.request("POST", f"/v3/auth/{what}", msgspec.json.encode(told))
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
    finally:
        connection.close()


def opened(group: EtcdGroup, **told: str) -> EtcdClient:
    settings = EtcdSettings(endpoints=tuple(group.addresses), deadline_ms=DEADLINE_MS)
    return EtcdClient(msgspec.structs.replace(settings, **told))


def test_a_journal_over_tls_with_certificates_on_both_sides(
    secure: EtcdGroup, certificates: Certificates, blobs: BridgedBlobs
) -> None:
    files = {"ca": certificates.ca, "cert": certificates.cert, "key": certificates.key}
    client = opened(secure, **{name: str(file) for name, file in files.items()})
    journal = Group(client, blobs).sole()
    journal.recover()
    assert journal.append([b"a"]) == 1
    assert journal.read_after(0).entries == [b"a"]
    client.close()


@pytest.mark.parametrize("given", ["nothing", "no certificate", "another authority"])
def test_who_speaks_no_tls_or_shows_no_certificate_is_told_that_etcd_isnt_available(
    secure: EtcdGroup, certificates: Certificates, given: str
) -> None:
    told = {
        "nothing": {},
        "no certificate": {"ca": str(certificates.ca)},
        "another authority": {
            "ca": str(certificates.other_ca),
            "cert": str(certificates.cert),
            "key": str(certificates.key),
        },
    }[given]
    client = opened(secure, **told)
    with pytest.raises(Unavailable, match=secure.addresses[0]):
        client.get(b"a")
    client.close()


def test_certificates_are_renewed_while_watches_go_on(
    secure: EtcdGroup, certificates: Certificates, tmp_path: Path
) -> None:
    files = {name: tmp_path / name for name in ("ca", "cert", "key")}

    def put(**contents: Path) -> None:
        for name, content in contents.items():
            part = tmp_path / "part"
            part.write_bytes(content.read_bytes())
            part.replace(files[name])

    put(ca=certificates.ca, cert=certificates.cert, key=certificates.key)
    client = opened(secure, **{name: str(file) for name, file in files.items()})
    told: Queue[WatchEvent] = Queue()
    watch = client.watch(b"renewed", b"", client.put(b"renewed", b"1"), told.put)
    assert values(told) == [b"1"]

    put(ca=certificates.other_ca)
    with pytest.raises(Unavailable, match=secure.addresses[0]):
        client.get(b"renewed")
    put(ca=certificates.ca, cert=certificates.cert, key=certificates.key)
    client.put(b"renewed", b"2")
    assert values(told) == [b"2"]
    watch.cancel()
    client.close()


def values(told: "Queue[WatchEvent]") -> list[bytes]:
    """Of the next change; that the watch stands is said without one."""
    while True:
        event = told.get(timeout=WAIT_S)
        assert isinstance(event, Changed), event
        if event.events:
            return [each.kv.value for each in event.events]


def test_a_certificate_that_isnt_there_is_named() -> None:
    with pytest.raises(BadRequest, match=r"missing\.pem"):
        EtcdClient(EtcdSettings(ca="missing.pem"))


def test_no_endpoint_is_a_mistake() -> None:
    with pytest.raises(BadRequest, match="endpoint"):
        EtcdClient(EtcdSettings(endpoints=()))


def test_a_journal_for_a_user_with_a_password(guarded: EtcdGroup, blobs: BridgedBlobs) -> None:
    client = opened(guarded, user="anabranch", password=PASSWORD)
    journal = Group(client, blobs).sole()
    journal.recover()
    assert journal.append([b"a"]) == 1
    assert journal.read_after(0).entries == [b"a"]
    client.close()


@pytest.mark.parametrize(
    ("user", "password"), [("", ""), ("anabranch", "wrong"), ("nobody", PASSWORD)]
)
def test_who_isnt_known_is_denied(guarded: EtcdGroup, user: str, password: str) -> None:
    client = opened(guarded, user=user, password=password)
    with pytest.raises(AccessDenied):
        client.get(b"/anabranch/c1/cluster")
    client.close()


def test_a_user_without_the_right_role_is_denied(guarded: EtcdGroup) -> None:
    client = opened(guarded, user="stranger", password=PASSWORD)
    with pytest.raises(AccessDenied, match="permission"):
        client.put(b"/anabranch/c1/cluster", b"")
    client.close()


def test_a_token_that_etcd_has_forgotten_is_asked_for_again(
    guarded: EtcdGroup, blobs: BridgedBlobs
) -> None:
    client = opened(guarded, user="anabranch", password=PASSWORD)
    journal = Group(client, blobs).sole()
    journal.recover()
    assert journal.append([b"a"]) == 1
    # Tokens live in the member's memory.
    guarded.kill()
    guarded.start()
    assert journal.append([b"b"]) == 2
    lease = client.grant(60)
    guarded.kill()
    guarded.start()
    while True:
        try:
            client.keep_alive(lease.id, DEADLINE_MS)
            break
        except (AccessDenied, Unavailable):
            continue
    assert journal.read_after(0).entries == [b"a", b"b"]
    client.close()
