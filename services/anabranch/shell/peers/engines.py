"""The part that the processes of each engine take in a mesh: the one place of this room that knows
which engines there are.
"""

from collections.abc import Callable
from typing import Any

from anabranch.core.belfast.protocol import codec as belfast
from anabranch.core.belfast.protocol.messages import BELFAST_VERSION
from anabranch.core.bolt.front import letters as front
from anabranch.core.bolt.front.letters import FRONT_VERSION
from anabranch.core.bolt.protocol import peers as bolt
from anabranch.core.erwin.protocol import codec as erwin
from anabranch.core.erwin.protocol.messages import ERWIN_VERSION
from anabranch.core.wire.frames import FrameReader
from anabranch.core.wire.peers import PEER_VERSION, FromNode, greetings
from anabranch.shell.net.connect import is_address, parse_address
from anabranch.shell.peers.protocol import PeerProtocol

NAME = "{name}"
"""The place of a broker's name in `peer_names`, up to its first dot."""


def bolt_member(names: str = "") -> PeerProtocol:
    """A metadata member: brokers dial it, and it answers there.

    `names`: how a broker's certificate must name it, `{name}` standing for its own name.
    """

    def certificate_name(node: str) -> str | None:
        # In a pod a broker is called by the pod's name, a dot, and the pod's UID.
        return names.replace(NAME, node.partition(".")[0]) if names else None

    return PeerProtocol(
        version=PEER_VERSION,
        own_noun="metadata member",
        dialed_noun="member",
        dialer_noun="broker",
        from_dialed=bolt.messages_of_members,
        from_dialers=bolt.letters_of_brokers,
        answers=True,
        name_objection=lambda node: None if node else "give it one with --name",
        certificate_name=certificate_name,
        certificate_setting="peer_names",
        moves=False,
    )


def bolt_broker() -> PeerProtocol:
    """A broker: it dials every metadata member, and nobody dials it as a peer."""
    return PeerProtocol(
        version=PEER_VERSION,
        own_noun="broker",
        dialed_noun="member",
        dialer_noun="broker",
        from_dialed=bolt.messages_of_members,
        from_dialers=bolt.letters_of_brokers,
        answers=False,
        name_objection=lambda _: "brokers don't dial one another",
        certificate_name=lambda _: None,
        certificate_setting="peer_tls",
        moves=False,
    )


def belfast_node() -> PeerProtocol:
    """A sequencer or a replica."""
    return _addressed_node(BELFAST_VERSION, belfast.letters)


def erwin_node() -> PeerProtocol:
    """A sequencer, a replica or a controller."""
    return _addressed_node(ERWIN_VERSION, erwin.letters)


def front_node() -> PeerProtocol:
    """A sequencer or a controller of a lazy front."""
    return _addressed_node(FRONT_VERSION, front.letters)


def _addressed_node(version: int, letters: Callable[[int], FrameReader[Any]]) -> PeerProtocol:
    """A node is named by the address at which the others dial it."""

    def from_dialed(_: int) -> FrameReader[FromNode]:
        return greetings()

    return PeerProtocol(
        version=version,
        own_noun="node",
        dialed_noun="node",
        dialer_noun="node",
        from_dialed=from_dialed,
        from_dialers=letters,
        answers=False,
        name_objection=lambda node: None if is_address(node) else "nobody could dial it",
        certificate_name=lambda node: parse_address(node)[0],
        certificate_setting="tls",
        moves=True,
    )
