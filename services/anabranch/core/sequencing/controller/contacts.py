"""Which nodes are there: each says so again and again (`Present`, `ShardPresent`)."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from anabranch.core.lateness import Delays, patience
from anabranch.core.limits import Limits
from anabranch.core.types import MS, NEVER, Nanoseconds

CONTACTS_MAX = 16_384
"""Nodes that nobody has configured are forgotten beyond this."""

LEAVE_MS = 250
"""Processes that are stopped together say so within this time."""

Sign = TypeVar("Sign")
"""What a node says of itself."""


@dataclass(slots=True)
class _Contact(Generic[Sign]):
    at: Nanoseconds
    sign: Sign
    life: int
    since: Nanoseconds
    """When the first sign of this life came."""
    sent: Nanoseconds
    leaves_since: Nanoseconds = NEVER
    """When it first said that its process is about to end."""


class Contacts(Generic[Sign]):
    """By node. How long silence lasts before it counts follows from the delays of late."""

    def __init__(self, limits: Limits, delays: Delays) -> None:
        self._limits = limits
        self._delays = delays
        """Of signs that came at last, and of this controller's own timers."""
        self._contacts: dict[str, _Contact[Sign]] = {}
        self._since: Nanoseconds = 0

    def begin(self, now: Nanoseconds) -> None:
        """Nobody was silent before: this controller didn't judge."""
        self._since = now

    def heard(
        self,
        node: str,
        sign: Sign,
        *,
        life: int,
        sent: Nanoseconds,
        now: Nanoseconds,
        leaves: bool = False,
    ) -> bool:
        """False for a late letter: the node has said more since. Lives are numbered by the clock,
        which may have gone back between two: a node that is silent may begin with a lower one.
        """
        contact = self._contacts.get(node)
        if contact is None:
            known = len(self._contacts) < CONTACTS_MAX
            if known:
                self._contacts[node] = contact = _Contact(now, sign, life, since=now, sent=sent)
                contact.leaves_since = now if leaves else NEVER
            return known
        if (life, sent) < (contact.life, contact.sent) and not self.silent(node, now):
            return False
        silence = now - max(contact.at, self._since)
        late = silence - self._limits.present_ms * MS
        if late > 0 and silence < self.patience(now):
            # One that was away for longer is taken for restarted, which says nothing of others.
            self._delays.note(late, now)
        if contact.life != life:
            contact.life = life
            contact.since = now
        contact.at = now
        contact.sign = sign
        contact.sent = sent
        contact.leaves_since = min(contact.leaves_since, now) if leaves else NEVER
        return True

    def patience(self, now: Nanoseconds) -> Nanoseconds:
        return patience(self._limits.silent_ms * MS, self._delays.longest(now))

    def was_away(self, missed: Nanoseconds, now: Nanoseconds) -> None:
        """The controller itself did not run for so long: that isn't others' silence."""
        assert missed >= 0
        self._since = min(now, self._since + missed)
        for contact in self._contacts.values():
            contact.at = min(now, contact.at + missed)

    def sign(self, node: str) -> Sign | None:
        """The last of this node, however old."""
        contact = self._contacts.get(node)
        return None if contact is None else contact.sign

    def replaced(self, node: str, life: int, now: Nanoseconds) -> bool:
        """Is the node there in another life? One letter of an earlier life may only be late."""
        contact = self._contacts.get(node)
        if contact is None or contact.life == life:
            return False
        return contact.life > life or now - contact.since >= self.patience(now)

    def silent(self, node: str, now: Nanoseconds) -> bool:
        contact = self._contacts.get(node)
        heard = self._since if contact is None else max(self._since, contact.at)
        assert heard <= now, "nothing was heard in the future"
        return now - heard >= self.patience(now)

    def leaves(self, node: str, now: Nanoseconds) -> bool:
        """Is it there, and about to end?"""
        contact = self._contacts.get(node)
        return contact is not None and contact.leaves_since <= now and not self.silent(node, now)

    def must_be_replaced(self, node: str, now: Nanoseconds) -> bool:
        """It has been about to end for long enough that others that end with it have said so. Who
        stops a whole log wants nobody replaced.
        """
        contact = self._contacts.get(node)
        if contact is None or not self.leaves(node, now):
            return False
        return now - contact.leaves_since >= LEAVE_MS * MS

    def present(self, node: str, now: Nanoseconds) -> Sign | None:
        """What a node that is there says of itself."""
        return None if self.silent(node, now) else self.sign(node)
