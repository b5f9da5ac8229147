"""Which shards the log has: added when their replicas are there, closed, and removed when nobody
can ask for anything of theirs any more; and what all shards hold together.
"""

import msgspec

from anabranch.core.erwin.controller.epochs import Epochs
from anabranch.core.erwin.controller.plan import Plan
from anabranch.core.erwin.protocol.letters import OpenShard, ShardPresent, ShardSetup
from anabranch.core.replication.replica import Role
from anabranch.core.sequencing.controller.contacts import Contacts
from anabranch.core.sequencing.protocol.letters import Present
from anabranch.core.sequencing.view import View
from anabranch.core.types import Nanoseconds, Position

SHARDS_MAX = 1_024
"""Removed ones included: a configuration travels as one letter, and names all of them."""


class Shards:
    def __init__(
        self,
        plan: Plan,
        epochs: Epochs,
        contacts: Contacts[ShardPresent],
        sequencers: Contacts[Present],
    ) -> None:
        self._plan = plan
        self._epochs = epochs
        self._contacts = contacts
        self._sequencers = sequencers
        self._counters = plan.counters
        self._asked: dict[str, bool] = {}
        """Shards that a person wants open or closed, until that is decided."""
        self._closed: dict[int, tuple[int, Position]] = {}
        """By number: no row beyond this position names the shard, if this view hasn't ended."""

    @property
    def ready(self) -> bool:
        """Records can be stored on every shard."""
        shards = self._plan.shards
        return bool(shards) and all(setup.epoch for setup in shards)

    def asked(self, letter: OpenShard) -> None:
        """A repeated letter changes nothing."""
        setup = self._plan.shard(letter.shard)
        if setup is not None and (setup.open and not setup.removed) != letter.open:
            self._asked[letter.shard] = letter.open

    def watch(self, now: Nanoseconds, heard: ShardPresent | None) -> None:
        """At the end of each step, in which perhaps a replica was heard."""
        if self._plan.busy:
            return
        if heard is not None and heard.nodes and self._plan.shard(heard.shard) is None:
            self._add(heard, now)
        asked, self._asked = self._asked, {}
        for name, open_ in asked.items():
            self._set_open(name, open_, now)
        # Members know what is journaled: of a shard that this step closes they have said nothing.
        closed = {each.number for each in self._plan.configuration.shards if not each.open}
        for setup in self._plan.shards:
            if not setup.open and setup.number in closed and self._is_empty(setup, now):
                self._counters.removed += 1
                self._closed.pop(setup.number, None)
                self._plan.set_shard(msgspec.structs.replace(setup, removed=True))

    def hold(self, now: Nanoseconds) -> Position | None:
        """The longest prefix of the log that all shards hold, as long as nobody orders; None while
        a shard hasn't said so since the last configuration was journaled.

        Pushes of different fences may name different shards for one position. Below the base of
        the last one they agree, and below that of the last view: what is ordered when a view ends,
        all shards hold.
        """
        letters = [self._primary(setup, now) for setup in self._plan.shards]
        if None in letters or not letters:
            return None
        known = [letter for letter in letters if letter is not None]
        if any(letter.version != self._plan.configuration.version for letter in known):
            return None  # it was written before nobody ordered any more
        stable = max(letter.stable for letter in known)
        last = max(known, key=lambda letter: (letter.fence, letter.base))
        # A primary that was restarted has forgotten its fence's base, and how much was stable.
        view = self._plan.configuration.view
        agreed = max(last.base, stable, view.base if view is not None else 0)
        held = [
            letter.held if letter.fence == last.fence else min(letter.held, agreed)
            for letter in known
            if letter.fence
        ]
        # No row names a shard that has never answered a push.
        prefix = min(held, default=0)
        return prefix if prefix >= stable else None

    def _primary(self, setup: ShardSetup, now: Nanoseconds) -> ShardPresent | None:
        letter = self._contacts.present(setup.primary, now) if setup.epoch else None
        if (
            letter is None
            or letter.shard != setup.name
            or self._epochs.lost(setup, letter.node, now)
        ):
            return None
        leads = letter.role == Role.PRIMARY and letter.epoch == setup.epoch
        return letter if leads and letter.established else None

    def _add(self, heard: ShardPresent, now: Nanoseconds) -> None:
        """All its replicas are there, and say the same."""
        if len(self._plan.latest.shards) >= SHARDS_MAX or not self._agree(heard, now):
            return
        number = len(self._plan.latest.shards)
        assert all(shard.number < number for shard in self._plan.latest.shards)
        self._counters.admitted += 1
        setup = ShardSetup(
            number=number, name=heard.shard, nodes=heard.nodes, begins=self._epochs.stable()
        )
        self._plan.set_shard(setup)

    def _agree(self, heard: ShardPresent, now: Nanoseconds) -> bool:
        letters = [self._contacts.present(node, now) for node in heard.nodes]
        return all(
            letter is not None and (letter.shard, letter.nodes) == (heard.shard, heard.nodes)
            for letter in letters
        )

    def _set_open(self, name: str, open_: bool, now: Nanoseconds) -> None:
        setup = self._plan.shard(name)
        if setup is None or (setup.open and not setup.removed) == open_:
            return
        if setup.removed:
            self._add_again(setup, now)
        elif open_ or sum(each.open for each in self._plan.shards) > 1:
            # The last shard stays open: appends need one.
            self._closed.pop(setup.number, None)
            self._plan.set_shard(msgspec.structs.replace(setup, open=open_))

    def _add_again(self, setup: ShardSetup, now: Nanoseconds) -> None:
        """Under a number of its own, in an epoch that its replicas haven't known yet. Who asked
        repeats it, so a replica that isn't there yet isn't waited for here.
        """
        if len(self._plan.latest.shards) >= SHARDS_MAX:
            return
        assert setup.replicas, "it had an epoch"
        again = self._epochs.again(setup, now)
        if again is None:
            return
        self._counters.admitted += 1
        self._plan.set_shard(
            msgspec.structs.replace(
                again,
                number=len(self._plan.latest.shards),
                open=True,
                removed=False,
                begins=self._epochs.stable(),
            )
        )

    def _is_empty(self, setup: ShardSetup, now: Nanoseconds) -> bool:
        """Everything is trimmed that may lie on it. The leader says where its log ends once all
        members know that the shard is closed; rows behind that don't name the shard.
        """
        assert not setup.open, "leaders name an open shard at any time"
        view = self._plan.configuration.view
        if view is None:
            return True
        number, end = self._closed.get(setup.number, (0, 0))
        if number != view.number:
            found = self._end_of(view, setup, now)
            if found is None:
                return False
            number, end = self._closed[setup.number] = (view.number, found)
        letter = self._primary(setup, now)
        return letter is not None and letter.trimmed >= end

    def _end_of(self, view: View, setup: ShardSetup, now: Nanoseconds) -> Position | None:
        journaled = self._plan.configuration.shards[setup.number]
        assert not journaled.open, "members know what is journaled"
        letters = [self._sequencers.present(node, now) for node in view.nodes]
        known = [letter for letter in letters if letter is not None]
        version = self._plan.configuration.version
        current = all(it.view == view.number and it.version == version for it in known)
        if len(known) < len(letters) or not current:
            return None
        return max(letter.tail + letter.waiting for letter in known)
