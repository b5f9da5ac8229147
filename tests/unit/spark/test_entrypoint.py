"""Which program a container of the image runs, of its words and variables."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch_spark.entrypoint import BACKEND, LAUNCHER, Unset, command

IMAGE = {"SPARK_HOME": "/opt/spark", "JAVA_HOME": "/opt/java", "SPARK_CONF_DIR": "/etc/spark"}
SUBMIT = ["/opt/spark/bin/spark-submit", "--deploy-mode", "client"]
EXECUTOR = {
    **IMAGE,
    "SPARK_EXECUTOR_MEMORY": "600m",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.7:7078",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.8",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "gate-exec-1",
}


def test_a_driver_is_submitted_in_client_mode() -> None:
    assert command(["driver", "job.py", "--fast"], IMAGE) == [*SUBMIT, "job.py", "--fast"]


def test_a_module_is_run_by_the_launcher() -> None:
    found = command(["driver", "-m", "anabranch_spark.gate", "--log", "orders"], IMAGE)
    assert found == [*SUBMIT, str(LAUNCHER), "anabranch_spark.gate", "--log", "orders"]
    assert LAUNCHER.exists()


@pytest.mark.parametrize(
    "options",
    [["--master", "local[2]"], ["--conf=a=b", "--verbose"], ["--name", "-m", "--verbose"], []],
)
def test_what_comes_before_the_program_is_spark_submits(options: list[str]) -> None:
    launched = [str(LAUNCHER), "m", "-m", "x"]
    assert command(["driver", *options, "-m", "m", "-m", "x"], IMAGE) == [
        *(*SUBMIT, *options, *launched)
    ]
    script = ["job.py", "-m", "m"]
    assert command(["driver", *options, *script], IMAGE) == [*SUBMIT, *options, *script]


@pytest.mark.parametrize(("address", "host"), [("10.0.0.7", "10.0.0.7"), ("fd00::7", "[fd00::7]")])
def test_a_driver_tells_spark_what_its_pod_is_called(address: str, host: str) -> None:
    pod = {
        "SPARK_DRIVER_BIND_ADDRESS": address,
        "SPARK_DRIVER_POD_NAME": "gate-1",
        "SPARK_DRIVER_NAMESPACE": "logs",
    }
    found = command(["driver", "job.py"], IMAGE | pod)
    settings = [after for word, after in pairwise(found) if word == "--conf"]
    assert settings == [
        f"spark.driver.bindAddress={address}",
        f"spark.driver.host={host}",
        "spark.kubernetes.driver.pod.name=gate-1",
        "spark.kubernetes.namespace=logs",
    ]
    assert found[-1] == "job.py"


def test_an_executor_is_told_everything_that_spark_says_in_variables() -> None:
    options = {"SPARK_JAVA_OPT_1": "-Done=1", "SPARK_CLASSPATH": "/jars/*", "PATH": "/bin"}
    assert command(["executor"], EXECUTOR | options) == [
        *("/opt/java/bin/java", "-Done=1", "-Xms600m", "-Xmx600m"),
        *("-cp", "/etc/spark:/jars/*:/opt/spark/jars/*", BACKEND),
        *("--driver-url", "spark://CoarseGrainedScheduler@10.0.0.7:7078", "--executor-id", "1"),
        *("--cores", "2", "--app-id", "spark-1", "--hostname", "10.0.0.8"),
        *("--resourceProfileId", "0", "--podName", "gate-exec-1"),
    ]


@given(st.lists(st.text(st.characters(exclude_characters="\0"), min_size=1), max_size=30))
def test_javas_options_keep_their_order_whatever_their_number(options: list[str]) -> None:
    told = {f"SPARK_JAVA_OPT_{number}": option for number, option in enumerate(options)}
    found = command(["executor"], dict(reversed(told.items())) | EXECUTOR)
    assert found[1 : 1 + len(options)] == options
    assert found[1 + len(options)] == "-Xms600m"


def test_any_other_program_is_run_as_it_stands() -> None:
    assert command(["python", "-c", "pass"], {}) == ["python", "-c", "pass"]


@pytest.mark.parametrize("name", sorted(EXECUTOR.keys() - {"SPARK_CONF_DIR"}))
def test_a_variable_that_is_missing_is_named(name: str) -> None:
    with pytest.raises(Unset, match=name):
        command(["executor"], {key: value for key, value in EXECUTOR.items() if key != name})


def test_without_words_it_says_what_may_be_run() -> None:
    with pytest.raises(Unset, match="driver, executor"):
        command([], IMAGE)


def test_its_process_becomes_the_program() -> None:
    module = [sys.executable, "-m", "anabranch_spark.entrypoint"]
    done = subprocess.run([*module, "sh", "-c", "exit 3"], check=False)
    assert done.returncode == 3
    done = subprocess.run(module, check=False, capture_output=True, text=True)
    assert (done.returncode, "say what to run" in done.stderr) == (3, True)
    done = subprocess.run([*module, "/nowhere"], check=False, capture_output=True, text=True)
    assert done.returncode == 3, "a 2 would be the verdict of a job that has looked at the data"
    assert done.stderr == "/nowhere can't be run: No such file or directory\n"


def test_a_module_is_launched_with_its_own_arguments_and_without_our_folder(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("import sys; print(sys.argv[1:], sys.path); sys.exit(3)")
    done = subprocess.run(
        [sys.executable, str(LAUNCHER), "job", "--report", "r.json"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert done.stdout.startswith("['--report', 'r.json']")
    assert f"'{LAUNCHER.parent}'" not in done.stdout
