"""An operator that makes certificates, and two parties that go by them, at a real API server."""

import asyncio
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kubernetes.api_server import ApiServer, Refused, Rule
from tests.operator.installed import until
from tests.operator.running import RULES, SWIFT, Operator, running

from anabranch.shell.net import tls
from anabranch.shell.net.reload import Renewed
from anabranch.shell.net.tls import TlsSettings

PEER, BROKER, CA = "demo-peer-tls", "demo-broker-tls", "demo-ca"
NAME = "demo.x.svc"
SETTINGS = f"""
[certificates]
mode = "self"
authority = "{CA}"
bundle = "{CA}"
webhook = "{{webhook}}"
{{lives}}

[[certificates.leaves]]
secret = "{PEER}"
names = ["*.demo-metadata.x.svc", "{NAME}"]

[[certificates.leaves]]
secret = "{BROKER}"
names = ["*.demo-brokers.x.svc", "{NAME}", "127.0.0.1"]
"""
CORE = ("",)
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def operator(server: ApiServer, namespace: str, folder: Path, lives: str, hook: str) -> Operator:
    """It may touch these Secrets by name, and no other."""
    by_name = Rule(("get", "create", "patch"), CORE, ("secrets",), (CA, PEER, BROKER))
    kind = ("validatingwebhookconfigurations",)
    hooks = Rule(("get", "patch"), ("admissionregistration.k8s.io",), kind, (hook,))
    token = server.service_account(namespace, "notary", (*RULES, by_name), (hooks,))
    config = folder / "operator.toml"
    config.write_text(SETTINGS.format(webhook=hook, lives=lives), encoding="utf-8")
    account, nobody = str(server.config_of(token)), "anabranch://127.0.0.1:1"
    told = {"kubeconfig": account, "config": str(config), "service": nobody, **SWIFT}
    return Operator(server, namespace, folder, "operator", **told)


@contextmanager
def webhook(server: ApiServer, namespace: str) -> Iterator[str]:
    """As the chart makes it; it is asked about nothing."""
    name = f"{namespace}-eviction"
    hook: dict[str, Any] = {
        "name": "eviction.anabranch.dev",
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "demo-operator", "namespace": namespace}},
    }
    told = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [hook],
    }
    server.ask("POST", HOOKS, told)
    try:
        yield name
    finally:
        server.ask("DELETE", f"{HOOKS}/{name}")


def held(server: ApiServer, namespace: str, name: str) -> dict[str, bytes] | None:
    try:
        secret = server.ask("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}")
    except Refused as refused:
        if refused.code != 404:
            raise
        return None
    return {key: b64decode(value) for key, value in secret["data"].items()}


def bundle(server: ApiServer, namespace: str) -> bytes:
    found = server.ask("GET", f"/api/v1/namespaces/{namespace}/configmaps/{CA}")
    return found["data"]["ca.crt"].encode()


class Party:
    """Listens and dials with what is mounted at a folder, and reads it anew when it changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def mount(self, secret: dict[str, bytes]) -> None:
        for name, content in secret.items():
            file = self.folder / name
            if not file.exists() or file.read_bytes() != content:
                file.write_bytes(content)

    def open(self) -> tuple[Any, Renewed[Any]]:
        names = (str(self.folder / name) for name in ("tls.crt", "tls.key", "ca.crt"))
        settings = TlsSettings(**dict(zip(("cert", "key", "ca"), names, strict=True)))
        dialer = tls.dialing(settings)
        assert dialer is not None
        return tls.listening(settings), dialer


async def meet(listener: Party, dialer: Party, server: ApiServer, namespace: str) -> int:
    """New connections, one after the other, until another authority is trusted alone."""
    inside, _ = listener.open()
    _, outside = dialer.open()
    before = bundle(server, namespace)

    async def heard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(1))
        writer.close()

    listening = await asyncio.start_server(heard, "127.0.0.1", 0, ssl=inside)
    port = listening.sockets[0].getsockname()[1]
    meetings, phases = 0, {before}
    async with listening, asyncio.timeout(300):
        while True:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=outside.current(), server_hostname=NAME
            )
            writer.write(b"?")
            assert await reader.readexactly(1) == b"?"
            writer.close()
            meetings += 1
            now = await asyncio.to_thread(bundle, server, namespace)
            phases.add(now)
            if now != before and now.count(b"BEGIN") == 1:
                assert len(phases) == 3
                return meetings
            for party, name in ((listener, PEER), (dialer, BROKER)):
                secret = await asyncio.to_thread(held, server, namespace, name)
                if secret is not None:
                    party.mount(secret)


def test_an_authority_is_replaced_while_two_go_on_meeting(
    resources: ApiServer, namespace: str, tmp_path: Path
) -> None:
    server, lives = resources, "propagation_s = 3\nleaf_s = 3600\nlook_s = 1"
    with webhook(server, namespace) as hook:
        made = operator(server, namespace, tmp_path, lives, hook)
        with running(made):
            listener, dialer = Party(tmp_path / "peer"), Party(tmp_path / "broker")
            for party, name in ((listener, PEER), (dialer, BROKER)):
                party.mount(until(lambda name=name: held(server, namespace, name), name))
            server.ask("DELETE", f"/api/v1/namespaces/{namespace}/secrets/{CA}")
            assert asyncio.run(meet(listener, dialer, server, namespace)) > 3
            told = server.ask("GET", f"{HOOKS}/{hook}")["webhooks"][0]["clientConfig"]
            assert told["service"]["name"] == "demo-operator"

            def whom_it_trusts() -> bool | None:
                (found,) = server.ask("GET", f"{HOOKS}/{hook}")["webhooks"]
                trusted = b64decode(found["clientConfig"]["caBundle"])
                return trusted == bundle(server, namespace) or None

            until(whom_it_trusts, "the webhook is told")
            said = made.process.output.read_text(encoding="utf-8")
            assert "PRIVATE KEY" not in said
            assert (
                "anabranch_operator_certificate_expiry_seconds" in made.get("/metrics")[1].decode()
            )


def test_certificates_of_a_few_seconds_are_renewed_again_and_again(
    resources: ApiServer, namespace: str, tmp_path: Path
) -> None:
    lives = "propagation_s = 1\nleaf_s = 6\nauthority_s = 6"
    with webhook(resources, namespace) as hook:
        made = operator(resources, namespace, tmp_path, lives, hook)
        with running(made):
            leaves, authorities = set[bytes](), set[bytes]()

            def look() -> bool | None:
                leaf, authority = (held(resources, namespace, name) for name in (PEER, CA))
                if leaf and authority and "tls.crt" in authority:
                    leaves.add(leaf["tls.crt"])
                    authorities.add(authority["tls.crt"])
                return (len(leaves) >= 3 and len(authorities) >= 2) or None

            until(look, "two renewals and another authority")
