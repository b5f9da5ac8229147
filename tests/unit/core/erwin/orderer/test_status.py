"""What the leader says of the log's state."""

from tests.unit.core.erwin.orderer.sequencer_stage import Cluster

from anabranch.core.sequencing.protocol.messages import Inspect, SequencingStatus


def test_a_status_names_what_keeps_shards_from_writing() -> None:
    cluster = Cluster("a", "b", "c")
    cluster.run()
    cluster.change(1, "a", "b")
    for obstacle, said in (("the black box is away", "s1: the black box is away"), ("", "")):
        cluster.shards[1].obstacle = obstacle
        found = cluster.answers[cluster.ask("a", Inspect())]
        assert isinstance(found, SequencingStatus)
        assert found.held_up == said
