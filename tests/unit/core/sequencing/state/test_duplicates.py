"""What a sequencing replica knows of appends, and when it may forget them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import Overloaded, RequestForgotten, RequestReused
from anabranch.core.limits import Limits
from anabranch.core.producers import REQUEST_EPOCH
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.state.duplicates import Duplicates
from anabranch.core.types import MS

LIMITS = Limits(producer_appends_max=3, producers_per_log_max=2, requests_max=4)
REQUEST = AppendId(99, REQUEST_EPOCH, 0)


def id_of(sequence: int, *, epoch: int = 0, producer: int = 7) -> AppendId:
    return AppendId(producer, epoch, sequence)


def test_an_unknown_producer_that_has_begun_elsewhere_was_forgotten() -> None:
    known = Duplicates(LIMITS)
    with pytest.raises(RequestForgotten):
        known.find(id_of(5), 5)
    assert not known.find(id_of(5), 0)


def test_what_a_producer_wont_repeat_is_neither_kept_nor_taken_for_new() -> None:
    known = Duplicates(LIMITS)
    for sequence in range(3):
        known.add(id_of(sequence), 0)
    with pytest.raises(Overloaded):
        known.find(id_of(3), 0)
    known.heard(id_of(2), 2, 0)
    assert not known.find(id_of(3), 2)
    with pytest.raises(RequestForgotten):
        known.find(id_of(0), 0)
    assert known.forgotten(id_of(0))
    assert not known.forgotten(id_of(2))
    known.place(id_of(1), 4, 0)
    known.place(id_of(2), 5, 0)
    assert known.position(id_of(1)) is None
    assert known.position(id_of(2)) == 5


def test_an_append_is_not_acknowledged_because_somebody_used_its_producer_id() -> None:
    """Readers see producer ids: whoever may append can send `lowest` under another's."""
    known = Duplicates(LIMITS)
    known.add(id_of(0), 0)
    stranger = id_of(1 << 30)
    assert not known.find(stranger, 1 << 30)
    known.add(stranger, 0)
    known.heard(stranger, 1 << 30, 0)
    with pytest.raises(RequestForgotten):
        known.find(id_of(1), 1)


def test_a_later_epoch_ends_the_one_before() -> None:
    known = Duplicates(LIMITS)
    known.add(id_of(0), 0)
    assert not known.find(id_of(0, epoch=1), 0)
    known.add(id_of(0, epoch=1), 0)
    with pytest.raises(RequestForgotten):
        known.find(id_of(1), 0)
    known.place(id_of(0), 3, 0)
    assert known.position(id_of(0, epoch=1)) is None


def test_an_append_that_comes_after_its_own_drop_is_known() -> None:
    known = Duplicates(LIMITS)
    known.place(id_of(2), 8, 0)
    assert known.find(id_of(2), 1)
    assert known.position(id_of(2)) == 8


def test_too_many_producers_are_refused_and_none_is_forgotten_for_them() -> None:
    known = Duplicates(LIMITS)
    for producer in (1, 2):
        known.add(id_of(0, producer=producer), 0)
    with pytest.raises(Overloaded):
        known.find(id_of(0, producer=3), 0)
    assert known.find(id_of(0, producer=1), 0)


def test_known_appends_are_bounded_and_silent_producers_are_forgotten_before_that() -> None:
    limits = Limits(known_appends_max=6)
    known = Duplicates(limits)
    for sequence in range(3):
        known.add(id_of(sequence, producer=1), 0)
    soon = limits.request_memory_min_ms * MS
    assert known.due(soon, 0) == []
    for sequence in range(2):
        known.place(id_of(sequence, producer=2), sequence, soon)
        known.place(id_of(sequence, producer=2), sequence, soon)
    assert known.due(soon, 0) == [id_of(0, producer=1)]
    known.place(id_of(2, producer=2), 2, soon)
    with pytest.raises(Overloaded):
        known.find(id_of(3, producer=2), 0)
    with pytest.raises(Overloaded):
        known.find(id_of(0, producer=3), 0)
    known = Duplicates(limits, known.image())
    with pytest.raises(Overloaded):
        known.find(id_of(0, producer=3), 0)
    known.heard(id_of(2, producer=2), 1, soon)
    assert not known.find(id_of(0, producer=3), 0)
    known.forget(known.due(soon, 0))
    known.add(id_of(0, producer=2, epoch=1), soon)
    for sequence in range(5):
        assert not known.find(id_of(sequence, producer=3), 0)
        known.add(id_of(sequence, producer=3), soon)
    with pytest.raises(Overloaded):
        known.find(id_of(5, producer=3), 0)


def test_a_request_id_is_used_for_one_content_only() -> None:
    known = Duplicates(LIMITS)
    assert not known.find(REQUEST, 0, 11)
    known.add(REQUEST, 0, 11)
    assert known.find(REQUEST, 0, 11)
    with pytest.raises(RequestReused):
        known.find(REQUEST, 0, 12)
    assert known.position(REQUEST) is None
    known.place(REQUEST, 3, 0)
    assert known.position(REQUEST) == 3


def test_silent_producers_and_old_requests_are_due_after_their_time() -> None:
    known = Duplicates(LIMITS)
    hour = LIMITS.producer_idle_ms * MS
    known.add(id_of(0, producer=1), 0)
    known.add(REQUEST, 0, 11)
    known.add(id_of(0, producer=2), 10)
    known.place(REQUEST, 0, 0)
    assert known.due(hour - 1, 0) == []
    assert known.due(hour, 1) == [], "this leader hasn't listened for so long"
    due = known.due(hour, 0)
    assert due == [id_of(0, producer=1), REQUEST]
    known.forget(due)
    assert not known.find(REQUEST, 0, 12)
    with pytest.raises(RequestForgotten):
        known.find(id_of(1, producer=1), 1)
    assert known.find(id_of(0, producer=2), 0)


def test_requests_are_due_sooner_when_there_are_many_and_never_while_they_wait() -> None:
    known = Duplicates(LIMITS)
    soon = LIMITS.request_memory_min_ms * MS
    for producer in range(3):
        known.add(AppendId(producer, REQUEST_EPOCH, 0), 0)
    assert known.due(soon, 0) == []
    known.place(AppendId(0, REQUEST_EPOCH, 0), 5, 0)
    assert known.due(soon, 0) == [AppendId(0, REQUEST_EPOCH, 0)]


def test_a_producer_that_went_on_in_a_later_epoch_is_not_forgotten_for_the_one_before() -> None:
    known = Duplicates(LIMITS)
    known.add(id_of(0, epoch=2), 0)
    known.forget([id_of(0, epoch=1)])
    assert known.find(id_of(0, epoch=2), 0)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "place", "image"]),
        st.integers(0, 1),
        st.integers(0, 2),
        st.integers(0, 6),
        st.integers(0, 6),
    ),
    max_size=40,
)


@given(STEPS)
def test_nothing_that_was_known_is_ever_taken_for_new(
    steps: list[tuple[str, int, int, int, int]],
) -> None:
    """Against a set that forgets nothing."""
    limits = Limits(producer_appends_max=100)
    known, everything, lowest = Duplicates(limits), set[AppendId](), dict[tuple[int, int], int]()
    for at, (what, producer, epoch, sequence, low) in enumerate(steps):
        id = AppendId(producer, epoch, sequence)
        if what == "image":
            known = Duplicates(limits, known.image())
        elif what == "place":
            known.place(id, at, at)
            everything.add(id)
        else:
            least = min(sequence, max(low, lowest.get((producer, epoch), 0)))
            try:
                found = known.find(id, least)
            except RequestForgotten:
                continue
            assert found == (id in everything)
            if not found:
                known.add(id, at)
            everything.add(id)
            known.heard(id, least, at)
            lowest[producer, epoch] = max(least, lowest.get((producer, epoch), 0))


def test_a_clock_that_went_back_keeps_nobody_known_for_ever() -> None:
    hour = LIMITS.producer_idle_ms * MS
    known, year = Duplicates(LIMITS), 9_000 * hour
    for producer in range(2):
        known.add(id_of(0, producer=producer), year + producer)
    for id in (REQUEST, AppendId(98, REQUEST_EPOCH, 0)):
        known.add(id, year)
        known.place(id, 1, year)
    assert known.due(10 * hour, 0) == [], "nobody can tell how long ago they were heard"
    known.forget(known.due(11 * hour, 0))
    assert len(known) == 0
