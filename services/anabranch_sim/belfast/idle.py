"""A log at rest: it costs no cuts, and the first record that comes is predicted and soon final."""

from typing import TYPE_CHECKING

from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.ledger.windows import ShardId
from anabranch.core.belfast.sequencer.quotas import SPAN_MIN_INTERVALS
from anabranch.core.history.calls import Verdict
from anabranch.core.history.foretold import Shown
from anabranch_sim.belfast.message_clients import Appender

if TYPE_CHECKING:
    from anabranch_sim.belfast.plugin import BelfastPlugin

IDLE_INTERVALS_MAX = 200
"""A run whose log rests later isn't waited for."""
PROMPT_INTERVALS = 6
"""A record at rest is final within so many T_ord: sooner than the clock would see to it."""
_PRODUCER = 500
"""Of the first client that appends at rest; above all others."""


def rests(rules: Rules) -> bool:
    """Does a log with these rules come to rest soon?"""
    return (
        rules.adaptive
        and rules.lag_fix
        and not rules.free_will
        and rules.idle_intervals <= IDLE_INTERVALS_MAX
    )


class IdleCheck:
    """After all else: everybody is alive, and all that was appended is final."""

    def __init__(self, simulation: "BelfastPlugin") -> None:
        self._simulation = simulation
        self._world = simulation.world
        self._witness = simulation.witness
        self._rules = simulation.options.rules

    def run(self) -> None:
        rules = self._rules
        review = max(rules.window, SPAN_MIN_INTERVALS)
        self._wait(rules.idle_intervals + 3 * review + rules.silent_intervals)
        self._costs_nothing()
        members = [
            self._witness.ledger.members[key] for key in sorted(self._witness.ledger.members)
        ]
        for nth, member in enumerate(members):
            if member.standing is Standing.SEATED and self._has_seat(member.id):
                self._append_to(member.name, nth)
        self._wait(20)
        self._costs_nothing()

    def _has_seat(self, shard: ShardId) -> bool:
        """In all windows that aren't cut to their ends: a straggler is left out of some."""
        ledger = self._witness.ledger
        uncut = ledger.windows
        if uncut and uncut[0].foreseen and ledger.cut == uncut[0].cuts:
            uncut = uncut[1:]
        return bool(uncut) and all(shard in window.by_shard for window in uncut)

    def _wait(self, intervals: int) -> None:
        self._world.run(self._world.now + self._rules.intervals(intervals))

    def _costs_nothing(self) -> None:
        cuts = self._witness.cuts
        self._wait(100)
        if self._witness.cuts > cuts:
            self._object(f"{self._witness.cuts - cuts} cuts while nobody appended")

    def _append_to(self, shard: str, nth: int) -> None:
        simulation, world = self._simulation, self._world
        archive, confirmed = simulation.archive, self._witness.ledger.confirmed
        reader = simulation.observe(f"rest-reader-{shard}", shard, confirmed, None)
        appender = Appender(simulation.deployment, archive, _PRODUCER + nth, shard, 1)
        appender.begin()
        if not simulation.come(lambda: bool(reader.shards) and appender.ready):
            self._object(f"nobody serves {shard}")
            return
        began = world.now
        appender.append(1)
        placing = archive.account.placings[-1]
        world.run(
            began + self._rules.intervals(PROMPT_INTERVALS),
            lambda: placing.verdict is Verdict.OK and reader.settled > placing.positions[0],
        )
        if placing.verdict is not Verdict.OK:
            self._object(f"a record of {shard} isn't final after {PROMPT_INTERVALS} T_ord")
            return
        shown = [each for each in reader.watching.sights if isinstance(each, Shown)]
        if not any(each.speculative and placing.records[0] in each.records for each in shown):
            self._object(f"a record of {shard} wasn't predicted")
        appender.end()
        reader.end()

    def _object(self, says: str) -> None:
        self._simulation.fail(f"rest: {says}")
