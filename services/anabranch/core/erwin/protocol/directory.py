"""Where a log's nodes are, as its clients are told."""

from anabranch.core.erwin.protocol.letters import Configuration, ShardSetup
from anabranch.core.erwin.protocol.rows import Mode
from anabranch.core.sequencing.protocol.messages import Directory, Shard
from anabranch.core.sequencing.view import View


class Directories:
    """The same Directory for all clients that ask one node, until one of its parts has changed."""

    def __init__(self, mode: Mode | None = None) -> None:
        """`mode`: the log's, where the node is started in it."""
        self._mode = mode
        self._made_of: tuple[Configuration | None, View | None] = None, None
        self._last = self._made(None, None)

    def of(self, configuration: Configuration | None, view: View | None) -> Directory:
        """What the node knows of both. The view may be later than the configuration's, and a
        sequencer that was restarted knows its view before it is told the configuration.
        """
        if self._made_of[0] is not configuration or self._made_of[1] is not view:
            self._made_of = configuration, view
            self._last = self._made(configuration, view)
        return self._last

    def _made(self, configuration: Configuration | None, view: View | None) -> Directory:
        # A client that knows members and no mode would send records where only ids are taken.
        mode = self._mode if configuration is None else configuration.mode
        lost = () if configuration is None else configuration.lost_views
        return Directory(
            version=0 if configuration is None else configuration.version,
            view=0 if view is None else view.number,
            members=() if view is None else view.nodes,
            leader="" if view is None else view.leader,
            shards=() if configuration is None else _shards(configuration.shards),
            mode="" if mode is None else mode.value,
            durability=durability(configuration),
            lost_view=max((number for number, _ in lost), default=0),
            removed=() if configuration is None else _removed(configuration.shards),
        )


def durability(configuration: Configuration | None) -> str:
    """Empty if no configuration is known."""
    return "" if configuration is None else _durability(configuration.fsync)


def other_durability(fsync: bool, of_log: bool) -> str:
    """Why a sequencer that was started with the first can't serve a log of the other."""
    assert fsync is not of_log, "it could"
    started, wanted = _durability(fsync), _durability(of_log)
    return (
        f"was started with durability {started}, and the log's durability is {wanted}: start it "
        f"with {wanted}"
    )


def _durability(fsync: bool) -> str:
    return "fsync" if fsync else "memory"


def _shards(setups: tuple[ShardSetup, ...]) -> tuple[Shard, ...]:
    """Those that clients can ask: their replicas were all there once."""
    return tuple(
        Shard(
            name=setup.name,
            primary=setup.primary,
            replicas=setup.replicas,
            open=setup.open,
            epoch=setup.epoch,
        )
        for setup in setups
        if setup.epoch > 0 and not setup.removed
    )


def _removed(setups: tuple[ShardSetup, ...]) -> tuple[str, ...]:
    """Names that no shard has now; one may be added again."""
    present = {setup.name for setup in setups if not setup.removed}
    return tuple(sorted({setup.name for setup in setups} - present))
