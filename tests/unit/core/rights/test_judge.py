"""What is judged is what is known, for as long as it is good."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.bolt.protocol import messages
from anabranch.core.bolt.protocol.messages import ClientMessage
from anabranch.core.bolt.protocol.rights import needs
from anabranch.core.errors import Forbidden, Unauthenticated
from anabranch.core.rights.claims import FORKS, LOGS, Right, Subject, Verb
from anabranch.core.rights.judge import (
    NOWHERE,
    TOKEN_BYTES_MAX,
    Guest,
    Judge,
    MayThey,
    Question,
    Standing,
    Terms,
    WhatIs,
    WhoIs,
)
from anabranch.core.types import MS, LogId

TERMS = Terms(allow_ms=60_000, deny_ms=10_000, grace_ms=300_000, entries_max=1_000)
ALLOW, DENY, GRACE = (each * MS for each in (TERMS.allow_ms, TERMS.deny_ms, TERMS.grace_ms))
LOOK = 1_000 * MS
TOKEN = "t"
ANN = Guest("ann", groups=("people",))
LOG = LogId(7)
ORDERS = Subject(LOGS, "orders", "shop")
APPEND = messages.Append(LOG, b"")


def may(verb: Verb, subject: Subject = ORDERS) -> MayThey:
    return MayThey(ANN, Right(verb, subject))


class Court:
    """A judge, and a clock that stands until it is moved."""

    def __init__(self, terms: Terms = TERMS) -> None:
        self.judge = Judge(terms, "home", "anabranch")
        self.now = 1_000_000 * MS

    def learn(self, question: Question, answer: object) -> None:
        match question:
            case WhoIs():
                assert isinstance(answer, Guest | str)
                self.judge.met(question, answer, self.now)
            case WhatIs():
                assert answer is None or isinstance(answer, Subject)
                self.judge.described(question, answer, self.now)
            case MayThey():
                self.judge.ruled(question, self.now, allowed=bool(answer))

    def standing(self, message: ClientMessage = APPEND) -> Standing:
        return self.judge.standing(TOKEN, needs(message), self.now)


@pytest.fixture
def court() -> Court:
    """Ann may append to orders."""
    court = Court()
    court.learn(WhoIs(TOKEN), ANN)
    court.learn(WhatIs(LOG), ORDERS)
    court.learn(may(Verb.APPEND), True)
    return court


def test_one_thing_after_the_other_is_asked_and_then_it_is_known() -> None:
    court = Court()
    for question, answer in (
        (WhoIs(TOKEN), ANN),
        (WhatIs(LOG), ORDERS),
        (may(Verb.APPEND), True),
    ):
        assert court.standing() == Standing(0, (question,))
        court.learn(question, answer)
    assert court.standing() == Standing(court.now + ALLOW)


def test_a_no_is_said_with_the_rule_that_would_make_it_a_yes(court: Court) -> None:
    court.learn(may(Verb.READ), False)
    with pytest.raises(Forbidden) as refused:
        court.standing(messages.Read(LOG, 0, 1, 1))
    assert refused.value.facts == {
        "user": "ann",
        "verb": "read",
        "resource": "logs",
        "name": "orders",
        "namespace": "shop",
    }
    assert "resources [logs], verbs [read]" in refused.value.message


def test_a_yes_is_asked_again_after_a_while_and_stays_one_meanwhile(court: Court) -> None:
    court.now += ALLOW
    doubtful = court.standing()
    assert doubtful.until == court.now + LOOK
    assert doubtful.ask == (WhoIs(TOKEN), WhatIs(LOG), may(Verb.APPEND))
    for question, answer in zip(doubtful.ask, (ANN, ORDERS, True), strict=True):
        court.learn(question, answer)
    assert court.standing() == Standing(court.now + ALLOW)


def test_a_yes_that_has_become_a_no_is_one_at_once(court: Court) -> None:
    court.now += ALLOW
    court.learn(may(Verb.APPEND), False)
    with pytest.raises(Forbidden):
        court.standing()


def test_grace_ends(court: Court) -> None:
    court.now += ALLOW + GRACE - 1
    assert court.standing().until
    court.now += 1
    assert court.standing() == Standing(0, (WhoIs(TOKEN),))


def test_a_no_is_asked_again_sooner_and_has_no_grace(court: Court) -> None:
    court.learn(may(Verb.APPEND), False)
    court.now += DENY
    assert court.standing() == Standing(0, (may(Verb.APPEND),))


def test_a_token_that_is_nobodys_lets_nobody_in() -> None:
    court = Court()
    court.learn(WhoIs(TOKEN), "its time is over")
    with pytest.raises(Unauthenticated, match="its time is over"):
        court.judge.admission(TOKEN, court.now)
    with pytest.raises(Unauthenticated):
        court.standing()
    for nothing in (None, ""):
        with pytest.raises(Unauthenticated, match="none was given"):
            court.judge.admission(nothing, court.now)
    court.now += DENY
    assert court.judge.admission(TOKEN, court.now) == Standing(0, (WhoIs(TOKEN),))


def test_a_token_that_was_good_and_is_no_more_ends_what_it_allowed(court: Court) -> None:
    court.learn(WhoIs(TOKEN), "its account is deleted")
    with pytest.raises(Unauthenticated, match="deleted"):
        court.standing()


def test_strangers_tokens_push_nobody_out(court: Court) -> None:
    for number in range(10 * TERMS.entries_max):
        court.learn(WhoIs(f"random-{number}"), "it is nobody's " + "x" * 10_000)
    assert court.standing().until
    with pytest.raises(Unauthenticated, match="nobody's") as refused:
        court.judge.admission(f"random-{10 * TERMS.entries_max - 1}", court.now)
    assert len(str(refused.value)) < 1_000


def test_rights_that_somebody_lacks_push_out_none_that_are_held(court: Court) -> None:
    for number in range(10 * TERMS.entries_max):
        court.learn(may(Verb.APPEND, Subject(LOGS, f"log-{number}", "shop")), False)
    assert court.standing().until


@pytest.mark.parametrize("size", [TOKEN_BYTES_MAX, TOKEN_BYTES_MAX + 1])
def test_a_token_that_is_too_long_is_nobodys_and_nobody_is_asked(court: Court, size: int) -> None:
    if size <= TOKEN_BYTES_MAX:
        assert court.judge.admission("x" * size, court.now).ask
    else:
        with pytest.raises(Unauthenticated, match="longer than 16384 bytes"):
            court.judge.admission("x" * size, court.now)


def test_no_token_is_kept_as_it_is(court: Court) -> None:
    court.learn(WhoIs("stranger"), "it is nobody's")
    kept = [getattr(court.judge, name) for name in ("_guests", "_strangers")]
    assert all(len(each) for each in kept)
    assert not {TOKEN, "stranger"} & {key for each in kept for key in each._known}


def test_the_first_verb_that_is_allowed_is_enough(court: Court) -> None:
    looking = messages.Describe(LOG)
    assert court.standing(looking) == Standing(court.now + ALLOW)
    court.learn(may(Verb.APPEND), False)
    for verb in (Verb.GET, Verb.READ, Verb.FORK, Verb.PROMOTE, Verb.TRIM, Verb.DELETE, Verb.ORDER):
        assert court.standing(looking) == Standing(0, (may(verb),))
        court.learn(may(verb), False)
    with pytest.raises(Forbidden, match="may not get logs orders"):
        court.standing(looking)


def test_all_claims_must_hold(court: Court) -> None:
    other = LogId(8)
    court.learn(may(Verb.READ), True)
    court.learn(WhatIs(other), Subject(FORKS, "secret", "vault"))
    court.learn(may(Verb.READ, Subject(FORKS, "secret", "vault")), False)
    for a, b in ((LOG, other), (other, LOG)):
        with pytest.raises(Forbidden, match="vault"):
            court.standing(messages.Compare(a, b))


def test_what_nobody_declares_has_its_rights_beside_the_service(court: Court) -> None:
    court.learn(WhatIs(LOG), Subject(LOGS, "orders"))
    at_home = Subject(LOGS, "orders", "home")
    assert court.standing() == Standing(0, (may(Verb.APPEND, at_home),))


def test_to_a_log_that_is_gone_nothing_can_be_done_that_would_have_to_be_allowed(
    court: Court,
) -> None:
    court.learn(WhatIs(LOG), None)
    assert court.standing(messages.Promote(LOG, b"r")) == Standing(court.now + ALLOW)
    assert court.standing(messages.Promote(NOWHERE, b"r")).until


def test_whether_a_name_is_taken_is_told_to_those_who_might_look_it_up(court: Court) -> None:
    court.learn(WhatIs("orders--try"), None)
    asked = court.standing(messages.Describe("orders--try"))
    assert asked.ask == (may(Verb.GET, Subject(FORKS, "orders--try", "home")),)


def test_a_name_may_be_another_logs_soon(court: Court) -> None:
    looking = messages.Describe("orders")
    court.learn(WhatIs("orders"), ORDERS)
    assert court.standing(looking).until == court.now + LOOK
    court.now += LOOK
    assert court.standing(looking) == Standing(0, (WhatIs("orders"),))


def test_what_is_remembered_is_bounded() -> None:
    court = Court(Terms(allow_ms=60_000, deny_ms=10_000, grace_ms=0, entries_max=2))
    court.learn(WhoIs(TOKEN), ANN)
    for log in range(1, 4):
        court.learn(WhatIs(LogId(log)), ORDERS)
    court.learn(may(Verb.APPEND), True)
    assert court.standing(messages.Append(LogId(3), b"")).until
    assert court.standing(messages.Append(LogId(1), b"")).ask == (WhatIs(LogId(1)),)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["who", "what", "may"]),
            st.booleans(),
            st.integers(0, ALLOW + GRACE),
        )
    )
)
def test_nothing_is_allowed_but_by_a_yes_that_is_young_enough(
    told: list[tuple[str, bool, int]],
) -> None:
    court = Court()
    questions: dict[str, Question] = {
        "who": WhoIs(TOKEN),
        "what": WhatIs(LOG),
        "may": may(Verb.APPEND),
    }
    last: dict[str, tuple[bool, int]] = {}
    for what, yes, later in told:
        answers = {"who": ANN if yes else "nobody", "what": ORDERS, "may": yes}
        court.learn(questions[what], answers[what])
        last[what] = (yes or what == "what"), court.now
        court.now += later
        young = all(
            each in last and last[each][0] and court.now - last[each][1] < ALLOW + GRACE
            for each in questions
        )
        try:
            allowed = bool(court.standing().until)
        except (Forbidden, Unauthenticated):
            allowed = False
        assert allowed == young
