"""What was learned elsewhere, against a list of all that was."""

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.rights.recollection import Recalled, Recollection

steps = st.lists(
    st.tuples(
        st.sampled_from(["learn", "forget", "recall", "wait"]),
        st.integers(0, 5),
        st.integers(0, 4),
        st.integers(0, 4),
    ),
    max_size=40,
)


@given(most=st.integers(1, 4), steps=steps)
def test_it_knows_the_latest_until_it_is_too_old_and_the_first_learned_goes_first(
    most: int, steps: list[tuple[str, int, int, int]]
) -> None:
    memory: Recollection[int, int] = Recollection(most)
    known: dict[int, tuple[int, int, int]] = {}
    now = 0
    for turn, (what, key, good, grace) in enumerate(steps):
        match what:
            case "learn":
                memory.learn(key, turn, now + good, now + good + grace)
                known.pop(key, None)
                known[key] = (turn, now + good, now + good + grace)
                if len(known) > most:
                    del known[next(iter(known))]
            case "forget":
                memory.forget(key)
                known.pop(key, None)
            case "wait":
                now += good
            case _:
                found = memory.recall(key, now)
                value, until, kept = known.get(key, (0, 0, 0))
                if key in known and now < kept:
                    assert found == Recalled(value, until)
                else:
                    assert found is None
                    known.pop(key, None)
        assert len(memory) == len(known) <= most
