"""Spark's Kafka source: its jar, and a stand-in for the one jar of it that isn't published.

`spark-token-provider-kafka-0-10` can't be had for this version. It gets delegation tokens, which no
broker here asks for, so three small classes stand in for it; none is on the way of data.
"""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import pyspark

from anabranch.core.errors import Unavailable
from benchmarks.peers.kafka import server

HERE = Path(__file__).parent
VERSION = "4.1.3"
ARTIFACT = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}"
POOL = "org.apache.commons:commons-pool2:2.12.1"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def jars() -> list[Path]:
    """The jars that a session needs to read from Kafka."""
    sources = sorted(HERE.rglob("*.java"))
    checksum = hashlib.sha256(b"".join(path.read_bytes() for path in sources))
    checksum.update(f"{ARTIFACT} {POOL}".encode())
    folder = server.place().parent / f"spark-kafka-{checksum.hexdigest()[:12]}"
    if not folder.exists():
        _bring(folder, sources)
    clients = sorted(server.find().glob("kafka-clients-*.jar"))
    return [*sorted(folder.glob("*.jar")), *clients]


def _bring(folder: Path, sources: list[Path]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / "jars"
        for artifact in (ARTIFACT, POOL):
            _run(["mvn", "-q", "-B", COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={made}"])
        classes = Path(scratch) / "classes"
        spark = Path(pyspark.__file__).parent / "jars" / "*"
        _run(["javac", "-nowarn", "-cp", str(spark), "-d", str(classes), *map(str, sources)])
        _run(["jar", "cf", str(made / "token-stand-in.jar"), "-C", str(classes), "."])
        if not folder.exists():
            shutil.move(made, folder)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        said = " / ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
        raise Unavailable("Spark's Kafka source", f"{command[0]}: {said}")
