"""What a container of the image `spark` runs: a driver, an executor, or any other program.

Spark on Kubernetes starts the image with the word `executor`, and says all else in variables. A
Job starts it with `driver`, then what `spark-submit` takes; instead of a file that may be
`-m MODULE` and the module's own arguments: `driver --master local[2] -m anabranch_spark.audit`.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

DRIVER, EXECUTOR = "driver", "executor"
BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
LAUNCHER = Path(__file__).with_name("launch.py")
UNKNOWN = 3
"""As of every job: nothing was told of the data. A 2 would say that they were refused."""

_ADDRESS = "SPARK_DRIVER_BIND_ADDRESS"
_FROM_POD = {
    "SPARK_DRIVER_POD_NAME": "spark.kubernetes.driver.pod.name",
    "SPARK_DRIVER_NAMESPACE": "spark.kubernetes.namespace",
}
"""What only the driver's own pod knows. By its name executors are owned by it, and go with it."""
_OF_EXECUTOR = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
_FLAGS = ("--supervise", "--verbose")
"""Options of `spark-submit` that take no value."""
_JAVA_OPTION = re.compile(r"SPARK_JAVA_OPT_([0-9]+)")


class Unset(Exception):
    """A variable that Spark or the Job's manifest should have set."""


def command(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The program that these words mean, with its arguments."""
    match words:
        case [kind, *rest] if kind == DRIVER:
            return driver(rest, environment)
        case [kind, *rest] if kind == EXECUTOR:
            return executor(rest, environment)
        case [_, *_]:
            return list(words)
        case _:
            raise Unset(f"say what to run: {DRIVER}, {EXECUTOR}, or a program and its arguments")


def driver(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """In client mode: the exit code is the job's own, and a Job of Kubernetes has its verdict."""
    home = _needed(environment, "SPARK_HOME")
    settings = dict(_driver_settings(environment))
    told = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    options = _options(words)
    program = words[options:]
    if program[:1] == ["-m"]:
        program = [str(LAUNCHER), *program[1:]]
    submit = [f"{home}/bin/spark-submit", "--deploy-mode", "client"]
    return [*submit, *told, *words[:options], *program]


def executor(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    memory = _needed(environment, "SPARK_EXECUTOR_MEMORY")
    told = [
        word for flag, name in _OF_EXECUTOR.items() for word in (flag, _needed(environment, name))
    ]
    return [
        f"{_needed(environment, 'JAVA_HOME')}/bin/java",
        *_java_options(environment),
        *(f"-Xms{memory}", f"-Xmx{memory}"),
        *("-cp", ":".join(_class_path(environment))),
        *(BACKEND, *told, *words),
    ]


def _options(words: Sequence[str]) -> int:
    """How many words are options of `spark-submit`: the next one is what it runs."""
    at = 0
    while at < len(words) and words[at].startswith("--"):
        alone = "=" in words[at] or words[at] in _FLAGS
        at += 1 if alone else 2
    return min(at, len(words))


def _driver_settings(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    address = environment.get(_ADDRESS)
    if address:
        yield "spark.driver.bindAddress", address
        # Executors dial this; a pod's name is known to no resolver.
        yield "spark.driver.host", f"[{address}]" if ":" in address else address
    for name, key in _FROM_POD.items():
        if environment.get(name):
            yield key, environment[name]


def _java_options(environment: Mapping[str, str]) -> list[str]:
    """In the order of their numbers, which isn't that of their names."""
    found = {
        int(match[1]): value
        for name, value in environment.items()
        if (match := _JAVA_OPTION.fullmatch(name))
    }
    return [found[number] for number in sorted(found)]


def _class_path(environment: Mapping[str, str]) -> Iterator[str]:
    if environment.get("SPARK_CONF_DIR"):
        yield environment["SPARK_CONF_DIR"]
    if environment.get("SPARK_CLASSPATH"):
        yield environment["SPARK_CLASSPATH"]
    yield f"{_needed(environment, 'SPARK_HOME')}/jars/*"


def _needed(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name)
    if not value:
        raise Unset(f"the variable {name} isn't set: Spark, or the image, sets it")
    return value


def main(words: list[str]) -> int:
    try:
        program = command(words, os.environ)
    except Unset as failed:
        sys.stderr.write(f"{failed}\n")
        return UNKNOWN
    try:
        os.execvp(program[0], program)  # noqa: S606  # no shell: this process becomes the program
    except OSError as failed:
        sys.stderr.write(f"{program[0]} can't be run: {failed.strerror}\n")
        return UNKNOWN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
