"""Servers that tests and demos stand on: found, started, harmed and started again."""

import socket
from http.client import HTTPConnection
from pathlib import Path

import pytest
from tests.servers import needs

from anabranch.apps.processes import binaries
from anabranch.apps.processes.binaries import ETCD, VERSITYGW
from anabranch.apps.processes.ports import HOST, free_ports
from anabranch.apps.processes.servers import EtcdGroup, EtcdServer, S3Server, answers
from anabranch.apps.processes.toxiproxy import Toxiproxy
from anabranch.core.errors import Unavailable


def test_a_missing_go_is_named_with_what_would_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(ETCD.override, raising=False)
    with pytest.raises(Unavailable, match=r"install Go 1\.\d+.* or let ANABRANCH_ETCD_BIN"):
        binaries.find(ETCD)


def test_a_named_binary_is_taken_and_a_wrong_name_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ETCD.override, "sh")
    assert binaries.find(ETCD) == "sh"
    monkeypatch.setenv(ETCD.override, "/nowhere/etcd")
    with pytest.raises(Unavailable, match="ANABRANCH_ETCD_BIN = /nowhere/etcd"):
        binaries.find(ETCD)


def test_what_go_says_is_passed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho no such module\nexit 1\n")
    go.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv(VERSITYGW.override, raising=False)
    monkeypatch.setattr(binaries, "_PAUSE_S", 0)
    said: list[str] = []
    with pytest.raises(Unavailable, match="failed 3 times: no such module"):
        binaries.find(VERSITYGW, said.append)
    assert said == [f"building versitygw {VERSITYGW.version}: once, it takes minutes"]
    assert [path.name for path in VERSITYGW.place.parent.iterdir()] == ["versitygw.lock"]


def test_a_build_that_goes_on_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The pretended compiler ends once it was seen that its progress is reported."""
    seen = tmp_path / "seen"
    go = tmp_path / "go"
    script = (
        "#!/bin/sh",
        "echo one; echo two",
        f"until [ -e {seen} ]; do sleep 0.01; done",
        'while [ "$1" != -o ]; do shift; done',
        '>"$2"',
    )
    go.write_text("\n".join(script))
    go.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv(VERSITYGW.override, raising=False)
    monkeypatch.setattr(binaries, "PROGRESS_S", 0.01)
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "2 packages" in line:
            seen.touch()

    assert binaries.find(VERSITYGW, say) == str(VERSITYGW.place)
    assert said[0].startswith("building versitygw v")
    assert said[-1].startswith("built versitygw in ")
    assert binaries.is_ready(VERSITYGW)


def test_ports_are_free_distinct_and_never_one_the_system_gives_unasked() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    with socket.socket() as unasked:
        unasked.bind((HOST, 0))
        assert max(ports) < unasked.getsockname()[1]


def test_a_member_of_etcd_serves(etcd: EtcdServer) -> None:
    assert answers(int(etcd.address.partition(":")[2]), "/version") == 200


def test_a_member_that_was_killed_comes_back_at_its_address(etcd_three: EtcdGroup) -> None:
    addresses = etcd_three.addresses
    victim = etcd_three.members[1]
    victim.kill()
    assert not victim.running
    etcd_three.start()
    assert etcd_three.addresses == addresses
    assert all(answers(int(each.partition(":")[2]), "/health") == 200 for each in addresses)


def test_a_server_whose_port_was_taken_takes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(VERSITYGW)
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        offers = [[taken.getsockname()[1]], free_ports(1)]
        place = "anabranch.apps.processes.servers.free_ports"
        monkeypatch.setattr(place, lambda _: offers.pop(0))
        server = S3Server(tmp_path / "s3")
        try:
            server.start()
            assert server.port != taken.getsockname()[1]
            assert not offers
        finally:
            server.kill()


def test_a_server_that_ends_at_once_says_why(tmp_path: Path) -> None:
    needs(ETCD)
    group = EtcdGroup(tmp_path / "etcd", 1, heartbeat_interval="5000")
    with pytest.raises(
        Unavailable, match=r"etcd-0 .*it ended before it served: .*election-timeout"
    ):
        group.start()


def test_a_stopped_server_keeps_what_it_has(tmp_path: Path) -> None:
    needs(VERSITYGW)
    server = S3Server(tmp_path / "s3")
    try:
        server.start()
        server.make_bucket("kept")
        server.pause()
        server.stop()
        assert not server.running
        server.start()
        assert (server.buckets / "kept").is_dir()
    finally:
        server.kill()


def test_a_link_is_cut_and_mended(s3: S3Server, toxiproxy: Toxiproxy) -> None:
    link = toxiproxy.link("to-s3", s3.address)
    port = int(link.address.partition(":")[2])
    assert answers(port, "/health") == 200
    link.cut()
    assert answers(port, "/health") is None
    link.mend()
    link.add("limit_data", bytes=1)
    assert answers(port, "/health") is None
    link.mend()
    connection = HTTPConnection(HOST, port)
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    connection.close()
    link.remove()
