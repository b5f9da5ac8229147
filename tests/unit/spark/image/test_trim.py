"""What the image leaves out of its packages, tried on a folder that looks like them."""

import runpy
import zipfile
from pathlib import Path
from typing import Any

import pytest

TRIM = "spark-jobs/image/trim.py"
KEPT = (
    *("hive-storage-api-2.8.1.jar", "hadoop-client-api-3.4.2.jar", "scala-library-2.13.17.jar"),
    *("spark-sql_2.13-4.1.3.jar", "spark-kubernetes_2.13-4.1.3.jar", "json4s-core_2.13-4.0.7.jar"),
    *("netty-transport-native-epoll-4.2.7.Final-linux-x86_64.jar", "antlr4-runtime-4.13.1.jar"),
)
GONE = (
    *("hive-exec-2.3.10-core.jar", "hive-shims-2.3.10.jar", "spark-hive_2.13-4.1.3.jar"),
    *("hive-service-rpc-4.0.0.jar", "antlr-runtime-3.5.2.jar", "json-1.8.jar"),
    *("spark-mllib-local_2.13-4.1.3.jar", "scala-compiler-2.13.17.jar", "connect-repl/a.jar"),
    *("netty-transport-native-kqueue-4.2.7.Final-osx-x86_64.jar",),
    *("netty-transport-native-epoll-4.2.7.Final-linux-aarch_64.jar",),
)
ROCKS = ("org/rocksdb/RocksDB.class", "librocksdbjni-linux64.so")
FOREIGN = ("librocksdbjni-linux64-musl.so", "librocksdbjni-osx-arm64.jnilib", "rocks-win64.dll")


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    files = [f"pyspark/jars/{name}" for name in (*KEPT, *GONE)]
    files += ["pyspark/sql/session.py", "pyspark/examples/pi.py", "pyarrow/tests/test_a.py"]
    files += ["pyarrow/libarrow_substrait.so.2600", "pyarrow/libarrow_flight.so.2600"]
    files += [f"botocore/data/{name}/service.json" for name in ("s3", "sso-oidc", "ec2")]
    for name in (*files, "botocore/data/endpoints.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    with zipfile.ZipFile(tmp_path / "pyspark/jars/rocksdbjni-9.8.4.jar", "w") as jar:
        for name in (*ROCKS, *FOREIGN):
            jar.writestr(name, name)
    return tmp_path


def test_what_jobs_need_stays_and_the_rest_goes(
    root: Path, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    module: dict[str, Any] = runpy.run_path(str(root / TRIM))
    assert module["main"](packages) == 0
    left = {str(path.relative_to(packages)) for path in packages.rglob("*") if path.is_file()}
    assert left == {
        *(f"pyspark/jars/{name}" for name in KEPT),
        *("pyspark/jars/rocksdbjni-9.8.4.jar", "pyspark/sql/session.py"),
        *("pyarrow/libarrow_substrait.so.2600", "botocore/data/endpoints.json"),
        *("botocore/data/s3/service.json", "botocore/data/sso-oidc/service.json"),
    }
    with zipfile.ZipFile(packages / "pyspark/jars/rocksdbjni-9.8.4.jar") as jar:
        assert {name: jar.read(name).decode() for name in jar.namelist()} == dict(
            zip(ROCKS, ROCKS, strict=True)
        )
