"""Histories of what Spark, a service and other clients may do to sinks, sources and gates."""

import pytest

pytest.importorskip("pyspark", reason="the extra `spark` isn't installed")

from tests.servers import needs
from tests.spark import judged_history, sink_history, source_history
from tests.spark.killed_services import brokers, one_process

from anabranch.apps.processes.binaries import ETCD, VERSITYGW

pytestmark = pytest.mark.nightly
EXECUTIONS, STEPS, ROUNDS = 150, 900, 40


@pytest.mark.parametrize("kind", ["direct", "fork", "mixed", "runs"])
def test_each_record_is_in_the_log_once_whatever_spark_does(kind: str) -> None:
    with one_process() as service:
        tally = sink_history.play(service, kind, EXECUTIONS, seed=1)
    assert tally.killed.total() > EXECUTIONS / 10
    assert tally.services


def test_each_record_is_in_the_log_once_though_brokers_are_killed() -> None:
    needs(ETCD, VERSITYGW)
    with brokers() as service:
        assert sink_history.play(service, "mixed", EXECUTIONS, seed=2).services


def test_streams_and_scans_read_what_a_client_reads_whatever_becomes_of_logs() -> None:
    tally = source_history.play(STEPS, seed=1)
    assert tally.compared > STEPS
    assert tally.ends


def test_what_is_promoted_is_what_was_judged() -> None:
    with one_process() as service:
        tally = judged_history.play(service, ROUNDS, seed=1)
    assert tally.moved
