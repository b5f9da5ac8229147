"""Runs a command that ends when the process that started it ends, however that one ends.

Started as `python child.py PARENT COMMAND...`, it asks the kernel for a signal at the parent's
death and becomes the command: no process of its own stays between the two.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    # A parent that died before the call above can't trigger the signal any more.
    if os.getppid() != parent:
        sys.exit(f"process {parent} ended before {command[0]} was started")
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
