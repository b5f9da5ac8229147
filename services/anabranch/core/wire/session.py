"""Messages that the clients of every engine send about their own requests."""

import msgspec


class Credit(msgspec.Struct, frozen=True, array_like=True, tag="credit"):
    """The subscriber has consumed this many more bytes of what its request is answered with."""

    subscription: int
    """The number of the request that subscribed."""
    bytes: int


class Cancel(msgspec.Struct, frozen=True, array_like=True, tag="cancel"):
    """The client no longer wants an answer to this request."""

    request: int
