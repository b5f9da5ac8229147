"""The election: at no instant do two lead, and no epoch is anybody's but its winner's."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.core.machine import SetTimer, TimerFired
from anabranch_operator.plan.election.candidate import (
    SECOND,
    Beaten,
    Candidate,
    Effect,
    Event,
    Fetch,
    Found,
    Hold,
    Kept,
    Lead,
    Lease,
    Missed,
    Resign,
    Retire,
    StepDown,
    Terms,
    Write,
)

TERMS = Terms(lease_s=15, renew_s=10, retry_s=2)


def lease(holder: str, epoch: int = 1, version: int = 1) -> Lease:
    return Lease(uid="u", version=version, holder=holder, epoch=epoch, lease_s=15)


def leading(now: int = 0) -> Candidate:
    candidate = Candidate("a", TERMS)
    candidate.start()
    (write,) = candidate.step(now, Found(None))
    assert write == Write(None, "a", 1, acquired=True)
    candidate.step(now, Kept(lease("a")))
    return candidate


def test_who_finds_no_lease_makes_one_and_leads_from_before_it_was_asked_for() -> None:
    candidate = Candidate("a", TERMS)
    assert candidate.start() == (Fetch(),)
    candidate.step(5 * SECOND, Found(None))
    effects = candidate.step(7 * SECOND, Kept(lease("a")))
    assert effects == (Hold(15 * SECOND), Lead("u", 1), SetTimer("lease", 9 * SECOND))


def test_a_lease_is_over_only_when_it_stood_still_before_our_own_eyes() -> None:
    candidate = Candidate("b", TERMS)
    (again,) = candidate.step(0, Found(lease("a")))
    assert isinstance(again, SetTimer)
    candidate.step(14 * SECOND, Found(lease("a", version=2)))
    (again,) = candidate.step(28 * SECOND, Found(lease("a", version=2)))
    assert isinstance(again, SetTimer)
    taken = candidate.step(29 * SECOND, Found(lease("a", version=2)))
    assert taken == (Write(lease("a", version=2), "b", 2, acquired=True),)


def test_a_lease_that_was_let_go_is_taken_at_once_under_another_epoch() -> None:
    candidate = Candidate("b", TERMS)
    (write,) = candidate.step(0, Found(lease("", epoch=7)))
    assert write == Write(lease("", epoch=7), "b", 8, acquired=True)


def test_a_longer_lease_of_its_holder_is_waited_for() -> None:
    long = Lease(uid="u", version=1, holder="a", epoch=1, lease_s=60)
    candidate = Candidate("b", TERMS)
    candidate.step(0, Found(long))
    assert isinstance(candidate.step(59 * SECOND, Found(long))[0], SetTimer)
    assert isinstance(candidate.step(60 * SECOND, Found(long))[0], Write)


def test_a_leader_that_slept_leads_no_more_whatever_it_hears_first() -> None:
    for heard in (Kept(lease("a", version=9)), Missed(), Beaten(), TimerFired("lease")):
        candidate = leading()
        effects = candidate.step(30 * SECOND, heard)
        assert isinstance(effects[0], StepDown)
        assert not any(isinstance(each, Lead | Hold) for each in effects)
        assert not candidate.leads


def test_a_leader_without_answers_stops_before_anybody_else_may_begin() -> None:
    candidate = leading()
    for second in range(2, 10):
        assert candidate.step(second * SECOND, Missed()) == (
            SetTimer("lease", (second + 2) * SECOND),
        )
    (down, _) = candidate.step(10 * SECOND, Missed())
    assert isinstance(down, StepDown)


def test_a_renewal_that_was_done_but_not_answered_costs_nothing() -> None:
    candidate = leading()
    candidate.step(2 * SECOND, TimerFired("lease"))
    assert candidate.step(4 * SECOND, Beaten()) == (Fetch(),)
    mine = lease("a", version=2)
    assert candidate.step(5 * SECOND, Found(mine)) == (Write(mine, "a", 1, acquired=False),)
    assert candidate.leads


def test_a_leader_that_finds_another_stops() -> None:
    candidate = leading()
    candidate.step(2 * SECOND, Beaten())
    effects = candidate.step(3 * SECOND, Found(lease("b", epoch=2, version=3)))
    assert isinstance(effects[0], StepDown)
    assert not candidate.leads


def test_a_leader_that_ends_lets_go_and_a_follower_just_ends() -> None:
    candidate = leading()
    down, write = candidate.step(SECOND, Resign())
    assert isinstance(down, StepDown)
    assert write == Write(lease("a"), "", 1, acquired=False)
    assert candidate.step(SECOND, Kept(lease("", version=2))) == (Retire(),)
    follower = Candidate("b", TERMS)
    follower.step(0, Found(lease("a")))
    assert follower.step(1, Resign()) == (Retire(),)


def test_terms_that_would_let_two_lead_are_refused() -> None:
    with pytest.raises(AssertionError):
        Candidate("a", Terms(lease_s=10, renew_s=10))


@dataclass
class Server:
    """One Lease, with the API server's own rule: a write names the version it is of."""

    lease: Lease | None = None
    version: int = 0
    winners: dict[int, str] = field(default_factory=dict[int, str])

    def answer(self, request: Fetch | Write) -> Event:
        if isinstance(request, Fetch):
            return Found(self.lease)
        if request.seen != self.lease:
            return Beaten()
        self.version += 1
        self.lease = Lease(
            uid="u",
            version=self.version,
            holder=request.holder,
            epoch=request.epoch,
            lease_s=TERMS.lease_s,
        )
        return Kept(self.lease)


@dataclass
class Process:
    """A candidate, and what its shell keeps for it."""

    candidate: Candidate
    asked: Fetch | Write | None = None
    answer: Event | None = None
    wake_at: int = 0
    until: int = 0
    asleep_until: int = 0

    def heed(self, effects: tuple[Effect, ...], winners: dict[int, str]) -> None:
        for effect in effects:
            match effect:
                case Fetch() | Write():
                    self.asked = effect
                case Hold(until):
                    self.until = until
                case StepDown():
                    self.until = 0
                case SetTimer(_, at):
                    self.wake_at = at
                case Lead(_, epoch):
                    name = self.candidate.name
                    assert winners.setdefault(epoch, name) == name
                case Retire():
                    raise AssertionError(effect)


Luck = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["go", "go", "go", "go", "lose the request", "lose the answer", "sleep"]),
        st.integers(0, 25),
    ),
    max_size=200,
)


@settings(max_examples=300, deadline=None)
@given(Luck)
def test_at_no_instant_do_two_stand(luck: list[tuple[int, str, int]]) -> None:
    server = Server()
    processes = [Process(Candidate(name, TERMS)) for name in "abc"]
    for each in processes:
        each.heed(each.candidate.start(), server.winners)
    now = 0
    for which, what, tenths in luck:
        now += tenths * SECOND // 10
        one = processes[which]
        if what == "sleep":
            one.asleep_until = now + tenths * SECOND
        if one.asleep_until <= now:
            one.heed(turn(one, server, what, now), server.winners)
        assert len([each for each in processes if now < each.until]) <= 1


def turn(one: Process, server: Server, luck: str, now: int) -> tuple[Effect, ...]:
    """A request first reaches the server, then its answer reaches the process."""
    if one.answer is not None:
        answer, one.answer = one.answer, None
        return one.candidate.step(now, answer)
    if one.asked is not None:
        asked, one.asked = one.asked, None
        one.answer = Missed() if luck == "lose the request" else server.answer(asked)
        if luck == "lose the answer":
            one.answer = Missed()
        return ()
    if now >= one.wake_at:
        return one.candidate.step(now, TimerFired("lease"))
    return ()


def test_somebody_leads_soon_after_the_leader_has_died() -> None:
    server = Server()
    dead, heir = Process(Candidate("a", TERMS)), Process(Candidate("b", TERMS))
    for each in (dead, heir):
        each.heed(each.candidate.start(), server.winners)
    now = 0
    while now < 3 * SECOND:
        now += SECOND // 10
        for each in (dead, heir):
            each.heed(turn(each, server, "go", now), server.winners)
    assert dead.candidate.leads
    died = now
    while not heir.candidate.leads:
        now += SECOND // 10
        heir.heed(turn(heir, server, "go", now), server.winners)
        assert now - died <= 20 * SECOND
