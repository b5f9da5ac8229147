"""Take out of an environment what no job of ours runs: used when the image is built.

`python trim.py SITE_PACKAGES` removes files by name. What is listed is left out of Spark's own
builds too, or is for other machines; who needs Hive, MLlib or a shell installs pyspark as it is.
"""

import platform
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

HIVE = (
    "HikariCP-*",
    "ST4-*",
    "antlr-runtime-*",
    "commons-dbcp-*",
    "commons-pool-*",
    "datanucleus-*",
    "derby*",
    "hive-[!s]*",
    "hive-se*",
    "hive-sh*",
    "javax.jdo-*",
    "javolution-*",
    "jdo-api-*",
    "jpam-*",
    "json-1*",
    "jta-*",
    "libfb303-*",
    "libthrift-*",
    "opencsv-*",
    "spark-hive*",
    "stax-api-*",
    "super-csv-*",
    "transaction-api-*",
)
"""All but `hive-storage-api`, on which ORC stands."""
MLLIB = (
    "JLargeArrays-*",
    "JTransforms-*",
    "algebra_*",
    "arpack*",
    "blas-*",
    "breeze*",
    "cats-kernel_*",
    "lapack-*",
    "spark-mllib*",
    "spire*",
)
"""In Python it needs numpy, which isn't installed."""
SHELLS = ("connect-repl", "jline-*", "scala-compiler-*", "spark-repl_*")
SERVERS = ("spark-connect_*", "spark-pipelines_*", "spark-yarn_*")
JARS = (*HIVE, *MLLIB, *SHELLS, *SERVERS, "*-osx-*", "*-windows-*")

MACHINES = {"x86_64": ("linux-x86_64", "linux64"), "aarch64": ("linux-aarch_64", "linux-aarch64")}
"""What jars of native code are called that run on this processor: netty's, RocksDB's."""
PYSPARK = ("examples", "python", "sbin", "tests")
PYARROW = (
    "_azurefs*",
    "_flight*",
    "_gcsfs*",
    "_pyarrow_cpp_tests*",
    "_s3fs*",
    "include",
    "includes",
    "libarrow_flight*",
    "libarrow_python.so",
    "libarrow_python.so.*.*",
    "libarrow_python_flight*",
    "libarrow_s3*",
    "src",
    "tests",
)
"""`libarrow_substrait` stays: all of pyarrow is linked to it."""
SERVICES_OF_AWS = ("s3", "signin", "sso*", "sts")


def main(packages: Path) -> int:
    jars = packages / "pyspark" / "jars"
    netty, rocks = MACHINES[platform.machine()]
    foreign = [each for each in jars.glob("*-linux-*.jar") if not each.stem.endswith(netty)]
    for path in (*_found(jars, JARS), *foreign):
        _remove(path)
    for name, patterns in (("pyspark", PYSPARK), ("pyarrow", PYARROW)):
        for path in _found(packages / name, patterns):
            _remove(path)
    for jar in jars.glob("rocksdbjni-*.jar"):
        _keep(jar, f"librocksdbjni-{rocks}.so")
    data = packages / "botocore" / "data"
    kept = set(_found(data, SERVICES_OF_AWS))
    for path in (each for each in data.iterdir() if each.is_dir() and each not in kept):
        _remove(path)
    return 0


def _found(folder: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        yield from folder.glob(pattern)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _keep(jar: Path, library: str) -> None:
    """Of the native libraries in a jar, one."""
    fresh = jar.with_suffix(".fresh")
    with (
        zipfile.ZipFile(jar) as old,
        zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for entry in old.infolist():
            native = Path(entry.filename).suffix in {".so", ".jnilib", ".dll"}
            if not native or entry.filename == library:
                new.writestr(entry, old.read(entry))
    fresh.replace(jar)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
