"""`python -m anabranch_spark.compact`: copy many small extents of logs into few objects."""

import os
import socket
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from anabranch.errors import AnabranchError, Unavailable
from anabranch_spark.compact.job import WAVE_BYTES, Compaction
from anabranch_spark.compact.report import EXIT, CompactReport
from anabranch_spark.compact.shares import Answer, Share, packed, unpacked_answer
from anabranch_spark.compact.task import copy_share
from anabranch_spark.expectations.words import count
from anabranch_spark.jobs.command import NEW_FILE, run
from anabranch_spark.jobs.progress import say
from anabranch_spark.jobs.session import described, job_session
from anabranch_spark.jobs.verdict import Verdict, write_report
from anabranch_spark.service import address, connect
from anabranch_spark.spark_failures import SPARK_FAILURES, cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAVE_GIB = WAVE_BYTES >> 30


@click.command(name="compact")
@click.option("--log", "logs", multiple=True, help="A log or fork to compact; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="Compact every Bolt log and fork.")
@click.option(
    "--wave-gib",
    type=click.IntRange(1, WAVE_GIB),
    default=WAVE_GIB,
    show_default=True,
    help="Copy at most so much before copies take the place of what they hold.",
)
@click.option("--service", help="The service's URL; by default $ANABRANCH_URL.")
@click.option("--master", help="Spark's master, as of spark-submit; by default this machine.")
@click.option(
    "--report", "path", type=NEW_FILE, help="Write the report here, not to standard output."
)
def compact(
    logs: tuple[str, ...],
    everything: bool,
    wave_gib: int,
    service: str | None,
    master: str | None,
    path: str | None,
) -> Verdict:
    """Copy many small extents of logs into few objects, and have a broker check each copy.

    Readers, appends and forks go on meanwhile, and no record changes. The exit code is 0 if
    everything worth copying was copied, 2 if extents aren't what was committed, which are left as
    they are, and 3 if the job couldn't finish: run it again, it goes on where it ended.
    """
    if everything == bool(logs):
        raise click.UsageError("name logs with --log, or say --all")
    called = f"spark compact on {socket.gethostname()}, process {os.getpid()}"
    try:
        url = address(service)
        with ExitStack() as ending, connect(url) as connected:
            tasks = _Tasks(master, ending)
            job = Compaction(connected, url, run=tasks, say=say, wave_bytes=wave_gib << 30)
            report = job.of([*dict.fromkeys(logs)] or None, called)
    except (AnabranchError, OSError) as error:
        say(str(error))
        report = CompactReport(cluster="", verdict="unknown", logs=[], obstacles=[str(error)])
    write_report(report, path)
    return EXIT[report.verdict]


class _Tasks:
    """Has Spark run tasks; its session is started when there is something to copy, and ends with
    the job.
    """

    def __init__(self, master: str | None, ending: ExitStack) -> None:
        self._master, self._ending = master, ending
        self._spark: SparkSession | None = None

    def __call__(self, shares: list[Share]) -> list[Answer]:
        """Unavailable if Spark fails: what was adopted before stays."""
        try:
            return self._answers(shares)
        except SPARK_FAILURES as error:
            raise Unavailable("Spark", cause(error)) from error

    def _answers(self, shares: list[Share]) -> list[Answer]:
        from pyspark.sql.functions import udf

        if self._spark is None:
            started = job_session("anabranch compact", master=self._master)
            self._spark = self._ending.enter_context(started)
        # It isn't deterministic, so that Spark never evaluates it twice in one attempt.
        copy = udf(copy_share, "binary", useArrow=False).asNondeterministic()
        rows = [(packed(each),) for each in shares]
        spark: Any = self._spark  # its types aren't complete
        frame = spark.createDataFrame(rows, "share binary").repartition(len(shares))
        copies = sum(len(share.orders) for share in shares)
        what = count(copies, "object")
        with described(spark, f"write {what} in {count(len(shares), 'task')}"):
            answers = frame.select(copy("share").alias("answer")).collect()
        return [unpacked_answer(bytes(row["answer"])) for row in answers]


def main(words: list[str]) -> int:
    return run(compact, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
