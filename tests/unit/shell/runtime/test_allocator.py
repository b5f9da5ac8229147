"""What the allocator is told is done: on glibc, in a process of its own."""

import platform
import subprocess
import sys

import pytest

BUFFERS, BUFFER_BYTES = 100, 1 << 20
PROGRAM = f"""
import resource
from anabranch.shell.runtime.allocator import keep_memory
if __import__("sys").argv[1] == "kept":
    assert keep_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({BUFFERS}):
    bytes(bytearray({BUFFER_BYTES}))
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told anything")
def test_a_buffer_that_was_used_before_costs_no_page_faults() -> None:
    def faults(how: str) -> int:
        done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, check=True)
        return int(done.stdout)

    pages = BUFFERS * BUFFER_BYTES // 4096
    assert faults("kept") < pages // 10
    assert faults("kept") < faults("returned") // 2
