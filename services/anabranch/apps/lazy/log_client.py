"""The way from the processes of a lazy front to their log: a client of the log's service."""

import asyncio
from collections.abc import Callable
from functools import partial

from anabranch.client.bolt.call import Call
from anabranch.client.bolt.link import Link
from anabranch.client.session.endpoint import Endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.front.questions import LOG, AskLog, LogAnswered
from anabranch.core.bolt.protocol.messages import Order
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Event, Received
from anabranch.core.types import Milliseconds

TIMEOUT_MS: Milliseconds = 10_000
"""How long one question is tried, at whichever brokers are there. Then its machine hears what stood
in the way, shows it, and asks again: a broker that still has the batch doesn't take it twice.
"""


class LogClient:
    """Passes on what the front's machines of this process ask, and brings them the answers."""

    def __init__(self, endpoint: Endpoint, node: str, post: Callable[[str, Event], None]) -> None:
        """`post` gives a machine of this process, by its name, the answer."""
        self._link = Link(endpoint, Settings(client=node))
        self._post = post
        self._closed = False

    def start(self) -> None:
        self._link.start()

    def receive(self, sender: str, letter: AskLog) -> None:
        call = Call(Order(letter.message), f"what {sender} asks of its log", TIMEOUT_MS)
        call.waiter = answered = asyncio.get_running_loop().create_future()
        answered.add_done_callback(partial(self._answered, sender, letter.request, call))
        self._link.put(call)

    def close(self) -> None:
        self._closed = True
        self._link.close()

    def _answered(self, sender: str, request: int, call: Call, _: object) -> None:
        if self._closed:
            return
        answer = call.answer if call.error is None else Refused.of(call.error)
        self._post(sender, Received(LOG, LogAnswered(request, answer)))
