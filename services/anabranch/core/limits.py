"""Every limit and interval, named, with its unit last; one frozen object that the whole process
shares.
"""

import msgspec

KIB = 1024
MIB = 1024 * KIB


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    record_bytes_max: int = MIB
    """Key, value and headers of one record."""

    batch_bytes_max: int = 4 * MIB
    """One record batch as it is sent, compressed or not."""

    batch_records_max: int = 100_000
    """Records in one batch."""

    batch_unpacked_bytes_max: int = 16 * MIB
    """What a compressed batch may grow to; a larger one is a decompression bomb and refused."""

    record_headers_max: int = 5_000
    """Headers of one record."""

    batch_headers_max: int = 131_072
    """Headers of all records in one batch."""

    frame_bytes_max: int = 5 * MIB
    """One frame of the binary protocol: a batch and its envelope."""

    peer_frame_bytes_max: int = 32 * MIB
    """One letter between a broker and a member of the metadata group."""

    peer_unsent_bytes_max: int = 128 * MIB
    """Letters that the other process hasn't fetched; past it the connection is ended."""

    object_bytes_max: int = 4 * MIB
    """An object is closed and written when its batches reach this."""

    linger_ms: int = 5
    """How long at most an open object waits for company; how long it does follows from the load."""

    puts_in_flight_max: int = 16
    """Objects written at once; their commits go in order."""

    puts_per_s_max: int = 1_000_000
    """Objects written a second, on average; past it they wait until they are full, or it is their
    turn. The default bounds nothing: set it where a store charges by the request.
    """

    queue_bytes_max: int = 64 * MIB
    """Appends a broker holds that are not yet acknowledged; past it they are refused at once."""

    log_queue_bytes_max: int = 32 * MIB
    """Of them, those to one log, so that no log takes all the room there is."""

    connection_bytes_max: int = 16 * MIB
    """Unanswered request bytes of one connection before the server stops reading from it."""

    request_bytes_max: int = 128 * MIB
    """Request bytes of all connections of a process, frames and HTTP together, that have come or
    are announced and aren't answered. Past it connections aren't read until there is room. On top
    come up to 256 KiB of each connection, taken before it can be told to wait, and up to 256 MiB
    of freed memory that the process keeps for the next requests.
    """

    reply_bytes_max: int = 256 * MIB
    """Reply bytes of all connections of a process that are asked for or not fetched, windows of
    subscriptions included. Past it reads wait, and subscriptions are refused.
    """

    ring_bytes_max: int = 64 * MIB
    """Appends that a sequencing replica of a lazy log holds and that aren't ordered yet; past it
    appends wait until some are.
    """

    ring_waiting_bytes_max: int = 16 * MIB
    """Appends that wait for a place in the ring; past it they are refused at once. Shared as
    `waits_max` is.
    """

    ring_unstable_max: int = 200_000
    """Appends that are ordered and that other sequencing replicas haven't dropped; past it the
    leader orders no more until they have.
    """

    cache_bytes: int = 256 * MIB
    """The broker's cache of objects."""

    read_bytes_max: int = 4 * MIB
    """One answer to a read; a single larger batch is still delivered."""

    read_gap_bytes_max: int = MIB
    """Extents of one object so near to each other come with one GET, and what lies between with
    them: a request costs what a transfer of so much does.
    """

    read_ahead_bytes: int = 4 * MIB
    """Fetched ahead of a subscriber, or of reads that follow each other, while the store isn't
    busy.
    """

    gets_in_flight_max: int = 64
    """GETs of one broker at once; past it they wait, and requests take turns."""

    read_wait_ms_max: int = 60_000
    """The longest a read may ask to wait at the tail."""

    blocked_wait_ms: int = 10_000
    """How long an operation behind an undecided promotable fork waits before it is refused."""

    waits_max: int = 100_000
    """Reads, appends and receipts that wait in one broker; reads in one replica of a shard, and
    questions for positions at one sequencing replica. A principal, or a connection where clients
    aren't told apart, may have as many of them as are free: a single one gets half.
    """

    subscription_bytes: int = 4 * MIB
    """Bytes pushed to one subscriber ahead of its credit."""

    subscriptions_max: int = 10_000
    """Subscriptions of one broker."""

    connections_max: int = 10_000
    """Open connections of one process, frames, HTTP and other nodes that haven't greeted together.
    Fewer where the system allows fewer open files. Probes have 64 of their own.
    """

    name_chars_max: int = 120
    """A log's own name, and a fork's own name, each."""

    note_chars_max: int = 1_000
    """Who made a fork, and why."""

    owner_chars_max: int = 512
    """Who declares a log: its owner, and a scope in which programs take turns."""

    guard_scopes_max: int = 1_000
    """Scopes in which programs take turns at changing logs; none is ever forgotten."""

    logs_max: int = 1_000_000
    """Live logs and forks of a cluster."""

    forks_per_log_max: int = 100_000
    """Direct forks of one log."""

    depth_max: int = 1_000
    """Forks of forks of forks."""

    producers_per_log_max: int = 100_000
    """Producers whose last sequences one log remembers."""

    producer_idle_ms: int = 3_600_000
    """A producer not heard of for so long is forgotten; far above any client's retry deadline."""

    producer_appends_max: int = 20_000
    """Appends of one producer to a lazy log that it may still repeat, and whose positions can be
    asked for; past it the producer has to say that it won't repeat the oldest.
    """

    known_appends_max: int = 2_000_000
    """Such appends of all producers together; each takes about 100 bytes. Past half of it producers
    that were silent for `request_memory_min_ms` are forgotten, past all of it new appends are
    refused.
    """

    requests_max: int = 200_000
    """Replies kept so that a repeated request gets its first answer, and beside them as many first
    outcomes of appends that came under a request id.
    """

    request_memory_ms: int = 3_600_000
    """How long they are kept at most."""

    request_memory_min_ms: int = 120_000
    """How long they are kept in any case, far above any client's deadline: if there are too many
    younger ones, commands and appends under a request id are refused.
    """

    tombstone_ms: int = 7 * 86_400_000
    """How long a squashed or promoted fork's name still answers what became of it."""

    tombstones_max: int = 200_000
    """How many of them do: past it the oldest are forgotten sooner."""

    promotions_remembered_max: int = 1_000
    """Per log: how many promotions a receipt may be older than."""

    cursors_per_log_max: int = 10_000
    """Named cursors of one log."""

    writers_per_log_max: int = 1_000
    """Writers whose appends are marked, as a stream processor's sink marks them, that one log
    remembers. Each is remembered until it is released.
    """

    writer_parts_max: int = 20_000
    """Parts of marked versions that one log remembers: those of versions that aren't complete, and
    of the last complete version of each writer.
    """

    writer_batches_max: int = 200_000
    """Batches of such parts as belong to versions that aren't complete, per log; each takes 24
    bytes. Past it marked appends are refused until a version is complete.
    """

    writer_chars_max: int = 200
    """A writer's name."""

    ttl_ms_max: int = 366 * 86_400_000
    """The longest time to live of a fork."""

    grace_ms: int = 600_000
    """An object that nothing refers to is deleted after this; it must exceed the longest read."""

    gc_interval_ms: int = 30_000
    """How often garbage is looked for."""

    plans_max: int = 1_000
    """Scan plans that are alive at a time, of all logs."""

    plans_per_log_max: int = 100
    """Of them, those of one log."""

    plan_lease_ms_max: int = 600_000
    """The longest lease of a scan plan: for so long at most it outlives a reader that is gone."""

    plan_age_ms_max: int = 86_400_000
    """A scan plan ends so long after it was made, however often it is renewed."""

    plan_held_bytes_max: int = 256 * 1024 * MIB
    """Garbage past its grace that scan plans may hold back. Past it the oldest plan is ended, and
    its scan has to be planned anew.
    """

    signed_url_ms: int = 900_000
    """A URL that a reader of a scan plan, or a compactor, was given can be used for so long. The
    epoch of a compactor stays alive for as long after its end, so that no object of it comes later.
    """

    compactors_max: int = 16
    """Compactors that are remembered at a time: those alive, and those whose URLs may still be
    used.
    """

    compactor_lease_ms_max: int = 600_000
    """The longest lease of a compactor: for so long at most it outlives a job that is gone."""

    quarantine_ms: int = 7 * 86_400_000
    """An orphan, an object that was written and never committed, stays in quarantine for this long
    before it is deleted. `anabranch recover` can read it until then.
    """

    compact_extents_min: int = 16
    """So many neighbouring small extents of a log are copied into one object; 0: none ever are."""

    compact_extent_bytes_max: int = MIB
    """An extent, or a row of them in one object, below this is small; what is put together doesn't
    grow beyond it. 0: none is.
    """

    compact_age_ms: int = 60_000
    """Younger extents are left where they are: who reads at the tail has them at hand."""

    compact_span_ms: int = 1_000
    """Extents committed in the same interval of this length may become one, with the time of the
    earliest: where a log was compacted, a fork or look-up by time is so exact. 0: as exact as ever.
    """

    compact_wait_ms: int = 60_000
    """A broker that was asked to copy extents and hasn't by then is given up, and another asked."""

    lineage_segments_max: int = 65_536
    """Segments of one fork's flattened lineage that are cached; past it look-ups recurse."""

    proposals_max: int = 10_000
    """Commands waiting for the group before them to be durable; past it they are refused at
    once.
    """

    group_commands_max: int = 1_000
    """Commands journaled as one group."""

    group_bytes_max: int = MIB
    """Bytes journaled as one group."""

    snapshot_bytes: int = 64 * MIB
    """A snapshot is taken when the journal has grown by this since the last."""

    watch_ms: int = 1_000
    """A broker repeats what it watches so often; the metadata forget a watch after three of
    these.
    """

    alive_ms: int = 500
    """A broker says so often to the metadata that it is alive."""

    silence_ms: int = 3_000
    """A broker not heard of for so long has its logs placed elsewhere."""

    drain_ms: int = 10_000
    """How long a process that is told to end may take to finish what it has in hand."""

    spare_brokers_max: int = 1
    """Brokers of a pool of four or more that are kept free for forks that want one of their own."""

    embedded_nodes_max: int = 64
    """Sequencers and shard replicas of all logs that this service runs in its own process. Each
    follows what is decided for every shard of its log, so the time that a log takes to start grows
    with their square: 64 shards are served within seconds, 240 after more than a minute. All who
    may create logs share this number. Where it is too small, `up --processes` runs each node as a
    process of its own.
    """

    noop_ms: int = 5_000
    """Where records lie at shards before they are ordered, a record that isn't there so long after
    its append was announced becomes a no-op: that append was never acknowledged. It must exceed
    what a client needs to send a record again. A principal whose records don't come makes others
    wait for so long in all, and then for a sixteenth of the time; beyond that its records become
    no-ops after a 32nd of this. Clients that share a token are one principal.
    """

    orphan_ms: int = 600_000
    """Records at a shard whose append began so long before one that is ordered will never be
    ordered themselves, and are dropped. It must exceed twice the longest deadline of an append.
    """

    unordered_bytes_max: int = 64 * MIB
    """Records that one replica of a shard holds and that aren't ordered; past it they are refused.
    Those that may never be ordered take as much again. A principal, or a producer where clients
    aren't told apart, may hold as much as is free: a single one gets half.
    """

    present_ms: int = 100
    """Sequencing replicas and shards of an Erwin log say so often to their controllers that they
    live.
    """

    silent_ms: int = 500
    """One of them that is silent for so long is done without. Where delays are longer of late, up
    to four times as long.
    """

    return_ms: int = 5_000
    """One that is back is taken in again at the earliest so long after the last change: a view
    change holds appends up for some milliseconds.
    """

    handover_ms: int = 2_000
    """A process of an Erwin log that is told to end waits so long at most until the log goes on
    without it.
    """

    straggle_ms: int = 1_000
    """A sequencing replica that is behind the others by so much straggles, and appends wait for
    it.
    """

    straggles_ms: int = 10_000
    """One that straggles for so long, all in all, is taken out of the view, for twice as long each
    time. Time in which it keeps up counts against that, at a quarter.
    """

    straggler_rest_ms_max: int = 3_600_000
    """And for no longer than this."""

    propose_retry_ms: int = 2_000
    """A broker that had no answer from the metadata asks again, with the same request id."""


REPLICATED = (
    "name_chars_max",
    "note_chars_max",
    "owner_chars_max",
    "guard_scopes_max",
    "logs_max",
    "forks_per_log_max",
    "depth_max",
    "producers_per_log_max",
    "producer_idle_ms",
    "requests_max",
    "request_memory_ms",
    "request_memory_min_ms",
    "tombstone_ms",
    "tombstones_max",
    "promotions_remembered_max",
    "cursors_per_log_max",
    "writers_per_log_max",
    "writer_parts_max",
    "writer_batches_max",
    "writer_chars_max",
    "ttl_ms_max",
    "plans_max",
    "plans_per_log_max",
    "plan_lease_ms_max",
    "plan_age_ms_max",
    "compactors_max",
    "compactor_lease_ms_max",
    "spare_brokers_max",
    "embedded_nodes_max",
)
"""What decides the outcome of a command: journaled, so that a replay under other settings
agrees.
"""


def replicated(limits: Limits) -> dict[str, int]:
    return {name: getattr(limits, name) for name in REPLICATED}


def with_replicated(limits: Limits, values: dict[str, int]) -> Limits:
    """The process's own settings, and of those that are replicated the cluster's."""
    known = {name: value for name, value in values.items() if name in REPLICATED}
    return msgspec.structs.replace(limits, **known)
