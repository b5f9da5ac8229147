"""The part of `metric_help` that Erwin logs and lazy fronts have."""

from collections.abc import Mapping

NONSENSE = (
    "Letters of other nodes that said what can't be, or that their senders may not send: they were "
    "ignored"
)

ERWIN_HELP: Mapping[str, str] = {
    # Sequencer of an Erwin log.
    "anabranch_erwin_sequencer_leads_total": (
        "Times that this replica began to order; a restart within a view counts"
    ),
    "anabranch_erwin_sequencer_groups_total": (
        "Groups of rows that were cut; each goes to every shard as one push"
    ),
    "anabranch_erwin_sequencer_rows_total": "Appends that were given positions",
    "anabranch_erwin_sequencer_records_total": "Records of these appends",
    "anabranch_erwin_sequencer_pushes_total": "Pushes with rows that were sent, repetitions aside",
    "anabranch_erwin_sequencer_repeated_total": "Pushes that were sent again",
    "anabranch_erwin_sequencer_empty_total": (
        "Pushes without rows: what is stable and trimmed, and questions"
    ),
    "anabranch_erwin_sequencer_gaps_total": (
        "Times that a shard asked for rows that were lost on the way"
    ),
    "anabranch_erwin_sequencer_nonsense_total": NONSENSE,
    "anabranch_erwin_sequencer_fenced_total": "Leads that ended because a shard knew a later fence",
    "anabranch_erwin_sequencer_ordered_total": "Appends that all shards hold in their order",
    "anabranch_erwin_sequencer_trims_total": "Trims that all shards have journaled",
    "anabranch_erwin_sequencer_leading": "1 if this replica leads its view, else 0",
    "anabranch_erwin_sequencer_ordered": (
        "Position below which everything is ordered, by this replica's journal"
    ),
    "anabranch_erwin_sequencer_ring_bytes": (
        "Memory of appends that aren't ordered yet; bounded by `ring_bytes_max`"
    ),
    "anabranch_erwin_sequencer_ring_records": "Records that aren't ordered yet",
    "anabranch_erwin_sequencer_stable": (
        "Position below which everything is final, as the leader knows it"
    ),
    "anabranch_erwin_sequencer_tail": (
        "Records that this replica knows, ordered or not; the leader's is the log's durable tail"
    ),
    "anabranch_erwin_sequencer_view": "View that this replica takes appends of, or took last",
    "anabranch_erwin_sequencer_waiting_bytes": "Bytes of appends that wait for room in the ring",
    # Replica of an Erwin shard.
    "anabranch_erwin_shard_pushes_total": "Pushes with rows that were taken",
    "anabranch_erwin_shard_repeated_total": "Pushes that were there already",
    "anabranch_erwin_shard_gaps_total": "Pushes that came behind a gap",
    "anabranch_erwin_shard_nonsense_total": NONSENSE,
    "anabranch_erwin_shard_stale_total": "Pushes of a fence that is over, which are refused",
    "anabranch_erwin_shard_fences_total": "Times that a leader began anew",
    "anabranch_erwin_shard_cut_items_total": (
        "Items that were cut off, because the leader that pushed them failed"
    ),
    "anabranch_erwin_shard_records_total": "Records bound by this replica, as primary or backup",
    "anabranch_erwin_shard_noops_total": "No-ops bound by this replica, as primary or backup",
    "anabranch_erwin_shard_reads_total": "Reads answered",
    "anabranch_erwin_shard_slow_reads_total": (
        "Reads that had to wait until their position was stable"
    ),
    "anabranch_erwin_shard_short_reads_total": "Reads whose position wasn't stable in time",
    "anabranch_erwin_shard_journal_reads_total": (
        "Times that items which weren't cached were read back from the journal"
    ),
    "anabranch_erwin_shard_delivered_total": "Records delivered, to all subscribers together",
    "anabranch_erwin_shard_refused_total": "Requests answered with an error, or redirected",
    "anabranch_erwin_shard_stored_total": "Mode st: batches taken from clients",
    "anabranch_erwin_shard_stored_again_total": "Mode st: batches that were there already",
    "anabranch_erwin_shard_late_total": (
        "Mode st: batches that came when their positions were no-ops already"
    ),
    "anabranch_erwin_shard_orphans_total": (
        "Mode st: batches that no row named, and that were dropped"
    ),
    "anabranch_erwin_shard_durable": (
        "Position below which all replicas of the epoch hold the shard's rows"
    ),
    "anabranch_erwin_shard_epoch": "Epoch of the shard's replicas",
    "anabranch_erwin_shard_primary": "1 if this replica is the primary, else 0",
    "anabranch_erwin_shard_readable": "Position below which reads are answered at once",
    "anabranch_erwin_shard_stable": (
        "Position below which everything is final, as this replica knows"
    ),
    "anabranch_erwin_shard_subscriptions": "Open subscriptions",
    "anabranch_erwin_shard_trimmed": "First position that is kept",
    "anabranch_erwin_shard_waiting_reads": "Reads that wait for their position to become stable",
    # Controller of an Erwin log.
    "anabranch_erwin_controller_leads_total": "Times that this controller began to lead",
    "anabranch_erwin_controller_attempts_total": (
        "Attempts to change the view; some replace an earlier one"
    ),
    "anabranch_erwin_controller_views_total": "Views that were configured",
    "anabranch_erwin_controller_unstarted_total": (
        "Views that were given up because nobody was left to start them"
    ),
    "anabranch_erwin_controller_lost_views_total": "Views of which nothing was left",
    "anabranch_erwin_controller_lost_shards_total": (
        "Shards of which nothing was left, and that began anew"
    ),
    "anabranch_erwin_controller_stragglers_total": (
        "Times that a member left a view because appends waited for it"
    ),
    "anabranch_erwin_controller_takeovers_total": (
        "Times that another replica of a shard became primary"
    ),
    "anabranch_erwin_controller_rearranged_total": (
        "Times that a primary continued with other backups"
    ),
    "anabranch_erwin_controller_admitted_total": "Shards that were added",
    "anabranch_erwin_controller_nonsense_total": NONSENSE,
    "anabranch_erwin_controller_removed_total": (
        "Shards that were closed, and whose records are trimmed"
    ),
    "anabranch_erwin_controller_changing": "1 while the view is changed, else 0",
    "anabranch_erwin_controller_leading": "1 if this controller leads, else 0",
    "anabranch_erwin_controller_lost_views": "Views of the log of which nothing was left, ever",
    "anabranch_erwin_controller_members": "Members of the view",
    "anabranch_erwin_controller_shards": "Shards of the log",
    "anabranch_erwin_controller_silent": "Nodes that nothing is heard of",
    "anabranch_erwin_controller_view": "View that was configured last",
    # Sequencer of a lazy front.
    "anabranch_lazy_sequencer_leads_total": (
        "Times that this replica began to order; a restart within a view counts"
    ),
    "anabranch_lazy_sequencer_batches_total": "Batches that the log was asked to commit",
    "anabranch_lazy_sequencer_appends_total": "Appends in these batches",
    "anabranch_lazy_sequencer_committed_total": "Appends that the log has committed",
    "anabranch_lazy_sequencer_committed_bytes_total": "Bytes of these appends",
    "anabranch_lazy_sequencer_found_total": (
        "Appends that a restarted leader found committed already"
    ),
    "anabranch_lazy_sequencer_gaps_total": "Times that the log wanted an earlier batch first",
    "anabranch_lazy_sequencer_nonsense_total": NONSENSE,
    "anabranch_lazy_sequencer_fenced_total": "Leads that ended because the log knew a later epoch",
    "anabranch_lazy_sequencer_committing": "Batches that the log hasn't committed yet",
    "anabranch_lazy_sequencer_leading": "1 if this replica leads its view, else 0",
    "anabranch_lazy_sequencer_ordered": (
        "Records that the log holds, as far as this replica's journal says"
    ),
    "anabranch_lazy_sequencer_ring_bytes": (
        "Memory of appends that the log doesn't hold yet; bounded by `ring_bytes_max`"
    ),
    "anabranch_lazy_sequencer_ring_bytes_free": "Memory that the ring has left for appends",
    "anabranch_lazy_sequencer_ring_lasts_ms": (
        "Time until the ring is full at the present rate of appends if nothing is committed; -1: "
        "nothing is appended"
    ),
    "anabranch_lazy_sequencer_ring_records": "Records that the log doesn't hold yet",
    "anabranch_lazy_sequencer_stable": (
        "Records that all replicas have dropped, as the leader knows it"
    ),
    "anabranch_lazy_sequencer_tail": "Records that this replica knows, committed or not",
    "anabranch_lazy_sequencer_view": "View that this replica takes appends of, or took last",
    "anabranch_lazy_sequencer_waiting_bytes": "Bytes of appends that wait for room in the ring",
    # Controller of a lazy front.
    "anabranch_lazy_controller_leads_total": "Terms that the log gave this controller",
    "anabranch_lazy_controller_attempts_total": (
        "Attempts to change the view; some replace an earlier one"
    ),
    "anabranch_lazy_controller_views_total": "Views that were configured",
    "anabranch_lazy_controller_lost_views_total": "Views of which nothing was left",
    "anabranch_lazy_controller_nonsense_total": NONSENSE,
    "anabranch_lazy_controller_stragglers_total": (
        "Times that a member left a view because appends waited for it"
    ),
    "anabranch_lazy_controller_leading": (
        "1 if this controller has a term of its log, and decides, else 0"
    ),
    "anabranch_lazy_controller_lost_views": "Views of the front of which nothing was left, ever",
    "anabranch_lazy_controller_members": "Members of the view",
    "anabranch_lazy_controller_silent": "Nodes that nothing is heard of",
    "anabranch_lazy_controller_view": "View that was configured last",
}
