"""Kafka, had from its published artifacts once and started as the other servers are.

The archives are kept beside the other servers' binaries, under the checksum of their checksums:
what Maven brings is used only if it is what `SHA256SUMS` says.
"""

import asyncio
import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
from base64 import urlsafe_b64encode
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from anabranch.apps.processes.ports import HOST, free_ports
from anabranch.apps.processes.servers import ServerProcess
from anabranch.core.errors import Unavailable
from benchmarks.cluster.cores import prefer

HERE = Path(__file__).parent
SUMS = HERE / "SHA256SUMS"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
HEAP = ("-Xms256m", "-Xmx1g")

_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
"""


def place() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    checksum = hashlib.sha256(SUMS.read_bytes()).hexdigest()[:12]
    return Path(home) / "anabranch" / f"kafka-{checksum}"


def obstacle() -> str | None:
    """Why it can be neither found nor had here."""
    if shutil.which("java") is None:
        return "Kafka runs on Java 17 or newer, which isn't installed"
    if not place().exists() and shutil.which("mvn") is None:
        return "Kafka is had by Maven, which isn't installed"
    return None


def find() -> Path:
    """The folder of its archives, brought here if they aren't there yet."""
    folder = place()
    if folder.exists():
        return folder
    stands = obstacle()
    if stands is not None:
        raise Unavailable("Kafka", stands)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        brought = Path(scratch) / "libs"
        told = ["mvn", "-q", "-B", "-C", "-f", str(HERE / "pom.xml"), COPY]
        told += [f"-DoutputDirectory={brought}", "-DincludeScope=runtime"]
        done = subprocess.run(told, check=False, capture_output=True, text=True, cwd=scratch)
        if done.returncode:
            said = " / ".join(done.stdout.strip().splitlines()[-3:])
            raise Unavailable("Kafka", f"Maven couldn't bring it: {said}")
        _verify(brought)
        if not folder.exists():
            brought.rename(folder)
    return folder


def _verify(folder: Path) -> None:
    wanted = dict(line.split()[::-1] for line in SUMS.read_text(encoding="ascii").splitlines())
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    if found != wanted:
        other = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
        raise Unavailable("Kafka", f"what Maven brought isn't what SHA256SUMS says: {other}")


@dataclass(frozen=True, slots=True)
class Secured:
    """A second listener, for TLS and users alone."""

    keystore: Path
    """A key (PKCS 8) and its certificate, in PEM."""
    plain: Mapping[str, str]
    """Passwords of users that the mechanism PLAIN knows."""
    scram: Mapping[str, str]
    """The same for both mechanisms SCRAM."""

    def settings(self, port: int, address: str) -> str:
        """They follow those of the plain listener, and win over them."""
        users = " ".join(f'user_{name}="{word}"' for name, word in self.plain.items())
        module = "org.apache.kafka.common.security"
        told = {
            "listeners": f"PLAINTEXT://{address},CONTROLLER://{HOST}:%d,SECURED://{HOST}:{port}",
            "advertised.listeners": f"PLAINTEXT://{address},SECURED://{HOST}:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "SECURED:SASL_SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.keystore),
            f"{_SECURED}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            f"{_SECURED}.plain.sasl.jaas.config": f"{module}.plain.PlainLoginModule required "
            f"{users};",
        }
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            name = f"{_SECURED}.{mechanism}.sasl.jaas.config"
            told[name] = f"{module}.scram.ScramLoginModule required;"
        return "".join(f"{name}={value}\n" for name, value in told.items())

    def flags(self) -> list[str]:
        """Of what formats the storage: users of SCRAM are records there."""
        return [
            flag
            for name, word in self.scram.items()
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for flag in ("--add-scram", f"{mechanism}=[name={name},password={word}]")
        ]


_SECURED = "listener.name.secured"


class Kafka(ServerProcess):
    """One process on fresh ports and a fresh folder."""

    def __init__(self, folder: Path, secured: Secured | None = None) -> None:
        self.port, self.secured_port, controller = free_ports(3)
        folder.mkdir(parents=True)
        data, settings = folder / "data", folder / "server.properties"
        told = _SETTINGS.format(host=HOST, port=self.port, controller=controller, data=data)
        if secured is not None:
            told += secured.settings(self.secured_port, self.address) % controller
        settings.write_text(told)
        java = ["java", *HEAP, "-cp", f"{find()}/*"]
        formatted = ["format", "-t", _uuid(), "-c", str(settings)]
        formatted += secured.flags() if secured is not None else []
        subprocess.run(
            [*java, "kafka.tools.StorageTool", *formatted],
            check=True,
            capture_output=True,
            cwd=folder,
        )
        super().__init__("kafka", [*java, "kafka.Kafka", str(settings)], folder, self._listens)

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def create(self, topic: str, **configured: str) -> None:
        """One partition, as a log has one order."""
        asyncio.run(self._create(topic, {k.replace("_", "."): v for k, v in configured.items()}))

    async def _create(self, topic: str, configured: Mapping[str, str]) -> None:
        from aiokafka.admin import AIOKafkaAdminClient, NewTopic

        admin = AIOKafkaAdminClient(bootstrap_servers=self.address)
        await admin.start()
        try:
            new = NewTopic(topic, 1, 1, topic_configs=dict(configured))
            await admin.create_topics([new], timeout_ms=60_000)
        finally:
            await admin.close()

    def _listens(self) -> bool:
        """It opens its listener last."""
        try:
            socket.create_connection((HOST, self.port), timeout=1).close()
        except OSError:
            return False
        return True


def _uuid() -> str:
    """As Kafka writes it; one that began with a dash would be taken for a flag."""
    first, *rest = uuid4().bytes
    return urlsafe_b64encode(bytes([first & 0x7F, *rest])).decode().rstrip("=")


@contextmanager
def running(folder: Path, secured: Secured | None = None) -> Generator[Kafka]:
    kafka = Kafka(folder, secured)
    kafka.start()
    prefer(kafka.pid)
    try:
        yield kafka
    finally:
        kafka.kill()
