"""A replica that copies its primary's log, as a backup or as a learner."""

from anabranch.core.replication.letters import Copy, Joining, Match, Stored
from anabranch.core.replication.links import Post
from anabranch.core.replication.log import LocalLog
from anabranch.core.replication.terms import Reign
from anabranch.core.types import LocalSequence, Nanoseconds


class Backing:
    """For one epoch. It takes nothing before its log is a part of its primary's: it says where
    they may differ, and cuts that off.
    """

    def __init__(self, post: Post, log: LocalLog, epoch: int, primary: str) -> None:
        self.durable: LocalSequence = 0
        """As the primary said."""
        self.primary = primary
        self._post = post
        self._log = log
        self._epoch = epoch
        self._matched = 0
        """The reign in which its log is a part of the primary's; 0: that isn't known."""
        self._ahead: list[Reign] = []
        """Those that the log has yet to come to."""
        self._asked: Nanoseconds = 0
        """Not again before."""
        self._asked_in = 0
        """The reign; 0: it wasn't known. One that is news is asked at once."""
        self._heard: Nanoseconds = post.alarms.now
        self._owes = False
        self._over = False
        self.ask()
        self._remind()

    def end(self) -> None:
        self._over = True

    def ask(self) -> None:
        """Where do we stand?"""
        self._asked = self._post.soon
        log = self._log
        letter = Joining(self._post.config.shard, self._epoch, log.last, log.reigns.all)
        self._post.send(self.primary, letter)

    def match(self, letter: Match) -> None:
        log = self._log
        self._heard = self._post.alarms.now
        if (letter.last, letter.last_reign) != (log.last, log.reigns.last):
            return  # meant for the log as it was when it was asked
        if letter.reign < max(self._matched, log.reigns.last):
            return
        self._matched = letter.reign
        self._ahead = list(letter.reigns)
        if letter.shared < max(letter.first, log.first):
            log.skip(max(letter.shared, letter.first))
        elif letter.shared < log.last or letter.common < log.reigns.last:
            log.cut(letter.shared, letter.common)
        self.durable = min(self.durable, log.last)
        self._adopt()
        self._owes = True

    def copy(self, letter: Copy) -> None:
        log = self._log
        self._heard = self._post.alarms.now
        if letter.reign != self._matched and letter.reign == log.reigns.last:
            self._matched = letter.reign
        if letter.reign != self._matched or letter.first > log.last:
            if letter.reign > self._asked_in:
                self._asked_in = letter.reign
                self.ask()
            else:
                self._ask_again()
            return
        before = log.last
        for item in letter.items:
            if item.first >= log.last:
                log.add(item)
                if self._ahead:
                    self._adopt()
        self.durable = max(self.durable, min(letter.durable, log.last))
        self._owes = self._owes or log.last == before

    def persisted(self) -> None:
        self._owes = True

    def settle(self) -> None:
        if self._owes and self._matched:
            log = self._log
            letter = Stored(
                self._post.config.shard, self._epoch, self._matched, log.stored, log.adopted
            )
            self._post.send(self.primary, letter)
        self._owes = False

    def _adopt(self) -> None:
        while self._ahead and self._ahead[0].first <= self._log.last:
            self._log.adopt(self._ahead.pop(0))

    def _ask_again(self) -> None:
        if self._asked <= self._post.alarms.now:
            self.ask()

    def _remind(self) -> None:
        """A primary that knows of this replica asks by itself; one that doesn't, must be told."""
        if self._over:
            return
        if not self._matched or self._heard + self._post.patience <= self._post.alarms.now:
            self._ask_again()
        self._post.alarms.at(self._post.soon, self._remind)
