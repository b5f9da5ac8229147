"""What must hold of a consensus group at every step (Raft, figure 3), for tests and simulations."""

from anabranch.core.consensus.letters import ConsensusLetter, Install, Offer


class GroupInvariants:
    """Sees what members commit, and what they say as leaders."""

    def __init__(self) -> None:
        self.committed: list[bytes] = []
        """The one log, as far as any member has committed it."""
        self.leaders: dict[int, str] = {}
        """The leader of each term."""
        self.violations: list[str] = []

    def on_commit(self, node: str, index: int, entry: bytes) -> None:
        """A member commits an entry: at the end of the one log, or as it is there already."""
        if index == len(self.committed) + 1:
            self.committed.append(entry)
        elif index > len(self.committed):
            what = f"{node} commits entry {index}, the last was {len(self.committed)}"
            self.violations.append(f"one log: {what}")
        elif self.committed[index - 1] != entry:
            self.violations.append(f"one log: {node} commits another entry {index}")

    def on_letter(self, node: str, letter: ConsensusLetter) -> None:
        """A member sends a letter: those of a leader show who leads its term."""
        if isinstance(letter, Offer | Install):
            self.on_lead(node, letter.term)

    def on_lead(self, node: str, term: int) -> None:
        """A member leads in this term."""
        leader = self.leaders.setdefault(term, node)
        if leader != node:
            self.violations.append(f"one leader: {node} and {leader} lead term {term}")
