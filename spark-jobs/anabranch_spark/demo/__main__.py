"""`python -m anabranch_spark.demo`: gate, promotion and export on a service of its own."""

import shutil
import sys
import tempfile
from pathlib import Path

import click

from anabranch.errors import AnabranchError
from anabranch_spark.demo.stage import Narrator, Stage, service
from anabranch_spark.demo.story import FILES, PAGE, WAREHOUSE, play
from anabranch_spark.jobs.java import obstacle
from anabranch_spark.jobs.verdict import Verdict


@click.command(name="demo")
@click.option("--fast", is_flag=True, help="Don't pause for reading.")
@click.option("--out", type=click.Path(file_okay=False), help="Default: a new temporary folder.")
def command(fast: bool, out: str | None) -> int:
    """Judge a plan on a fork, mend it, promote it, and export the log, narrated.

    Takes about two minutes, for Spark starts five times. The folder is left for you to look at.
    """
    stands = obstacle()
    if stands is not None:
        click.echo(stands, err=True)
        return Verdict.UNKNOWN
    folder = Path(out or tempfile.mkdtemp(prefix="anabranch-demo-spark-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    narrator = Narrator(pauses=sys.stdout.isatty() and not fast)
    try:
        with service(folder) as url:
            narrator.title("A log service, in a folder of its own")
            narrator.tell(f"It serves {url}.")
            play(Stage(folder, url, narrator))
    except AnabranchError as error:
        click.echo(error.message, err=True)
        return Verdict.UNKNOWN
    shutil.rmtree(folder / "data")
    narrator.title("What is left")
    narrator.tell(f"In {folder}: {FILES}/, {WAREHOUSE}/, and the gate's report with pictures:")
    narrator.show([(folder / PAGE).as_uri()])
    return Verdict.DONE


def main(words: list[str]) -> int:
    try:
        return int(command.main(words, "anabranch-spark-demo", standalone_mode=False) or 0)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        error.show()
        return Verdict.UNKNOWN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
