"""A Spark Connect server in a process of its own: the only JVM there is."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic

from anabranch.apps.processes.ports import HOST, free_ports

CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
PROGRAM = "spark-internal"
"""It is in Spark's own jars."""
START_S = 300.0
LOOK_S = 0.1
SETTINGS = {
    "spark.connect.grpc.binding.address": HOST,
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.driver.memory": "1g",
    "spark.python.authenticate.socketTimeout": "60s",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


@contextmanager
def running(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Its URL for `SPARK_REMOTE`. `environment`: which pyspark it is of."""
    (port,) = free_ports(1)
    settings = {
        **SETTINGS,
        "spark.connect.grpc.binding.port": str(port),
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    words = [f"--conf={key}={value}" for key, value in settings.items()]
    home = _home(folder, environment)
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [home / "bin/spark-submit", "--master=local[2]", *words, "--class", CLASS, PROGRAM],
            env={**environment, "SPARK_HOME": str(home)},
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _wait(process, port, folder / "server.log")
        yield f"sc://{HOST}:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _home(folder: Path, environment: Mapping[str, str]) -> Path:
    """Spark's own folder, of the pyspark that a process of this environment imports.

    Without `python`, from whose zip every Python worker would compile pyspark anew: Spark gives a
    stream's worker ten seconds to start, and no setting changes that.
    """
    ask = "import pyspark; print(pyspark.__path__[0])"
    found = subprocess.run(
        [sys.executable, "-c", ask], env=environment, check=True, capture_output=True, text=True
    )
    home = folder / "home"
    home.mkdir()
    for each in ("bin", "jars"):
        (home / each).symlink_to(Path(found.stdout.strip()) / each)
    return home


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    """Until it takes connections."""
    pause, deadline = Event(), monotonic() + START_S
    while True:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            assert process.poll() is None, log.read_text(errors="replace")[-2_000:]
            assert monotonic() < deadline, "the Connect server doesn't listen"
            pause.wait(LOOK_S)
        else:
            return
