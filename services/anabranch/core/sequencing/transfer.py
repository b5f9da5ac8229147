"""How the state of a sealed member comes to the members of the next view (LazyLog, 4.5).

The next view begins with the ring, the duplicates and the ordered position of one sealed member.
Every node that may take part copies them, and journals them beside its own state.
"""

from anabranch.core.records.checksum import crc32c
from anabranch.core.sequencing.member import Member, parts_of
from anabranch.core.sequencing.protocol.letters import AskState, Prepare, Prepared
from anabranch.core.sequencing.protocol.letters import State as StateLetter
from anabranch.core.sequencing.state.state import State, StateImage, decode_state, encode_state


class Copying:
    """A state that is being copied."""

    def __init__(self, controller: str, prepare: Prepare) -> None:
        self.controller = controller
        self.prepare = prepare
        self.parts: list[bytes] = []
        self.digest: int | None = None
        """Of all parts, as the first one says."""


class Transfer:
    def __init__(self, member: Member) -> None:
        self._member = member
        self._copying: Copying | None = None
        self._offered: tuple[int, list[bytes], int] | None = None
        """This member's own state, sealed: its view, its parts, and their digest."""
        self._askers: dict[str, AskState] = {}
        """Nodes that copy this member's state, with what each asked for last."""

    def linked(self, node: str) -> None:
        """There is a new connection to this node. Members dial one another when a copy begins, and
        the letter that has them do so is lost.
        """
        copying = self._copying
        if copying is not None and copying.prepare.source == node:
            self._ask()
        asked = self._askers.get(node)
        if asked is not None:
            self.asked(node, asked)

    # The source.

    def asked(self, sender: str, letter: AskState) -> None:
        """Answered once the seal is journaled: from then on the state doesn't change."""
        if not self._offers(letter.ballot.view):
            return
        self._askers[sender] = letter
        self._member.journal.when_stored(lambda: self._offer(sender, letter))

    def _offers(self, next_view: int) -> bool:
        member = self._member
        return member.sealed is not None and member.number == next_view - 1

    def _offer(self, sender: str, letter: AskState) -> None:
        if not self._offers(letter.ballot.view):
            return
        _, parts, digest = self._encoded()
        if 0 <= letter.part < len(parts):
            answer = StateLetter(
                ballot=letter.ballot,
                part=letter.part,
                parts=len(parts),
                content=parts[letter.part],
                digest=digest,
            )
            self._member.send(sender, answer)

    def _encoded(self) -> tuple[int, list[bytes], int]:
        if self._offered is None or self._offered[0] != self._member.number:
            content = encode_state(self._member.state.image())
            self._offered = self._member.number, parts_of(content), crc32c(content)
        return self._offered

    # A node that prepares.

    def prepare(self, controller: str, letter: Prepare) -> None:
        member, copying = self._member, self._copying
        if letter.ballot.view <= member.number:
            return
        if member.prepared is not None and letter.ballot <= member.prepared:
            if letter.ballot == member.prepared:
                self._answer_when_stored(controller)
            return
        if copying is not None and letter.ballot <= copying.prepare.ballot:
            return
        asked = Copying(controller, letter)
        if not letter.source:
            self._prepare(asked, StateImage(ordered=letter.base))
        elif letter.source != member.config.node:
            self._copying = asked
            self._ask()
        elif self._offers(letter.ballot.view):
            self._prepare(asked, decode_state(b"".join(self._encoded()[1])))

    def received(self, sender: str, letter: StateLetter) -> None:
        copying = self._copying
        if copying is None or sender != copying.prepare.source:
            return
        if letter.ballot != copying.prepare.ballot or letter.part != len(copying.parts):
            return
        if copying.digest not in {None, letter.digest}:
            copying.parts.clear()
            copying.digest = None
            self._ask()
            return
        copying.digest = letter.digest
        copying.parts.append(letter.content)
        if len(copying.parts) < letter.parts:
            self._ask()
            return
        content = b"".join(copying.parts)
        state = decode_state(content) if crc32c(content) == letter.digest else None
        if state is None:  # it isn't what the source sent: ask from the beginning again
            copying.parts.clear()
            copying.digest = None
            return
        self._prepare(copying, state)

    def retry(self) -> None:
        """The question or its answer may be lost."""
        if self._copying is not None:
            self._ask()

    def started(self) -> None:
        """A view began: no copy of an earlier one matters."""
        self._offered = None
        self._askers.clear()
        copying = self._copying
        if copying is not None and copying.prepare.ballot.view <= self._member.number:
            self._copying = None

    def _ask(self) -> None:
        copying = self._copying
        assert copying is not None
        assert copying.prepare.source
        question = AskState(copying.prepare.ballot, len(copying.parts))
        self._member.send(copying.prepare.source, question)

    def _prepare(self, copying: Copying, image: StateImage) -> None:
        self._copying = None
        letter = copying.prepare
        settled = letter.settled
        state = State(self._member.limits, image)
        upto = max([image.ordered, letter.base, *(position + 1 for _, position in settled)])
        state.drop(
            [id for id, _ in settled], [position for _, position in settled], upto=upto, now=0
        )
        self._member.prepare(letter.ballot, state.image())
        self._answer_when_stored(copying.controller)

    def _answer_when_stored(self, controller: str) -> None:
        ballot = self._member.prepared
        assert ballot is not None

        def answer() -> None:
            member = self._member
            if member.prepared == ballot:
                assert member.next_state is not None
                base = member.next_state.ordered
                prepared = Prepared(
                    ballot=ballot, node=member.config.node, life=member.life, base=base
                )
                member.send(controller, prepared)

        self._member.journal.when_stored(answer)
