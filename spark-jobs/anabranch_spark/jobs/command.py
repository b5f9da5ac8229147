"""How every job's command line is run: whatever goes wrong, the exit code is a verdict."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from anabranch.errors import AnabranchError
from anabranch_spark.jobs.progress import say
from anabranch_spark.jobs.verdict import Verdict
from anabranch_spark.spark_failures import SPARK_FAILURES, cause


class NewFile(click.Path):
    """A file to write when the job is done. That its folder isn't there is said before."""

    name = "file"

    def __init__(self) -> None:
        super().__init__(dir_okay=False, readable=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = str(super().convert(value, param, ctx))
        if not Path(path).absolute().parent.is_dir():
            self.fail(f"there is no folder {Path(path).parent}.", param, ctx)
        return path


NEW_FILE = NewFile()


def is_local(folder: str) -> bool:
    """Whether it is a path of this machine, and no URL."""
    return "://" not in folder and not folder.startswith("file:")


def absolute(folder: str) -> str:
    """A folder as this process means it: the JVM may have been started elsewhere."""
    return str(Path(folder).absolute()) if is_local(folder) else folder


def run(command: click.Command, words: Sequence[str]) -> int:
    """The exit code of a command that returns a `Verdict`.

    A wrong command line is `UNKNOWN` too: click's own code for it would say that the data are bad.
    """
    try:
        found = command.main(
            [*words], prog_name=f"anabranch spark {command.name}", standalone_mode=False
        )
    except click.ClickException as error:
        error.show()
        return Verdict.UNKNOWN
    except click.Abort:
        say("interrupted")
        return Verdict.UNKNOWN
    except (AnabranchError, OSError, *SPARK_FAILURES) as error:
        say(cause(error))
        return Verdict.UNKNOWN
    return found if isinstance(found, Verdict) else Verdict.DONE
