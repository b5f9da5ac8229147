"""Belfast's messages in a simulation."""

import msgspec

from anabranch.core.belfast.protocol.codec import CODEC, Letter
from anabranch.core.belfast.protocol.messages import (
    BELFAST_VERSION,
    Confirmed,
    Delivered,
    Eras,
    Failed,
    Hello,
    Welcome,
)
from anabranch.core.limits import Limits
from anabranch_sim.world.wire import ClientWire, Wire

CLUSTER = "sim"


def belfast_wire(limits: Limits) -> Wire:
    return Wire(
        letter=msgspec.msgpack.Decoder(Letter).decode,
        clients=ClientWire(
            codec=CODEC,
            frame_bytes_max=limits.frame_bytes_max,
            hello=Hello,
            welcome=welcome,
            pushed=(Delivered, Confirmed, Eras, Failed),
        ),
    )


def welcome(node: str) -> Welcome:
    return Welcome(BELFAST_VERSION, CLUSTER, node, "", 1 << 20, 1_000)
