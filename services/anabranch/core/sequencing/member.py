"""One member of the sequencing layer: its view, its state, and the journal that holds both."""

from collections.abc import Callable

from anabranch.core.alarms import Alarms
from anabranch.core.errors import BadRequest, StaleView, Unavailable
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, SaveSnapshot, Send
from anabranch.core.sequencing.config import SequencingConfig
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.letters import Present, SequencingLetter
from anabranch.core.sequencing.state.entries import (
    Added,
    Began,
    Born,
    MemberEntry,
    MemberImage,
    Ordered,
    SealedBy,
    Started,
    StatePart,
    Voided,
    decode_entry,
    decode_image,
    encode,
)
from anabranch.core.sequencing.state.ring import Announcement, Entry
from anabranch.core.sequencing.state.state import State, StateImage, decode_state, encode_state
from anabranch.core.sequencing.view import Ballot, View
from anabranch.core.storage.group_journal import GroupJournal, VolatileJournal
from anabranch.core.types import Position

PART_BYTES = 4 << 20
"""What one letter or one entry of the journal holds of a state."""


class Member:
    """Each change takes effect in memory at once, and is journaled in the same order.

    `Member` does what its owner decided; whether it may be done is for others to know.
    """

    def __init__(
        self, config: SequencingConfig, limits: Limits, effects: list[Effect], alarms: Alarms
    ) -> None:
        self.config = config
        self.limits = limits
        self.effects = effects
        self.alarms = alarms
        self.life = 0
        self.view: View | None = None
        """The last one that was started here."""
        self.sealed: Ballot | None = None
        """The attempt that ended it."""
        self.active = False
        """The view's start is journaled, or the replica was restarted in it."""
        self.version = 0
        """Of the configuration that the owner knows."""
        self.leaving = False
        """The owner's process is about to end."""
        self.begun = 0
        self.waiting = 0
        """Records that the ring has no room for yet."""
        self.state = State(limits)
        self.ordered: Position = 0
        """As the journal says; `state.ordered` is ahead while an entry is being written."""
        self.prepared: Ballot | None = None
        self.next_state: StateImage | None = None
        """What the next view begins with, if it is configured as it was prepared."""
        self.unstable: list[Ordered] = []
        """At the leader: what other members may not have dropped yet, in order."""
        self.on_stored: dict[type, Callable[[MemberEntry], None]] = {}
        self.journal: GroupJournal[MemberEntry] | VolatileJournal[MemberEntry]
        if config.fsync:
            self.journal = GroupJournal(effects, alarms, encode, self._on_stored)
        else:
            self.journal = VolatileJournal(self._on_stored)
        self._parts: list[bytes] = []
        """Of a state that is being replayed."""
        self._journaled_bytes = 0
        """Since the last snapshot."""

    @property
    def takes(self) -> bool:
        """Appends of its view are taken."""
        return self.view is not None and self.sealed is None

    @property
    def leads(self) -> bool:
        """It is the leader of its view, which isn't sealed. Whether it orders, `replica` knows."""
        return (
            self.view is not None and self.sealed is None and self.view.leader == self.config.node
        )

    @property
    def number(self) -> int:
        """Of the view; 0 before the first."""
        return self.view.number if self.view else 0

    def check_view(self, what: str, view: int) -> None:
        """Raises StaleView unless this view takes appends here; Unavailable if it is about to."""
        if view > self.number:
            raise Unavailable(what, f"its view {view} isn't started here yet")
        if view < self.number:
            raise StaleView(what, view, self.number)
        if self.sealed is not None:
            raise StaleView(what, view, max(view + 1, self.sealed.view))

    def present(self) -> Present:
        return Present(
            node=self.config.node,
            life=self.life,
            view=self.number,
            started=self.takes and self.active,
            ordered=self.ordered,
            version=self.version,
            tail=self.state.tail,
            sealed=self.sealed is not None,
            at=self.alarms.now,
            leaving=self.leaving,
            fsync=self.config.fsync,
            waiting=self.waiting,
        )

    def send(self, to: str, letter: SequencingLetter) -> None:
        assert to != self.config.node, "a letter is for somebody else"
        self.effects.append(Send(to, letter))

    # Changes.

    def add(self, entry: Entry, lowest: int, who: int | None = None) -> None:
        """`who`: the principal of the client that has sent it here."""
        assert self.takes
        now = self.alarms.now
        # Only where data comes on another way does anybody ask who has announced it, and when.
        if who is not None and self.config.data_on_shards:
            self.state.add(entry, lowest, now, Announcement(who, now))
        else:
            self.state.add(entry, lowest, now)
        self._put(Added(entry, lowest), len(entry.batch))

    def order(self, ordered: Ordered) -> None:
        assert self.takes
        self._order(ordered)
        self._put(ordered, 32 * len(ordered.ids))

    def void(self, ids: list[AppendId]) -> None:
        assert self.takes
        self.state.void(ids)
        self._put(Voided(ids))

    def seal(self, ballot: Ballot) -> None:
        assert self.takes
        self.sealed = ballot
        self.active = False
        self._put(SealedBy(ballot))

    def prepare(self, ballot: Ballot, image: StateImage) -> None:
        assert self.prepared is None or ballot > self.prepared
        self.prepared, self.next_state = ballot, image
        parts = parts_of(encode_state(image))
        for number, content in enumerate(parts):
            entry = StatePart(ballot=ballot, part=number, parts=len(parts), content=content)
            self._put(entry, len(content))

    def start(self, view: View) -> None:
        """The owner may be told once this is stored."""
        self._start(view)
        self._put(Started(view))

    def begin(self) -> Began:
        assert self.leads
        self.begun += 1
        began = Began(self.begun)
        self._put(began)
        return began

    # The journal.

    def recover(self, snapshot: bytes | None) -> None:
        if snapshot is None:
            return
        self._check_durability()
        image = decode_image(snapshot)
        self.life = image.life
        self.view, self.sealed, self.begun = image.view, image.sealed, image.begun
        self.state = State(self.limits, image.state)
        self.ordered = self.state.ordered
        self.prepared, self.next_state = image.prepared, image.next_state
        self.unstable = image.unstable

    def replayed(self, index: int, entry: bytes) -> None:
        self._check_durability()
        self._journaled_bytes += len(entry)
        self._replay(decode_entry(entry))
        self.journal.last = max(self.journal.last, index)
        self.ordered = self.state.ordered

    def _check_durability(self) -> None:
        """A member in memory has a new life with each start. With the life of its journal it would
        seem to hold what it has taken since, and positions would be given out again.
        """
        if not self.config.fsync:
            raise BadRequest(
                "durability = memory",
                f"the journal of {self.config.node} holds appends that were acknowledged as kept "
                "on disk: start it with fsync, as before",
            )

    def check_life(self) -> None:
        """Everything that the journal held was replayed. Raises BadRequest for another member's:
        a leader that went on with it would seem to order for the first time in its view, and what
        it cuts anew would be taken for what the leader before it has cut.
        """
        node, view = self.config.node, self.view
        assert view is None or self.life > 0, "who was a member had a life"
        if view is not None and node in view.nodes and not view.has(node, self.life):
            raise BadRequest(
                f"the journal of {node}",
                f"it was written by another member of view {view.number}: were data directories "
                "exchanged? Put each back where it was",
            )

    def born(self) -> None:
        """Everything that the journal held was replayed."""
        if not self.life:
            self.life = max(1, self.alarms.now)
            self._put(Born(self.life))
        self.active = self.takes

    def flush(self) -> None:
        """What is kept in memory only needn't wait for the end of the step."""
        if isinstance(self.journal, VolatileJournal):
            self.journal.settle()

    def settle(self) -> None:
        if self._journaled_bytes >= self.limits.snapshot_bytes and self.config.fsync:
            self._journaled_bytes = 0
            image = encode(self._image())
            self.journal.when_stored(lambda: self._save(image))
        self.journal.settle()

    def _put(self, entry: MemberEntry, size: int = 0) -> None:
        self._journaled_bytes += 64 + size
        self.journal.put(entry)

    def _on_stored(self, index: int, entry: MemberEntry) -> None:
        assert index > 0
        if isinstance(entry, Ordered):
            self.ordered = max(self.ordered, entry.upto)
        elif isinstance(entry, Started):
            assert self.view is not None
            self.ordered = entry.view.base
        on_stored = self.on_stored.get(type(entry))
        if on_stored is not None:
            on_stored(entry)

    def _save(self, image: bytes) -> None:
        """Everything that the image says is stored, and the journal's last entry belongs to it."""
        self.effects.append(SaveSnapshot(self.journal.last, image))

    def _image(self) -> MemberImage:
        return MemberImage(
            life=self.life,
            view=self.view,
            sealed=self.sealed,
            begun=self.begun,
            state=self.state.image(),
            prepared=self.prepared,
            next_state=self.next_state,
            unstable=self.unstable,
        )

    def _replay(self, entry: MemberEntry) -> None:
        match entry:
            case Born(life):
                self.life = life
            case Added(added, lowest):
                self.state.add(added, lowest, 0)
            case Ordered():
                self._order(entry)
            case Voided(ids):
                self.state.void(ids)
            case SealedBy(ballot):
                self.sealed = ballot
            case StatePart():
                self._replay_part(entry)
            case Started(view):
                self._start(view)
            case Began(begun):
                self.begun = begun

    def _replay_part(self, entry: StatePart) -> None:
        """A restart in between begins with the first part again."""
        if entry.part == 0:
            self._parts.clear()
        assert len(self._parts) == entry.part, "parts are journaled in their order"
        self._parts.append(entry.content)
        if len(self._parts) == entry.parts:
            self.prepared, self.next_state = entry.ballot, decode_state(b"".join(self._parts))
            self._parts.clear()

    def _order(self, ordered: Ordered) -> None:
        state = self.state
        ids, positions, shards = ordered.ids, ordered.positions, ordered.shards
        state.drop(ids, positions, upto=ordered.upto, now=self.alarms.now, shards=shards)
        state.known.forget(ordered.forgotten)
        if self.view is not None and self.view.leader == self.config.node:
            self.unstable.append(ordered)
            self.release(ordered.stable)

    def release(self, stable: Position) -> None:
        """All members have dropped what lies below."""
        kept = next((n for n, each in enumerate(self.unstable) if each.upto > stable), None)
        del self.unstable[:kept]

    def _start(self, view: View) -> None:
        assert view.number > self.number
        assert self.prepared == view.ballot
        assert self.next_state is not None
        self.view, self.sealed, self.active = view, None, False
        self.begun = 0
        self.state = State(self.limits, self.next_state)
        self.prepared = self.next_state = None
        self.unstable = []
        assert self.state.ordered == view.base, "members of a view begin at the same position"


def parts_of(content: bytes) -> list[bytes]:
    """At least one."""
    return [content[at : at + PART_BYTES] for at in range(0, max(1, len(content)), PART_BYTES)]
