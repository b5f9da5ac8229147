"""The metadata of a process that runs other engines' logs beside them."""

from collections.abc import Callable

from anabranch.core.bolt.metadata.leader import Metadata
from anabranch.core.machine import Effects, Event
from anabranch.core.quota import Quota
from anabranch.core.types import LogId, Nanoseconds


class WatchedMetadata:
    """A machine: the metadata, and a word to whoever runs other engines' logs when these change."""

    def __init__(self, metadata: Metadata, changed: Callable[[], None]) -> None:
        self._metadata = metadata
        self._changed = changed
        self._logs = frozenset[LogId]()
        self._quotas: dict[LogId, Quota] = {}

    def start(self, now: Nanoseconds) -> Effects:
        return self._metadata.start(now)

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        effects = self._metadata.step(now, event)
        forest = self._metadata.state.replica.forest
        if forest.foreign or forest.fronts or self._logs:
            logs, quotas = frozenset({*forest.foreign, *forest.fronts}), forest.quotas
            # Few of the logs have a quota: this is looked at after every commit.
            found = {id: quotas[id] for id in logs & quotas.keys()}
            if logs != self._logs or found != self._quotas:
                self._logs, self._quotas = logs, found
                self._changed()
        return effects
