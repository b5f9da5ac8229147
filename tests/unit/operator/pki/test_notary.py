"""Keys and certificates: what the desk decides, made with real ones and tried in handshakes."""

import asyncio
import json
import ssl
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count, product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from tests.unit.operator.handshakes import files, shake_hands

from anabranch_operator.pki import issue as making
from anabranch_operator.pki import parse
from anabranch_operator.pki.notary import Notary
from anabranch_operator.plan.certificates.facts import (
    SECOND,
    CertificateSettings,
    Issue,
    Leaf,
    Mode,
    Publish,
    ends,
    merged,
    places,
)
from anabranch_operator.plan.certificates.schedule import findings, plan_certificates
from anabranch_operator.plan.engine.dependencies import CERTIFICATES, installation, interested
from anabranch_operator.plan.engine.objects import Document, Observed, Ref, observe
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.world import Surroundings, World

DAY = 24 * 3600 * SECOND
WANTED = CertificateSettings(
    mode=Mode.SELF,
    authority="demo-ca",
    bundle="demo-ca",
    leaves=(
        Leaf(secret="demo-peer-tls", names=("*.demo-metadata.x.svc", "localhost", "127.0.0.1")),
        Leaf(secret="demo-broker-tls", names=("*.demo-brokers.x.svc", "demo.x.svc")),
    ),
)
CA = Ref("Secret", "x", "demo-ca")
PEER, BROKER = Ref("Secret", "x", "demo-peer-tls"), Ref("Secret", "x", "demo-broker-tls")
BUNDLE = Ref("ConfigMap", "x", "demo-ca")
DESK = Ref("Certificates", "x", "demo")


class Cupboard:
    """Objects by name, each with a version; what is applied is what is there."""

    def __init__(self) -> None:
        self.objects: dict[Ref, dict[str, Any]] = {}
        self.writes = 0
        self._versions = count(1)

    async def find(self, ref: Ref) -> Document | None:
        return self.objects.get(ref)

    async def apply(self, ref: Ref, manifest: Document) -> Document | None:
        there = self.objects.get(ref)
        wanted = manifest["metadata"].get("resourceVersion")
        if wanted is not None and (there is None or there["metadata"]["resourceVersion"] != wanted):
            return None
        self.writes += 1
        return self.put(ref, manifest)

    def put(self, ref: Ref, manifest: Document) -> dict[str, Any]:
        kept: dict[str, Any] = json.loads(json.dumps(manifest))
        kept["metadata"]["resourceVersion"] = str(next(self._versions))
        self.objects[ref] = kept
        return kept


class Desk:
    """The operator, as far as certificates go, at a time of our choosing."""

    def __init__(self, wanted: CertificateSettings = WANTED) -> None:
        self.cupboard = Cupboard()
        self.now = time.time_ns()
        surroundings = Surroundings(namespace="x", release="demo", certificates=wanted)
        self.world = World(surroundings)
        self.notary = Notary(self.cupboard, wanted, "x", lambda: self.now)
        self.said: list[str] = []

    def plan(self) -> tuple[Any, ...]:
        return plan_certificates(self.world, DESK, self.now, Troubles()).actions

    def work(self) -> None:
        """Until there is nothing to do; an action's outcome becomes part of the world."""
        for _ in range(20):
            actions = self.plan()
            if not actions:
                return
            for action in actions:
                outcome = asyncio.run(self.notary.perform(action))
                known = self.world.certificates
                self.world.certificates = merged(known, outcome) if known else outcome
                self.said += [str(action), str(outcome)]
        raise AssertionError("it never converges")

    def look(self) -> None:
        self.world.certificates = None
        self.work()

    def mounted(self, folder: Path) -> list[Path]:
        """What processes have in their folders by now."""
        held = [(ref, self.cupboard.objects[ref]) for ref in (PEER, BROKER)]
        return [files(folder / f"{self.now}-{ref.name}", secret) for ref, secret in held]


def check_everybody(mounts: list[Path]) -> None:
    names = {"demo-peer-tls": "m-0.demo-metadata.x.svc", "demo-broker-tls": "demo.x.svc"}
    for listener, dialer in product(mounts, mounts):
        name = next(name for part, name in names.items() if listener.name.endswith(part))
        shake_hands(listener, dialer, name)


def test_everybody_accepts_everybody_in_real_handshakes_through_a_rotation(tmp_path: Path) -> None:
    desk = Desk()
    desk.work()
    mounts = desk.mounted(tmp_path)
    check_everybody(mounts)
    first = desk.cupboard.objects[CA]["data"]["tls.crt"]
    del desk.cupboard.objects[CA]
    desk.look()
    for _ in range(4):
        before, mounts = mounts, desk.mounted(tmp_path)
        check_everybody([*before, *mounts])
        desk.now += WANTED.propagation_s * SECOND
        desk.work()
    after = desk.cupboard.objects
    assert after[CA]["data"].keys() == {"tls.crt", "tls.key"}
    assert after[CA]["data"]["tls.crt"] != first
    assert after[BUNDLE]["data"]["ca.crt"].encode() == b64decode(after[CA]["data"]["tls.crt"])
    with pytest.raises(ssl.SSLCertVerificationError):
        check_everybody([mounts[0], files(tmp_path / "old-demo-peer-tls", _first(tmp_path))])


def _first(folder: Path) -> dict[str, Any]:
    """The peers' Secret as it was at first."""
    oldest = min(folder.glob("*-demo-peer-tls"))
    return {"data": {each.name: b64encode(each.read_bytes()) for each in oldest.iterdir()}}


def test_certificates_are_what_their_users_need() -> None:
    desk = Desk()
    desk.work()
    secret = desk.cupboard.objects[PEER]
    assert secret["type"] == "kubernetes.io/tls"
    assert secret["data"].keys() == {"tls.crt", "tls.key", "ca.crt"}
    leaf = x509.load_pem_x509_certificate(b64decode(secret["data"]["tls.crt"]))
    assert isinstance(leaf.public_key(), ec.EllipticCurvePublicKey)
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    usages = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert {each.dotted_string for each in usages} == {"1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"}
    named = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert named.get_values_for_type(x509.DNSName) == ["*.demo-metadata.x.svc", "localhost"]
    assert [str(each) for each in named.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert desk.world.certificates is not None
    told = dict(ends(WANTED, desk.world.certificates))
    assert told.keys() == {"demo-ca", "demo-peer-tls", "demo-broker-tls"}
    assert 89 * DAY < told["demo-peer-tls"] - desk.now <= 90 * DAY


def test_no_private_key_is_ever_said() -> None:
    desk = Desk()
    desk.work()
    kept = [desk.cupboard.objects[ref]["data"]["tls.key"] for ref in (CA, PEER, BROKER)]
    said = " ".join([*desk.said, str(desk.notary.__dict__)])
    for key in kept:
        pem = b64decode(key).decode()
        assert key not in said
        assert all(line not in said for line in pem.splitlines()[1:-1])
    assert "key=" not in repr(making.found("x", desk.now, desk.now + DAY))


def test_what_is_as_it_should_be_is_not_written() -> None:
    desk = Desk()
    desk.work()
    writes = desk.cupboard.writes
    assert writes == 4
    for _ in range(3):
        desk.now += WANTED.look_s * SECOND
        desk.work()
    assert desk.cupboard.writes == writes


def _without_key(secret: dict[str, Any]) -> None:
    secret["data"]["tls.key"] = b64encode(b"no key").decode()


def _without_base64(secret: dict[str, Any]) -> None:
    secret["data"]["tls.crt"] = "no base64: é"


def _of_another(secret: dict[str, Any]) -> None:
    other = making.found("other", 0, 10 * DAY)
    secret["data"]["tls.key"] = b64encode(other.key_pem).decode()


def _emptied(secret: dict[str, Any]) -> None:
    secret["data"] = {}


@pytest.mark.parametrize("damage", [_without_key, _without_base64, _of_another, _emptied])
@pytest.mark.parametrize("ref", [PEER, CA])
def test_what_is_damaged_is_made_anew(
    damage: Callable[[dict[str, Any]], None], ref: Ref, tmp_path: Path
) -> None:
    desk = Desk()
    desk.work()
    before = desk.mounted(tmp_path)
    damage(desk.cupboard.objects[ref])
    desk.look()
    desk.now += SECOND
    check_everybody([*before, *desk.mounted(tmp_path)])
    for _ in range(3):
        desk.now += WANTED.propagation_s * SECOND
        desk.work()
    check_everybody(desk.mounted(tmp_path))
    assert findings(desk.world) == ()


def test_what_somebody_else_put_there_meanwhile_is_not_overwritten() -> None:
    desk = Desk()
    outcome = asyncio.run(desk.notary.perform(desk.plan()[0]))
    desk.world.certificates = outcome
    theirs = {"metadata": {"name": "demo-ca", "namespace": "x"}, "kind": "Secret", "data": {}}
    desk.cupboard.put(CA, theirs)
    desk.work()
    assert desk.cupboard.writes == 0
    assert [found.object for found in findings(desk.world)] == ["Secret demo-ca"]


def test_an_action_on_what_has_changed_is_answered_with_how_it_is() -> None:
    desk = Desk()
    desk.work()
    held = desk.world.certificates
    assert held is not None
    assert held.authority is not None
    assert held.authority.issuing is not None
    issuer = held.authority.issuing.fingerprint
    for ref in (PEER, CA):
        desk.cupboard.put(ref, desk.cupboard.objects[ref])
        leaf, life = WANTED.leaves[0], {"not_before": desk.now, "not_after": desk.now + DAY}
        issue = Issue(ref=PEER, leaf=leaf, issuer=issuer, bundle=(issuer,), **life)
        outcome = asyncio.run(desk.notary.perform(issue))
        assert outcome.places == held.places
    assert desk.cupboard.writes == 4
    strange = Publish(ref=BUNDLE, bundle=("unheard of",))
    assert asyncio.run(desk.notary.perform(strange)).places == held.places


def test_every_namespace_with_a_log_learns_whom_to_trust_as_long_as_it_stays() -> None:
    desk = Desk()
    desk.work()
    there = Ref("ConfigMap", "team-a", "demo-ca")
    log = _seen("Log", "team-a", "orders", {"spec": {}})
    desk.world.observe(log)
    assert installation(desk.world, CERTIFICATES) in interested(desk.world, log)
    desk.work()
    assert desk.cupboard.objects[there]["data"] == desk.cupboard.objects[BUNDLE]["data"]
    assert installation(desk.world, CERTIFICATES) not in interested(desk.world, log)
    desk.world.observe(_seen("Namespace", "", "team-a", {}, deletionTimestamp=_AT))
    writes = desk.cupboard.writes
    del desk.cupboard.objects[there]
    desk.work()
    assert desk.cupboard.writes == writes


def test_brokers_of_every_pool_are_named_by_what_they_show() -> None:
    peer, broker = WANTED.leaves
    named = msgspec.structs.replace(broker, names=(*broker.names, "*.x.svc"))
    desk = Desk(msgspec.structs.replace(WANTED, leaves=(peer, named)))
    for pool in ("demo", "demo-large"):
        seen = _seen("BrokerPool", "x", pool, {"spec": {"image": "x"}})
        desk.world.observe(seen)
        assert installation(desk.world, CERTIFICATES) in interested(desk.world, seen)
    desk.work()
    shown = b64decode(desk.cupboard.objects[BROKER]["data"]["tls.crt"])
    extension = x509.load_pem_x509_certificate(shown).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    names = extension.value.get_values_for_type(x509.DNSName)
    assert sorted(names) == [
        "*.demo-brokers.x.svc",
        "*.demo-large-brokers.x.svc",
        "*.x.svc",
        "demo.x.svc",
    ]


_AT = "2026-01-01T00:00:00Z"


def _seen(kind: str, namespace: str, name: str, body: Document, **meta: str) -> Observed:
    known = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1"}
    metadata = {**known, "creationTimestamp": _AT, **meta}
    return observe({"kind": kind, "metadata": metadata, **body})


def test_a_webhook_is_told_whom_to_trust_and_stays_the_charts() -> None:
    wanted = msgspec.structs.replace(WANTED, webhook="demo-eviction")
    desk = Desk(wanted)
    hook = Ref("ValidatingWebhookConfiguration", "", "demo-eviction")
    desk.cupboard.put(
        hook,
        {
            "kind": hook.kind,
            "metadata": {"name": hook.name},
            "webhooks": [{"name": "eviction.anabranch.dev", "clientConfig": {"url": "x"}}],
        },
    )
    desk.work()
    told = desk.cupboard.objects[hook]
    bundle = b64decode(told["webhooks"][0]["clientConfig"]["caBundle"]).decode()
    assert bundle == desk.cupboard.objects[BUNDLE]["data"]["ca.crt"]
    assert "labels" not in told["metadata"]
    assert findings(desk.world) == ()


# Certificates that others make.


def test_a_chain_is_followed_to_whom_clients_trust() -> None:
    now = datetime.now(UTC)
    root = _signed(None, "root", now, ca=True)
    between = _signed(root, "between", now, ca=True)
    leaf = _signed(between, "leaf", now, ca=False)
    chain = (leaf.certificate, between.certificate)
    issuer = parse.issuer_of(chain, [root.certificate])
    assert issuer == parse.fingerprint(root.certificate)
    assert parse.issuer_of(chain[:1], [root.certificate]) == ""


def _signed(by: making.Identity | None, name: str, now: datetime, *, ca: bool) -> making.Identity:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    return making.Identity(builder.sign(by.key if by else key, SHA256()), key)


def test_provided_secrets_are_checked_and_whom_they_name_is_published() -> None:
    wanted = msgspec.structs.replace(WANTED, mode=Mode.PROVIDED)
    desk = Desk(wanted)
    made = Desk()
    made.work()
    for ref in (PEER, BROKER):
        secret: Mapping[str, Any] = made.cupboard.objects[ref]
        desk.cupboard.put(ref, {**secret, "metadata": {"name": ref.name, "namespace": "x"}})
    desk.work()
    assert desk.cupboard.writes == 1
    assert desk.cupboard.objects[BUNDLE]["data"] == made.cupboard.objects[BUNDLE]["data"]
    assert findings(desk.world) == ()
    del desk.cupboard.objects[PEER]
    _of_another(desk.cupboard.objects[BROKER])
    desk.look()
    assert desk.cupboard.writes == 1
    told = {each.object: each.says for each in findings(desk.world)}
    assert "isn't there" in told["Secret demo-peer-tls"]
    assert "isn't its certificate's" in told["Secret demo-broker-tls"]


def test_nothing_is_looked_at_where_there_is_no_tls() -> None:
    desk = Desk(CertificateSettings())
    desk.work()
    assert desk.said == []
    assert places(WANTED, "x")[0] == BUNDLE
