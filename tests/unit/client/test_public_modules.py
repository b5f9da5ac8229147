"""What programs import, as they write it."""

import subprocess
import sys

import pytest

LINES = (
    "from anabranch.errors import ReadBlocked, Retry",
    "from anabranch.aio import Log, Service, connect",
    "from anabranch import aio, belfast, errors",
    "from anabranch.belfast import Speculator, Where, aio, connect",
    "from anabranch.belfast.aio import Log, connect",
    "import anabranch.belfast.aio; anabranch.belfast.aio.connect",
    "import anabranch; anabranch.errors.Promoted; anabranch.aio.connect; anabranch.belfast.aio.Log",
)


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_imports_works_in_a_fresh_program(line: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", line], check=True)


def test_errors_are_the_same_classes_wherever_they_are_caught() -> None:
    import anabranch.errors
    from anabranch.core import errors

    assert anabranch.errors.ReadBlocked is errors.ReadBlocked


def test_errors_alone_load_no_client() -> None:
    program = (
        "import sys, anabranch.errors\n"
        "heavy = {'anabranch.client', 'asyncio', 'uvloop'} & {*sys.modules}\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
