"""Which replicas hold a shard: the first epoch, takeovers, and replicas that come back.

A shard's items are durable when all replicas of its epoch hold them, so any sealed one of them
holds everything (decision 58); the one with the highest term and the longest log leads the next
epoch. As long as a primary is there, its word decides who is left out and who is taken in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from anabranch.core.erwin.controller.plan import Plan
from anabranch.core.erwin.protocol.letters import (
    LearnShard,
    SealShard,
    ShardPresent,
    ShardSealed,
    ShardSetup,
)
from anabranch.core.quorum import ALL
from anabranch.core.replication.replica import Role
from anabranch.core.sequencing.controller.contacts import Contacts
from anabranch.core.types import MS, Nanoseconds


@dataclass(slots=True)
class _Takeover:
    epoch: int
    began: Nanoseconds
    repeated_at: Nanoseconds
    sealed: dict[str, ShardSealed] = field(default_factory=dict[str, ShardSealed])


class Epochs:
    def __init__(
        self,
        plan: Plan,
        contacts: Contacts[ShardPresent],
        *,
        now: Nanoseconds,
        accept_loss: bool,
        send: Callable[[str, SealShard | LearnShard], None],
    ) -> None:
        self._plan = plan
        self._contacts = contacts
        self._counters = plan.counters
        self._limits = plan.limits
        self._accepts_loss = accept_loss
        self._send = send
        self._began = now
        self._changed_at: dict[int, Nanoseconds] = {}
        self._takeovers: dict[int, _Takeover] = {}
        """By shard number."""

    @property
    def taking_over(self) -> tuple[int, ...]:
        """Shards whose epoch is being ended."""
        return tuple(self._takeovers)

    def present(self, letter: ShardPresent) -> None:
        """A replica outside of its shard's epoch is to copy what the primary holds."""
        setup = self._plan.shard(letter.shard)
        if setup is None or setup.removed or not setup.epoch or letter.node not in setup.nodes:
            return
        learns = letter.role == Role.LEARNER and letter.epoch == setup.epoch
        if letter.node not in setup.replicas and not learns:
            learn = LearnShard(shard=setup.name, epoch=setup.epoch, primary=setup.primary)
            self._send(letter.node, learn)

    def sealed(self, letter: ShardSealed, now: Nanoseconds) -> None:
        setup = self._plan.shard(letter.shard)
        if setup is None or letter.node not in setup.replicas or letter.epoch != setup.epoch + 1:
            return
        if self._plan.busy:
            return  # perhaps it is this very epoch's end that is being journaled
        # Perhaps a controller before this one had begun it: a sealed replica serves no more.
        self._takeover(setup, now).sealed[letter.node] = letter

    def watch(self, now: Nanoseconds) -> None:
        """At the end of each step."""
        if self._plan.busy:
            return
        for setup in self._plan.shards:
            if not setup.epoch:
                self._start(setup, now)
            elif self._must_take_over(setup, now):
                self._take_over(setup, now)
            else:
                self._rearrange(setup, now)

    def lost(self, setup: ShardSetup, node: str, now: Nanoseconds) -> bool:
        """It has another journal than the one that the epoch counts on."""
        if self._sign(setup, node) is None or node not in setup.replicas:
            return False
        return self._contacts.replaced(node, _disk_of(setup, node), now)

    def silent(self, setup: ShardSetup, now: Nanoseconds) -> tuple[str, ...]:
        return tuple(node for node in setup.nodes if self._contacts.silent(node, now))

    def leaving(self, setup: ShardSetup, now: Nanoseconds) -> tuple[str, ...]:
        """Replicas whose processes are about to end."""
        return tuple(node for node in setup.nodes if self._contacts.leaves(node, now))

    def lost_all(self, setup: ShardSetup) -> bool:
        """Nothing is left of this shard: its nodes know of the epoch, and have other journals than
        those that it counts on.
        """
        known = self._plan.configuration.version
        signs = [(self._sign(setup, node), _disk_of(setup, node)) for node in setup.replicas]
        return bool(setup.epoch) and all(
            sign is not None and sign.disk != disk and sign.version >= known for sign, disk in signs
        )

    def again(self, setup: ShardSetup, now: Nanoseconds) -> ShardSetup | None:
        """The next epoch of a removed shard. Nobody can ask for what it held, so journals that are
        all new hold as much as those before. None: a replica isn't there.
        """
        assert setup.removed, "others are opened in the epoch that they have"
        epoch = setup.epoch + 1
        if not self.lost_all(setup):
            return msgspec.structs.replace(setup, epoch=epoch)
        if any(self._contacts.present(node, now) is None for node in setup.nodes):
            return None
        return msgspec.structs.replace(
            setup,
            epoch=epoch,
            primary=setup.nodes[0],
            replicas=setup.nodes,
            disks=tuple(self._disk(setup, node, now) for node in setup.nodes),
        )

    def _sign(self, setup: ShardSetup, node: str) -> ShardPresent | None:
        letter = self._contacts.sign(node)
        return letter if letter is not None and letter.shard == setup.name else None

    def _gone(self, setup: ShardSetup, node: str, now: Nanoseconds) -> bool:
        return self._contacts.silent(node, now) or self.lost(setup, node, now)

    def _staying(self, setup: ShardSetup, now: Nanoseconds) -> list[str]:
        """Replicas of the epoch that can go on without the others."""
        assert setup.epoch, "it has begun"
        return [
            node
            for node in setup.replicas
            if not self._gone(setup, node, now) and not self._contacts.leaves(node, now)
        ]

    def _must_be_replaced(self, setup: ShardSetup, node: str, now: Nanoseconds) -> bool:
        return self._contacts.must_be_replaced(node, now) and bool(self._staying(setup, now))

    def _start(self, setup: ShardSetup, now: Nanoseconds) -> None:
        """The first epoch begins when all replicas are there: nobody's log is older than it."""
        assert not setup.replicas, "a shard starts once"
        signs = [self._sign(setup, node) for node in setup.nodes]
        if None in signs or any(self._contacts.silent(node, now) for node in setup.nodes):
            return
        self._arrange(setup, setup.nodes[0], setup.nodes, now)

    def _must_take_over(self, setup: ShardSetup, now: Nanoseconds) -> bool:
        if setup.number in self._takeovers or self._gone(setup, setup.primary, now):
            return True
        if self._must_be_replaced(setup, setup.primary, now):
            return True
        return any(self._is_sealed(setup, node, now) for node in setup.replicas)

    def _is_sealed(self, setup: ShardSetup, node: str, now: Nanoseconds) -> bool:
        """By a controller that got no further. A replica that doesn't know the epoch yet may be
        sealed against an earlier one.
        """
        letter = self._sign(setup, node)
        if letter is None or letter.role != Role.SEALED or self.lost(setup, node, now):
            return False
        return letter.epoch == setup.epoch or letter.version == self._plan.configuration.version

    def _take_over(self, setup: ShardSetup, now: Nanoseconds) -> None:
        """Once it is begun it is ended: who is sealed serves the old epoch no more. If the old
        primary is back meanwhile, it is sealed like the others, and holds at least as much.
        """
        replicas = setup.replicas
        gone = [node for node in replicas if self._gone(setup, node, now)]
        if self._accepts_loss and self.lost_all(setup):
            self._begin_anew(setup, now)
            return
        if setup.number not in self._takeovers and len(gone) == len(replicas):
            return
        takeover = self._takeover(setup, now)
        left = tuple(
            node for node in replicas if node in takeover.sealed and not self.lost(setup, node, now)
        )
        complete = all(node in takeover.sealed or node in gone for node in replicas)
        waited = now - takeover.began >= self._contacts.patience(now)
        if len(left) >= ALL.to_recover(len(replicas)) and (complete or waited):
            # One that is about to end isn't missed: each of them holds all that was durable.
            left = tuple(node for node in left if not self._contacts.leaves(node, now)) or left
            primary = max(left, key=lambda node: _log_of(takeover.sealed[node]))
            self._counters.takeovers += 1
            self._arrange(setup, primary, left, now)
        elif now - takeover.repeated_at >= self._limits.present_ms * MS:
            takeover.repeated_at = now
            self._seal(setup, takeover)

    def _takeover(self, setup: ShardSetup, now: Nanoseconds) -> _Takeover:
        takeover = self._takeovers.get(setup.number)
        if takeover is None:
            takeover = _Takeover(setup.epoch + 1, began=now, repeated_at=now)
            self._takeovers[setup.number] = takeover
            self._seal(setup, takeover)
        assert takeover.epoch == setup.epoch + 1, "each arrangement ends the takeover before it"
        return takeover

    def _seal(self, setup: ShardSetup, takeover: _Takeover) -> None:
        for node in setup.replicas:
            if node not in takeover.sealed:
                self._send(node, SealShard(shard=setup.name, epoch=takeover.epoch))

    def _rearrange(self, setup: ShardSetup, now: Nanoseconds) -> None:
        """The same primary goes on: it holds all that was durable."""
        assert setup.number not in self._takeovers, "sealed replicas serve no primary"
        letter = self._sign(setup, setup.primary)
        if letter is None or letter.epoch != setup.epoch or letter.role != Role.PRIMARY:
            return
        out = {
            node
            for node in setup.replicas
            if node != setup.primary
            and (
                node in letter.silent
                or self.lost(setup, node, now)
                or self._must_be_replaced(setup, node, now)
            )
        }
        back = {
            node
            for node in letter.caught_up
            if node in setup.nodes
            and node not in setup.replicas
            and self._contacts.present(node, now) is not None
            and not self._contacts.leaves(node, now)
        }
        rested = now - self._changed_at.get(setup.number, self._began)
        if rested < self._limits.return_ms * MS:
            back.clear()
        if out or back:
            self._counters.rearranged += 1
            stay = {*setup.replicas, *back} - out
            self._arrange(setup, setup.primary, [n for n in setup.nodes if n in stay], now)

    def _begin_anew(self, setup: ShardSetup, now: Nanoseconds) -> None:
        """Every replica has lost its journal. The shard goes on, empty, behind what is known to
        have been readable.
        """
        assert self._accepts_loss
        there = [node for node in setup.nodes if self._contacts.present(node, now) is not None]
        known = [self._sign(each, each.primary) for each in self._plan.shards if each.epoch]
        if len(there) < len(setup.nodes) or None in known:
            return
        self._counters.lost_shards += 1
        begins = max(setup.begins, self.stable())
        self._arrange(msgspec.structs.replace(setup, begins=begins), there[0], there, now)

    def stable(self) -> int:
        """What some shard knows to be stable."""
        signs = [self._sign(setup, node) for setup in self._plan.shards for node in setup.replicas]
        return max((letter.stable for letter in signs if letter is not None), default=0)

    def _arrange(
        self, setup: ShardSetup, primary: str, replicas: Sequence[str], now: Nanoseconds
    ) -> None:
        assert primary in replicas, "a primary is one of its shard's replicas"
        self._takeovers.pop(setup.number, None)
        self._changed_at[setup.number] = now
        self._plan.set_shard(
            msgspec.structs.replace(
                setup,
                epoch=setup.epoch + 1,
                primary=primary,
                replicas=tuple(replicas),
                disks=tuple(self._disk(setup, node, now) for node in replicas),
            )
        )

    def _disk(self, setup: ShardSetup, node: str, now: Nanoseconds) -> int:
        """An epoch counts on a journal as long as that isn't lost."""
        if node in setup.replicas and not self.lost(setup, node, now):
            return _disk_of(setup, node)
        letter = self._sign(setup, node)
        assert letter is not None, "only a replica that has said so is counted on"
        return letter.disk


def _disk_of(setup: ShardSetup, node: str) -> int:
    """The journal that the epoch counts on."""
    assert len(setup.disks) == len(setup.replicas), "an epoch counts on certain journals"
    return setup.disks[setup.replicas.index(node)]


def _log_of(sealed: ShardSealed) -> tuple[int, int]:
    return (sealed.last_term, sealed.last)
