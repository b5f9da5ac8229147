"""How a sequencer and a controller share one address: a controller is called by its process's
address with `/controller` behind it, and what a letter is says whether a controller sends it or is
meant by it (docs/decisions/0060).
"""

from collections.abc import Collection

_SUFFIX = "/controller"


def controller_at(address: str) -> str:
    """The name of the controller in the process that is dialed here."""
    assert not address.endswith(_SUFFIX)
    return address + _SUFFIX


def address_of(node: str) -> str:
    """Where the process of this node is dialed."""
    assert node != _SUFFIX, "a node has an address"
    return node.removesuffix(_SUFFIX)


def names_at(address: str) -> tuple[str, str]:
    """All nodes that there may be in a process."""
    return address, controller_at(address)


def is_controller(node: str, *, controllers: Collection[str], sequencers: Collection[str]) -> bool:
    """May this node send what controllers send? It is one of the controllers that the asking node
    was started with, or is beside a sequencer of the configuration: that was added since.
    """
    added = node.endswith(_SUFFIX) and address_of(node) in sequencers
    return added or node in controllers


def named(address: str, *, controller: bool) -> str:
    """One of the nodes of the process at this address."""
    assert not address.endswith(_SUFFIX), "connections are between processes"
    return controller_at(address) if controller else address
