"""The dashboards for Grafana, each a table of panels; `written.py` writes them as JSON."""

from tests.charts.belfast import BELFAST
from tests.charts.erwin import ERWIN
from tests.charts.grafana import Dashboard, Panel, Row, each, now, per_s
from tests.charts.lazy import LAZY
from tests.charts.scans import SCANS

SERVICE = Dashboard(
    "anabranch-service",
    "Anabranch / Service",
    "Brokers, metadata members, the object store and what they cost.",
    "anabranch_member_leading",
    (
        Row(
            "At a glance",
            (
                Panel(
                    "Leaders",
                    "Metadata members that lead: one, but for the second in which one follows "
                    "another.",
                    {"leaders": now("anabranch_member_leading")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Logs and forks",
                    "As many as there are.",
                    {"logs": now("anabranch_member_logs", how="max")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Store",
                    "0 healthy, 1 degraded, 2 unavailable.",
                    {"standing": now("anabranch_s3_standing", how="max")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Appends parked",
                    "They wait for an undecided promotable fork.",
                    {"parked": now("anabranch_broker_appends_parked")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Subscriptions",
                    "Open now.",
                    {"subscriptions": now("anabranch_broker_subscriptions")},
                    kind="stat",
                    wide=4,
                ),
                Panel(
                    "Cost an hour",
                    "Of requests to the store, at the prices that `s3_price_*` say.",
                    {"cost": f"3600 * {per_s('anabranch_s3_cost_total')}"},
                    kind="stat",
                    wide=4,
                ),
            ),
        ),
        Row(
            "Appends and reads",
            (
                Panel(
                    "Records appended",
                    "Acknowledged, a second.",
                    {"{{pod}}": per_s("anabranch_broker_appends_records_total", "pod")},
                ),
                Panel(
                    "Bytes appended",
                    "Of batches acknowledged.",
                    {"{{pod}}": per_s("anabranch_broker_appends_bytes_total", "pod")},
                    "Bps",
                ),
                Panel(
                    "Bytes read",
                    "In answers to reads, and pushed to subscribers.",
                    {"{{pod}}": per_s("anabranch_broker_bytes_read_total", "pod")},
                    "Bps",
                ),
                Panel(
                    "Held back",
                    "Bytes of appends taken and not yet answered; `queue_bytes_max` is the bound.",
                    {"{{pod}}": now("anabranch_broker_appends_held_bytes", "pod")},
                    "bytes",
                ),
                Panel(
                    "Refused",
                    "Requests answered with an error, and those over a quota.",
                    {
                        "refused {{pod}}": per_s("anabranch_broker_refused_total", "pod"),
                        "over quota {{pod}}": per_s("anabranch_broker_over_quota_total", "pod"),
                    },
                ),
                Panel(
                    "Cache",
                    "Extents that reads found in the cache, and those that they didn't.",
                    {
                        "hits": per_s("anabranch_broker_cache_hits_total"),
                        "misses": per_s("anabranch_broker_cache_misses_total"),
                    },
                ),
            ),
        ),
        Row(
            "Object store",
            (
                Panel(
                    "Requests",
                    "A second, each attempt one.",
                    {
                        "PUT": per_s("anabranch_s3_puts_total"),
                        "parts": per_s("anabranch_s3_parts_total"),
                        "GET": per_s("anabranch_s3_gets_total"),
                        "LIST": per_s("anabranch_s3_lists_total"),
                        "DELETE": per_s("anabranch_s3_deletes_total"),
                    },
                ),
                Panel(
                    "Failures",
                    "Attempts made again, refused, throttled; and calls given up.",
                    {
                        "again": per_s("anabranch_s3_retries_total"),
                        "refused": per_s("anabranch_s3_refusals_total"),
                        "throttled": per_s("anabranch_s3_throttled_total"),
                        "given up": per_s("anabranch_s3_failures_total"),
                    },
                ),
                Panel(
                    "Bytes",
                    "Put and got.",
                    {
                        "put": per_s("anabranch_s3_bytes_put_total"),
                        "got": per_s("anabranch_s3_bytes_got_total"),
                    },
                    "Bps",
                ),
            ),
        ),
        Row(
            "Metadata",
            (
                Panel(
                    "Who leads",
                    "1: this member.",
                    {"{{pod}}": now("anabranch_member_leading", "pod", "max")},
                ),
                Panel(
                    "Behind the journal",
                    "Entries that a member knows of and hasn't applied.",
                    {
                        "{{pod}}": f"{now('anabranch_member_journaled', 'pod')}"
                        f" - {now('anabranch_member_index', 'pod')}"
                    },
                ),
                Panel(
                    "Journal",
                    "Groups, each one write; entries in them; operations that failed.",
                    {
                        "groups": per_s("anabranch_storing_groups_total"),
                        "entries": per_s("anabranch_storing_entries_total"),
                        "errors": per_s("anabranch_storing_errors_total"),
                    },
                ),
            ),
        ),
        Row(
            "Processes",
            (
                Panel(
                    "Memory",
                    "Resident.",
                    {"{{pod}}": now("process_resident_memory_bytes", "pod")},
                    "bytes",
                ),
                Panel("CPU", "Cores.", {"{{pod}}": per_s("process_cpu_seconds_total", "pod")}),
                Panel(
                    "Connections",
                    "Of clients, by broker.",
                    {"{{pod}}": now("anabranch_server_connections", "pod")},
                ),
            ),
        ),
    ),
)

FORKS = Dashboard(
    "anabranch-forks",
    "Anabranch / Forks",
    "Forks that are declared, where they come from, what they are worth and what they cost.",
    "anabranch_operator_forks",
    (
        Row(
            "At a glance",
            (
                Panel(
                    "Forks by phase",
                    "Declared as resources.",
                    {"{{phase}}": each("anabranch_operator_forks", "phase")},
                    wide=12,
                ),
                Panel(
                    "Logs and forks",
                    "All of them, declared or not.",
                    {"logs": now("anabranch_member_logs", how="max")},
                    wide=12,
                ),
            ),
        ),
        Row(
            "Lineage",
            (
                Panel(
                    "Forks and their parents",
                    "Each declared fork: the log that it comes from, its kind, its phase.",
                    {"": 'anabranch_operator_fork_info{namespace=~"$namespace"}'},
                    kind="table",
                    wide=16,
                ),
                Panel(
                    "Forks by parent",
                    "How many come from each log.",
                    {"{{parent}}": now("anabranch_operator_fork_info", "parent", "count")},
                ),
            ),
        ),
        Row(
            "Decisions",
            (
                Panel(
                    "Gates",
                    "Decided, a second, by result.",
                    {"{{result}}": per_s("anabranch_operator_gates_total", "result")},
                ),
                Panel(
                    "Appends parked",
                    "They wait for an undecided promotable fork.",
                    {"{{pod}}": now("anabranch_broker_appends_parked", "pod")},
                ),
                Panel(
                    "Speculations failed",
                    "Times a subscriber was told to forget records.",
                    {"{{pod}}": per_s("anabranch_broker_speculations_failed_total", "pod")},
                ),
            ),
        ),
        Row(
            "Cost",
            (
                Panel(
                    "Cost an hour, by log",
                    "The ten dearest, by their numbers (`logId` of a resource's status).",
                    {"{{log}}": f"topk(10, 3600 * {per_s('anabranch_log_cost_total', 'log')})"},
                ),
                Panel(
                    "Bytes put, by log",
                    "The ten that write most.",
                    {"{{log}}": f"topk(10, {per_s('anabranch_log_put_bytes_total', 'log')})"},
                    "Bps",
                ),
                Panel(
                    "Bytes got, by log",
                    "The ten that are read most, through whichever fork.",
                    {"{{log}}": f"topk(10, {per_s('anabranch_log_got_bytes_total', 'log')})"},
                    "Bps",
                ),
            ),
        ),
    ),
)

OPERATOR = Dashboard(
    "anabranch-operator",
    "Anabranch / Operator",
    "What the operator does, how fast, and whether it sees.",
    "anabranch_operator_leader",
    (
        Row(
            "At a glance",
            (
                Panel(
                    "Leaders",
                    "One, but for the seconds in which one follows another.",
                    {"leaders": now("anabranch_operator_leader")},
                    kind="stat",
                    wide=6,
                ),
                Panel(
                    "Paused",
                    "Resources that it leaves alone.",
                    {"{{kind}}": each("anabranch_operator_paused", "kind")},
                    kind="stat",
                    wide=6,
                ),
                Panel(
                    "Waiting longest",
                    "For its turn.",
                    {"waiting": now("anabranch_operator_queue_age_seconds", how="max")},
                    "s",
                    kind="stat",
                    wide=6,
                ),
                Panel(
                    "Log service",
                    "1 while it answers.",
                    {"reachable": now("anabranch_operator_service_reachable", how="max")},
                    kind="stat",
                    wide=6,
                ),
            ),
        ),
        Row(
            "Reconciliation",
            (
                Panel(
                    "Plans",
                    "A second, by kind and result.",
                    {
                        "{{kind}} {{result}}": per_s(
                            "anabranch_operator_reconcile_total", "kind, result"
                        )
                    },
                ),
                Panel(
                    "Duration",
                    "From a plan to the outcome of its last action, the slowest in a hundred.",
                    {
                        "{{kind}}": "histogram_quantile(0.99, "
                        + per_s("anabranch_operator_reconcile_seconds_bucket", "le, kind")
                        + ")"
                    },
                    "s",
                ),
                Panel(
                    "Requests to the API server",
                    "A second, by verb and answer.",
                    {
                        "{{verb}} {{code}}": per_s(
                            "anabranch_operator_api_requests_total", "verb, code"
                        )
                    },
                ),
            ),
        ),
        Row(
            "What it hears and asks",
            (
                Panel(
                    "Told by watches",
                    "A second, by kind; changes of its own Lease are among them.",
                    {"{{kind}}": per_s("anabranch_operator_watch_events_total", "kind")},
                ),
                Panel(
                    "Requests to the log service",
                    "A second, by what was asked and what came of it.",
                    {
                        "{{request}} {{code}}": per_s(
                            "anabranch_operator_service_requests_total", "request, code"
                        )
                    },
                ),
                Panel(
                    "Missed",
                    "Deletions that a list showed and no watch had told; objects not understood.",
                    {
                        "missed": per_s("anabranch_operator_missed_deletions_total"),
                        "malformed": now("anabranch_operator_malformed", how="max"),
                    },
                ),
            ),
        ),
        Row(
            "Pools",
            (
                Panel(
                    "Brokers",
                    "How many there should be, are ready, are spare.",
                    {
                        "desired {{pool}}": now("anabranch_operator_pool_desired", "pool", "max"),
                        "ready {{pool}}": now("anabranch_operator_pool_ready", "pool", "max"),
                        "spare {{pool}}": now("anabranch_operator_pool_spare", "pool", "max"),
                    },
                ),
                Panel(
                    "Forks that wait",
                    "For a broker of their own.",
                    {"{{pool}}": now("anabranch_operator_pool_waiting", "pool", "max")},
                ),
                Panel(
                    "Certificates",
                    "Until they expire.",
                    {
                        "{{name}}": now(
                            "anabranch_operator_certificate_expiry_seconds", "name", "min"
                        )
                        + " - time()"
                    },
                    "s",
                ),
            ),
        ),
        Row(
            "Processes",
            (
                Panel(
                    "Memory",
                    "Resident.",
                    {
                        "{{pod}}": "process_resident_memory_bytes"
                        '{namespace=~"$namespace"} and on (pod) anabranch_operator_leader'
                    },
                    "bytes",
                    wide=12,
                ),
                Panel(
                    "CPU",
                    "Cores.",
                    {
                        "{{pod}}": f"{per_s('process_cpu_seconds_total', 'pod')}"
                        " and on (pod) anabranch_operator_leader"
                    },
                    wide=12,
                ),
            ),
        ),
    ),
)

DASHBOARDS = {
    "service": SERVICE,
    "forks": FORKS,
    "operator": OPERATOR,
    "belfast": BELFAST,
    "erwin": ERWIN,
    "lazy": LAZY,
    "scans": SCANS,
}
