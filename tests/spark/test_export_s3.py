"""Parquet files on S3, as on a disk: a second run finds what is there."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from tests.servers import bucket_of, s3  # noqa: F401

import anabranch
from anabranch_spark.export.__main__ import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from anabranch.apps.processes.servers import S3Server


def test_runs_on_s3_write_each_record_once(
    tables: "SparkSession",
    log: anabranch.Log,
    url: str,
    s3: "S3Server",  # noqa: F811
    tmp_path: Path,
) -> None:
    bucket = bucket_of(s3)
    conf = cast(Any, tables.sparkContext)._jsc.hadoopConfiguration()
    for name, value in {
        "endpoint": bucket.endpoint,
        "endpoint.region": bucket.region,
        "access.key": bucket.access_key,
        "secret.key": bucket.secret_key,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
    }.items():
        conf.set(f"fs.s3a.{name}", value)
    report = tmp_path / "report.json"
    place = f"s3a://{bucket.bucket}/exports/orders"
    words = [log.name, "--service", url, "--report", str(report), "--to", "parquet", place]
    for count in (25, 10, 0):
        log.append_many([b"value %d" % turn for turn in range(count)])
        assert main([*words, "--records", "20"]) == 0
        assert msgspec.json.decode(report.read_bytes())["records"] == count
    found = tables.read.parquet(place).select("position").orderBy("position").collect()
    assert [row["position"] for row in found] == list(range(35))
