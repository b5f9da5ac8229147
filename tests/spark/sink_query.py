"""A streaming query from text files into a log: a process of its own, so that it can be killed.

It runs until it has read every file, and starts the query again when that fails, as a supervisor
does. It says `ready` when Spark runs, `batch N` after each batch, `failed` for each failure, and
ends with 1 if the log refuses what it writes.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES_PER_BATCH = 4
REFUSALS = ("isn't what", "were expected", "nothing was changed", "nothing was committed")
"""Of part-differs, fork-moved and writer-conflict, and of reports that don't add up."""
_BYTES = str(1 << 20)


def started(folder: Path) -> "SparkSession":
    from anabranch_spark.jobs.session import session

    found = session(
        "kills",
        master="local[2,4]",
        settings={
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(folder / "local"),
            # Each file is a partition, so that what a batch of the log holds is known beforehand.
            "spark.sql.files.maxPartitionBytes": _BYTES,
            "spark.sql.files.openCostInBytes": _BYTES,
        },
    )
    found.sparkContext.setLogLevel("OFF")
    return found


def records(spark: "SparkSession", folder: Path) -> "DataFrame":
    """Each line is `TIME KEY REST`; the time is given, so that the same line is the same record."""
    lines = (
        spark.readStream.schema("value string")
        .option("maxFilesPerTrigger", FILES_PER_BATCH)
        .text(str(folder / "files"))
    )
    return lines.selectExpr(
        "value",
        "split(value, ' ')[1] AS key",
        "timestamp_millis(CAST(split(value, ' ')[0] AS bigint)) AS timestamp",
    )


def run(frame: "DataFrame", folder: Path, options: dict[str, str]) -> None:
    """Raises as the query fails."""
    query: Any = (
        frame.writeStream.format("anabranch")
        .options(**options)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    said = -1
    ended = False
    while not ended:
        ended = query.awaitTermination(0.2)
        progress = query.lastProgress
        if progress is not None and progress["batchId"] > said:
            said = progress["batchId"]
            say(f"batch {said}")


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def main(folder: Path, url: str, log: str, mode: str) -> int:
    spark = started(folder)
    say("ready")
    frame = records(spark, folder)
    options = {"service": url, "log": log, "mode": mode}
    while True:
        try:
            run(frame, folder, options)
        except Exception as error:
            said = str(error)
            if any(refusal in said for refusal in REFUSALS):
                sys.stderr.write(said)
                return 1
            say("failed")
        else:
            spark.stop()
            return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:5]))
