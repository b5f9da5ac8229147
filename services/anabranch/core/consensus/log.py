"""A group's log as one member holds it in memory: the entries behind a base."""

from bisect import bisect_left

from anabranch.core.consensus.letters import Entry

ENTRY_BYTES = 16
"""What an entry takes in a letter besides its content, at most."""


class GroupLog:
    def __init__(self) -> None:
        self.base = 0
        """The last entry that is not in memory. Entries are numbered from 1."""
        self.base_term = 0
        self._entries: list[Entry] = []

    @property
    def last(self) -> int:
        return self.base + len(self._entries)

    @property
    def last_term(self) -> int:
        return self._entries[-1].term if self._entries else self.base_term

    def term_at(self, index: int) -> int:
        assert self.base <= index <= self.last
        return self.base_term if index == self.base else self._entries[index - self.base - 1].term

    def content_at(self, index: int) -> bytes:
        assert self.base < index <= self.last
        return self._entries[index - self.base - 1].content

    def after(self, index: int, upto: int) -> list[Entry]:
        assert self.base <= index, "these entries are forgotten"
        return self._entries[index - self.base : max(0, upto - self.base)]

    def portion(self, first: int, bytes_max: int) -> list[Entry]:
        """Entries from this one on, as many as fit into so many bytes; at least one."""
        assert first > self.base, "these entries are forgotten"
        taken: list[Entry] = []
        room = bytes_max
        for index in range(first - self.base - 1, len(self._entries)):
            entry = self._entries[index]
            room -= len(entry.content) + ENTRY_BYTES
            if room < 0 and taken:
                break
            taken.append(entry)
        return taken

    def before_term_of(self, index: int) -> int:
        """The last entry of an earlier term than this entry's."""
        term = self.term_at(index)
        if term == self.base_term:
            return self.base
        # Terms never fall along a log.
        return self.base + bisect_left(self._entries, term, key=lambda entry: entry.term)

    def append(self, entry: Entry) -> int:
        assert entry.term >= self.last_term
        self._entries.append(entry)
        return self.last

    def cut_back(self, upto: int) -> None:
        assert self.base <= upto, "the entries up to the base are final"
        del self._entries[upto - self.base :]

    def reset(self, index: int, term: int) -> None:
        assert index >= self.base, "what is committed is never taken back"
        self.base, self.base_term = index, term
        self._entries.clear()

    def forget(self, upto: int) -> None:
        assert upto >= self.base
        term = self.term_at(upto)
        del self._entries[: upto - self.base]
        self.base, self.base_term = upto, term
