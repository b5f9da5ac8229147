"""What stands in the way of keeping bytes, or of reading them again."""

from anabranch.core.errors.base import Damage, Fenced, Mistake, Retry


class StorageFull(Retry):
    code = "storage-full"
    status = 507
    says = "no space is left at {where}: free some there, and appends go on by themselves"

    def __init__(self, where: str) -> None:
        super().__init__(where=where)


class StorageFailed(Retry):
    code = "storage-failed"
    status = 503
    says = "{where} failed: {reason}; check the device, then try again"

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where=where, reason=reason)


class NoteDamaged(StorageFailed):
    """The device may be well: trying again doesn't mend the note."""

    code = "note-damaged"
    says = (
        "{where}, which notes how far a journal went, is damaged: {reason}. Put it back from a "
        "back-up. Without one, remove it if the journal was never put back from an older copy: "
        "nothing checks that then"
    )


class DataDirLocked(Fenced):
    code = "data-dir-locked"
    says = "{path} is in use by process {pid}: stop it first, or choose another --data"

    def __init__(self, path: str, pid: int) -> None:
        super().__init__(path=path, pid=pid)


class ObjectExists(Fenced):
    """Create-only writes are what keeps a fenced broker from overwriting."""

    code = "object-exists"
    says = "object {name} exists already and is never overwritten"

    def __init__(self, name: str) -> None:
        super().__init__(name=name)


class ObjectMissing(Damage):
    code = "object-missing"
    says = "object {name} is referenced but not in the store: run `anabranch fsck`"

    def __init__(self, name: str) -> None:
        super().__init__(name=name)


class CorruptObject(Damage):
    code = "corrupt-object"
    says = "object {name} is damaged: {reason}; run `anabranch fsck`"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name=name, reason=reason)


class RecordsDamaged(Damage):
    """What lies before these records was delivered; all others of the log can still be read."""

    code = "records-damaged"
    says = (
        "records {position} to {last} of log {log} can't be read: object {object}: {reason}; "
        "reading goes on at {after}. `anabranch fsck` shows all that is damaged, also while the "
        "server runs"
    )

    def __init__(self, log: str, position: int, after: int, object: str, reason: str) -> None:
        last = after - 1
        super().__init__(
            log=log, position=position, last=last, after=after, object=object, reason=reason
        )


class JournalCorrupt(Damage):
    code = "journal-corrupt"
    says = (
        "journal file {path} is damaged at byte {offset}: {reason}; nothing was changed. Restore "
        "the file, or run `anabranch fsck` to see what it would cost to cut it there"
    )

    def __init__(self, path: str, offset: int, reason: str) -> None:
        super().__init__(path=path, offset=offset, reason=reason)


class JournalBehind(Damage):
    """Served all the same, it would give positions out again and take acknowledged records for
    orphans.
    """

    code = "journal-behind"
    says = (
        "the journal {where} ends at entry {last}, and {proof}: entries that were acknowledged are "
        "missing, so nothing is served. {advice}"
    )

    def __init__(self, where: str, last: int, proof: str, advice: str) -> None:
        super().__init__(where=where, last=last, proof=proof, advice=advice)


class JournalTooNew(Damage):
    code = "journal-too-new"
    says = "{path} was written by a newer version (format {version}): upgrade before opening it"

    def __init__(self, path: str, version: int) -> None:
        super().__init__(path=path, version=version)


class WrongCluster(Mistake):
    code = "wrong-cluster"
    status = 409
    says = (
        "{where} belongs to cluster {theirs}, not to {ours}: choose the right place, or an empty "
        "one"
    )

    def __init__(self, where: str, theirs: str, ours: str) -> None:
        super().__init__(where=where, theirs=theirs, ours=ours)


class HalfCluster(Mistake):
    """Of etcd and the bucket, one knows the cluster and the other doesn't."""

    code = "half-cluster"
    status = 409
    says = "{where} has nothing of cluster {cluster}, which {other} has: {advice}"

    def __init__(self, where: str, cluster: str, other: str, advice: str) -> None:
        super().__init__(where=where, cluster=cluster, other=other, advice=advice)


class NotLost(Mistake):
    code = "not-lost"
    status = 409
    says = "cluster {cluster} isn't lost: {where} has it; start its metadata members instead"

    def __init__(self, cluster: str, where: str) -> None:
        super().__init__(cluster=cluster, where=where)


class UnknownCluster(Mistake):
    code = "unknown-cluster"
    status = 404
    says = "no cluster {cluster} has ever used {where}: check its name, the bucket and the prefix"

    def __init__(self, cluster: str, where: str) -> None:
        super().__init__(cluster=cluster, where=where)


class Deposed(Fenced):
    """A zombie's writes fail: another was elected, and with it goes the lead."""

    code = "deposed"
    says = "{led} is led by another since term {term} ended: nothing was written"

    def __init__(self, led: str, term: int) -> None:
        super().__init__(led=led, term=term)


class AccessDenied(Mistake):
    code = "access-denied"
    status = 403
    says = "{where} doesn't let {who} in: {reason}; check user, password, certificate and role"

    def __init__(self, where: str, who: str, reason: str) -> None:
        super().__init__(where=where, who=who, reason=reason)


class NotFetchable(Mistake):
    """Readers of a scan plan can't get at the objects themselves."""

    code = "not-fetchable"
    status = 409
    says = (
        "objects of this service can't be fetched by others ({reason}): read the records from the "
        "service"
    )

    def __init__(self, reason: str) -> None:
        super().__init__(reason=reason)


class ClockSkewed(Mistake):
    """Leases and times of records are told by this machine's clock."""

    code = "clock-skewed"
    status = 409
    says = "this machine's clock is off by {by}, says {where}: set it right, then start again"

    def __init__(self, where: str, by: str) -> None:
        super().__init__(where=where, by=by)


class EntryCorrupt(Damage):
    code = "entry-corrupt"
    says = (
        "journal entry {index} at {where} is damaged: {reason}; stop the cluster, then rebuild "
        "its journal with `anabranch recover --from-bucket --replace`"
    )

    def __init__(self, index: int, where: str, reason: str) -> None:
        super().__init__(index=index, where=where, reason=reason)
