"""`python -m anabranch_spark.gate EXPECTATIONS`: judge a fork, and promote it if asked to."""

import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from anabranch_spark.expectations.html_report import page
from anabranch_spark.expectations.load import load
from anabranch_spark.expectations.outcome import Report, Status
from anabranch_spark.expectations.text_report import text
from anabranch_spark.gate.message import message
from anabranch_spark.gate.rounds import TRIES, rounds
from anabranch_spark.gate.task import (
    FORK,
    FORK_POINT,
    LOG,
    OWN_RECORDS,
    PARENT,
    Task,
    objection,
    task,
)
from anabranch_spark.jobs.command import NEW_FILE, run
from anabranch_spark.jobs.progress import say
from anabranch_spark.jobs.verdict import Verdict, write_report, write_whole

VERDICTS = {
    Status.PASSED: Verdict.DONE,
    Status.FAILED: Verdict.REFUSED,
    Status.UNKNOWN: Verdict.UNKNOWN,
}
_SETTINGS = {
    # Sums that overflow are errors, and aren't numbers that nobody meant.
    "spark.sql.ansi.enabled": "true",
}
_NAMES = {
    "log": LOG,
    "fork": FORK,
    "parent": PARENT,
    "fork_point": FORK_POINT,
    "own_records": OWN_RECORDS,
}


@click.command("gate", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("expectations")
@click.option("--service", help="The service's URL. [ANABRANCH_URL]")
@click.option("--log", help="The fork to judge, by its name. [ANABRANCH_LOG]")
@click.option("--fork", help="What reports and Spark's UI call it. [ANABRANCH_FORK]")
@click.option("--parent", help="The log that it was forked from. [ANABRANCH_PARENT]")
@click.option("--fork-point", help="Where it was forked, if known. [ANABRANCH_FORK_POINT]")
@click.option("--own-records", help="How many it has at least. [ANABRANCH_OWN_RECORDS]")
@click.option("--report", type=NEW_FILE, help="Write the report as JSON.")
@click.option("--html", type=NEW_FILE, help="Write the report as a page with pictures.")
@click.option(
    "--termination-log",
    type=NEW_FILE,
    help="Write what the operator reads: /dev/termination-log in a Job.",
)
@click.option("--promote", is_flag=True, help="Promote the fork if it passes, as it was judged.")
@click.option(
    "--tries",
    type=click.IntRange(1, 100),
    default=TRIES,
    show_default=True,
    help="How often a fork that moves is judged, with --promote.",
)
@click.option("--master", help="Spark's master; as Spark is configured, or else this machine.")
def command(**given: Any) -> Verdict:
    """Judge a fork's own records by a file of EXPECTATIONS, YAML or Python.

    Exits with 0 if all pass, 2 if the data fail some, and 3 if that couldn't be told.
    """
    named = {_NAMES[key]: given[key] for key in _NAMES}
    report = _report(given, named)
    return _written(report, given)


def _report(given: Mapping[str, Any], named: Mapping[str, str | None]) -> Report:
    """Spark is started only when the expectations have been read and the service has the fork."""
    meant = Task(log=named[LOG] or os.environ.get(LOG, ""), shown="")
    from anabranch_spark.gate.reading import Reader, found
    from anabranch_spark.gate.run import FAILURES, Gate, unjudged
    from anabranch_spark.jobs.session import job_session
    from anabranch_spark.service import address, connect
    from anabranch_spark.spark_failures import cause

    with ExitStack() as ending:
        try:
            suite = load(given["expectations"])
            meant = task(named, os.environ)
            url = address(given["service"])
            service = ending.enter_context(connect(url))
            before = found(service.log(meant.log, engine="bolt"))
            if (reason := objection(meant, before)) is not None:
                return unjudged(meant, reason, known=before)
            say(f"starting Spark to judge {meant.log}")
            name = f"anabranch gate {meant.shown}"
            # It ends before the reason is printed, so that the reason is the last line.
            spark = ending.enter_context(
                job_session(name, master=given["master"], settings=_SETTINGS)
            )
            gate = Gate(service, Reader(spark, url), meant, suite, say)
            promote = gate.promote if given["promote"] else None
            return rounds(gate.judge, promote, tries=given["tries"], says=say)
        except FAILURES as error:
            return unjudged(meant, cause(error))


def _written(report: Report, given: Mapping[str, Any]) -> Verdict:
    """The last line of the log is the reason: that end is what the operator shows."""
    try:
        if given["report"]:
            write_report(report, given["report"])
        if given["html"]:
            write_whole(given["html"], page(report).encode())
        if given["termination_log"]:
            Path(given["termination_log"]).write_bytes(message(report))
    except OSError as error:
        reason = f"the report can't be written: {error}"
        report = replace(report, verdict=Status.UNKNOWN, reason=reason)
    sys.stderr.write(text(report))
    sys.stderr.flush()
    return VERDICTS[report.verdict]


def main(words: list[str] | None = None) -> int:
    return run(command, sys.argv[1:] if words is None else words)


if __name__ == "__main__":
    sys.exit(main())
