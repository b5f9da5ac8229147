"""The jobs by name, for `anabranch spark JOB ...`: each is imported when it is run.

Nothing here imports pyspark, so that a list of the jobs costs no more than any other help.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import click

from anabranch.errors import AnabranchError
from anabranch_spark.jobs.verdict import Verdict

PROGRAM = "anabranch spark"
JOBS: dict[str, str] = {
    "gate": "Judge a fork by declared expectations, before it is promoted.",
    "audit": "Compare a log's batches with the sums that the service keeps.",
    "compact": "Copy many small extents of logs into few objects.",
    "diff": "Compare two logs by key.",
    "export": "Write a log as Parquet files, or to an Iceberg or Delta table.",
    "analytics": "Answer a question of the examples on a log or fork.",
}
"""What the list of jobs says of each."""

_CONTEXT = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""All words behind a job's name are the job's own, `--help` too."""


class JobGroup(click.Group):
    """The jobs as commands that import nothing before they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(JOBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in JOBS:
            return None
        return click.Command(
            cmd_name,
            context_settings=_CONTEXT,
            callback=partial(_run, cmd_name),
            params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
            help=JOBS[cmd_name],
            add_help_option=False,
        )


@click.command(cls=JobGroup, context_settings={"help_option_names": ["-h", "--help"]})
def jobs() -> None:
    """Run the jobs that read and write logs on Spark.

    `anabranch spark JOB --help` says what a job takes. A job exits with 0 if it is done or the data
    pass, with 2 if the data say no, and with 3 if it couldn't tell.
    """


def main(words: Sequence[str]) -> int:
    """Run a job and return its exit code.

    Only what a job returns is a verdict. Whatever ended it otherwise is 3: a mistyped option must
    not look like data that were refused, though click and argparse exit with 2 then.
    """
    try:
        left = jobs.main(list(words) or ["--help"], prog_name=PROGRAM, standalone_mode=False)
    except click.ClickException as wrong:
        wrong.show()
        return Verdict.UNKNOWN
    except AnabranchError as error:
        print(f"error: {error.message}", file=sys.stderr)  # noqa: T201  # a program's last word
        return Verdict.UNKNOWN
    except SystemExit as end:
        return Verdict.UNKNOWN if end.code else Verdict.DONE
    return left if isinstance(left, int) else Verdict.DONE


def _run(job: str, words: tuple[str, ...]) -> int:
    return _program(job)(list(words))


def _program(job: str) -> Callable[[list[str]], int]:
    """The job's `main`, from its package's `__main__` or from its module."""
    name = f"anabranch_spark.{job}"
    found = find_spec(name)
    if found is None:
        raise click.ClickException(f"this version of the Spark package has no job {job}")
    package = found.submodule_search_locations is not None
    return import_module(f"{name}.__main__" if package else name).main
