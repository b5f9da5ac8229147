"""`python -m anabranch_spark.analytics supply orders--plan`."""

import sys
from math import isfinite
from typing import Any

import click

from anabranch.errors import AnabranchError
from anabranch_spark.analytics import fraud, iot, supply
from anabranch_spark.analytics.run import Report, ask, records
from anabranch_spark.expectations.words import count
from anabranch_spark.jobs.command import NEW_FILE
from anabranch_spark.jobs.command import run as run_command
from anabranch_spark.jobs.progress import say
from anabranch_spark.jobs.session import described, job_session
from anabranch_spark.jobs.verdict import Verdict, write_report
from anabranch_spark.service import address, connect
from anabranch_spark.spark_failures import SPARK_FAILURES, cause

QUESTIONS = {each.name: each for each in (iot.QUESTION, fraud.QUESTION, supply.QUESTION)}


@click.command(name="analytics")
@click.argument("question", type=click.Choice(list(QUESTIONS)))
@click.argument("log")
@click.option("--service", help="URL of the log service. Default: ANABRANCH_URL.")
@click.option(
    "--level",
    type=float,
    help="; ".join(f"{each.name}: {each.level}" for each in QUESTIONS.values()) + ".",
)
@click.option("--refuse", is_flag=True, help="Exit with 2 if anything is found or malformed.")
@click.option("--master", help="Spark's master; as Spark is configured, or else this machine.")
@click.option("--report", type=NEW_FILE, help="Write the JSON report here.")
def command(question: str, log: str, **given: Any) -> Verdict:
    """Ask a question of a log, or of a fork by its name.

    Exit code: 0 answered, 2 refused by --refuse, 3 it couldn't be answered.
    """
    level = given["level"]
    if level is not None and not isfinite(level):
        raise click.UsageError(f"--level {level} is no number that anything can be compared with")
    report = _answered(question, log, **given)
    found = report.malformed or (report.findings is not None and report.findings.found)
    if given["refuse"] and report.verdict is Verdict.DONE and found:
        report.verdict = Verdict.REFUSED
    say(report.reason or _read(report))
    write_report(report, given["report"])
    return report.verdict


def _answered(question: str, log: str, **given: Any) -> Report:
    try:
        service = address(given["service"])
        with connect(service) as connected:
            # Spark takes its time to start, and isn't needed to say that there is no such log.
            connected.log(log, engine="bolt")
        name = f"anabranch analytics {question} {log}"
        asked = QUESTIONS[question]
        with (
            job_session(name, master=given["master"]) as spark,
            described(spark, f"{asked.asks} ({log})"),
        ):
            return ask(records(spark, service, log), asked, log, given["level"])
    except AnabranchError as error:
        return Report(question, log, reason=error.message)
    except SPARK_FAILURES as error:
        return Report(question, log, reason=f"Spark couldn't do it: {cause(error)}")


def _read(report: Report) -> str:
    line = f"read {count(report.records, 'record')}"
    if report.malformed:
        line += f"; {report.malformed:,} of them malformed, the first at {report.first_malformed}"
    return line


def main(words: list[str]) -> int:
    return run_command(command, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
