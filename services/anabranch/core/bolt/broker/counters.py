"""What a broker counts: plain numbers that only grow, for whoever wants to show them."""


class Counters:
    """Since the broker's life began."""

    __slots__ = (
        "adopted_bytes",
        "appends",
        "appends_bytes",
        "appends_records",
        "appends_repeated",
        "batches_read",
        "bytes_read",
        "cache_hits",
        "cache_misses",
        "commits",
        "copied_bytes",
        "copied_extents",
        "copies",
        "copies_adopted",
        "copies_in_vain",
        "copies_refused",
        "copies_signed",
        "extents_read_ahead",
        "gets",
        "gets_bytes",
        "gets_damaged",
        "over_quota",
        "parked",
        "put_failures",
        "puts",
        "puts_bytes",
        "questions_repeated",
        "reads",
        "reads_waited",
        "refused",
        "signed",
        "signed_bytes",
        "speculations_failed",
        "subscriptions",
    )

    def __init__(self) -> None:
        self.adopted_bytes = 0
        """Of objects of compactors that were read back."""
        self.appends = 0
        """Acknowledged batches; the next two count the same."""
        self.appends_bytes = 0
        self.appends_records = 0
        self.appends_repeated = 0
        """Batches with a writer mark that the log had already, and that weren't appended again."""
        self.batches_read = 0
        """In answers to reads and pushed to subscribers."""
        self.bytes_read = 0
        self.cache_hits = 0
        """Extents that a read found in the cache."""
        self.cache_misses = 0
        self.commits = 0
        self.copied_bytes = 0
        """Of small extents that were written together; the next counts the extents."""
        self.copied_extents = 0
        self.copies = 0
        """Objects that took the place of small extents."""
        self.copies_adopted = 0
        """Objects of compactors that took the place of small extents."""
        self.copies_in_vain = 0
        """Objects that didn't, because the extents had changed meanwhile."""
        self.copies_refused = 0
        """Objects of compactors that didn't, for that reason or because they hold something else.
        """
        self.copies_signed = 0
        """Objects whose URLs compactors were given."""
        self.extents_read_ahead = 0
        """Asked of the store before anybody asked for them."""
        self.gets = 0
        self.gets_bytes = 0
        self.gets_damaged = 0
        """Of them, those whose bytes were not what had been written; asked for once more."""
        self.over_quota = 0
        """Appends and reads refused because their log had used up a quota."""
        self.parked = 0
        """Appends that had to wait for an undecided promotable fork."""
        self.put_failures = 0
        self.puts = 0
        self.puts_bytes = 0
        self.questions_repeated = 0
        """Messages to the metadata sent again for want of an answer."""
        self.reads = 0
        self.reads_waited = 0
        self.refused = 0
        """Requests answered with an error."""
        self.signed = 0
        """Ranges of objects whose URLs readers of scan plans were given; the next counts bytes."""
        self.signed_bytes = 0
        self.speculations_failed = 0
        """Times that subscribers were told to forget speculative records."""
        self.subscriptions = 0


class Gauges:
    """What a broker has in hand at one moment."""

    __slots__ = (
        "appends_held",
        "appends_held_bytes",
        "appends_parked",
        "cache_bytes",
        "subscriptions",
        "waits",
    )

    def __init__(self) -> None:
        self.appends_held = 0
        """Not yet answered; the next counts their bytes."""
        self.appends_held_bytes = 0
        self.appends_parked = 0
        """Of them, those that wait for an undecided promotable fork."""
        self.cache_bytes = 0
        self.subscriptions = 0
        self.waits = 0
        """Reads, receipts and control requests not yet answered."""
