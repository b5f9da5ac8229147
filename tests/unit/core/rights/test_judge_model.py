"""The judge against one who asks those who know each time, and against an outage of theirs."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.core.errors import Forbidden, Unauthenticated
from anabranch.core.rights.claims import LOGS, Claim, Right, Subject, Verb, subject_named
from anabranch.core.rights.judge import Guest, Judge, MayThey, Question, Terms, WhatIs, WhoIs
from anabranch.core.types import MS, LogId

ALLOW_MS, DENY_MS, GRACE_MS = 1_000, 300, 5_000
TERMS = Terms(allow_ms=ALLOW_MS, deny_ms=DENY_MS, grace_ms=GRACE_MS, entries_max=1_000)
TOKENS = ["a", "b"]
VERBS = (Verb.READ, Verb.APPEND)


@dataclass
class Known:
    """What Kubernetes and the catalogue would say now."""

    guests: dict[str, Guest] = field(
        default_factory=lambda: {token: Guest(f"user {token}") for token in TOKENS}
    )
    logs: dict[LogId | str, Subject | None] = field(
        default_factory=lambda: {
            LogId(1): Subject(LOGS, "orders"),
            "orders": Subject(LOGS, "orders"),
        }
    )
    allowed: set[tuple[str, Verb]] = field(default_factory=set[tuple[str, Verb]])

    def tell(self, judge: Judge, question: Question, now: int) -> None:
        match question:
            case WhoIs(token):
                judge.met(question, self.guests.get(token, "it is revoked"), now)
            case WhatIs(log):
                judge.described(question, self.logs.get(log), now)
            case MayThey(guest, Right(verb, _)):
                judge.ruled(question, now, allowed=(guest.name, verb) in self.allowed)

    def may(self, token: str, claim: Claim) -> bool:
        guest = self.guests.get(token)
        return guest is not None and any((guest.name, verb) in self.allowed for verb in claim.verbs)


def asked(judge: Judge, known: Known, token: str, claim: Claim, now: int) -> bool:
    """As a server does it: what isn't known is asked, and the request waits."""
    for _ in range(10):
        try:
            standing = judge.standing(token, [claim], now)
        except (Unauthenticated, Forbidden):
            return False
        for question in standing.ask:
            known.tell(judge, question, now)
        if standing.until:
            assert standing.until > now
            return True
    raise AssertionError("the same is asked again and again")


claims = st.builds(
    Claim,
    st.sampled_from([Subject(LOGS, "orders"), LogId(1), "orders"]),
    st.sampled_from([VERBS[:1], VERBS[1:], VERBS]),
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "ask", "grant", "revoke", "wait", "expel", "return"]),
        st.sampled_from(TOKENS),
        st.sampled_from(VERBS),
        claims,
        st.sampled_from([1, 250, 900, 2_500]),
    ),
    max_size=40,
)


@settings(max_examples=150)
@given(steps)
def test_an_answer_is_one_that_was_right_within_the_time_for_which_it_is_good(
    steps: list[tuple[str, str, Verb, Claim, int]],
) -> None:
    judge, known, now = Judge(TERMS, "n", "a"), Known(), MS
    changed = dict.fromkeys(TOKENS, 0)
    """When the last change was that concerns a token."""
    looked: dict[tuple[str, Claim], int] = {}
    for what, token, verb, claim, ms in steps:
        name = f"user {token}"
        match what:
            case "grant":
                known.allowed.add((name, verb))
                changed[token] = now
            case "revoke":
                known.allowed.discard((name, verb))
                changed[token] = now
            case "expel":
                known.guests.pop(token, None)
                changed[token] = now
            case "return":
                known.guests[token] = Guest(name)
                changed[token] = now
            case "wait":
                now += ms * MS
            case _:
                before = looked.get((token, claim), 0)
                answer = asked(judge, known, token, claim, now)
                again = now - before > max(ALLOW_MS, 1_000) * MS
                settled = now - changed[token] >= (ALLOW_MS + GRACE_MS + 2_000) * MS
                if settled or (not changed[token] and not before):
                    assert answer == known.may(token, claim)
                elif (
                    again and now - changed[token] >= (DENY_MS + 1) * MS and known.may(token, claim)
                ):
                    assert answer, "a no is asked again soon"
                looked[token, claim] = now


@given(st.integers(0, GRACE_MS - 1), st.sampled_from(VERBS))
def test_an_outage_of_those_who_know_shuts_nobody_out_before_the_grace_is_over(
    ms: int, verb: Verb
) -> None:
    judge, known, now = Judge(TERMS, "n", "a"), Known(), MS
    known.allowed.add(("user a", verb))
    claim = Claim(Subject(LOGS, "orders"), (verb,))
    assert asked(judge, known, "a", claim, now)
    later = now + (ALLOW_MS + ms) * MS
    standing = judge.standing("a", [claim], later)
    assert standing.until > later, "what was a yes stays one while nobody answers"
    assert standing.ask, "and is asked again"
    over = now + (ALLOW_MS + GRACE_MS) * MS
    assert judge.standing("a", [claim], over).until == 0


def test_a_stranger_learns_nothing_of_what_there_is() -> None:
    """A log that isn't there is refused in the words for one that is."""
    judge, known, now = Judge(TERMS, "n", "a"), Known(), MS
    messages: set[str] = set()
    for name in ("orders", "no-such"):
        claim = Claim(name, (Verb.READ,))
        assert not asked(judge, known, "a", claim, now)
        try:
            judge.standing("a", [claim], now)
        except Forbidden as refused:
            messages.add(refused.message.replace(name, "NAME"))
    assert len(messages) == 1
    assert subject_named("no-such") == Subject(LOGS, "no-such")
