"""A small Erwin log in letters: two members, two shards with one node each, one view."""

from anabranch.core.erwin.invariants.witness import Witness
from anabranch.core.erwin.protocol.letters import (
    Configuration,
    Push,
    Pushed,
    ShardPresent,
    ShardSetup,
)
from anabranch.core.erwin.protocol.rows import Fence, Mode, Row
from anabranch.core.machine import Send
from anabranch.core.records.record import Record, encode
from anabranch.core.sequencing.protocol.ids import AppendId, Member
from anabranch.core.sequencing.protocol.letters import Dropped, Prepared, Sealed
from anabranch.core.sequencing.view import Ballot, View
from anabranch.core.types import Position

MEMBERS = ("seq-0", "seq-1")
LEADER = MEMBERS[0]


def id_of(number: int) -> AppendId:
    return AppendId(number, 0, 0)


def batch_of(number: int, count: int = 1) -> bytes:
    records = [Record(b"%d" % number) for _ in range(count)]
    return encode(records, producer_id=number, producer_epoch=0, base_sequence=0, now=1)


def row(number: int, first: Position, count: int = 1, shard: int = 0) -> Row:
    return Row(first, count, shard, id_of(number))


def push(
    *rows: Row, view: int = 1, start: int = 1, base: Position = 0, stable: Position = 0
) -> Push:
    return Push(
        fence=Fence(view, start),
        base=base,
        first=rows[0].first if rows else base,
        rows=list(rows),
        batches=[],
        stable=stable,
        trimmed=0,
    )


def view(number: int, base: Position = 0, members: tuple[str, ...] = MEMBERS) -> View:
    lives = tuple(Member(each, 1) for each in members)
    return View(ballot=Ballot(number, 1), members=lives, leader=members[0], base=base)


def configuration(
    version: int, view: View, lost: tuple[tuple[int, int], ...] = ()
) -> Configuration:
    shards = tuple(
        ShardSetup(number=number, name=name, nodes=(f"{name}-0",), epoch=1, primary=f"{name}-0")
        for number, name in enumerate("ab")
    )
    return Configuration(
        version=version,
        term=1,
        mode=Mode.M,
        fsync=True,
        view=view,
        shards=shards,
        sequencers=MEMBERS,
        lost_views=lost,
    )


class Scene:
    """A witness who has seen the first view begin."""

    def __init__(self) -> None:
        self.witness = Witness()
        self.configure(view(1))
        assert self.violations == []

    @property
    def violations(self) -> list[str]:
        return self.witness.violations

    @property
    def rules(self) -> set[str]:
        """Those that were broken."""
        return {each.partition(":")[0] for each in self.violations}

    def say(self, node: str, letter: object) -> None:
        """Pushes go to the shard that tests read."""
        to = "a-0" if isinstance(letter, Push) else "anybody"
        self.witness.observe(node, Send(to, letter))

    def configure(self, view: View, lost: tuple[tuple[int, int], ...] = ()) -> None:
        for member in view.members:
            prepared = Prepared(
                ballot=view.ballot, node=member.node, life=member.life, base=view.base
            )
            self.say(member.node, prepared)
        self.say("controller-0", configuration(view.number, view, lost))

    def seal(self, node: str, view: int) -> None:
        sealed = Sealed(
            ballot=Ballot(view + 1, 1), view=view, node=node, life=1, ordered=0, records=0
        )
        self.say(node, sealed)

    def held(self, shard: int, upto: Position, view: int = 1) -> None:
        """A shard says so."""
        node = "ab"[shard] + "-0"
        self.say(node, Pushed(fence=Fence(view, 1), shard=shard, upto=upto, trimmed=0))

    def present(self, shard: str, fence: Fence) -> None:
        """A shard's primary says which fence it has taken last."""
        node = f"{shard}-0"
        letter = ShardPresent(
            shard=shard,
            node=node,
            disk=1,
            epoch=1,
            role=1,
            durable=0,
            held=0,
            stable=0,
            fence=fence.number,
        )
        self.say(node, letter)

    def dropped(self, upto: Position, view: int = 1) -> None:
        """Every member but the leader says so."""
        for member in MEMBERS[1:]:
            self.say(member, Dropped(view, upto))

    def settle(self, *rows: Row) -> None:
        """These rows become stable, by the rules."""
        self.say(LEADER, push(*rows))
        end = rows[-1].end
        for shard in (0, 1):
            self.held(shard, end)
        self.dropped(end)
        self.say(LEADER, push(stable=end))
        assert self.violations == []
