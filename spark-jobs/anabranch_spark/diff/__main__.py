"""`python -m anabranch_spark.diff A B`: what does one log hold that the other doesn't?"""

import sys
from pathlib import Path

import click
from msgspec.structs import replace

from anabranch.errors import AnabranchError
from anabranch_spark.diff.contents import Contents
from anabranch_spark.diff.job import compared
from anabranch_spark.diff.ranges import Reads
from anabranch_spark.diff.report import EXIT, SAME, By, DiffReport, Keys
from anabranch_spark.expectations.words import count
from anabranch_spark.jobs.command import NEW_FILE, absolute, is_local, run
from anabranch_spark.jobs.progress import say
from anabranch_spark.jobs.session import described, job_session
from anabranch_spark.jobs.verdict import Verdict, write_report
from anabranch_spark.service import address, connect
from anabranch_spark.spark_failures import SPARK_FAILURES, cause


@click.command(name="diff")
@click.argument("a")
@click.argument("b")
@click.option(
    "--by",
    type=click.Choice(["key", "position"]),
    default="key",
    show_default=True,
    help="Compare the last value of each key, or the records themselves by their identity.",
)
@click.option(
    "--samples",
    type=click.IntRange(0, 1_000),
    default=10,
    show_default=True,
    help="Keys of each kind of change that the report shows.",
)
@click.option("--output", help="A new folder or URL to write every change to, as Parquet.")
@click.option("--service", help="The service's URL; by default $ANABRANCH_URL.")
@click.option("--master", help="Spark's master, as of spark-submit; by default this machine.")
@click.option(
    "--report", "path", type=NEW_FILE, help="Write the report here, not to standard output."
)
def diff(  # one argument for each option
    a: str,
    b: str,
    by: By,
    samples: int,
    output: str | None,
    service: str | None,
    master: str | None,
    path: str | None,
) -> Verdict:
    """Compare two logs or forks as far as they are settled.

    The exit code is 0 if they are the same, 2 if they differ, 3 if it couldn't be told.
    """
    if by == "position" and output is not None:
        raise click.UsageError("--output is for changes by key")
    if output is not None:
        if is_local(output) and Path(output).exists():
            raise click.UsageError(f"{output} is there already: name a folder that isn't")
        output = absolute(output)

    def read(ranges: Reads) -> Keys:
        if ranges.alike and output is None:
            return SAME
        say(f"reading up to {count(ranges.records, 'record')} of {a} and {b}")
        with (
            job_session(f"anabranch diff {a} {b}", master=master) as spark,
            described(spark, f"compare {a} with {b} by key"),
        ):
            return Contents(spark, url, (a, b), ranges).keys(samples=samples, output=output)

    try:
        url = address(service)
        with connect(url) as connected:
            report = replace(compared(connected, (a, b), by, read), output=output)
    except (AnabranchError, OSError, *SPARK_FAILURES) as error:
        obstacle = cause(error)
        say(obstacle)
        report = DiffReport(a=a, b=b, by=by, verdict="unknown", obstacles=[obstacle])
    say(f"{a} and {b}: {report.verdict}")
    write_report(report, path)
    return EXIT[report.verdict]


def main(words: list[str]) -> int:
    return run(diff, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
