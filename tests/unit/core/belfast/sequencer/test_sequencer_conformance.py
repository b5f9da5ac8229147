"""Belfast's ledger conforms to what `core.consensus` asks of a user, and is asked itself: the same
decisions lead to the same ledger on every sequencer, also through images.
"""

import msgspec
import pytest
from tests.unit.core.consensus.conformance import conform

from anabranch.core.belfast.ledger.decisions import Admit, decode_entry, encode_entry
from anabranch.core.belfast.ledger.ledger import Image, Ledger


class LedgerState:
    """As a sequencer keeps it."""

    no_op = encode_entry(())

    def __init__(self) -> None:
        self._ledger = Ledger()

    def entry(self, number: int) -> bytes:
        return encode_entry((Admit(f"shard-{number}", (f"node-{number}",), 0),))

    def apply(self, entry: bytes) -> None:
        self._ledger.apply(decode_entry(entry))

    def image(self) -> bytes:
        return msgspec.msgpack.encode(self._ledger.image())

    def restore(self, image: bytes) -> None:
        self._ledger = Ledger(msgspec.msgpack.decode(image, type=Image))


@pytest.mark.parametrize("seed", range(8))
def test_a_ledger_conforms(seed: int) -> None:
    conform(seed, LedgerState)
