"""Numbers in requests of all engines: what no log could follow is refused before it is used."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.belfast.protocol import messages as of_belfast
from anabranch.core.bolt.protocol import messages as of_bolt
from anabranch.core.bolt.protocol.commands import Receipt
from anabranch.core.errors import BadRequest
from anabranch.core.sequencing.protocol import messages as of_sequencing
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import NEVER, LogId
from anabranch.core.wire.numbers import AMOUNTS, fault_in
from anabranch.core.wire.session import Cancel, Credit

LOG = LogId(1)
wide = st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([-NEVER, NEVER, -1, 0, NEVER + 1])


def naive(message: Any) -> bool:
    """Is any number in it out of its bounds?"""
    for field in msgspec.structs.fields(type(message)):
        value = getattr(message, field.name)
        if isinstance(value, msgspec.Struct) and naive(value):
            return True
        if isinstance(value, int) and not isinstance(value, bool):
            least = 0 if field.name in AMOUNTS else -NEVER
            most = (1 << 63) - 1 if field.name == "producer" else NEVER
            if value < least or value > most:
                return True
    return False


requests = st.one_of(
    st.builds(of_bolt.Read, wide, wide, wide, wide, wide),
    st.builds(of_bolt.Subscribe, wide, wide, st.booleans(), wide),
    st.builds(of_bolt.Redeem, st.builds(Receipt, wide, wide, wide), wide),
    st.builds(
        of_bolt.Guarded, st.just("s"), wide, st.builds(of_bolt.Trim, wide, wide, st.just(b""))
    ),
    st.builds(of_bolt.ListLogs, count_max=wide),
    st.builds(Credit, wide, wide),
    st.builds(Cancel, wide),
    st.builds(of_belfast.Subscribe, st.just("s"), wide, st.none(), wide),
    st.builds(
        of_belfast.Subscribe,
        st.just("s"),
        wide,
        st.builds(of_belfast.Where, key_modulus=wide, key_remainder=wide),
        wide,
    ),
    st.builds(of_belfast.Trim, wide),
    st.builds(of_sequencing.FindPosition, st.builds(AppendId, wide, wide, wide)),
)


@given(requests)
def test_a_request_is_refused_just_if_a_number_in_it_is_out_of_its_bounds(message: Any) -> None:
    fault = fault_in(message)
    assert (fault is not None) == naive(message)
    if fault is not None:
        assert isinstance(fault, BadRequest)
        assert str(NEVER) in fault.message


@pytest.mark.parametrize("amount", sorted(AMOUNTS))
def test_an_amount_is_never_less_than_nothing(amount: str) -> None:
    """It would give back what nobody took."""
    kinds = [*of_bolt.Control.__args__, *of_belfast.ToServer.__args__]
    having = [kind for kind in kinds if amount in kind.__struct_fields__]
    assert having, "some request asks for it"
    for kind in having:
        plain = {
            "log": LOG, "start": 0, "shard": "s", "records_max": 1, "bytes_max": 1, "wait_ms": 0,
            "request": b"r",
        }  # fmt: skip
        fields = {name: plain[name] for name in kind.__struct_fields__ if name in plain}
        assert fault_in(kind(**{**fields, amount: 0})) is None
        fault = fault_in(kind(**{**fields, amount: -1}))
        assert fault is not None
        assert amount in fault.message


def test_a_flag_is_no_number_and_a_wait_may_be_the_servers() -> None:
    assert fault_in(of_bolt.Subscribe(LOG, 0, True)) is None
    assert fault_in(of_bolt.Read(LOG, 0, 1, 1, -1)) is None
    assert fault_in(of_bolt.Append(LOG, b"", -1)) is None


def test_every_producer_that_a_client_can_draw_may_be_asked_about() -> None:
    last = AppendId((1 << 63) - 1, 0, 0)
    assert fault_in(of_sequencing.FindPosition(last)) is None
    meta = of_sequencing.AppendMeta(1, 0, last, 1, 1, "shard-0")
    assert fault_in(meta) is None
