"""How long shards wait for data, by who announced it and when."""

from anabranch.core.erwin.orderer.patience import GRACE_PART, LEAST_PART, RETURN, Patience
from anabranch.core.sequencing.state.ring import Announcement
from anabranch.core.types import MS

NOOP_MS = 32 * 100
LEAST_MS = NOOP_MS // LEAST_PART
BAD, GOOD = 1, 2


def wait_ms(patience: Patience, who: int, *, now_ms: int, age_ms: int = 0) -> int:
    return patience.wait_ms(Announcement(who, (now_ms - age_ms) * MS), now_ms * MS)


def test_data_that_was_announced_together_is_given_up_together() -> None:
    patience = Patience(NOOP_MS)
    assert wait_ms(patience, GOOD, now_ms=10_000) == NOOP_MS
    assert wait_ms(patience, GOOD, now_ms=10_000, age_ms=1_000) == NOOP_MS - 1_000
    grace_ms = NOOP_MS // GRACE_PART
    assert wait_ms(patience, GOOD, now_ms=90_000, age_ms=60_000) == grace_ms
    assert patience.wait_ms(None, MS) == NOOP_MS, "nobody knows since when it waits"


def test_one_principal_holds_up_others_for_noop_ms_and_then_for_a_small_part_of_the_time() -> None:
    patience = Patience(NOOP_MS)
    now_ms, held_up_ms = 0, 0
    while now_ms < 100 * NOOP_MS:
        waited = wait_ms(patience, BAD, now_ms=now_ms)
        if waited > LEAST_MS + 50:
            held_up_ms += waited
        patience.held_up(BAD, waited, now_ms * MS)
        now_ms += waited + 1_000
    assert held_up_ms <= NOOP_MS + 100 * NOOP_MS // RETURN
    assert wait_ms(patience, GOOD, now_ms=now_ms) == NOOP_MS, "others aren't to blame"


def test_whoever_announces_what_comes_gets_the_whole_time_back() -> None:
    patience = Patience(NOOP_MS)
    patience.held_up(BAD, NOOP_MS, 0)
    assert wait_ms(patience, BAD, now_ms=0) == LEAST_MS
    assert wait_ms(patience, BAD, now_ms=NOOP_MS * RETURN) == NOOP_MS


def test_accounts_of_those_who_have_their_time_back_are_forgotten() -> None:
    patience = Patience(NOOP_MS)
    for who in range(5_000):
        patience.held_up(who, 1, who * 1_000 * MS)
    assert len(patience._accounts) <= 1_001  # pyright: ignore[reportPrivateUsage]
