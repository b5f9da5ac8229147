"""A watch on a range of keys, delivered by a thread of its own until it ends."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread

import grpc

from anabranch.core.errors import AnabranchError, Unavailable
from anabranch.shell.etcd.api import etcd_pb2 as pb
from anabranch.shell.etcd.api.calls import Calls, Compacted, Endpoint, LeaseGone, Method

_WATCH: Method[pb.WatchRequest, pb.WatchResponse] = Method(
    "/etcdserverpb.Watch/Watch", pb.WatchResponse
)


@dataclass(frozen=True, slots=True)
class Changed:
    """What happened to keys of the range, in order; without events: the watch stands."""

    watch: "Watch"
    events: Sequence[pb.Event]


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing more is delivered by this watch, unless it is watched anew."""

    watch: "Watch"
    error: AnabranchError | Compacted | LeaseGone


WatchEvent = Changed | Ended


class Watch:
    """Begins at once. What it delivers names it, so that who has begun another can tell."""

    def __init__(
        self,
        calls: Calls,
        key: bytes,
        end: bytes,
        revision: int,
        deliver: Callable[[WatchEvent], None],
    ) -> None:
        self._calls = calls
        self._deliver = deliver
        self._over = SimpleQueue[None]()
        wanted = pb.WatchCreateRequest(key=key, range_end=end, start_revision=revision)
        self._endpoint, self._call = calls.stream(_WATCH, self._requests(wanted), None)
        self._thread = Thread(target=self._run, name="etcd-watch", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """It is deaf: watch anew, which will be at another member."""
        self._calls.leave(self._endpoint)
        self.cancel()

    def cancel(self) -> None:
        """From any thread; what is under way may still be delivered."""
        self._over.put(None)
        self._call.cancel()

    def _requests(self, wanted: pb.WatchCreateRequest) -> Iterator[pb.WatchRequest]:
        """The stream stays open as long as this has not ended."""
        yield pb.WatchRequest(create_request=wanted)
        self._over.get()

    def _run(self) -> None:
        try:
            for answer in self._call:
                response: pb.WatchResponse = answer
                if response.canceled:
                    self._end(_reason(self._endpoint, response))
                    return
                self._deliver(Changed(self, response.events))
            self._end(Unavailable(f"etcd {self._endpoint.address}", "the watch was ended"))
        except grpc.RpcError as failed:
            self._end(self._calls.error("Watch", 0, self._endpoint, failed))

    def _end(self, error: AnabranchError | Compacted | LeaseGone) -> None:
        self.cancel()
        self._deliver(Ended(self, error))


def _reason(endpoint: Endpoint, response: pb.WatchResponse) -> Unavailable | Compacted:
    if response.compact_revision:
        return Compacted(f"up to {response.compact_revision}")
    return Unavailable(f"etcd {endpoint.address}", f"watch: {response.cancel_reason}")
