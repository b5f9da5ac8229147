"""Which settings decide the outcome of a command, and so are the cluster's."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.limits import REPLICATED, Limits, replicated, with_replicated

fields = {field.name: field for field in msgspec.structs.fields(Limits)}


@given(st.dictionaries(st.sampled_from(sorted(fields)) | st.text(max_size=5), st.integers(1, 99)))
def test_of_a_journals_limits_those_count_that_decide_outcomes(values: dict[str, int]) -> None:
    """A later version may journal limits that this one doesn't know."""
    own = Limits()
    limits = with_replicated(own, values)
    for name in fields:
        wanted = values.get(name, getattr(own, name)) if name in REPLICATED else getattr(own, name)
        assert getattr(limits, name) == wanted
    assert with_replicated(Limits(logs_max=3), replicated(limits)) == limits


def test_what_fits_into_a_batch_fits_into_what_carries_it() -> None:
    limits = Limits()
    assert limits.record_bytes_max <= limits.batch_bytes_max < limits.frame_bytes_max
    assert limits.frame_bytes_max < limits.peer_frame_bytes_max <= limits.peer_unsent_bytes_max
    assert limits.batch_bytes_max <= limits.batch_unpacked_bytes_max
    assert limits.log_queue_bytes_max < limits.queue_bytes_max
    assert limits.frame_bytes_max < limits.connection_bytes_max < limits.request_bytes_max
    assert limits.request_memory_min_ms <= limits.request_memory_ms
    assert limits.alive_ms < limits.silence_ms
