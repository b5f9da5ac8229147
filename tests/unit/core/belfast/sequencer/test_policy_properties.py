"""Whatever comes, in whatever order: no cut goes beyond what all have reported (F2, F4, F5)."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.belfast.sequencer.policy_stage import Stage

from anabranch.core.belfast.ledger.decisions import AnyDecision, ChangeView, CutTo, OpenWindow
from anabranch.core.belfast.ledger.ledger import Ledger, Standing
from anabranch.core.belfast.ledger.windows import ShardId, Window
from anabranch.core.belfast.protocol.letters import FromReplica, Report
from anabranch.core.lateness import LIMIT_MAX
from anabranch.core.types import MS

SHARDS = "abcdefgh"

Action = tuple[str, int, int]
actions = st.lists(
    st.tuples(
        st.sampled_from(["work"] * 12 + ["late", "again", "wait", "leave", "crash", "elect"]),
        st.integers(0, 7),
        st.integers(0, 12),
    ),
    max_size=120,
)


class World:
    """Shards that follow the ledger as shards do; their reports are delivered when it suits."""

    def __init__(self, count: int, window: int, stagger: bool) -> None:
        names = SHARDS[:count]
        self.stage = Stage.seated(
            *names, window=window, ahead_rounds=6, stagger=stagger, stagger_from=3
        )
        self.held: list[tuple[str, FromReplica]] = []
        self.done: dict[tuple[int, ShardId], int] = {}
        """Rounds that were reported, and the report was delivered."""
        self.at: dict[str, tuple[int, int]] = dict.fromkeys(names, (0, 0))
        self.dead: set[str] = set()
        self.names = names

    def act(self, action: str, which: int, count: int) -> None:
        name = self.names[which % len(self.names)]
        stage = self.stage
        match action:
            case "work" if name not in self.dead:
                self._work(name, count)
                self._deliver(len(self.held) - 1)
            case "late" if name not in self.dead:
                self._work(name, count)
            case "again" if self.held:
                self._deliver(which % len(self.held), keep=count > 6)
            case "wait":
                stage.pass_time(count, *(each for each in self.names if each not in self.dead))
            case "leave":
                stage.office.leave(name)
            case "crash" if len(self.dead) < len(self.names) - 1:
                self.dead.add(name)
            case "elect":
                stage.term += 1
                stage.elect()
            case _:
                pass
        self._check(stage.settle())

    def _work(self, name: str, count: int) -> None:
        """Some rounds more, through all windows that it knows."""
        ledger, member = self.stage.ledger, self.stage.member(name)
        if member.standing is Standing.FAILED:
            return
        number, rounds = self.at[name]
        number = max(number, ledger.windows[0].number) if ledger.windows else number
        rounds = rounds if number == self.at[name][0] else 0
        while (window := ledger.window(number)) is not None:
            seat = window.by_shard.get(member.id)
            if seat is not None and rounds < window.rounds:
                made = min(count, window.rounds - rounds)
                rounds, count = rounds + made, count - made
                if rounds < window.rounds:
                    break
            if ledger.window(number + 1) is None:
                break
            number, rounds = number + 1, 0
        self.at[name] = number, rounds
        self.held.append((member.primary, self._report(name)))

    def _report(self, name: str) -> Report:
        ledger, member = self.stage.ledger, self.stage.member(name)
        number, rounds = self.at[name]
        window = ledger.window(number)
        seat = window.by_shard.get(member.id) if window is not None else None
        durable = member.placed if seat is None else seat.base + rounds * seat.quota
        view = ledger.view
        if seat is None:
            rounds = 0
        return Report(member.id, member.epoch, view, number, rounds, durable, durable, 0, 0, 0)

    def _deliver(self, which: int, *, keep: bool = False) -> None:
        if not 0 <= which < len(self.held):
            return
        sender, letter = self.held[which] if keep else self.held.pop(which)
        assert isinstance(letter, Report)
        if letter.view == self.stage.ledger.view:
            for number in range(letter.window + 1):
                rounds = letter.rounds if number == letter.window else 1 << 30
                key = number, letter.shard
                self.done[key] = max(self.done.get(key, 0), rounds)
        self.stage.office.received(self.stage.now, sender, letter)

    def _check(self, decisions: list[AnyDecision]) -> None:
        """`decisions` are in the ledger already."""
        ledger = self.stage.ledger
        for each in decisions:
            if isinstance(each, CutTo):
                window = ledger.window(each.window)
                if window is not None:
                    self._check_cut(ledger, window, each.cut)

    def _check_cut(self, ledger: Ledger, window: Window, cut: int) -> None:
        for seat in window.seats:
            if ledger.gap(window, seat) is None:
                assert window.rounds_in(seat, cut) <= self.done.get((window.number, seat.shard), 0)


@given(st.integers(1, 8), st.integers(1, 9), st.booleans(), actions)
def test_no_cut_goes_beyond_what_all_its_seats_have_reported(
    count: int, window: int, stagger: bool, steps: list[Action]
) -> None:
    world = World(count, window, stagger)
    for action, which, rounds in steps:
        world.act(action, which, rounds)
    opened = [each for each in world.stage.decided if isinstance(each, OpenWindow)]
    assert [each.number for each in opened] == list(range(len(opened)))


@given(st.integers(2, 6), st.integers(1, 9), st.booleans(), actions)
def test_when_the_dead_have_failed_the_others_go_on(
    count: int, window: int, stagger: bool, steps: list[Action]
) -> None:
    world = World(count, window, stagger)
    for action, which, rounds in steps:
        if action != "leave":
            world.act(action, which, rounds)
    stage = world.stage
    alive = [name for name in world.names if name not in world.dead]
    # A leader gives shards that it has never heard the longest time there is.
    limit = stage.office.plan.rules.intervals(stage.office.plan.rules.fail_intervals)
    stage.pass_time(LIMIT_MAX * limit // MS + 30, *alive)
    before = stage.ledger.confirmed
    for _ in range(30):
        for nth, name in enumerate(world.names):
            if name in alive and stage.member(name).standing is not Standing.FAILED:
                world.act("work", nth, 12)
        stage.pass_time(2, *alive)
    seated = [name for name in alive if stage.member(name).standing is Standing.SEATED]
    assert seated
    assert stage.ledger.confirmed > before
    views = [each.view for each in stage.decided if isinstance(each, ChangeView)]
    assert views == list(range(1, len(views) + 1))
