"""Where a log's nodes are, as its clients are told."""

from anabranch.core.erwin.protocol.directory import Directories
from anabranch.core.erwin.protocol.letters import Configuration, ShardSetup
from anabranch.core.erwin.protocol.rows import Mode
from anabranch.core.sequencing.protocol.ids import Member
from anabranch.core.sequencing.view import Ballot, View


def setup(number: int, **more: object) -> ShardSetup:
    name, node = f"s{number}", f"n{number}"
    known = {"name": name, "epoch": 3, "primary": node, "replicas": (node,), **more}
    return ShardSetup(number=number, nodes=(node,), **known)  # type: ignore[arg-type]


def configuration(version: int, *shards: ShardSetup, view: View | None = None) -> Configuration:
    return Configuration(
        version=version,
        term=1,
        mode=Mode.ST,
        fsync=False,
        view=view,
        shards=shards,
        sequencers=("q1",),
        lost_views=((2, 5), (4, 9)),
    )


def test_clients_are_told_of_shards_that_serve() -> None:
    absent, gone = setup(1, epoch=0, primary="", replicas=()), setup(2, removed=True)
    view = View(ballot=Ballot(5, 1), members=(Member("q1", 1),), leader="q1")
    again = setup(3, name="s0", removed=True)
    known = configuration(7, setup(0, open=False), absent, gone, again, view=view)
    directory = Directories().of(known, view)
    (shard,) = directory.shards
    assert (shard.name, shard.primary, shard.epoch, shard.open) == ("s0", "n0", 3, False)
    assert directory.removed == ("s2",), "there is a shard of the other name"
    assert (directory.version, directory.view, directory.leader) == (7, 5, "q1")
    assert (directory.mode, directory.durability, directory.lost_view) == ("st", "memory", 4)


def test_before_the_first_configuration_nothing_is_known() -> None:
    assert Directories().of(None, None).version == 0


def test_a_sequencer_that_knows_its_view_and_no_configuration_tells_the_mode_of_the_log() -> None:
    view = View(ballot=Ballot(5, 1), members=(Member("q1", 1),), leader="q1")
    directory = Directories(Mode.ST).of(None, view)
    assert (directory.version, directory.members, directory.mode) == (0, ("q1",), "st")


def test_a_directory_is_made_once_for_each_configuration() -> None:
    directories, first = Directories(), configuration(1, setup(0))
    made = directories.of(first, None)
    assert directories.of(first, None) is made
    assert directories.of(configuration(2, setup(0)), None).version == 2
