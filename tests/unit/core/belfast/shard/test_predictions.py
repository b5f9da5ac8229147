"""How many records were predicted and how many voided, against a list of all places."""

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.belfast.shard.predictions import Forecast
from anabranch.core.belfast.shard.record_counts import Tally
from anabranch.core.replication.entries import Item

steps = st.lists(
    st.tuples(
        st.sampled_from(["log", "log", "no-ops", "cut", "free cut", "void"]), st.integers(0, 6)
    ),
    min_size=10,
    max_size=40,
)


class Places:
    """Whether there is a record at each place, and what became of it."""

    def __init__(self) -> None:
        self.real: list[bool] = []
        self.settled = 0
        self.foretold = 0
        self.voided = 0

    def cut(self, confirmed: int, *, foreseen: bool) -> None:
        upto = max(self.settled, min(confirmed, len(self.real)))
        if foreseen:
            self.foretold += sum(self.real[self.settled : upto])
        self.settled = upto


@given(steps)
def test_predictions_are_counted_as_a_list_of_places_counts_them(
    done: list[tuple[str, int]],
) -> None:
    tally, places = Tally(), Places()
    forecast = Forecast(tally)
    confirmed = 0
    for what, count in done:
        match what:
            case "log" | "no-ops" if count:
                batch = b"x" if what == "log" else b""
                tally.logged(Item(len(places.real), count, batch))
                places.real += [what == "log"] * count
            case "cut" | "free cut":
                # A backup may hear of a cut before it has the records.
                confirmed += count
                forecast.cut(confirmed, foreseen=what == "cut")
                places.cut(confirmed, foreseen=what == "cut")
            case "void":
                low = max(places.settled, len(places.real) - count)
                forecast.void(low, len(places.real))
                places.voided += sum(places.real[low:])
                tally.cut_back(low)
                del places.real[low:]
                confirmed = min(confirmed, low)
            case _:
                pass
        assert forecast.settled == places.settled
        assert (forecast.foretold, forecast.voided) == (places.foretold, places.voided)


def test_what_a_backup_gets_after_a_cut_counts_with_the_next() -> None:
    tally = Tally()
    forecast = Forecast(tally)
    forecast.cut(5, foreseen=True)
    assert (forecast.settled, forecast.foretold) == (0, 0)
    tally.logged(Item(0, 8, b"x"))
    forecast.cut(6, foreseen=True)
    assert (forecast.settled, forecast.foretold) == (6, 6)


def test_it_goes_on_from_what_was_noted() -> None:
    tally = Tally()
    tally.logged(Item(0, 10, b"x"))
    forecast = Forecast(tally)
    forecast.begin(4, 3, 2)
    forecast.cut(10, foreseen=True)
    assert (forecast.settled, forecast.foretold, forecast.voided) == (10, 9, 2)


def test_records_of_free_will_are_settled_and_were_not_predicted() -> None:
    tally = Tally()
    tally.logged(Item(0, 10, b"x"))
    forecast = Forecast(tally)
    forecast.cut(4, foreseen=False)
    forecast.cut(10, foreseen=True)
    assert (forecast.settled, forecast.foretold) == (10, 6)
