"""What the controller has decided, and whether that is journaled yet."""

from typing import Any

import msgspec

from anabranch.core.erwin.controller.counters import ControllerCounters
from anabranch.core.erwin.protocol.letters import Configuration, ShardSetup
from anabranch.core.limits import Limits
from anabranch.core.sequencing.protocol.letters import Present

LOST_VIEWS_MAX = 100
"""The configuration names the last ones."""


class Plan:
    """Decisions of one step become one configuration. While that is on its way to the journal
    nothing else is decided, so whoever decides always looks at what is journaled.
    """

    def __init__(
        self,
        configuration: Configuration,
        term: int,
        limits: Limits,
        counters: ControllerCounters,
    ) -> None:
        assert configuration.term <= term, "terms only grow"
        self.limits = limits
        self.counters = counters
        self.configuration = configuration
        """The last that is journaled."""
        self.term = term
        self.persisting: Configuration | None = None
        self._draft: Configuration | None = None

    @property
    def busy(self) -> bool:
        return self.persisting is not None

    @property
    def latest(self) -> Configuration:
        """With what this step has decided so far."""
        return self._draft or self.configuration

    def decide(self, **changes: Any) -> None:
        assert not self.busy, "one configuration at a time"
        self._draft = msgspec.structs.replace(self.latest, **changes)

    def fits(self, letter: Present) -> bool:
        """An append is as durable as at the member that cares least for it."""
        assert letter.node, "a node says who it is"
        return letter.fsync in {None, self.configuration.fsync}

    def set_shard(self, setup: ShardSetup) -> None:
        """In the place of the one with its number, or behind all others."""
        shards = list(self.latest.shards)
        numbers = [shard.number for shard in shards]
        if setup.number in numbers:
            shards[numbers.index(setup.number)] = setup
        else:
            assert setup.number == len(shards), "shards are numbered in their order, for ever"
            shards.append(setup)
        self.decide(shards=tuple(shards))

    def note_lost_view(self, number: int, now_ms: int) -> None:
        lost = self.latest.lost_views
        self.decide(lost_views=(*lost, (number, now_ms))[-LOST_VIEWS_MAX:])

    def take(self) -> Configuration | None:
        """What is to be journaled now."""
        if self._draft is None or self.busy:
            return None
        draft, self._draft = self._draft, None
        version = self.configuration.version + 1
        self.persisting = msgspec.structs.replace(draft, version=version, term=self.term)
        return self.persisting

    def journaled(self) -> Configuration:
        assert self.persisting is not None, "nothing was to be journaled"
        self.configuration, self.persisting = self.persisting, None
        return self.configuration

    def shard(self, name: str) -> ShardSetup | None:
        """The last one of this name: it may have been removed and added again."""
        shards = reversed(self.latest.shards)
        return next((shard for shard in shards if shard.name == name), None)

    @property
    def shards(self) -> tuple[ShardSetup, ...]:
        """Those that aren't removed."""
        return tuple(shard for shard in self.latest.shards if not shard.removed)
