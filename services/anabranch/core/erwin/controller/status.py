"""How a log's controller is, for people and gauges."""

import msgspec

from anabranch.core.erwin.protocol.letters import Configuration


class ControllerStatus(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    leads: bool
    term: int
    obstacle: str | None
    """Why nothing is decided, or what can't be; None: all is well."""
    configuration: Configuration
    changing: str
    """The phase of the view change under way; empty: none is."""
    silent: tuple[str, ...]
    """Nodes that nothing is heard of."""
    leaving: tuple[str, ...]
    """Nodes whose processes are about to end."""
    taking_over: tuple[str, ...]
    """Shards that get another primary."""
