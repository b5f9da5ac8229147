"""`python -m anabranch_spark.audit`: is every record of these logs what the service says it is?"""

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from anabranch.errors import AnabranchError, Unavailable
from anabranch_spark.audit.job import Audit
from anabranch_spark.audit.report import EXIT, AuditReport
from anabranch_spark.audit.shares import Answer, Share, packed, unpacked_answer
from anabranch_spark.audit.task import read_share
from anabranch_spark.expectations.words import count
from anabranch_spark.jobs.command import NEW_FILE, run
from anabranch_spark.jobs.progress import say
from anabranch_spark.jobs.session import described, job_session
from anabranch_spark.jobs.verdict import Verdict, write_report
from anabranch_spark.service import address, connect
from anabranch_spark.spark_failures import SPARK_FAILURES, cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@click.command(name="audit")
@click.option("--log", "logs", multiple=True, help="A log or fork to audit; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="Audit every Bolt log and fork.")
@click.option("--service", help="The service's URL; by default $ANABRANCH_URL.")
@click.option("--master", help="Spark's master, as of spark-submit; by default this machine.")
@click.option(
    "--report", "path", type=NEW_FILE, help="Write the report here, not to standard output."
)
def audit(
    logs: tuple[str, ...],
    everything: bool,
    service: str | None,
    master: str | None,
    path: str | None,
) -> Verdict:
    """Read logs from the object store, verify every byte, and compare with the service's sums.

    It changes nothing. The exit code is 0 if every log is sound, 2 if the data differ from what the
    service keeps, 3 if it couldn't be told.
    """
    if everything == bool(logs):
        raise click.UsageError("name logs with --log, or say --all")
    try:
        url = address(service)
        with ExitStack() as ending, connect(url) as connected:
            auditing = Audit(connected, url, run=_Tasks(master, ending), say=say)
            report = auditing.of([*dict.fromkeys(logs)] or None)
    except (AnabranchError, OSError) as error:
        say(str(error))
        report = AuditReport(cluster="", verdict="unknown", logs=[], obstacles=[str(error)])
    write_report(report, path)
    return EXIT[report.verdict]


class _Tasks:
    """Has Spark run tasks; its session is started when there is something to read, and ends with
    the job.
    """

    def __init__(self, master: str | None, ending: ExitStack) -> None:
        self._master, self._ending = master, ending
        self._spark: SparkSession | None = None

    def __call__(self, shares: list[Share]) -> list[Answer]:
        """Unavailable if Spark fails: logs that were audited before keep their verdicts."""
        try:
            return self._answers(shares)
        except SPARK_FAILURES as error:
            raise Unavailable("Spark", cause(error)) from error

    def _answers(self, shares: list[Share]) -> list[Answer]:
        from pyspark.sql.functions import udf

        if self._spark is None:
            started = job_session("anabranch audit", master=self._master)
            self._spark = self._ending.enter_context(started)
        # A function of rows: those of Arrow batches want pandas, which nothing else here needs. It
        # isn't deterministic, so that Spark never evaluates it twice.
        read = udf(read_share, "binary", useArrow=False).asNondeterministic()
        rows = [(packed(each),) for each in shares]
        spark: Any = self._spark  # its types aren't complete
        frame = spark.createDataFrame(rows, "share binary").repartition(len(shares))
        logs = len({piece.log for share in shares for piece in share.pieces})
        with described(spark, f"audit {count(logs, 'log')} in {count(len(shares), 'task')}"):
            answers = frame.select(read("share").alias("answer")).collect()
        return [unpacked_answer(bytes(row["answer"])) for row in answers]


def main(words: list[str]) -> int:
    return run(audit, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
