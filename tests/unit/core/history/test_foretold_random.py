"""A log with a predetermined order: whatever it may rightly show is accepted, however it comes."""

from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest

from anabranch.core.history.calls import RecordId, Verdict
from anabranch.core.history.foretold import (
    Account,
    Follower,
    Placing,
    Resumable,
    Resumed,
    Settled,
    Shown,
    Sight,
    Voided,
    Watching,
    judge,
)
from anabranch.core.types import Position

SHARDS = ("a", "b", "c")
SLOTS = 40
NEVER_SENT = 10**9


class Shower:
    """Shows a subscriber a log that is known beforehand, with wrong predictions that it takes back.

    `upto` is how far it has shown, `confirmed` what it has confirmed, `wrong` the first position
    that it has shown otherwise than it will be.
    """

    def __init__(self, account: Account, watching: Watching, chance: Random) -> None:
        self.account, self.watching, self.chance = account, watching, chance
        self.upto = self.confirmed = watching.start
        self.wrong: Position | None = None

    def say(self, sight: Sight) -> None:
        self.watching.sights.append(sight)

    def show(self) -> None:
        upto = min(self.upto + self.chance.randrange(1, 8), self.account.end)
        shards = self.watching.shards or SHARDS
        shown = {
            position: record
            for position, record in self.account.final.items()
            if self.upto <= position < upto and self.account.shard_of[record] in shards
        }
        if shown and self.watching.speculative and self.chance.random() < 0.3:
            place = self.chance.choice(list(shown))
            shown[place] = NEVER_SENT + place
            self.wrong = place if self.wrong is None else min(self.wrong, place)
        in_order = sorted(shown.items())
        places, records = [place for place, _ in in_order], [record for _, record in in_order]
        self.say(Shown(upto, places, records, speculative=self.watching.speculative))
        self.upto = upto

    def confirm(self) -> None:
        sure = self.upto if self.wrong is None else self.wrong
        if sure > self.confirmed:
            if self.watching.speculative:
                sure = self.chance.randrange(self.confirmed, sure) + 1
            self.confirmed = sure
            self.say(Settled(self.confirmed))
            self.say(Resumable(self.confirmed))

    def fail(self) -> None:
        """Take back what was wrong, and perhaps more."""
        if self.wrong is not None:
            since = self.chance.randrange(self.confirmed, self.wrong + 1)
            self.say(Voided(since))
            self.upto, self.wrong = since, None

    def resume(self) -> None:
        self.say(Resumed(self.confirmed))
        self.upto, self.wrong = self.confirmed, None

    def fail_elsewhere(self) -> None:
        self.say(Voided(self.chance.randrange(self.confirmed, self.upto + 1), kept=True))

    def run(self) -> None:
        steps = [self.show, self.show, self.confirm, self.fail, self.resume, self.fail_elsewhere]
        if not self.watching.speculative:
            steps = [self.show, self.show, self.confirm]
        for _ in range(30):
            self.chance.choice(steps)()
        self.fail()
        while self.upto < self.account.end:
            self.show()
            self.fail()
        while self.confirmed < self.account.end:
            self.confirm()


def run_of(seed: int) -> Account:
    chance = Random(seed)
    account = Account(end=SLOTS)
    for position in range(SLOTS):
        if chance.random() < 0.8:
            account.final[position] = record = 100 + position
            account.shard_of[record] = chance.choice(SHARDS)
    account.placings = list(placings(account, chance))
    account.start = chance.choice((0, 0, 7))
    for number, shards in enumerate(((), ("a",), ("b", "c"), ("a",), ())):
        start = chance.choice((0, 0, 5))
        watching = Watching(f"w{number}", start, shards, speculative=number < 3)
        Shower(account, watching, chance).run()
        account.watchings.append(watching)
    return account


def placings(account: Account, chance: Random) -> list[Placing]:
    """One client for each shard; each batch is appended when all before it are done."""
    found: list[Placing] = []
    for client, shard in enumerate(SHARDS):
        mine = sorted(p for p, record in account.final.items() if account.shard_of[record] == shard)
        while mine:
            taken, mine = mine[: (count := chance.randrange(1, 4))], mine[count:]
            records = [account.final[place] for place in taken]
            placing = Placing(client, shard, 10 * taken[0], records)
            if chance.random() < 0.8:
                placing.returned, placing.verdict = 10 * taken[-1] + 5, Verdict.OK
                placing.positions = taken
            found.append(placing)
    found.append(Placing(9, "a", 0, [NEVER_SENT], verdict=Verdict.REFUSED))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_what_a_correct_log_shows_is_accepted(seed: int) -> None:
    account = run_of(seed)
    assert judge(account) == []
    for watching in account.watchings:
        shards = watching.shards or SHARDS
        due = {
            position: record
            for position, record in account.final.items()
            if position >= watching.start and account.shard_of[record] in shards
        }
        assert Follower.of(watching).final == due, "it has seen all that it asked for"


def an_acknowledgement_of_another_record(account: Account, chance: Random) -> None:
    placing = chance.choice(
        [each for each in account.placings if each.positions and each.positions[-1] >= 8]
    )
    placing.records = [NEVER_SENT] * len(placing.records)


def a_hole_in_what_is_shown(account: Account, chance: Random) -> None:
    watching = account.watchings[chance.randrange(3, 5)]
    index = chance.choice([i for i, each in enumerate(watching.sights) if _holds_some(each)])
    shown = watching.sights[index]
    assert isinstance(shown, Shown)
    watching.sights[index] = Shown(shown.upto, shown.positions[1:], shown.records[1:], False)


def _holds_some(sight: Sight) -> bool:
    return isinstance(sight, Shown) and bool(sight.positions) and sight.positions[0] >= 8


def another_record(account: Account, chance: Random) -> None:
    watching = account.watchings[chance.randrange(3, 5)]
    index = chance.choice([i for i, each in enumerate(watching.sights) if _holds_some(each)])
    shown = watching.sights[index]
    assert isinstance(shown, Shown)
    records: list[RecordId] = [NEVER_SENT, *shown.records[1:]]
    watching.sights[index] = Shown(shown.upto, shown.positions, records, False)


def a_failure_of_what_was_confirmed(account: Account, chance: Random) -> None:
    watching = chance.choice(account.watchings)
    watching.sights.append(Voided(SLOTS - 1))


def a_prediction_for_one_who_asked_for_none(account: Account, chance: Random) -> None:
    watching = account.watchings[chance.randrange(3, 5)]
    index = chance.choice([i for i, each in enumerate(watching.sights) if _holds_some(each)])
    shown = watching.sights[index]
    assert isinstance(shown, Shown)
    watching.sights[index] = Shown(shown.upto, shown.positions, shown.records, True)


def a_place_to_resume_at_that_skips_something(account: Account, chance: Random) -> None:
    watching = chance.choice(account.watchings[3:])
    watching.sights.insert(0, Resumable(SLOTS))


def a_record_in_two_places(account: Account, chance: Random) -> None:
    first, second = chance.sample(sorted(account.final), 2)
    account.final[first] = account.final[second]


def a_record_that_nobody_sent(account: Account, chance: Random) -> None:
    del account.shard_of[account.final[chance.choice(list(account.final))]]


def a_refused_record(account: Account, chance: Random) -> None:
    refused = account.placings[-1]
    refused.records = [account.final[chance.choice(list(account.final))]]


def two_appends_in_reverse(account: Account, chance: Random) -> None:
    """The later of two positions was acknowledged before the other append began."""
    sure = [each for each in account.placings if each.verdict is Verdict.OK]
    sure.sort(key=lambda each: each.positions[0])
    early, late = chance.choice(list(pairwise(sure)))
    late.invoked, late.returned = -100, -90
    assert early.invoked >= 0


BREAKS: list[tuple[Callable[[Account, Random], None], str]] = [
    (an_acknowledgement_of_another_record, "1 acknowledged"),
    (a_hole_in_what_is_shown, "6 complete"),
    (another_record, "5 confirmed"),
    (a_failure_of_what_was_confirmed, "4 stream"),
    (a_prediction_for_one_who_asked_for_none, "8 confirmed alone"),
    (a_place_to_resume_at_that_skips_something, "7 resumption"),
    (a_record_in_two_places, "1 once"),
    (a_record_that_nobody_sent, "1 nothing invented"),
    (a_refused_record, "1 refused"),
    (two_appends_in_reverse, "2 linearizable"),
]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("break_", "rule"), BREAKS, ids=[each.__name__ for each, _ in BREAKS])
def test_a_broken_promise_is_found(
    break_: Callable[[Account, Random], None], rule: str, seed: int
) -> None:
    account = run_of(seed)
    break_(account, Random(seed))
    assert rule in {violation.rule for violation in judge(account)}


def test_what_was_trimmed_is_compared_with_nothing() -> None:
    account = Account(shard_of={1: "a", 2: "a"}, final={5: 2}, start=5, end=6)
    account.placings = [Placing(1, "a", 0, [1], 1, [0], Verdict.OK)]
    sights: list[Sight] = [Shown(6, [0, 5], [1, 2], True), Settled(6), Resumable(6)]
    account.watchings = [Watching("w", 0, (), sights=sights)]
    assert judge(account) == []


@pytest.mark.parametrize(
    ("shown", "broken"),
    [
        (Shown(3, [0, 1], [10, 11], True), ""),
        (Shown(3, [1, 0], [11, 10], True), "0 was delivered, after all below 2 had been"),
        (Shown(1, [0, 1], [10, 11], True), "1 was delivered with others up to 1"),
        (Shown(3, [1, 1], [10, 11], True), "1 was delivered, after all below 2 had been"),
    ],
)
def test_a_follower_notices_what_is_out_of_order(shown: Shown, broken: str) -> None:
    assert Follower.of(Watching("w", 0, (), sights=[shown])).broken == broken


def test_a_filter_lets_a_subscriber_miss_what_it_did_not_ask_for() -> None:
    account = Account(shard_of={1: "a", 2: "a"}, final={0: 1, 1: 2}, end=2)
    sights: list[Sight] = [Shown(2, [1], [2], True), Settled(2)]
    watching = Watching("w", 0, (), wanted=lambda record: record == 2, sights=sights)
    account.watchings = [watching]
    assert judge(account) == []
    watching.wanted = None
    assert [each.rule for each in judge(account)] == ["6 complete"]


def test_a_batch_whose_records_are_out_of_order_is_found() -> None:
    account = Account(shard_of={1: "a", 2: "a"}, final={0: 2, 1: 1}, end=2)
    account.placings = [Placing(1, "a", 0, [1, 2])]
    assert [each.rule for each in judge(account)] == ["1 order"]
