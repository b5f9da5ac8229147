"""The client before a pool of real brokers that die, drain and come back."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from tests.certificates import Issuer
from tests.integration.pool import PATIENCE_S, Pool, pooled

import anabranch
from anabranch import Confirm, Deliver, Fail, aio
from anabranch.core.errors import BadRequest, NoSpareBroker, Unauthorized, Unavailable
from anabranch.shell.net.tls import TlsSettings


@pytest.fixture
def pool() -> Iterator[Pool]:
    with pooled(3) as pool:
        yield pool


@pytest.fixture
def service(pool: Pool) -> Iterator[anabranch.Service]:
    with anabranch.connect(pool.url, timeout=PATIENCE_S) as service:
        yield service


def until(holds: Callable[[], bool]) -> None:
    """Every look asks the service something, which is all the pause there is."""
    while not holds():
        pass


def test_every_verb_works_before_a_pool(service: anabranch.Service) -> None:
    orders = service.create("orders")
    orders.append_many([b"a", b"b"])
    fork = orders.cfork("try", promotable=True)
    assert fork.description.address != orders.description.address
    fork.append(b"f")
    receipt = orders.append(b"c").receipt
    assert receipt is not None
    fork.promote()
    assert receipt.position(timeout=PATIENCE_S) == 3
    assert [record.value for record in orders.read()] == [b"a", b"b", b"f", b"c"]
    assert [each.name for each in service.brokers()] == ["broker-0", "broker-1", "broker-2"]
    assert {each.state for each in service.brokers()} == {"ready"}
    assert len(list(service.logs())) == 1


def test_appends_go_on_over_the_death_of_each_broker_in_turn(
    pool: Pool, service: anabranch.Service
) -> None:
    orders = service.create("orders")
    handles = []
    number = 0
    for broker in (*pool.brokers, *pool.brokers):
        for _ in range(50):
            handles.append(orders.append_nowait(b"%d" % number))
            number += 1
        pool.kill(broker)
        for _ in range(50):
            handles.append(orders.append_nowait(b"%d" % number))
            number += 1
        service.flush()
        pool.revive(broker)
    assert [handle.result().position for handle in handles] == list(range(number))
    assert [record.value for record in orders.read()] == [b"%d" % each for each in range(number)]


def test_a_log_is_followed_to_where_it_is_placed_anew(
    pool: Pool, service: anabranch.Service
) -> None:
    orders = service.create("orders")
    first = orders.description.address
    orders.append(b"a")
    pool.kill(pool.at(first))
    orders.append(b"b")
    until(lambda: orders.describe().address != first)
    orders.append(b"c")
    pool.revive(pool.at(first))
    until(lambda: {each.state for each in service.brokers()} == {"ready"})
    orders.append(b"d")
    assert [record.value for record in orders.read()] == [b"a", b"b", b"c", b"d"]


def test_a_broker_that_drains_is_left_without_a_failure(
    pool: Pool, service: anabranch.Service
) -> None:
    orders = service.create("orders")
    first = orders.description.address
    drained = pool.at(first)
    handles = [orders.append_nowait(b"%d" % number) for number in range(100)]
    pool.do(drained.drain)
    handles += [orders.append_nowait(b"%d" % number) for number in range(100, 200)]
    assert [handle.result().position for handle in handles] == list(range(200))
    until(lambda: orders.describe().address != first)
    pool.kill(drained)
    assert orders.append(b"last").position == 200


def test_a_subscription_goes_on_elsewhere_and_gives_each_record_once(
    pool: Pool, service: anabranch.Service
) -> None:
    orders = service.create("orders")
    found: list[int] = []
    over = threading.Event()

    def listen() -> None:
        with (
            anabranch.connect(pool.url, timeout=PATIENCE_S) as other,
            other.log("orders").subscribe(0) as events,
        ):
            for event in events:
                assert isinstance(event, Deliver)
                found.append(event.record.position)
                if event.record.value == b"end":
                    break
        over.set()

    listener = threading.Thread(target=listen)
    listener.start()
    for broker in pool.brokers:
        orders.append_many([b"x"] * 100)
        pool.kill(broker)
        orders.append_many([b"y"] * 100)
        pool.revive(broker)
    orders.append(b"end")
    assert over.wait(PATIENCE_S)
    listener.join()
    assert found == list(range(601))


def test_speculation_at_a_dying_broker_is_failed_and_decided_elsewhere(
    pool: Pool, service: anabranch.Service
) -> None:
    made = service.create("orders")
    made.append(b"a")
    fork = made.cfork("try", promotable=True)
    made.append(b"b")
    # By the address of its broker, so that no move in peace comes between.
    placed = f"anabranch://{made.description.address}"
    with (
        anabranch.connect(placed, timeout=PATIENCE_S) as other,
        (orders := other.log("orders")).subscribe(0) as events,
    ):
        first, guess = next(iter_events := iter(events)), next(iter_events)
        assert isinstance(first, Deliver)
        assert isinstance(guess, Deliver)
        assert (first.speculative, guess.speculative) == (False, True)
        pool.kill(pool.at(orders.describe().address))
        assert next(iter_events) == Fail(1)
        again = next(iter_events)
        assert isinstance(again, Deliver)
        assert (again.record.value, again.speculative) == (b"b", True)
        fork.squash()
        assert next(iter_events) == Confirm(2)


def test_a_fork_wants_a_broker_of_its_own_or_is_refused(service: anabranch.Service) -> None:
    orders = service.create("orders")
    fork = orders.cfork("own", exclusive=True)
    seat = next(each for each in service.brokers() if each.exclusive)
    assert seat.address == fork.description.address
    orders.cfork("shared")
    with pytest.raises(NoSpareBroker):
        orders.sfork("another", exclusive=True)
    fork.squash()
    assert orders.sfork("another", exclusive=True).append(b"x").position == 0


def test_many_clients_and_random_deaths_lose_and_double_nothing(pool: Pool) -> None:
    """Each client's records are there, each once, in its order."""
    counts: dict[int, int] = {}
    over = asyncio.Event()

    async def client(number: int) -> None:
        async with aio.connect(pool.url, timeout=PATIENCE_S) as service:
            log = await service.log("shared")
            count = 0
            while not over.is_set():
                await log.append(b"%d.%d" % (number, count), timeout=PATIENCE_S)
                count += 1
            counts[number] = count

    async def live() -> list[bytes]:
        async with aio.connect(pool.url, timeout=PATIENCE_S) as service:
            log = await service.create("shared")
            clients = [asyncio.create_task(client(number)) for number in range(4)]
            for broker in (*pool.brokers, *pool.brokers):
                for _ in range(20):
                    await log.append(b"beat", timeout=PATIENCE_S)
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(broker.die(), pool.loop))
                for _ in range(20):
                    await log.append(b"beat", timeout=PATIENCE_S)
                await asyncio.wrap_future(
                    asyncio.run_coroutine_threadsafe(broker.live(), pool.loop)
                )
            over.set()
            await asyncio.gather(*clients)
            return [record.value or b"" async for record in log.read()]

    values = [value for value in asyncio.run(live()) if value != b"beat"]
    assert len(values) == len(set(values)) == sum(counts.values())
    for number in range(4):
        mine = [int(value.split(b".")[1]) for value in values if value.startswith(b"%d." % number)]
        assert all(before < after for before, after in pairwise(mine))


HTTP = b"HTTP/1.1 400 Bad Request\r\n\r\n"


def refused(url: str, *says: str) -> None:
    """Within its deadline, and with the reason once there was time to find it."""
    timeout = 0.25
    while True:
        with pytest.raises(Unavailable) as caught:
            anabranch.connect(url, timeout=timeout)
        if all(each in caught.value.message for each in says):
            return
        timeout *= 2
        assert timeout < PATIENCE_S, caught.value.message


@contextmanager
def answering(answer: bytes | None) -> Iterator[str]:
    """A server that says this to whoever connects; None: nothing, ever."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()
        held: list[socket.socket] = []

        def serve() -> None:
            while not over.is_set():
                connection, _ = listener.accept()
                held.append(connection)
                if answer is not None and not over.is_set():
                    connection.recv(4_096)
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_RDWR)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            socket.create_connection(listener.getsockname()).close()
            thread.join()
            for each in held:
                each.close()


@pytest.mark.parametrize(
    ("answer", "scheme", "says"),
    [
        (HTTP, "anabranch", "HTTP is spoken there"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "anabranch", "write anabranchs://"),
        (b"", "anabranch", "without a word; if TLS is spoken there, write anabranchs://"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "anabranch", "the frame can't be read"),
        (None, "anabranch", "says nothing: is it the right port?"),
        (HTTP, "anabranchs", "write anabranch://"),
    ],
)
def test_whatever_else_listens_there_is_named(answer: bytes | None, scheme: str, says: str) -> None:
    with answering(answer) as address:
        refused(f"{scheme}://{address}", says)


def test_every_address_that_fails_is_told_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    with answering(HTTP) as address:
        both = f"127.0.0.1:{free},{address}"
        refused(both, f"127.0.0.1:{free} can't be reached", "HTTP is spoken there")


def test_one_right_address_among_wrong_ones_is_enough(pool: Pool) -> None:
    with answering(None) as silent, answering(HTTP) as http:
        url = f"anabranch://{silent},{http},{pool.brokers[0].address}"
        with anabranch.connect(url, timeout=PATIENCE_S) as service:
            assert service.create("orders").append(b"a").position == 0


def test_a_wrong_token_is_told_at_once() -> None:
    with pooled(2, token="right") as pool:
        with pytest.raises(Unauthorized):
            anabranch.connect(pool.url, timeout=PATIENCE_S)
        url = pool.url.replace("://", "://right@")
        with anabranch.connect(url, timeout=PATIENCE_S) as service:
            assert service.create("orders").append(b"a").position == 0


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> TlsSettings:
    """A certificate for 127.0.0.1 that is its own authority."""
    directory = tmp_path_factory.mktemp("tls")
    cert, key = directory / "cert.pem", directory / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    options = ["-subj", "/CN=pool", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command.split(), *options, *files], check=True, capture_output=True)
    return TlsSettings(cert=str(cert), key=str(key))


def test_tls_from_end_to_end_and_a_fail_over_in_it(certificates: TlsSettings) -> None:
    with pooled(2, tls=certificates) as pool:
        url = pool.url.replace("anabranch://", "anabranchs://") + f"?ca={certificates.cert}"
        with anabranch.connect(url, timeout=PATIENCE_S) as service:
            log = service.create("orders")
            assert log.append(b"a").position == 0
            pool.kill(pool.at(log.description.address))
            assert log.append(b"b").position == 1
        refused(url.partition("?")[0], "isn't trusted")
        refused(pool.url, "anabranchs://")
    with pytest.raises(BadRequest, match="PEM"):
        anabranch.connect("anabranchs://h?ca=/nowhere.pem", timeout=1)


def test_a_certificate_may_be_made_for_another_name_than_is_dialed(tmp_path: Path) -> None:
    named = Issuer(tmp_path / "named").issue("logs", "DNS:logs.example")
    files = TlsSettings(cert=named.cert, key=named.key)
    with pooled(1, tls=files) as pool:
        url = pool.url.replace("anabranch://", "anabranchs://") + f"?ca={named.ca}"
        refused(url, "isn't trusted")
        with anabranch.connect(f"{url}&server_name=logs.example", timeout=PATIENCE_S) as service:
            assert service.create("orders").append(b"a").position == 0


def test_a_token_is_read_from_its_file_for_each_connection(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("right\n")
    with pooled(2, token="right") as pool:
        url = f"{pool.url}?token_file={file}"
        with anabranch.connect(url, timeout=PATIENCE_S) as service:
            log = service.create("orders")
            pool.kill(pool.at(log.description.address))
            assert log.append(b"a").position == 0
        assert cli("log", "list", "--url", url).returncode == 0
        named = {**os.environ, "ANABRANCH_TOKEN_FILE": str(file)}
        assert cli("log", "list", "--url", pool.url, environment=named).returncode == 0
        file.write_text("wrong")
        with pytest.raises(Unauthorized):
            anabranch.connect(url, timeout=PATIENCE_S)
        file.unlink()
        refused(url, str(file))


def test_tls_where_none_is_spoken_is_told(pool: Pool) -> None:
    refused(pool.url.replace("anabranch://", "anabranchs://"), "doesn't speak TLS")


def cli(
    *words: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anabranch.cli.main", *words]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env=environment,
    )


def test_the_command_line_before_a_pool(pool: Pool, tmp_path: Path) -> None:
    url = pool.url
    assert cli("log", "create", "orders", "--url", url).returncode == 0
    assert cli("fork", "orders", "own", "--exclusive", "--url", url).returncode == 0
    listed = cli("brokers", "--url", url)
    assert listed.returncode == 0, listed.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == [
        "broker-0",
        "broker-1",
        "broker-2",
    ]
    found = anabranch.connect(url)
    seats = found.brokers()
    found.close()
    told = cli("brokers", "--url", url, "-o", "json")
    assert [each["address"] for each in msgspec.json.decode(told.stdout)["brokers"]] == [
        seat.address for seat in seats
    ]
    with answering(HTTP) as address:
        while (
            "HTTP is spoken there"
            not in (wrong := cli("log", "list", "--url", f"anabranch://{address}")).stderr
        ):
            assert address in wrong.stderr
    assert wrong.returncode == 3
