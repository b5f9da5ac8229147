"""`anabranch spark JOB ...`: jobs of the Spark package, which is found by its name.

Nothing here imports that package: whoever doesn't use Spark needs neither it nor pyspark.
"""

from importlib import import_module
from importlib.util import find_spec

import click

from anabranch.core.errors import AnabranchError

_JOBS = "anabranch_spark.cli"
_NEEDED = ("anabranch_spark", "pyspark", "pyarrow", "yaml")
_CONTEXT = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""All words behind a job's name are the job's own, `--help` too."""


class SparkMissing(AnabranchError):
    """The jobs' package or something that it needs isn't installed."""

    code = "spark-missing"
    advice = "install it"
    says = (
        "jobs on Spark need {missing}, which this Python doesn't have: install the extra with "
        "`pip install 'anabranch[spark]'`, and Java 17 or 21"
    )

    def __init__(self, missing: str) -> None:
        super().__init__(missing=missing)


@click.command(context_settings=_CONTEXT)
@click.argument("words", metavar="[JOB] [ARGS]...", nargs=-1, type=click.UNPROCESSED)
def spark(words: tuple[str, ...]) -> int:
    """Run the jobs that read and write logs on Spark.

    \b
    gate       Judge a fork by declared expectations, before it is promoted.
    audit      Compare a log's batches with the sums that the service keeps.
    compact    Copy many small extents of logs into few objects.
    diff       Compare two logs by key.
    export     Write a log as Parquet files, or to an Iceberg or Delta table.
    analytics  Answer a question of the examples on a log or fork.

    They need the extra `spark` (`pip install 'anabranch[spark]'`) and Java 17 or 21. `anabranch
    spark JOB --help` says what a job takes. A job exits with 0 if it is done or the data pass, with
    2 if the data say no, and with 3 if it couldn't tell.
    """  # noqa: D301  # click wants the character itself
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise SparkMissing(", ".join(missing))
    code: int = import_module(_JOBS).main(words)
    return code
