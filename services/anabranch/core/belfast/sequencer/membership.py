"""Who is there, who gets a seat, and who leaves (Belfast, 4.5)."""

from dataclasses import dataclass

from anabranch.core.belfast.ledger.decisions import Admit, Arrange, Release
from anabranch.core.belfast.ledger.ledger import Member, Standing
from anabranch.core.belfast.ledger.rules import ALIVE_INTERVALS
from anabranch.core.belfast.protocol.letters import Alive
from anabranch.core.belfast.sequencer.plan import Plan
from anabranch.core.errors import AnabranchError, CantJoin, ShardFailed, UnknownShard
from anabranch.core.lateness import Delays, patience
from anabranch.core.types import Nanoseconds


@dataclass(slots=True)
class _Contact:
    """What was heard of a replica."""

    at: Nanoseconds
    alive: Alive | None = None


class Membership:
    def __init__(self, plan: Plan, now: Nanoseconds, delays: Delays) -> None:
        self._plan = plan
        self._rules = plan.rules
        self._contacts: dict[tuple[str, str], _Contact] = {}
        """By shard and replica."""
        self._since = now
        """Nobody was silent before: this leader wasn't there to hear."""
        self._delays = delays
        """Of letters that came at last, and of this leader's own timers."""

    def heard(self, shard: str, node: str, now: Nanoseconds) -> None:
        contact = self._contacts.get((shard, node))
        if contact is None:
            self._contacts[shard, node] = _Contact(now)
            return
        silence = now - max(contact.at, self._since)
        late = silence - self._rules.intervals(ALIVE_INTERVALS)
        if late > 0 and silence < self.patience(self._rules.silent_intervals, now):
            # One that was away for longer is taken for restarted, which says nothing of others.
            self._delays.note(late, now)
        contact.at = now

    def patience(self, intervals: int, now: Nanoseconds, delay: Nanoseconds = 0) -> Nanoseconds:
        """How long silence lasts before it counts; `delay`: one that is known of this shard."""
        assert intervals > 0, "nobody has no time at all"
        longest = max(delay, self._delays.longest(now))
        return patience(self._rules.intervals(intervals), longest)

    def was_away(self, missed: Nanoseconds, now: Nanoseconds) -> None:
        """Told that the leader itself did not run for so long: that isn't others' silence."""
        assert missed >= 0
        self._since = min(now, self._since + missed)
        for contact in self._contacts.values():
            contact.at = min(now, contact.at + missed)

    def alive(self, node: str, letter: Alive, now: Nanoseconds) -> Member | None:
        """Says who is back by this letter."""
        if node not in letter.replicas:
            return None
        self.heard(letter.shard, node, now)
        self._contacts[letter.shard, node].alive = letter
        member = self._plan.ledger.member(letter.shard)
        if member is None:
            if all(self._agrees(letter, each, now) for each in letter.replicas):
                disks = tuple(self._said(letter.shard, each) for each in letter.replicas)
                self._admit(Admit(letter.shard, letter.replicas, letter.quota, disks))
        elif self._asks_back(member, node, letter, now):
            return self._take_back(member, letter)
        return None

    def leave(self, name: str) -> AnabranchError | None:
        """Decides it, or says what stands in the way."""
        member = self._plan.ledger.member(name)
        if member is None:
            return UnknownShard(name)
        if member.standing is Standing.FAILED:
            return ShardFailed(name)
        if member.standing in {Standing.WAITING, Standing.SEATED}:
            self._plan.decide(Release(member.id))
        return None

    def join(self, name: str, now: Nanoseconds) -> Member | AnabranchError | None:
        """Takes it back if it has left, or says what stands in the way. Nothing is remembered of
        what can't be done now.
        """
        member = self._plan.ledger.member(name)
        if member is None:
            return UnknownShard(name)
        if member.standing is Standing.FAILED:
            return ShardFailed(name)
        if member.standing is Standing.LEAVING:
            return CantJoin(name, "it is leaving, and has yet to fill the windows that count on it")
        if member.standing is not Standing.LEFT:
            return None
        away = [each for each in member.replicas if not self.present(name, each, now)]
        if away:
            return CantJoin(name, f"nothing is heard of {', '.join(away)}")
        claim = self._letter(name, member.primary)
        assert claim is not None
        if self.lost(member, member.primary):
            if not all(self.lost(member, each) for each in member.replicas):
                reason = f"{member.primary} has lost its disk, and another replica has to take over"
                return CantJoin(name, reason)
            if not self.is_empty(member):
                upto = self._plan.ledger.end_of(member.id)
                reason = f"its disks are lost, and the log isn't trimmed to {upto}, where it ended"
                return CantJoin(name, reason)
        elif claim.standing != Standing.LEFT or claim.epoch != member.epoch:
            return CantJoin(name, f"{member.primary} has yet to learn that it has left")
        return self._take_back(member, claim)

    def silence(self, shard: str, node: str, now: Nanoseconds) -> Nanoseconds:
        """For how long nothing was heard of it."""
        contact = self._contacts.get((shard, node))
        silence = now - max(self._since, contact.at if contact is not None else 0)
        assert silence >= 0, "nothing was heard in the future"
        return silence

    def known(self, shard: str, node: str) -> bool:
        """Was it ever heard by this leader?"""
        return (shard, node) in self._contacts

    def silent(self, shard: str, node: str, now: Nanoseconds) -> bool:
        limit = self.patience(self._rules.silent_intervals, now)
        return self.silence(shard, node, now) >= limit

    def present(self, shard: str, node: str, now: Nanoseconds) -> bool:
        """It said, to this leader and just now, who it is."""
        return self._letter(shard, node) is not None and not self.silent(shard, node, now)

    def lost(self, member: Member, node: str) -> bool:
        """It is there with another disk than the one that the epoch counts on: what that one had
        promised it knows nothing of.
        """
        letter, disk = self._letter(member.name, node), member.disk(node)
        return letter is not None and disk is not None and letter.disk != disk

    def gone(self, member: Member, node: str, now: Nanoseconds) -> bool:
        """Nothing can be had of it that the epoch counts on."""
        return self.silent(member.name, node, now) or self.lost(member, node)

    def knows_places(self, member: Member, node: str) -> bool:
        """Could it lead: is what the ledger doesn't tell any more known to it, as far as the
        primary knows it?
        """
        letter, ledger = self._letter(member.name, node), self._plan.ledger
        primary = self._letter(member.name, member.primary)
        if letter is None or letter.view != ledger.view:
            return False
        told = ledger.tells_from(member.id)
        return letter.placed >= (told if primary is None else min(told, primary.placed))

    def is_empty(self, member: Member) -> bool:
        """Nothing that was placed of it can be asked for any more."""
        ledger = self._plan.ledger
        return member.placed == member.begins or ledger.trimmed >= ledger.end_of(member.id)

    def disks(self, member: Member, primary: str, replicas: tuple[str, ...]) -> tuple[int, ...]:
        """Of an epoch to come. Its primary is chosen for what its disk holds, and counts with that
        one alone; the others copy from it, whichever they have.
        """
        assert primary in replicas, "a primary is one of its shard's replicas"
        if not member.disks:
            return ()
        known = dict(zip(member.replicas, member.disks, strict=True))

        def disk(node: str) -> int:
            fresh = node not in known or (node != primary and self.lost(member, node))
            return self._said(member.name, node) if fresh else known[node]

        return tuple(map(disk, replicas))

    def configured(self, member: Member) -> tuple[str, ...]:
        """All replicas that the shard should have, as its primary says."""
        letter = self._letter(member.name, member.primary)
        return member.replicas if letter is None else letter.replicas

    def _admit(self, admitted: Admit) -> None:
        self._plan.counters.admitted += 1
        self._plan.decide(admitted)

    def _take_back(self, member: Member, letter: Alive) -> Member:
        assert member.standing in {Standing.LEFT, Standing.FAILED}, "only who was out comes back"
        replicas = member.replicas
        if self.lost(member, member.primary):
            disks = tuple(self._said(member.name, each) for each in replicas)
        else:
            disks = self.disks(member, member.primary, replicas)
        self._admit(Admit(member.name, replicas, letter.quota, disks))
        # What it was told to forget it may have reported before: in another epoch.
        self._plan.decide(
            Arrange(
                shard=member.id,
                epoch=member.epoch + 1,
                primary=member.primary,
                replicas=replicas,
                disks=disks,
            )
        )
        return member

    def _letter(self, shard: str, node: str) -> Alive | None:
        contact = self._contacts.get((shard, node))
        return contact.alive if contact is not None else None

    def _said(self, shard: str, node: str) -> int:
        """Which disk it has."""
        letter = self._letter(shard, node)
        assert letter is not None, "only who has said so is counted on"
        return letter.disk

    def _agrees(self, letter: Alive, node: str, now: Nanoseconds) -> bool:
        known = self._letter(letter.shard, node)
        agrees = known is not None and known.replicas == letter.replicas
        return agrees and not self.silent(letter.shard, node, now)

    def _asks_back(self, member: Member, node: str, letter: Alive, now: Nanoseconds) -> bool:
        """Its primary knows what has happened to it, and has cut its local log back.

        Every failure has a view of its own: a letter from before this one doesn't count.
        """
        if member.standing is not Standing.FAILED or node != member.primary:
            return False
        if not all(self.present(member.name, each, now) for each in member.replicas):
            return False
        if self.lost(member, node):
            lost = all(self.lost(member, each) for each in member.replicas)
            return lost and self.is_empty(member)
        return letter.standing == member.standing and letter.view >= member.void_view
