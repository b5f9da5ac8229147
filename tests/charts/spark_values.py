"""The chart's values for jobs of Spark."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from tests.charts.shapes import Count, JavaMemory, Name, Quantity

_LINE = "^[^\x00-\x1f\x7f\x85\u2028\u2029]*$"
"""Without anything that ends a line in YAML. The characters as they are: Go's patterns and those of
other languages escape them differently.
"""


class SparkTable(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A table of values, whose keys are in camel case."""


class Executors(SparkTable, frozen=True, kw_only=True):
    instances: Count = 2
    """How many pods a job asks for."""
    cores: Annotated[int, Meta(ge=1, le=256)] = 1
    """Tasks that each runs at a time."""
    cpu: Quantity | int = "500m"
    """Cores that are reserved for each."""
    memory: JavaMemory = "768m"
    """Of Java in each."""
    memory_overhead: JavaMemory = "768m"
    """For everything else in each, above all one Python process a core. A pod that takes more is
    ended, and Spark says `Python worker exited unexpectedly`.
    """


class Spark(SparkTable, frozen=True, kw_only=True):
    enabled: bool = False
    """Let jobs of Spark run here: a service account `<release>-spark` for drivers, which gates may
    name, `<release>-spark-executor` for executors, and a ConfigMap `<release>-spark` with the
    settings of both.
    """
    verbs: list[Literal["append", "create", "delete", "fork", "list", "promote", "read"]] = (
        msgspec.field(default_factory=lambda: ["read"])
    )
    """What drivers and executors may do with logs and forks here, where `auth.mode` is
    `kubernetes`: jobs that write need `append`, and with `mode=fork` also `fork`, `promote` and
    `delete`.
    """
    executors: Executors = Executors()
    """What a job asks for, unless it says otherwise."""
    secrets: list[Name] = []
    """Secrets that a driver may give its executors, such as keys of a store to export to."""
    settings: dict[
        Annotated[str, Meta(pattern=r"^spark\.[A-Za-z0-9._-]+$", max_length=200)],
        Annotated[str, Meta(pattern=_LINE, max_length=4_000)],
    ] = {}
    """More settings of Spark by their names, as `spark.sql.shuffle.partitions: "8"`."""
