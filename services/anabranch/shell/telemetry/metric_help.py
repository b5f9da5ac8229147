"""Every metric of the log service's processes, with its help text, by the name that is served.

Names are written out here, so that a search for a metric in an alert or a dashboard finds it.
docs/reference/metrics.md shows the same texts. The operator's metrics are in its own table.
"""

from collections.abc import Mapping

from anabranch.shell.telemetry.erwin_metric_help import ERWIN_HELP, NONSENSE

HELP: Mapping[str, str] = {
    # Broker.
    "anabranch_broker_appends_total": (
        "Batches that were acknowledged, with a position or a receipt"
    ),
    "anabranch_broker_appends_bytes_total": "Bytes of acknowledged batches",
    "anabranch_broker_appends_records_total": "Records in acknowledged batches",
    "anabranch_broker_appends_repeated_total": (
        "Batches with a writer mark that the log had already, and that weren't appended again"
    ),
    "anabranch_broker_puts_total": "Objects written to the store, failed attempts included",
    "anabranch_broker_puts_bytes_total": (
        "Bytes of batches in the objects that were written to the store"
    ),
    "anabranch_broker_put_failures_total": "Attempts to write an object to the store that failed",
    "anabranch_broker_commits_total": "Objects that the broker asked the metadata to commit",
    "anabranch_broker_copies_total": "Objects that replaced small extents",
    "anabranch_broker_copies_in_vain_total": (
        "Objects that didn't replace small extents, because these had changed meanwhile"
    ),
    "anabranch_broker_copied_extents_total": "Small extents that were copied together",
    "anabranch_broker_copied_bytes_total": "Bytes of small extents that were copied together",
    "anabranch_broker_parked_total": "Appends that had to wait for an undecided promotable fork",
    "anabranch_broker_reads_total": "Reads, subscriptions aside",
    "anabranch_broker_reads_waited_total": (
        "Reads that waited at a log's end or for an undecided fork"
    ),
    "anabranch_broker_batches_read_total": "Batches sent to readers and subscribers",
    "anabranch_broker_bytes_read_total": "Bytes of batches sent to readers and subscribers",
    "anabranch_broker_cache_hits_total": "Extents that a read found in the cache",
    "anabranch_broker_cache_misses_total": "Extents that a read didn't find in the cache",
    "anabranch_broker_extents_read_ahead_total": (
        "Extents read from the store before a reader asked for them"
    ),
    "anabranch_broker_gets_total": "Reads from the store; several extents may share one",
    "anabranch_broker_gets_bytes_total": "Bytes read from the store",
    "anabranch_broker_gets_damaged_total": (
        "Reads from the store whose bytes failed their checksum; each is repeated once"
    ),
    "anabranch_broker_subscriptions_total": "Subscriptions that were opened",
    "anabranch_broker_over_quota_total": (
        "Appends and reads refused because their log had used up its quota"
    ),
    "anabranch_broker_copies_signed_total": (
        "Objects whose URLs compactors were given, to write them"
    ),
    "anabranch_broker_copies_adopted_total": (
        "Objects of compactors that took the place of small extents"
    ),
    "anabranch_broker_copies_refused_total": (
        "Objects of compactors that didn't: the extents had changed, or the object held others"
    ),
    "anabranch_broker_adopted_bytes_total": "Bytes of compactors' objects that were read back",
    "anabranch_broker_signed_total": (
        "Ranges of objects whose URLs readers of scan plans were given"
    ),
    "anabranch_broker_signed_bytes_total": (
        "Bytes of the ranges whose URLs readers of scan plans were given"
    ),
    "anabranch_broker_speculations_failed_total": (
        "Times that a subscriber was told to discard speculative records"
    ),
    "anabranch_broker_refused_total": "Requests answered with an error",
    "anabranch_broker_questions_repeated_total": (
        "Messages to the metadata that were repeated for want of an answer"
    ),
    "anabranch_broker_appends_held": "Appends that were taken and aren't answered yet",
    "anabranch_broker_appends_held_bytes": (
        "Bytes of appends that aren't answered yet; bounded by `queue_bytes_max`"
    ),
    "anabranch_broker_appends_parked": (
        "Unanswered appends that wait for an undecided promotable fork"
    ),
    "anabranch_broker_cache_bytes": "Bytes in the cache; bounded by `cache_bytes`",
    "anabranch_broker_subscriptions": "Open subscriptions",
    "anabranch_broker_waits": (
        "Reads, receipts and control requests that aren't answered yet; bounded by `waits_max`"
    ),
    # Frame server.
    "anabranch_server_accepted_total": "Connections accepted",
    "anabranch_server_turned_away_total": (
        "Connections refused because there were `connections_max` already"
    ),
    "anabranch_server_refused_total": (
        "Requests and connections that the frame server refused: malformed, over its bounds, "
        "or without a valid token"
    ),
    "anabranch_server_over_quota_total": (
        "Appends to Belfast logs refused because their log had used up its quota"
    ),
    "anabranch_server_left_silent_total": "Connections closed because no hello came in time",
    "anabranch_server_left_unread_total": (
        "Connections closed because the client asked for more than it read"
    ),
    "anabranch_server_left_lapsed_total": (
        "Connections closed because the client's token had expired"
    ),
    "anabranch_server_bytes_in_total": "Bytes received from clients",
    "anabranch_server_bytes_out_total": "Bytes sent to clients",
    "anabranch_server_connections": "Open connections",
    # Budget.
    "anabranch_budget_connections": (
        "Open connections of frames and HTTP; bounded by `connections_max`"
    ),
    "anabranch_budget_request_bytes": (
        "Bytes of requests that were announced or received and aren't answered; bounded by "
        "`request_bytes_max`"
    ),
    "anabranch_budget_reply_bytes": (
        "Bytes of replies that were asked for and aren't fetched, and of subscriptions' "
        "windows; bounded by `reply_bytes_max`"
    ),
    "anabranch_budget_subscriptions": "Open subscriptions; bounded by `subscriptions_max`",
    "anabranch_budget_waiting": "Connections that wait until others give back some of the budget",
    # Scan plans.
    "anabranch_compactors_live": "Compactors, jobs that copy small extents, that haven't ended",
    "anabranch_compactors_remembered": (
        "Compactors, with those that have ended and whose URLs may still be used"
    ),
    "anabranch_plans_live": "Scan plans that keep objects from being deleted",
    "anabranch_plans_oldest_ms": "How long ago the oldest of them was made",
    "anabranch_plans_held_bytes": (
        "Bytes of garbage that became so after the oldest scan plan was made, and is kept for it"
    ),
    # Writers.
    "anabranch_writers_remembered": (
        "Writers whose marks logs keep until the writers are released, of all logs"
    ),
    "anabranch_writers_most": "Writers of the log that has most; bounded by `writers_per_log_max`",
    "anabranch_writers_parts": (
        "Parts that are remembered of their versions: of those that aren't complete, and of the "
        "last complete one of each writer; `writer_parts_max` bounds those of a log"
    ),
    "anabranch_writers_batches": (
        "Batches in parts of versions that aren't complete; `writer_batches_max` bounds those of "
        "a log"
    ),
    # Host.
    "anabranch_host_turns_total": "Turns of the event loop in which a machine was given an event",
    "anabranch_host_events_total": "Events given to machines",
    "anabranch_host_timers_total": "Timers that fired",
    # Storage.
    "anabranch_storing_groups_total": (
        "Groups of commands written to the journal, failed ones included; each costs one sync"
    ),
    "anabranch_storing_entries_total": "Journal entries in the groups that were written",
    "anabranch_storing_snapshots_total": "Snapshots that were started",
    "anabranch_storing_read_back_total": (
        "Journal entries read again, from a journal that keeps records"
    ),
    "anabranch_storing_puts_total": "Objects written to the store, failed attempts included",
    "anabranch_storing_gets_total": "Reads from the store",
    "anabranch_storing_deletions_total": (
        "Objects deleted from the store: garbage, and orphans after their quarantine"
    ),
    "anabranch_storing_quarantined_total": "Orphaned objects that were moved to quarantine",
    "anabranch_storing_errors_total": "Operations of the journal or the store that failed",
    # Disk cache of a broker.
    "anabranch_disk_cache_hits_total": "Ranges that were read from the disk cache",
    "anabranch_disk_cache_hits_bytes_total": "Bytes read from the disk cache",
    "anabranch_disk_cache_misses_total": (
        "Ranges that weren't in the disk cache and were read from the store"
    ),
    "anabranch_disk_cache_written_total": "Ranges written to the disk cache",
    "anabranch_disk_cache_written_bytes_total": "Bytes written to the disk cache",
    "anabranch_disk_cache_passed_over_total": (
        "Ranges that weren't kept because the disk was too far behind"
    ),
    "anabranch_disk_cache_spoilt_total": (
        "Files that no longer held what was written to them; the store was read instead"
    ),
    "anabranch_disk_cache_files": "Files in the disk cache",
    "anabranch_disk_cache_bytes": "Bytes in the disk cache; bounded by `disk_cache_bytes`",
    "anabranch_disk_cache_unwritten_bytes": "Bytes that wait to be written to the disk cache",
    "anabranch_disk_cache_off": (
        "1 after the disk was full or failed, so that the cache is off, else 0"
    ),
    # S3.
    "anabranch_s3_standing": (
        "State of the store: 0 healthy, 1 degraded (calls fail and are repeated), 2 unavailable"
    ),
    "anabranch_s3_failures_in_a_row": "Attempts that have failed since the last success",
    "anabranch_s3_puts_total": "PUT requests for objects; each attempt counts",
    "anabranch_s3_parts_total": (
        "Requests that start, continue or end an upload in parts; each attempt counts"
    ),
    "anabranch_s3_gets_total": "GET requests for ranges; each attempt counts",
    "anabranch_s3_heads_total": "HEAD requests; each attempt counts",
    "anabranch_s3_lists_total": "Requests for a page of a listing; each attempt counts",
    "anabranch_s3_deletes_total": (
        "Requests that delete up to 1,000 objects each; each attempt counts"
    ),
    "anabranch_s3_bytes_put_total": "Bytes of objects that were written",
    "anabranch_s3_bytes_got_total": "Bytes that were read",
    "anabranch_s3_retries_total": "Attempts that repeated an earlier one",
    "anabranch_s3_refusals_total": "Attempts that failed in the store or on the way to it",
    "anabranch_s3_throttled_total": "Attempts that failed because the store was too busy",
    "anabranch_s3_failures_total": "Calls that were given up; their outcome is unknown",
    "anabranch_s3_cost_total": (
        "Cost of all requests, at the prices that the settings `s3.price_*` give"
    ),
    # A broker's requests to the store, by log.
    "anabranch_log_puts_total": "PUTs by log; a log bears its share of an object's PUT, by bytes",
    "anabranch_log_put_bytes_total": "Bytes put, by log",
    "anabranch_log_gets_total": "GETs by log; a log bears its share of a GET, by bytes",
    "anabranch_log_got_bytes_total": "Bytes got, by log",
    "anabranch_log_cost_total": (
        "Cost of the log's share of requests, at the prices that the settings `s3.price_*` give"
    ),
    # Peers.
    "anabranch_peers_connected": (
        "Connections to and from other processes of the cluster that both sides have accepted"
    ),
    "anabranch_peers_connections_total": "Connections made, accepted or not",
    "anabranch_peers_refused_total": (
        "Connections refused: of another cluster, version or bucket, or without the token"
    ),
    "anabranch_peers_letters_out_total": "Messages written to other processes",
    "anabranch_peers_letters_in_total": "Messages received from other processes",
    "anabranch_peers_lost_total": (
        "Messages dropped because there was no connection, or because they were too large"
    ),
    "anabranch_peers_unreadable_total": "Frames that couldn't be decoded",
    "anabranch_peers_left_silent_total": "Connections closed because nothing was received on them",
    "anabranch_peers_left_unread_total": "Connections closed because the other side didn't read",
    "anabranch_peers_bytes_in_total": "Bytes received from other processes",
    "anabranch_peers_bytes_out_total": "Bytes sent to other processes",
    # Metadata member.
    "anabranch_member_leading": "1 if this member leads its group, else 0",
    "anabranch_member_following": (
        "1 if this member receives the journal's entries as the leader writes them, else 0"
    ),
    "anabranch_member_fit": "0 if this member can't read the journal and must be upgraded, else 1",
    "anabranch_member_term": "Term in which this member last led",
    "anabranch_member_index": "Last journal entry that this member's state contains",
    "anabranch_member_journaled": "Last journal entry that this member knows of",
    "anabranch_member_brokers": "Brokers that have registered",
    "anabranch_member_logs": "Logs and forks",
    "anabranch_etcd_bytes": (
        "Size of etcd's database in its fullest member; a metadata member asks every 15 s"
    ),
    "anabranch_etcd_quota_bytes": "Size that etcd's database may reach; 0 if etcd doesn't say",
    "anabranch_etcd_full": (
        "1 if nothing can be journaled, because etcd refuses or less than a tenth of its "
        "quota is left, else 0"
    ),
    # Rights.
    "anabranch_authority_questions_total": (
        "Questions about clients' rights to the API server and the metadata, with `auth.mode "
        "= kubernetes`"
    ),
    "anabranch_authority_failed_total": "Questions about rights that weren't answered",
    "anabranch_authority_unauthenticated_total": "Tokens that were refused",
    "anabranch_authority_forbidden_total": "Requests refused for want of a right",
    # Traces.
    "anabranch_spans_sent_total": "Spans that the collector at `otlp_endpoint` accepted",
    "anabranch_spans_lost_total": "Spans that the collector didn't accept",
    # Gateway.
    "anabranch_gateway_brokers_connected": "Brokers that the gateway has a connection to",
    "anabranch_gateway_pending_bytes": (
        "Bytes of appends that brokers haven't acknowledged to the gateway yet"
    ),
    # HTTP.
    "anabranch_http_requests_total": "Requests answered, by method, route and status",
    "anabranch_http_answer_seconds": (
        "Seconds from a request's head to the first byte of its answer, by route"
    ),
    "anabranch_http_open": "Requests being answered",
    "anabranch_http_held_bytes": "Bytes of request and reply bodies in memory",
    # Sequencer of a Belfast log.
    "anabranch_sequencer_leads_total": "Times that this member was elected leader",
    "anabranch_sequencer_reports_total": "Reports received from shards' primaries",
    "anabranch_sequencer_nonsense_total": "Reports that claimed what can't be, and were ignored",
    "anabranch_sequencer_proposals_total": "Entries proposed for the group's log",
    "anabranch_sequencer_decisions_total": "Decisions in the proposed entries",
    "anabranch_sequencer_cuts_total": "Actual cuts",
    "anabranch_sequencer_windows_total": "Windows published",
    "anabranch_sequencer_signals_total": "Signals to lagging shards, repetitions aside",
    "anabranch_sequencer_trails_total": (
        "Signals to shards that trail: too little to lag, but for too long"
    ),
    "anabranch_sequencer_rests_total": "Times that a straggler was given no quota",
    "anabranch_sequencer_admitted_total": "Shards admitted, for the first time or again",
    "anabranch_sequencer_views_total": "View changes: shards that failed as a whole",
    "anabranch_sequencer_takeovers_total": "Times that another replica of a shard became primary",
    "anabranch_sequencer_rearranged_total": "Times that a primary continued with other backups",
    "anabranch_sequencer_restored_total": (
        "Replicas that were sent the whole ledger, because they were away for long"
    ),
    "anabranch_sequencer_at_rest": (
        "1 if this member leads and nobody appends, so that no cuts are made, else 0"
    ),
    "anabranch_sequencer_confirmed": "Position below which everything is final",
    "anabranch_sequencer_horizon": "Position at which the published windows end",
    "anabranch_sequencer_index": "Last entry of the group's log that this member has applied",
    "anabranch_sequencer_leading": "1 if this member leads, else 0",
    "anabranch_sequencer_mode": (
        "Mode of the present window: 0 steady, 1 bursty (of an earlier release), 2 free will"
    ),
    "anabranch_sequencer_reachable": "Members that the leader reaches",
    "anabranch_sequencer_shards": "Shards with a quota in the present window",
    "anabranch_sequencer_term": "Term of the group, as this member knows it",
    "anabranch_sequencer_view": "View of the log; it changes when a shard fails as a whole",
    "anabranch_sequencer_window": "Number of the present window, whose records are being ordered",
    # Replica of a Belfast shard.
    "anabranch_shard_appends_total": "Batches taken",
    "anabranch_shard_appended_total": "Batches acknowledged, after their cuts became actual",
    "anabranch_shard_appended_records_total": "Records in acknowledged batches",
    "anabranch_shard_repeated_total": "Batches that were sent again and were there already",
    "anabranch_shard_nonsense_total": NONSENSE,
    "anabranch_shard_refused_total": (
        "Appends and subscriptions answered with an error, or redirected"
    ),
    "anabranch_shard_records_total": "Records logged by this replica, as primary or backup",
    "anabranch_shard_noops_total": "No-ops logged by this replica, as primary or backup",
    "anabranch_shard_reports_total": "Reports sent to the sequencers",
    "anabranch_shard_rounds_total": "Rounds completed",
    "anabranch_shard_signals_total": "Signals of lag that were answered",
    "anabranch_shard_stalls_total": (
        "Times that all published windows were used up before the next one came"
    ),
    "anabranch_shard_stalled_total": "Nanoseconds spent waiting for the next window",
    "anabranch_shard_delivered_total": "Records delivered, to all subscribers together",
    "anabranch_shard_speculative_total": (
        "Records delivered before their cut, to all subscribers together"
    ),
    "anabranch_shard_confirmed_total": (
        "This shard's records and no-ops whose predicted positions were confirmed"
    ),
    "anabranch_shard_voided_total": (
        "This shard's records and no-ops that lost their positions when the shard failed"
    ),
    "anabranch_shard_views_total": "View changes that subscribers were told of",
    "anabranch_shard_holes_total": "Times that other replicas were asked for missing positions",
    "anabranch_shard_durable": "End of what a majority of the replicas holds",
    "anabranch_shard_epoch": "Epoch of the shard's replicas",
    "anabranch_shard_held_bytes": (
        "Bytes of appends that aren't answered yet; bounded by `queue_bytes_max`"
    ),
    "anabranch_shard_horizon": "Position at which the published windows end, as this replica knows",
    "anabranch_shard_last": "End of this replica's log",
    "anabranch_shard_may_go": (
        "1 if the shard has left and nobody may ask for its records any more, else 0"
    ),
    "anabranch_shard_primary": "1 if this replica is the primary, else 0",
    "anabranch_shard_subscriptions": "Open subscriptions",
    "anabranch_shard_unconfirmed": "Positions that are published and not confirmed yet",
    "anabranch_shard_view": "View that this replica knows",
    **ERWIN_HELP,
}
