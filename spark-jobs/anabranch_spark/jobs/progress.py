"""What a job says while it runs."""

import sys


def say(line: str) -> None:
    """One line for people, on standard error: standard output is for the report."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201
