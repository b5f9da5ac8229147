"""Erwin logs whose shards keep their records in logs of other systems (decision 63)."""

import asyncio
import signal
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest
from aiokafka import AIOKafkaProducer
from benchmarks.peers.kafka import server as kafka_server
from tests.certificates import Issuer
from tests.integration.server_process import Process, running

import anabranch
from anabranch.core.errors import (
    AnabranchError,
    BadRequest,
    BlackBoxFailed,
    BlackBoxTaken,
    BlackBoxUnfit,
    Unavailable,
)
from anabranch.shell.kafka.access import KafkaAccess
from anabranch.shell.kafka.topic import KafkaTopic

needs_kafka = pytest.mark.skipif(
    kafka_server.obstacle() is not None, reason=f"no Kafka: {kafka_server.obstacle()}"
)


def connected(process: Process) -> "anabranch.Service":
    return anabranch.connect(f"anabranch://127.0.0.1:{process.port}")


def values(log: "anabranch.ErwinLog") -> list[bytes]:
    found = list(log.read(0))
    assert [each.position for each in found] == list(range(len(found)))
    return [each.value or b"" for each in found]


def test_a_bolt_log_of_another_server_keeps_a_shards_records(tmp_path: Path) -> None:
    with running(tmp_path / "bolt") as bolt:
        url = f"anabranch://127.0.0.1:{bolt.port}/audit"
        with running(tmp_path / "erwin") as process, connected(process) as service:
            audit = service.create("audit", engine="erwin", shards=2, black_box=url)
            audit.append_many([b"%d" % n for n in range(100)])
            audit.append_sync(b"last")
            assert audit.description.settings is not None
            assert audit.description.settings.black_box == url
            process.end(signal.SIGKILL)
        assert not list((tmp_path / "erwin" / "erwin").glob("audit.*/shard-*"))
        with running(tmp_path / "erwin") as process, connected(process) as service:
            audit = service.ensure("audit", engine="erwin")
            assert audit.append_sync(b"after") == 101
            found = values(audit)
            assert found[100:] == [b"last", b"after"]
            assert sorted(found[:100]) == sorted(b"%d" % n for n in range(100))
        with connected(bolt) as service:
            assert sum(service.log(f"audit-{n}").tail() for n in range(2)) > 0


def append_when_started(log: "anabranch.ErwinLog") -> None:
    """Short attempts, because each is refused at its end: a refusal may pass."""
    for _ in range(60):
        with suppress(Unavailable):
            log.append_sync(b"b", timeout=1)
            return
    raise AssertionError("the log doesn't start")


def test_a_black_box_belongs_to_one_log(tmp_path: Path) -> None:
    """Deleting the log leaves it: what it holds may be wanted."""
    with running(tmp_path / "bolt") as bolt:
        url = f"anabranch://127.0.0.1:{bolt.port}/audit"
        with running(tmp_path / "erwin") as process, connected(process) as service:
            service.create("audit", engine="erwin", black_box=url).append_sync(b"a")
            service.delete("audit")
            again = service.create("audit", engine="erwin", black_box=url)
            with pytest.raises(BlackBoxTaken, match="name another one"):
                append_when_started(again)
        with connected(bolt) as service:
            assert service.log("audit-0").tail() > 0


def test_a_log_that_gives_no_positions_is_no_black_box(tmp_path: Path) -> None:
    with running(tmp_path) as process, connected(process) as service:
        service.create("lazy-0", append="lazy")
        service.create("erwin-0", engine="erwin")
        for name, reason in (("lazy", "set-appends lazy-0 direct"), ("erwin", "the erwin engine")):
            url = f"anabranch://127.0.0.1:{process.port}/{name}"
            log = service.create(f"in-{name}", engine="erwin", black_box=url)
            with pytest.raises(BlackBoxUnfit, match=reason):
                append_when_started(log)
        assert service.log("lazy-0").tail() == 0
        service.set_appends("lazy-0", "direct")
        append_when_started(service.ensure("in-lazy", engine="erwin"))


def test_a_black_box_that_is_away_delays_no_other_log(tmp_path: Path) -> None:
    """Its server takes connections, and answers nobody."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"kafka://127.0.0.1:{silent.getsockname()[1]}/topic"
        with running(tmp_path) as process, connected(process) as service:
            service.create("audit", engine="erwin", black_box=url)
            other = service.create("other", engine="erwin")
            assert other.append_sync(b"a", timeout=20) == 0
            service.delete("other")
            again = service.create("other", engine="erwin")
            assert again.append_sync(b"b", timeout=20) == 0
            process.end(signal.SIGTERM)


def test_a_black_box_is_refused_where_it_would_not_help(tmp_path: Path) -> None:
    url = "kafka://127.0.0.1:9/topic"
    with running(tmp_path) as process, connected(process) as service:
        with pytest.raises(BadRequest, match="would wait for the black box"):
            service.create("a", engine="erwin", mode="st", black_box=url)
        with pytest.raises(BadRequest, match="one replica"):
            service.create("a", engine="erwin", replicas=2, black_box=url)
        with pytest.raises(BadRequest, match="user or a password"):
            service.create("a", engine="erwin", black_box="kafka://me:secret@host:9/topic")
        with pytest.raises(BadRequest, match="it is kafka://"):
            service.create("a", engine="erwin", black_box="postgres://host:9/topic")


class Producer:
    """Appends until it is stopped, and keeps what was acknowledged."""

    def __init__(self, log: "anabranch.ErwinLog") -> None:
        self.acknowledged: list[bytes] = []
        self.some = Event()
        self._log = log
        self._stopped = Event()
        self._thread = Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            value = b"%d" % number
            try:
                self._log.append(value)
            except AnabranchError:
                return
            self.acknowledged.append(value)
            number += 1
            if number % 50 == 0:
                self.some.set()

    def wait_for_more(self) -> None:
        self.some.clear()
        assert self.some.wait(60), "appends go on"


@needs_kafka
@pytest.mark.nightly
def test_nothing_acknowledged_is_lost_when_kafka_and_the_server_are_killed(tmp_path: Path) -> None:
    with kafka_server.running(tmp_path / "kafka") as kafka:
        url = f"kafka://{kafka.address}/audit"
        with running(tmp_path / "erwin") as process, connected(process) as service:
            audit = service.create("audit", engine="erwin", shards=2, black_box=url)
            producer = Producer(audit)
            producer.wait_for_more()
            kafka.kill()
            producer.wait_for_more()  # acknowledged by the sequencers alone
            kafka.start()
            producer.wait_for_more()
            assert audit.append_sync(b"ordered") >= 0
            producer.wait_for_more()
            process.end(signal.SIGKILL)
            producer.stop()
        with running(tmp_path / "erwin") as process, connected(process) as service:
            audit = service.ensure("audit", engine="erwin")
            audit.append_sync(b"after")
            found = values(audit)
            assert len(found) == len(set(found))
            missing = set(producer.acknowledged) - set(found)
            assert not missing
            numbers = [int(each) for each in found if each.isdigit()]
            assert numbers == sorted(numbers)


@needs_kafka
@pytest.mark.nightly
def test_a_topic_that_would_delete_records_is_refused(tmp_path: Path) -> None:
    with kafka_server.running(tmp_path / "kafka") as kafka:
        kafka.create("short-0", retention_ms="60000")
        with running(tmp_path / "erwin") as process, connected(process) as service:
            url = f"kafka://{kafka.address}/short"
            audit = service.create("audit", engine="erwin", black_box=url)
            with pytest.raises(AnabranchError, match=r"retention\.ms"):
                audit.append(b"a", timeout=20)


@needs_kafka
@pytest.mark.nightly
def test_kafka_that_asks_for_tls_and_a_user_keeps_records_and_lets_nobody_else_in(
    tmp_path: Path,
) -> None:
    issuer = Issuer(tmp_path / "certificates")
    shown = issuer.issue("kafka")
    keystore = tmp_path / "keystore.pem"
    keystore.write_text(Path(shown.key).read_text() + Path(shown.cert).read_text())
    secured = kafka_server.Secured(keystore, plain={"pia": "word-p"}, scram={"sam": "word-s"})
    with kafka_server.running(tmp_path / "kafka", secured) as kafka:
        server = f"127.0.0.1:{kafka.secured_port}"
        lets_in = partial(let_in, tmp_path, server, shown.ca)
        lets_in("PLAIN", "pia", "word-p")
        lets_in("SCRAM-SHA-256", "sam", "word-s")
        with pytest.raises(BlackBoxFailed):
            lets_in("SCRAM-SHA-512", "sam", "word-p")
        other = Issuer(tmp_path / "other").issue()
        with pytest.raises(BlackBoxFailed):
            let_in(tmp_path, server, other.ca, "PLAIN", "pia", "word-p")
        file = lets_in("SCRAM-SHA-512", "sam", "word-s")
        url = f"kafka://{server}/audit"
        flags = ("--kafka-file", str(file))
        with running(tmp_path / "erwin", *flags) as process, connected(process) as service:
            audit = service.create("audit", engine="erwin", black_box=url)
            assert audit.append_sync(b"one", timeout=60) == 0
            command = Path(f"/proc/{process.process.pid}/cmdline").read_bytes()
            assert b"word-s" not in command


def let_in(folder: Path, server: str, ca: str, mechanism: str, user: str, password: str) -> Path:
    """Append to a topic and read it again. Returns the file that says how."""
    file = folder / "kafka.toml"
    file.write_text(
        f'[[kafka]]\nservers = ["{server}"]\ntls = true\nca = "{ca}"\n'
        f'mechanism = "{mechanism}"\nuser = "{user}"\npassword = "{password}"\n'
    )

    async def use() -> None:
        loop, access = asyncio.get_running_loop(), KafkaAccess([server], str(file))
        topic = KafkaTopic(loop, [server], "direct", access)
        try:
            (position,) = await asyncio.to_thread(topic.append, [b"a record"])
            assert await asyncio.to_thread(topic.read, position) == [(position, b"a record")]
        finally:
            await asyncio.to_thread(topic.close)

    asyncio.run(use())
    return file


@needs_kafka
@pytest.mark.nightly
def test_a_topic_that_ends_with_markers_of_a_transaction_is_opened(tmp_path: Path) -> None:
    async def foul(server: str) -> None:
        """Somebody else's transaction: what it wrote is passed over."""
        producer = AIOKafkaProducer(bootstrap_servers=server, transactional_id="other")
        await producer.start()
        for _ in range(3):
            async with producer.transaction():
                await producer.send_and_wait("audit-0", b"not ours", partition=0)
        await producer.stop()

    with kafka_server.running(tmp_path / "kafka") as kafka:
        url = f"kafka://{kafka.address}/audit"
        with running(tmp_path / "erwin") as process, connected(process) as service:
            audit = service.create("audit", engine="erwin", black_box=url)
            assert audit.append_sync(b"one", timeout=60) == 0
            process.end(signal.SIGKILL)
        asyncio.run(foul(kafka.address))
        with running(tmp_path / "erwin") as process, connected(process) as service:
            audit = service.ensure("audit", engine="erwin")
            assert audit.append_sync(b"two", timeout=60) == 1
            assert values(audit) == [b"one", b"two"]
