"""The dashboard of Belfast logs."""

from tests.charts.grafana import Dashboard, Panel, Row, now, per_s

BELFAST = Dashboard(
    "anabranch-belfast",
    "Anabranch / Belfast",
    "Sequencers and shards: cuts, windows, quotas, and what speculation is worth.",
    "anabranch_sequencer_leading",
    (
        Row(
            "At a glance",
            (
                Panel(
                    "Leaders",
                    "Sequencers that lead: one, but for an election.",
                    {"leaders": now("anabranch_sequencer_leading")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Shards",
                    "With a seat in the window that is being cut.",
                    {"shards": now("anabranch_sequencer_shards", how="max")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Mode",
                    "0 steady, 1 bursty, 2 free will.",
                    {"mode": now("anabranch_sequencer_mode", how="max")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "View",
                    "Counts the failures of whole shards, at each of which applications roll back.",
                    {"view": now("anabranch_sequencer_view", how="max")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Resting",
                    "Stragglers without a quota.",
                    {"resting": now("anabranch_operator_shard_group_resting")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Failed",
                    "Shards that have failed as a whole, and aren't back.",
                    {
                        "failed": "sum (anabranch_operator_shards"
                        '{namespace=~"$namespace", standing="Failed"})'
                    },
                    kind="stat",
                    wide=4,
                ),
            ),
        ),
        Row(
            "The order",
            (
                Panel(
                    "Cuts",
                    "Decided by the leader, a second.",
                    {"cuts": per_s("anabranch_sequencer_cuts_total")},
                ),
                Panel(
                    "Confirmed",
                    "Positions that became final, a second.",
                    {
                        "positions": "max (deriv(anabranch_sequencer_confirmed"
                        '{namespace=~"$namespace"}[$__rate_interval]))'
                    },
                ),
                Panel(
                    "Ahead",
                    "Positions that are foretold and not final: where speculation happens.",
                    {"{{pod}}": now("anabranch_shard_unconfirmed", "pod")},
                ),
                Panel(
                    "Windows",
                    "Published, a second.",
                    {"windows": per_s("anabranch_sequencer_windows_total")},
                ),
                Panel(
                    "Signals of lag",
                    "Sent by the leader, and answered by shards with no-ops.",
                    {
                        "sent": per_s("anabranch_sequencer_signals_total"),
                        "answered {{pod}}": per_s("anabranch_shard_signals_total", "pod"),
                    },
                ),
                Panel(
                    "Stalls",
                    "Times that a shard had used up its windows before the next was there.",
                    {"{{pod}}": per_s("anabranch_shard_stalls_total", "pod")},
                ),
            ),
        ),
        Row(
            "Shards",
            (
                Panel(
                    "Records appended",
                    "Acknowledged, a second.",
                    {"{{pod}}": per_s("anabranch_shard_appended_records_total", "pod")},
                ),
                Panel(
                    "No-ops",
                    "Logged to meet quotas, a second.",
                    {"{{pod}}": per_s("anabranch_shard_noops_total", "pod")},
                ),
                Panel(
                    "Delivered",
                    "To subscribers, and of them before their cut.",
                    {
                        "all {{pod}}": per_s("anabranch_shard_delivered_total", "pod"),
                        "ahead {{pod}}": per_s("anabranch_shard_speculative_total", "pod"),
                    },
                ),
                Panel(
                    "Held back",
                    "Bytes of appends that aren't acknowledged yet.",
                    {"{{pod}}": now("anabranch_shard_held_bytes", "pod")},
                    "bytes",
                ),
                Panel(
                    "Void",
                    "Own places that were void because the shard had failed, a second.",
                    {"{{pod}}": per_s("anabranch_shard_voided_total", "pod")},
                ),
                Panel(
                    "Replicas",
                    "Takeovers by another replica, and primaries that went on with other backups.",
                    {
                        "takeovers": per_s("anabranch_sequencer_takeovers_total"),
                        "rearranged": per_s("anabranch_sequencer_rearranged_total"),
                    },
                ),
            ),
        ),
    ),
)
