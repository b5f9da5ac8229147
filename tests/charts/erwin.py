"""The dashboard of Erwin logs."""

from tests.charts.grafana import Dashboard, Panel, Row, now, per_s

ERWIN = Dashboard(
    "anabranch-erwin",
    "Anabranch / Erwin",
    "Sequencers, controllers and shards: views, what waits for its order, and slow reads.",
    "anabranch_erwin_sequencer_leading",
    (
        Row(
            "At a glance",
            (
                Panel(
                    "Leaders",
                    "Sequencers that lead a view: one for each log, but for a view change.",
                    {"leaders": now("anabranch_erwin_sequencer_leading")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Controllers",
                    "Controllers that lead: one for each log.",
                    {"controllers": now("anabranch_erwin_controller_leading")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "View",
                    "The latest view. It grows when the members change.",
                    {"view": now("anabranch_erwin_controller_view", how="max")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Members",
                    "Sequencers that each append waits for.",
                    {"members": now("anabranch_erwin_controller_members", how="max")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Shards",
                    "Shards that store records, those that leave included.",
                    {"shards": now("anabranch_erwin_controller_shards", how="max")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Lost views",
                    "Views whose appends were lost before they were ordered.",
                    {"lost": now("anabranch_erwin_controller_lost_views", how="max")},
                    kind="stat",
                    wide=4,
                ),
            ),
        ),
        Row(
            "The order",
            (
                Panel(
                    "Ordered",
                    "Records that were given positions, a second.",
                    {"{{pod}}": per_s("anabranch_erwin_sequencer_records_total", "pod")},
                ),
                Panel(
                    "Waiting for their order",
                    "Records in the rings. They are durable, or about to be.",
                    {"{{pod}}": now("anabranch_erwin_sequencer_ring_records", "pod")},
                ),
                Panel(
                    "Rings",
                    "Bytes in the rings, and of appends that wait for room in them.",
                    {
                        "ring {{pod}}": now("anabranch_erwin_sequencer_ring_bytes", "pod"),
                        "waiting {{pod}}": now("anabranch_erwin_sequencer_waiting_bytes", "pod"),
                    },
                    "bytes",
                ),
                Panel(
                    "View changes",
                    "Views that were configured, and attempts at them, a second.",
                    {
                        "views": per_s("anabranch_erwin_controller_views_total"),
                        "attempts": per_s("anabranch_erwin_controller_attempts_total"),
                    },
                ),
                Panel(
                    "Silent",
                    "Nodes that the controller hears nothing of.",
                    {"silent": now("anabranch_erwin_controller_silent", how="max")},
                ),
                Panel(
                    "Replicas",
                    "Takeovers by another replica, and primaries that went on with other backups.",
                    {
                        "takeovers": per_s("anabranch_erwin_controller_takeovers_total"),
                        "rearranged": per_s("anabranch_erwin_controller_rearranged_total"),
                    },
                ),
            ),
        ),
        Row(
            "Shards",
            (
                Panel(
                    "Records stored",
                    "Records that were bound to their positions, a second.",
                    {"{{pod}}": per_s("anabranch_erwin_shard_records_total", "pod")},
                ),
                Panel(
                    "Reads",
                    "Reads that were answered, and those that had to wait, a second.",
                    {
                        "all {{pod}}": per_s("anabranch_erwin_shard_reads_total", "pod"),
                        "slow {{pod}}": per_s("anabranch_erwin_shard_slow_reads_total", "pod"),
                    },
                ),
                Panel(
                    "Delivered",
                    "Records to subscribers, a second.",
                    {"{{pod}}": per_s("anabranch_erwin_shard_delivered_total", "pod")},
                ),
            ),
        ),
    ),
)
