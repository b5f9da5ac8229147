"""The dashboard of scans: readers that get a log's bytes from the object store, and writers."""

from tests.charts.grafana import Dashboard, Panel, Row, now, per_s

SCANS = Dashboard(
    "anabranch-scans",
    "Anabranch / Scans",
    "Scan plans of jobs that read from the object store, what they cost, and writers' marks.",
    "anabranch_plans_live",
    (
        Row(
            "At a glance",
            (
                Panel(
                    "Live plans",
                    "Scans that keep objects from being deleted.",
                    {"plans": now("anabranch_plans_live", how="max")},
                    kind="stat",
                    wide=6,
                ),
                Panel(
                    "Oldest plan",
                    "How long ago it was made; `plan_age_ms_max` ends it.",
                    {"age": now("anabranch_plans_oldest_ms", how="max")},
                    "ms",
                    kind="stat",
                    wide=6,
                ),
                Panel(
                    "Garbage held back",
                    "Bytes that only live plans keep; `plan_held_bytes_max` ends the oldest.",
                    {"held": now("anabranch_plans_held_bytes", how="max")},
                    "bytes",
                    kind="stat",
                    wide=6,
                ),
                Panel(
                    "Writers remembered",
                    "Until somebody releases them.",
                    {"writers": now("anabranch_writers_remembered", how="max")},
                    kind="stat",
                    wide=6,
                ),
            ),
        ),
        Row(
            "Scans",
            (
                Panel(
                    "Bytes signed",
                    "Of ranges whose URLs readers were given, a second: about what they fetch from "
                    "the object store, past the brokers.",
                    {"{{pod}}": per_s("anabranch_broker_signed_bytes_total", "pod")},
                    "Bps",
                ),
                Panel(
                    "URLs signed",
                    "A second.",
                    {"{{pod}}": per_s("anabranch_broker_signed_total", "pod")},
                ),
                Panel(
                    "Bytes through brokers",
                    "In answers to reads, and pushed to subscribers. A scan adds nothing to it, "
                    "unless it asks a broker for bytes that it finds damaged.",
                    {"{{pod}}": per_s("anabranch_broker_bytes_read_total", "pod")},
                    "Bps",
                ),
                Panel(
                    "Plans",
                    "Alive, as each metadata member knows it.",
                    {"{{pod}}": now("anabranch_plans_live", "pod", "max")},
                ),
                Panel(
                    "Age of the oldest plan",
                    "It grows while a scan runs. One that goes on growing belongs to a job that "
                    "never ends.",
                    {"oldest": now("anabranch_plans_oldest_ms", how="max")},
                    "ms",
                ),
                Panel(
                    "Garbage held back",
                    "Bytes that became garbage after the oldest plan was made.",
                    {"held": now("anabranch_plans_held_bytes", how="max")},
                    "bytes",
                ),
            ),
        ),
        Row(
            "Writers",
            (
                Panel(
                    "Batches repeated",
                    "With a writer mark that the log had already: retried tasks and replayed "
                    "micro-batches, a second.",
                    {"{{pod}}": per_s("anabranch_broker_appends_repeated_total", "pod")},
                ),
                Panel(
                    "Writers",
                    "Of all logs, and of the log that has most; `writers_per_log_max` bounds "
                    "those of a log.",
                    {
                        "all": now("anabranch_writers_remembered", how="max"),
                        "of one log": now("anabranch_writers_most", how="max"),
                    },
                ),
                Panel(
                    "Remembered of versions",
                    "Parts, and batches of versions that aren't complete.",
                    {
                        "parts": now("anabranch_writers_parts", how="max"),
                        "batches": now("anabranch_writers_batches", how="max"),
                    },
                ),
            ),
        ),
    ),
)
