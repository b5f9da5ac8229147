"""Where a log's nodes are, as its clients are told."""

from anabranch.core.erwin.protocol.letters import Configuration, ShardSetup
from anabranch.core.sequencing.messages import Directory, Shard


class Directories:
    """Of one node: made once for each configuration, because many clients ask."""

    def __init__(self) -> None:
        self._made: Directory | None = None
        self._of: Configuration | None = None

    def of(self, configuration: Configuration | None) -> Directory:
        """Without a configuration nothing is known yet."""
        if self._made is None or configuration is not self._of:
            self._of, self._made = configuration, _directory(configuration)
        return self._made


def _directory(configuration: Configuration | None) -> Directory:
    if configuration is None:
        return Directory(version=0, view=0, members=(), leader="")
    view = configuration.view
    return Directory(
        version=configuration.version,
        view=view.number if view is not None else 0,
        members=view.nodes if view is not None else (),
        leader=view.leader if view is not None else "",
        shards=tuple(
            _shard(each) for each in configuration.shards if each.epoch and not each.removed
        ),
        mode=configuration.mode.value,
        durability="fsync" if configuration.fsync else "memory",
        lost_view=max((view for view, _ in configuration.lost_views), default=0),
    )


def _shard(setup: ShardSetup) -> Shard:
    return Shard(
        name=setup.name,
        primary=setup.primary,
        replicas=setup.replicas,
        open=setup.open,
        epoch=setup.epoch,
    )
