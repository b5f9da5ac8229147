"""The dashboard of lazy fronts."""

from tests.charts.grafana import Dashboard, Panel, Row, now, per_s

LAZY = Dashboard(
    "anabranch-lazy",
    "Anabranch / Lazy appends",
    "Sequencers of lazy fronts: views, what the log has yet to commit, and how long rings last.",
    "anabranch_lazy_sequencer_leading",
    (
        Row(
            "At a glance",
            (
                Panel(
                    "Leaders",
                    "Sequencers that lead a view: one for each front, but for a view change.",
                    {"leaders": now("anabranch_lazy_sequencer_leading")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Controllers",
                    "Controllers that lead: one for each front.",
                    {"controllers": now("anabranch_lazy_controller_leading")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "View",
                    "The latest view. It grows when the members change.",
                    {"view": now("anabranch_lazy_controller_view", how="max")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Members",
                    "Sequencers that each append waits for.",
                    {"members": now("anabranch_lazy_controller_members", how="max")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Silent",
                    "Sequencers that the controller hears nothing of.",
                    {"silent": now("anabranch_lazy_controller_silent", how="max")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Lost views",
                    "Views whose appends were lost before they were committed.",
                    {"lost": now("anabranch_lazy_controller_lost_views", how="max")},
                    kind="stat",
                    wide=4,
                ),
            ),
        ),
        Row(
            "Appends",
            (
                Panel(
                    "Committed",
                    "Appends that the log has committed, a second.",
                    {"{{pod}}": per_s("anabranch_lazy_sequencer_committed_total", "pod")},
                ),
                Panel(
                    "Batches",
                    "Batches that the log is asked to commit, a second.",
                    {"{{pod}}": per_s("anabranch_lazy_sequencer_batches_total", "pod")},
                ),
                Panel(
                    "Waiting for the log",
                    "Records in the rings. They are acknowledged, or about to be.",
                    {"{{pod}}": now("anabranch_lazy_sequencer_ring_records", "pod")},
                ),
                Panel(
                    "Rings",
                    "Bytes in the rings, and of appends that wait for room in them.",
                    {
                        "ring {{pod}}": now("anabranch_lazy_sequencer_ring_bytes", "pod"),
                        "waiting {{pod}}": now("anabranch_lazy_sequencer_waiting_bytes", "pod"),
                    },
                    "bytes",
                ),
                Panel(
                    "Rings last",
                    "Time for which a ring has room at this rate if nothing is committed.",
                    {"{{pod}}": now("anabranch_lazy_sequencer_ring_lasts_ms", "pod")},
                    "ms",
                ),
                Panel(
                    "View changes",
                    "Views that were configured, and attempts at them, a second.",
                    {
                        "views": per_s("anabranch_lazy_controller_views_total"),
                        "attempts": per_s("anabranch_lazy_controller_attempts_total"),
                    },
                ),
            ),
        ),
    ),
)
