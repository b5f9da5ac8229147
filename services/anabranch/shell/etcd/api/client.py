"""etcd's API as far as we use it: keys, transactions, leases, maintenance. For any thread."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import grpc

from anabranch.core.errors import BadRequest, DeadlineExceeded, Unavailable
from anabranch.shell.etcd.api import etcd_pb2 as pb
from anabranch.shell.etcd.api.calls import Calls, Compacted, LeaseGone, Method
from anabranch.shell.etcd.api.settings import EtcdSettings
from anabranch.shell.etcd.api.watch import Watch, WatchEvent

_RANGE: Method[pb.RangeRequest, pb.RangeResponse] = Method(
    "/etcdserverpb.KV/Range", pb.RangeResponse
)
_DELETE: Method[pb.DeleteRangeRequest, pb.DeleteRangeResponse] = Method(
    "/etcdserverpb.KV/DeleteRange", pb.DeleteRangeResponse
)
_TXN: Method[pb.TxnRequest, pb.TxnResponse] = Method(
    "/etcdserverpb.KV/Txn", pb.TxnResponse, repeatable=False
)
_COMPACT: Method[pb.CompactionRequest, pb.CompactionResponse] = Method(
    "/etcdserverpb.KV/Compact", pb.CompactionResponse
)
_GRANT: Method[pb.LeaseGrantRequest, pb.LeaseGrantResponse] = Method(
    "/etcdserverpb.Lease/LeaseGrant", pb.LeaseGrantResponse
)
_REVOKE: Method[pb.LeaseRevokeRequest, pb.LeaseRevokeResponse] = Method(
    "/etcdserverpb.Lease/LeaseRevoke", pb.LeaseRevokeResponse
)
_KEEP_ALIVE: Method[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse] = Method(
    "/etcdserverpb.Lease/LeaseKeepAlive", pb.LeaseKeepAliveResponse
)
_ALARM: Method[pb.AlarmRequest, pb.AlarmResponse] = Method(
    "/etcdserverpb.Maintenance/Alarm", pb.AlarmResponse
)
_STATUS: Method[pb.StatusRequest, pb.StatusResponse] = Method(
    "/etcdserverpb.Maintenance/Status", pb.StatusResponse
)
_DEFRAGMENT: Method[pb.DefragmentRequest, pb.DefragmentResponse] = Method(
    "/etcdserverpb.Maintenance/Defragment", pb.DefragmentResponse
)


@dataclass(frozen=True, slots=True)
class Ranged:
    """Keys with their values, as of `revision`; `more` if the limit left some out."""

    kvs: Sequence[pb.KeyValue]
    more: bool
    revision: int

    @property
    def one(self) -> pb.KeyValue | None:
        """The only one there can be."""
        assert len(self.kvs) <= 1
        return self.kvs[0] if self.kvs else None


@dataclass(frozen=True, slots=True)
class Lease:
    id: int
    ttl_s: int
    """What etcd granted, which may be more than was asked for."""


def prefix_end(prefix: bytes) -> bytes:
    """The end of the range of all keys that begin so."""
    assert prefix[-1] < 0xFF
    return prefix[:-1] + bytes((prefix[-1] + 1,))


def put_op(key: bytes, value: bytes, lease: int = 0) -> pb.RequestOp:
    return pb.RequestOp(request_put=pb.PutRequest(key=key, value=value, lease=lease))


def delete_op(key: bytes, end: bytes = b"") -> pb.RequestOp:
    request = pb.DeleteRangeRequest(key=key, range_end=end)
    return pb.RequestOp(request_delete_range=request)


def range_op(key: bytes) -> pb.RequestOp:
    return pb.RequestOp(request_range=pb.RangeRequest(key=key))


def latest_created_op(key: bytes, end: bytes, before: int) -> pb.RequestOp:
    """Of the keys created before this revision the last one."""
    request = pb.RangeRequest(
        key=key,
        range_end=end,
        limit=1,
        max_create_revision=before - 1,
        sort_target=pb.RangeRequest.CREATE,
        sort_order=pb.RangeRequest.DESCEND,
    )
    return pb.RequestOp(request_range=request)


def created_at(key: bytes, revision: int) -> pb.Compare:
    """Holds while the key is the one that was created then; 0: while there is none."""
    return pb.Compare(
        result=pb.Compare.EQUAL,
        target=pb.Compare.CREATE,
        key=key,
        create_revision=revision,
    )


def absent(key: bytes) -> pb.Compare:
    return created_at(key, 0)


class EtcdClient:
    """Reads are linearizable: they see whatever was acknowledged to anybody before."""

    def __init__(self, settings: EtcdSettings) -> None:
        self._calls = Calls(settings)

    @property
    def where(self) -> str:
        """What errors call this etcd."""
        return self._calls.where

    def range(
        self,
        key: bytes,
        end: bytes = b"",
        *,
        limit: int = 0,
        revision: int = 0,
        keys_only: bool = False,
        descending: bool = False,
    ) -> Ranged:
        """In order of key; raises Compacted if that revision is gone."""
        asked = pb.RangeRequest(
            key=key, range_end=end, limit=limit, revision=revision, keys_only=keys_only
        )
        if descending:
            asked.sort_order = pb.RangeRequest.DESCEND
        answer = self._calls.call(_RANGE, asked)
        return Ranged(answer.kvs, answer.more, answer.header.revision)

    def get(self, key: bytes) -> pb.KeyValue | None:
        return self.range(key).one

    def delete(self, key: bytes, end: bytes = b"") -> int:
        """How many keys went."""
        return self._calls.call(_DELETE, pb.DeleteRangeRequest(key=key, range_end=end)).deleted

    def put(self, key: bytes, value: bytes, lease: int = 0) -> int:
        """The revision; unanswered, it may or may not have happened."""
        return self.txn((), (put_op(key, value, lease),)).header.revision

    def txn(
        self,
        compare: Iterable[pb.Compare],
        success: Iterable[pb.RequestOp],
        failure: Iterable[pb.RequestOp] = (),
        *,
        deadline_ms: int = 0,
    ) -> pb.TxnResponse:
        """Sent once. After Unavailable, DeadlineExceeded and StorageFull alike it may or may not
        have been applied: the last because etcd applies what makes it overflow, and says so.
        """
        request = pb.TxnRequest(compare=compare, success=success, failure=failure)
        return self._calls.call(_TXN, request, deadline_ms=deadline_ms)

    def compact(self, revision: int) -> None:
        """Forget what was overwritten or deleted up to this revision, on disk as well."""
        request = pb.CompactionRequest(revision=revision, physical=True)
        self._calls.call(_COMPACT, request, deadline_ms=30_000)

    def grant(self, ttl_s: int) -> Lease:
        granted = self._calls.call(_GRANT, pb.LeaseGrantRequest(TTL=ttl_s))
        return Lease(granted.ID, granted.TTL)

    def keep_alive(self, lease: int, deadline_ms: int) -> None:
        """Begin the lease's time anew; LeaseGone if it is over."""
        requests = iter((pb.LeaseKeepAliveRequest(ID=lease),))
        endpoint, call = self._calls.stream(_KEEP_ALIVE, requests, deadline_ms / 1_000)
        try:
            answer: pb.LeaseKeepAliveResponse = next(call)
        except grpc.RpcError as failed:
            error = self._calls.error("LeaseKeepAlive", deadline_ms, endpoint, failed)
            raise error from failed
        finally:
            call.cancel()
        if answer.TTL <= 0:
            raise LeaseGone(f"lease {lease:x}")

    def revoke(self, lease: int, deadline_ms: int = 0) -> None:
        """End the lease, and with it the keys that hang on it; LeaseGone if it has ended."""
        self._calls.call(_REVOKE, pb.LeaseRevokeRequest(ID=lease), deadline_ms=deadline_ms)

    def watch(
        self, key: bytes, end: bytes, revision: int, deliver: Callable[[WatchEvent], None]
    ) -> Watch:
        """Have every change from this revision on delivered, by a thread of the watch's own."""
        return Watch(self._calls, key, end, revision, deliver)

    def alarms(self) -> list[pb.AlarmMember]:
        return list(self._calls.call(_ALARM, pb.AlarmRequest(action=pb.AlarmRequest.GET)).alarms)

    def disarm(self, alarm: pb.AlarmMember) -> None:
        request = pb.AlarmRequest(
            action=pb.AlarmRequest.DEACTIVATE, memberID=alarm.memberID, alarm=alarm.alarm
        )
        self._calls.call(_ALARM, request)

    def status(self) -> pb.StatusResponse:
        """Of the member that is asked first."""
        return self._calls.call(_STATUS, pb.StatusRequest())

    def sizes(self) -> list[int]:
        """Of every member's database that can be asked."""
        found: list[int] = []
        for endpoint in self._calls.endpoints:
            with suppress(Unavailable, DeadlineExceeded):
                status = self._calls.call(_STATUS, pb.StatusRequest(), endpoint=endpoint)
                found.append(status.dbSize)
        return found

    def compact_each(self, revision: int) -> None:
        """As `compact`, and wait for every member that answers; the revision is the last one's.

        Only the member that is asked waits, and only for a revision not compacted to before: so
        each is asked for another.
        """
        endpoints = self._calls.endpoints
        for each, endpoint in enumerate(endpoints, revision + 1 - len(endpoints)):
            request = pb.CompactionRequest(revision=each, physical=True)
            with suppress(Compacted, BadRequest, Unavailable, DeadlineExceeded):
                self._calls.call(_COMPACT, request, deadline_ms=30_000, endpoint=endpoint)

    def defragment_each(self) -> None:
        """Every member that answers, one after the other: none answers while it is at it."""
        for endpoint in self._calls.endpoints:
            with suppress(Unavailable, DeadlineExceeded):
                self._calls.call(
                    _DEFRAGMENT, pb.DefragmentRequest(), deadline_ms=60_000, endpoint=endpoint
                )

    def close(self) -> None:
        self._calls.close()
