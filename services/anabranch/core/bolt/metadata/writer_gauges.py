"""What logs remember of their writers at one moment, for whoever wants to show it."""

from anabranch.core.bolt.state.replica import Replica


class WriterGauges:
    """Nothing counts writers as they come and go: a look goes through all logs, 3 ms for 100,000,
    and few logs have any.
    """

    __slots__ = ("batches", "most", "parts", "remembered")

    def __init__(self, replica: Replica) -> None:
        marks = [log.marks for log in replica.forest.logs.values() if log.marks is not None]
        self.remembered = sum(len(each.writers) for each in marks)
        self.most = max((len(each.writers) for each in marks), default=0)
        """Of one log."""
        self.parts = sum(each.parts for each in marks)
        self.batches = sum(each.batches for each in marks)
        """Of versions that aren't complete."""
