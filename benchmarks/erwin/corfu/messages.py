"""What a client, the sequencer and replicas of Corfu say to each other."""

import msgspec

from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.messages import Hello, Welcome
from anabranch.core.types import Position
from anabranch.core.wire.session import Cancel, Credit

CORFU_VERSION = 1


class CorfuMessage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base."""


class Next(CorfuMessage, frozen=True, tag="next"):
    """To the sequencer: give me the next position. Answered with `Granted`."""


class Granted(CorfuMessage, frozen=True, tag="granted"):
    position: Position


class Write(CorfuMessage, frozen=True, tag="write"):
    """To a replica: put this batch at this position, which is written once. Answered with
    `Written`.
    """

    position: Position
    batch: bytes


class Written(CorfuMessage, frozen=True, tag="written"):
    """The replica holds the batch, on its disk if the durability is `fsync`."""


class Read(CorfuMessage, frozen=True, tag="read"):
    """To the last replica of a chain. Answered with `Found`."""

    position: Position


class Found(CorfuMessage, frozen=True, tag="found"):
    """Empty: nothing is written at that position yet."""

    batch: bytes


ToCorfu = Hello | Next | Write | Read | Credit | Cancel
FromCorfu = Welcome | Granted | Written | Found | Refused
