"""`python -m anabranch_spark.export LOG --to parquet DIR`."""

import sys
from typing import Any

import click

from anabranch.errors import AnabranchError
from anabranch_spark.export.program import run
from anabranch_spark.export.report import Report
from anabranch_spark.export.request import Form, Request, limits, settings
from anabranch_spark.jobs.command import NEW_FILE, absolute
from anabranch_spark.jobs.command import run as run_command
from anabranch_spark.jobs.progress import say
from anabranch_spark.jobs.verdict import Verdict, write_report
from anabranch_spark.service import address


@click.command(name="export")
@click.argument("log")
@click.option(
    "--to",
    "target",
    type=(click.Choice([str(each) for each in Form]), str),
    required=True,
    help="parquet DIR, iceberg CATALOG.NAMESPACE.TABLE or delta DIR.",
)
@click.option("--service", help="URL of the log service. Default: ANABRANCH_URL.")
@click.option(
    "--from", "start", type=click.IntRange(0), help="Position where the first run begins."
)
@click.option("--until", type=click.IntRange(0), help="First position not to export.")
@click.option("--records", type=int, help="Records of a file or commit. Default: 1,000,000.")
@click.option("--bytes", "size", type=int, help="Instead: stored bytes of a file or commit.")
@click.option(
    "--full-only", is_flag=True, help="Leave a last range that isn't full to a later run."
)
@click.option("--schema", metavar="DDL", help="Decode values, which are JSON, by this schema.")
@click.option("--branch", help="Branch of the Iceberg table. Default: main; a fork's own name.")
@click.option(
    "--warehouse", metavar="DIR", help="Keep the Iceberg catalog's tables in this folder."
)
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
@click.option("--master", help="Spark's master. Default: this machine, or spark-submit's.")
@click.option("--report", type=NEW_FILE, help="Write the JSON report here.")
def command(log: str, target: tuple[str, str], **given: Any) -> Verdict:
    """Export a log's settled records. Run it again to go on where it stopped.

    Exit code: 0 done, 2 a value isn't JSON of the schema, 3 anything else.
    """
    try:
        records, size = limits(records=given["records"], size=given["size"])
        form = Form(target[0])
        request = Request(
            service=address(given["service"]),
            log=log,
            form=form,
            target=target[1] if form is Form.ICEBERG else absolute(target[1]),
            start=given["start"],
            end=given["until"],
            records=records,
            bytes=size,
            full_only=given["full_only"],
            schema=given["schema"],
            branch=given["branch"],
        )
        found = run(
            request,
            settings(given["conf"]),
            warehouse=given["warehouse"] and absolute(given["warehouse"]),
            master=given["master"],
            say=say,
        )
    except AnabranchError as error:
        found = Report(log, target[0], target[1], reason=error.message)
    if found.reason:
        say(found.reason)
    write_report(found, given["report"])
    return found.verdict


def main(words: list[str]) -> int:
    return run_command(command, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
