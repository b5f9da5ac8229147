"""Bolt's messages in a simulation."""

from functools import partial

import msgspec

from anabranch.core.bolt.protocol.codec import CODEC
from anabranch.core.bolt.protocol.letters import FromMetadata, ToMetadata
from anabranch.core.bolt.protocol.messages import (
    PROTOCOL_VERSION,
    Confirmed,
    Delivered,
    Failed,
    Hello,
    Welcome,
)
from anabranch.core.limits import Limits
from anabranch_sim.world.wire import ClientWire, Wire

CLUSTER = "sim"


def bolt_wire(limits: Limits) -> Wire:
    return Wire(
        letter=msgspec.msgpack.Decoder(ToMetadata | FromMetadata).decode,
        clients=ClientWire(
            codec=CODEC,
            frame_bytes_max=limits.frame_bytes_max,
            hello=Hello,
            welcome=partial(_welcome, limits),
            pushed=(Delivered, Confirmed, Failed),
        ),
    )


def _welcome(limits: Limits, node: str) -> Welcome:
    return Welcome(
        version=PROTOCOL_VERSION,
        cluster=CLUSTER,
        server=node,
        record_bytes_max=limits.record_bytes_max,
        batch_bytes_max=limits.batch_bytes_max,
        batch_records_max=limits.batch_records_max,
    )
