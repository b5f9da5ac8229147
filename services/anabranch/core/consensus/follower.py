"""A follower's part: it takes what the leader offers, and acknowledges what it holds."""

from collections.abc import Callable

from anabranch.core.consensus.group import Group
from anabranch.core.consensus.letters import Accepted, Install, Missed, Offer


class Follower:
    def __init__(self, group: Group) -> None:
        self.on_restore: Callable[[int, bytes], None] = lambda index, image: None
        self._group = group
        self._disk = group.disk
        self._log = group.log
        self._term = 0
        self._matched = 0
        """The end of what is known to equal the leader's log, in this term."""
        self._owes = False
        """The leader is to be told what is held."""

    def offered(self, sender: str, offer: Offer) -> None:
        self._enter_term()
        if not self._follows(offer):
            missed = Missed(
                self._disk.term,
                previous=offer.previous,
                hint=self._hint(offer.previous),
                fresh=not self._disk.joined,
            )
            self._group.pledge(sender, missed)
            return
        wrote = self._take(offer)
        self._matched = max(self._matched, offer.previous + len(offer.entries))
        assert self._matched <= self._log.last
        if offer.joined and not self._disk.joined:
            self._disk.join()
        # What is on its way to the disk is acknowledged when it is there.
        self._owes = self._owes or not wrote
        self._group.commit(min(offer.committed, self._matched))

    def installed(self, letter: Install) -> None:
        self._enter_term()
        if letter.index > self._group.committed:
            self._disk.rebase(letter.index, letter.index_term, letter.image)
            self._group.committed = letter.index
            # What this term's offers had brought behind that entry is gone from the log.
            self._matched = letter.index
            self.on_restore(letter.index, letter.image)
        self._matched = max(self._matched, letter.index)
        self._owes = True

    def persisted(self) -> None:
        self._owes = True

    def settle(self) -> None:
        """The end of a step: acknowledge what is on the disk."""
        leader = self._group.leader
        if not self._owes or leader is None or leader == self._group.node:
            return
        if self._term < self._disk.term or self._disk.durable_term < self._disk.term:
            # Nothing was offered in this term yet, or this disk doesn't hold the term yet.
            return
        self._owes = False
        accepted = Accepted(
            self._disk.term,
            durable=min(self._disk.durable, self._matched),
            matched=self._matched,
            fresh=not self._disk.joined,
        )
        self._group.send(leader, accepted)

    def _enter_term(self) -> None:
        if self._term < self._disk.term:
            self._term = self._disk.term
            # Every leader holds what is committed.
            self._matched = self._group.committed

    def _follows(self, offer: Offer) -> bool:
        """The log holds the entry that the offer continues."""
        if offer.previous <= self._group.committed:
            return True
        if offer.previous > self._log.last:
            return False
        return self._log.term_at(offer.previous) == offer.previous_term

    def _hint(self, previous: int) -> int:
        """The last entry that may equal the leader's."""
        if previous > self._log.last:
            return self._log.last
        return max(self._group.committed, self._log.before_term_of(previous))

    def _take(self, offer: Offer) -> bool:
        """True if anything in it was new."""
        wrote = False
        for index, entry in enumerate(offer.entries, offer.previous + 1):
            assert entry.term <= offer.term, "no entry is of a later term than its leader"
            if index <= self._group.committed:
                continue
            if index <= self._log.last:
                if self._log.term_at(index) == entry.term:
                    continue
                self._disk.cut_back(index - 1)
            assert index == self._log.last + 1
            self._disk.append(entry)
            wrote = True
        return wrote
