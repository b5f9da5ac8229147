"""Erwin's messages in a simulation: its nodes have two kinds of clients."""

import msgspec

from anabranch.core.erwin.protocol import codec as shard_codec
from anabranch.core.erwin.protocol import messages as shard
from anabranch.core.erwin.protocol.letters import ErwinLetter
from anabranch.core.limits import Limits
from anabranch.core.replication.letters import ReplicaLetter
from anabranch.core.sequencing.protocol import codec as sequencing_codec
from anabranch.core.sequencing.protocol import messages as sequencing
from anabranch.core.sequencing.protocol.letters import SequencingLetter
from anabranch_sim.world.wire import ClientWire, Wire

CLUSTER = "sim"


def erwin_wire() -> Wire:
    return Wire(
        letter=msgspec.msgpack.Decoder(SequencingLetter | ErwinLetter | ReplicaLetter).decode
    )


def sequencing_wire(limits: Limits) -> ClientWire:
    def welcome(node: str) -> sequencing.Welcome:
        version = sequencing.SEQUENCING_VERSION
        return sequencing.Welcome(version, CLUSTER, node, "", 1 << 20, 1_000)

    return ClientWire(
        codec=sequencing_codec.CODEC,
        frame_bytes_max=limits.frame_bytes_max,
        hello=sequencing.Hello,
        welcome=welcome,
        pushed=(),
    )


def shard_wire(limits: Limits) -> ClientWire:
    def welcome(node: str) -> shard.Welcome:
        return shard.Welcome(shard.ERWIN_VERSION, CLUSTER, node, "", 1 << 20, 1_000)

    return ClientWire(
        codec=shard_codec.CODEC,
        frame_bytes_max=limits.frame_bytes_max,
        hello=shard.Hello,
        welcome=welcome,
        pushed=(shard.Delivered,),
    )
