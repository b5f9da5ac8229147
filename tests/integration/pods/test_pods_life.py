"""Members and brokers as processes: they serve, drain, hand over, and go on without the dead."""

import signal

from tests.certificates import certified
from tests.integration.pods.crew import PATIENCE_S, Crew, log_at, start, until

import anabranch
from anabranch.cli.failure import Exit


def test_what_one_broker_appends_another_reads_also_when_the_first_has_drained(crew: Crew) -> None:
    crew.start(members=1, brokers=2)
    (member,), (first, second) = crew.members, crew.brokers
    with log_at(first, "orders") as here, log_at(second, "orders") as there:
        for value in (b"a", b"b", b"c"):
            here.append(value, timeout=PATIENCE_S)
        assert [record.value for record in there.read(0)] == [b"a", b"b", b"c"]
        assert first.metric("anabranch_broker_appends_total") == 3
        assert member.metric("anabranch_member_brokers") == 2
        assert member.metric("anabranch_member_leading") == 1
    assert first.end() == 0
    assert [first.logged(event) for event in ("draining", "stopping")] == [True, True]
    assert not first.announced
    with anabranch.connect(f"anabranch://{second.address}", timeout=PATIENCE_S) as service:
        states = {seat.name: seat.state for seat in service.brokers(timeout=PATIENCE_S)}
        assert states == {"broker-0": "draining", "broker-1": "ready"}
        assert service.log("orders").describe(timeout=PATIENCE_S).broker == "broker-1"
    with log_at(second, "orders") as there:
        assert there.append(b"d", timeout=PATIENCE_S).position == 3
    assert member.end() == 0


def test_a_leader_that_is_told_to_end_hands_over_and_one_that_is_killed_is_followed(
    crew: Crew,
) -> None:
    crew.start(members=3, brokers=1)
    with log_at(crew.brokers[0], "orders") as log:
        assert log.append(b"a", timeout=PATIENCE_S).position == 0
        first = crew.leader
        assert first.end() == 0
        assert log.append(b"b", timeout=PATIENCE_S).position == 1
        second = crew.leader
        assert second is not first
        term = second.metric("anabranch_member_term")
        second.kill()
        assert log.append(b"c", timeout=PATIENCE_S).position == 2
        third = crew.leader
        assert third.metric("anabranch_member_term") > term
        assert [record.value for record in log.read(0)] == [b"a", b"b", b"c"]
        start([first])
        until(lambda: first.readiness["role"] == "follower")
        # What it may lead later it has by then.
        index = third.metric("anabranch_member_index")
        until(lambda: first.metric("anabranch_member_index") >= index)


def test_a_broker_says_why_it_is_not_ready_and_is_when_it_can_be(crew: Crew) -> None:
    member = crew.member()
    start([member])
    broker = crew.broker()
    member.pause()
    broker.launch()
    until(lambda: broker.readiness["why"] == ["no metadata member says that it leads"])
    assert broker.get("/readyz")[0] == 503
    assert broker.get("/healthz")[0] == 200
    assert broker.get("/nowhere")[0] == 404
    member.resume()
    broker.wait_ready()
    assert broker.readiness == {"ready": True, "node": "broker-0", "role": "broker", "why": []}


def test_a_second_signal_ends_a_process_at_once(crew: Crew) -> None:
    """A broker that nobody answers can't say that it ends: it waits as long as it may."""
    start([crew.member()])
    broker = crew.broker(limit="drain_ms=600000")
    start([broker])
    with log_at(broker, "orders"):
        crew.members[0].pause()
        broker.signal()
        until(lambda: broker.logged("draining"))
        assert broker.readiness["why"][0] == "it is draining"
        assert broker.end() == 128 + signal.SIGTERM
        crew.members[0].resume()


def test_of_two_brokers_of_one_name_the_later_serves_and_the_earlier_ends(crew: Crew) -> None:
    crew.start(members=1, brokers=1)
    (earlier,) = crew.brokers
    later = crew.pod("broker", earlier.name, {"metadata": crew.listed})
    later.launch()
    assert earlier.ended() == Exit.REFUSED
    assert "has been replaced by epoch" in earlier.said
    later.wait_ready()
    with log_at(later, "orders") as log:
        assert log.append(b"a", timeout=PATIENCE_S).position == 0


def test_clients_and_peers_speak_tls_where_they_are_told_to(crew: Crew) -> None:
    files = certified(crew.folder / "tls")
    peers = {"peer_tls_cert": files.cert, "peer_tls_key": files.key, "peer_tls_ca": files.ca}
    start([crew.member(**peers)])
    start([crew.broker(**peers, tls_cert=files.cert, tls_key=files.key)])
    (broker,) = crew.brokers
    url = f"anabranchs://{broker.address}?ca={files.ca}"
    with anabranch.connect(url, timeout=PATIENCE_S) as service:
        log = service.ensure("orders", timeout=PATIENCE_S)
        assert log.append(b"a", timeout=PATIENCE_S).position == 0
    # One that speaks no TLS to members reaches none of them.
    plain = crew.broker()
    plain.launch()
    until(lambda: plain.logged("no member is here"))
    until(lambda: plain.readiness["why"] == ["no metadata member says that it leads"])
