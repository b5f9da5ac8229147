"""What Spark raises where it can't do what it should, and how a report says it in one line."""

import re

from py4j.protocol import Py4JError  # pyright: ignore[reportMissingTypeStubs]
from pyspark.errors import PySparkException

from anabranch_spark.expectations.words import shown

SPARK_FAILURES: tuple[type[Exception], ...] = (PySparkException, Py4JError)

_CHARS_MAX = 300
_TRACEBACK = "Traceback (most recent call last):"
_CALL = re.compile(r"\AAn error occurred while calling \S+\s*:\s*")
_TASK = re.compile(r"\A.*most recent failure: Lost task [^:]*:\s", re.DOTALL)
"""What comes before the failure of a task. Numbers of stages and attempts say nothing to a user."""
_STACK = re.compile(r"\n\s+at [\w.$/<>]+\(|== SQL|SQLSTATE|\nJVM stacktrace:")
"""Where Spark stops to say what is wrong, and begins to say where."""
_OUR_NAMES = re.compile(r"\Aanabranch(?:\.\w+)+: ")


def cause(error: BaseException) -> str:
    """An error in one line. Of what a Python worker says it is the last line of its traceback: an
    error of this project speaks for itself there.
    """
    text = _STACK.split(_CALL.sub("", str(error)), maxsplit=1)[0]
    text = _TASK.sub("", text)
    if _TRACEBACK in text:
        lines = text.split(_TRACEBACK)[-1].split("\n\n")[0].splitlines()
        text = next((each for each in reversed(lines) if each[:1].strip()), text)
    line = " ".join(_OUR_NAMES.sub("", text.strip()).split())
    return shown(line or type(error).__name__, _CHARS_MAX)
