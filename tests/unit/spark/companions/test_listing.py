"""What the list of companion jars may say."""

import re

import pytest

from anabranch.errors import BadRequest
from anabranch_spark.companions.fetch import project
from anabranch_spark.companions.listing import JAR_BYTES_MAX, listed, parse

SUM = "0" * 64
ROW = '[[tables]]\njar = "{jar}"\nsha256 = "{sha}"\nbytes = {size}\n'


def text(*, jar: str = "org.example:tables:1.0", sha: str = SUM, size: int = 10) -> str:
    return 'spark = "4.1.3"\n' + ROW.format(jar=jar, sha=sha, size=size)


def test_the_list_is_of_the_pyspark_that_is_installed() -> None:
    pyspark = pytest.importorskip("pyspark")
    assert listed().spark == pyspark.__version__


def test_the_list_has_what_exports_need_and_each_jar_once() -> None:
    groups = listed().groups
    assert set(groups) == {"iceberg", "delta", "s3a"}
    files = [each.file for jars in groups.values() for each in jars]
    assert len(files) == len(set(files))
    assert {each.file for each in groups["iceberg"]} == {
        "iceberg-spark-runtime-4.1_2.13-1.12.0.jar"
    }


def test_another_checksum_is_another_folder() -> None:
    keys = {parse(text()).key, parse(text(sha="1" * 64)).key, parse(text(jar="a:tables:1.1")).key}
    assert len(keys) == 3
    assert parse(text()).key == parse(text()).key
    assert all(re.fullmatch(r"spark-4\.1\.3-[0-9a-f]{12}", key) for key in keys)


def test_a_jar_is_where_a_maven_repository_has_it() -> None:
    (jar,) = parse(text()).jars(["tables"])
    assert jar.path == "org/example/tables/1.0/tables-1.0.jar"


def test_a_jar_of_two_groups_is_wanted_once() -> None:
    listing = parse(text() + ROW.replace("tables]]", "more]]").format(jar="b:c:1", sha=SUM, size=1))
    assert [each.file for each in listing.jars(["tables", "more", "tables"])] == [
        "tables-1.0.jar",
        "c-1.jar",
    ]


def test_an_unknown_group_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadRequest, match="did you mean iceberg"):
        listed().jars(["icebreg"])


@pytest.mark.parametrize(
    "bad",
    [
        text(jar="org.example:tables"),
        text(jar="org.example:../../tables:1"),
        text(jar="org.example:a..b:1"),
        text(jar="a/b:tables:1"),
        text(sha="0" * 63),
        text(sha="G" * 64),
        text(size=0),
        text(size=JAR_BYTES_MAX + 1),
        text() + "url = 'elsewhere'\n",
        text().removeprefix('spark = "4.1.3"\n'),
        "no toml at all",
    ],
)
def test_a_list_that_cant_be_is_refused(bad: str) -> None:
    with pytest.raises(BadRequest):
        parse(bad)


def test_maven_is_asked_for_these_jars_and_for_nothing_behind_them() -> None:
    pom = project(listed().jars(["delta"]))
    assert pom.count("<dependency>") == len(listed().groups["delta"]) == pom.count("<exclusions>")
    assert "<artifactId>delta-storage</artifactId><version>4.4.0</version>" in pom
