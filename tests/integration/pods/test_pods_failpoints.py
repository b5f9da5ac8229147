"""Every failpoint is reached by real processes, and what is armed there happens to them."""

import signal

from tests.integration.pods.crew import PATIENCE_S, Crew, log_at, start, until

from anabranch.shell.runtime.failpoints import FAILPOINTS


def test_every_failpoint_is_reached(crew: Crew) -> None:
    crew.start(members=1, brokers=2, failpoints=";".join(f"{name}=note" for name in FAILPOINTS))
    first, second = crew.brokers
    pods = (*crew.members, *crew.brokers)
    with log_at(first, "orders") as here, log_at(second, "orders") as there:
        here.append(b"a", timeout=PATIENCE_S)
        assert [record.value for record in there.read(0)] == [b"a"]
        said = "".join(pod.said for pod in pods)
        missing = {name for name in FAILPOINTS if f"failpoint {name}\n" not in said}
        # The lease is renewed when its time has come.
        assert missing <= {"election.keepalive"}
        until(lambda: "failpoint election.keepalive" in crew.members[0].said)


def test_a_leader_that_dies_with_a_group_journaled_and_nobody_told_loses_and_repeats_nothing(
    crew: Crew,
) -> None:
    doomed = crew.member(failpoints="journal.append.after=exit@8")
    start([doomed])
    crew.start(members=1, brokers=2)
    written = 0
    with log_at(crew.brokers[0], "orders") as here, log_at(crew.brokers[1], "orders") as there:
        while doomed.running:
            assert here.append(b"%d" % written, timeout=PATIENCE_S).position == written
            written += 1
        assert here.append(b"%d" % written, timeout=PATIENCE_S).position == written
        assert doomed.ended() == -signal.SIGKILL
        read = [record.value for record in there.read(0)]
        assert read == [b"%d" % number for number in range(written + 1)]


def test_objects_whose_writing_nobody_confirmed_are_acknowledged_once(crew: Crew) -> None:
    start([crew.member()])
    start([crew.broker(failpoints="store.put.after=drop@2,store.put.before=drop@4")])
    with log_at(crew.brokers[0], "orders") as log:
        for number in range(6):
            assert log.append(b"%d" % number, timeout=PATIENCE_S).position == number
        assert [record.value for record in log.read(0)] == [b"%d" % number for number in range(6)]


def test_letters_that_are_lost_are_repeated(crew: Crew) -> None:
    start([crew.member()])
    start([crew.broker(failpoints="peers.send=drop@9;peers.receive=drop@6;peers.connect=drop@1")])
    with log_at(crew.brokers[0], "orders") as log:
        for number in range(10):
            assert log.append(b"%d" % number, timeout=PATIENCE_S).position == number
