"""The part of a replica that copies its primary's log, as a backup of the epoch or as a learner."""

from collections.abc import Sequence

from anabranch.core.replication.entries import Item
from anabranch.core.replication.letters import Copy, Joining, Match, Stored
from anabranch.core.replication.links import Links
from anabranch.core.replication.log import Log
from anabranch.core.replication.terms import Term
from anabranch.core.types import LocalSequence, Nanoseconds


class Backup:
    """One epoch of a backup. It takes nothing before its log is a part of its primary's: it
    describes its log, and cuts off where the two differ.
    """

    def __init__(self, links: Links, log: Log, *, epoch: int, primary: str) -> None:
        self.primary = primary
        self._links = links
        self._log = log
        self._epoch = epoch
        self._matched = 0
        """The term in which the log is known to be a part of the primary's; 0: none yet."""
        self._ahead: list[Term] = []
        """The primary's terms that the log has yet to reach."""
        self._joins_again: Nanoseconds = 0
        self._joined_in = 0
        """The term it last joined in because it was new; 0 if the term wasn't known."""
        self._received_at: Nanoseconds = links.alarms.now
        self._owes = False
        self._closed = False
        self.join()
        self._remind()

    def close(self) -> None:
        """Another epoch or role follows."""
        assert not self._closed, "an epoch of a backup ends once"
        self._closed = True

    def join(self) -> None:
        """Describe the log to the primary, which answers with a `Match`."""
        self._joins_again = self._links.next_retry
        log = self._log
        letter = Joining(
            group=self._links.config.group, epoch=self._epoch, last=log.last, terms=log.terms.all
        )
        self._links.send(self.primary, letter)

    def match(self, letter: Match) -> None:
        log = self._log
        self._received_at = self._links.alarms.now
        if (letter.last, letter.last_term) != (log.last, log.terms.last):
            return  # the log has changed since it was described
        if letter.term < max(self._matched, log.terms.last):
            return  # a letter of an earlier term
        if letter.shared > log.last:
            return  # the logs share no more than there is: no primary of this log says that
        self._matched = letter.term
        self._ahead = list(letter.terms)
        if letter.shared < max(letter.first, log.first):
            log.skip(max(letter.shared, letter.first))
        elif letter.shared < log.last or letter.common < log.terms.last:
            log.cut(letter.shared, letter.common)
        self._adopt()
        self._owes = True

    def copy(self, letter: Copy) -> None:
        log = self._log
        self._received_at = self._links.alarms.now
        if letter.term < self._matched:
            return  # late: the primary may have given its items' places to others since
        if letter.term == log.terms.last:
            self._matched = letter.term
        if letter.term != self._matched or letter.first > log.last:
            if letter.term > self._joined_in:
                self._joined_in = letter.term
                self.join()
            else:
                self._join_again()
            return
        if not _are_next(letter.items, log.last):
            return
        before = last = log.last
        for item in letter.items:
            if item.first < last:
                continue
            log.add(item)
            last = item.end
            if self._ahead:
                self._adopt()
        durable = min(letter.durable, last)
        log.durable = max(log.durable, durable)
        self._owes = self._owes or last == before

    def persisted(self) -> None:
        self._owes = True

    def settle(self) -> None:
        """The end of a step: acknowledge what is stored."""
        if self._owes and self._matched:
            log = self._log
            letter = Stored(
                self._links.config.group,
                self._epoch,
                term=self._matched,
                upto=log.stored,
                adopted=log.adopted,
            )
            self._links.send(self.primary, letter)
        self._owes = False

    def _adopt(self) -> None:
        while self._ahead and self._ahead[0].first <= self._log.last:
            self._log.adopt(self._ahead.pop(0))
        assert not self._ahead or self._matched >= self._ahead[-1].number

    def _join_again(self) -> None:
        if self._joins_again <= self._links.alarms.now:
            self.join()

    def _remind(self) -> None:
        """A primary that knows of this replica probes it; one that doesn't has to be told."""
        if self._closed:
            return
        now = self._links.alarms.now
        if not self._matched or self._received_at + self._links.patience <= now:
            self._join_again()
        self._links.alarms.at(self._links.next_retry, self._remind)


def _are_next(items: Sequence[Item], last: LocalSequence) -> bool:
    """Do the items that aren't here yet follow on the log's last one? A primary's always do."""
    for item in items:
        if item.count < 1 or (item.first < last < item.end) or item.first > last:
            return False
        last = max(last, item.end)
    return True
