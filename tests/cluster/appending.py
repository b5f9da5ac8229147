"""Runs in a pod: appends numbered records to a log until it is told to end.

A line for each that was acknowledged: its number, and when, in milliseconds of the machine's clock.
An append that fails ends it, and so the pod: nothing that happens to a cluster is a reason to.
"""

import os
import signal
import sys
import time
from threading import Event

import anabranch

PACE_S = 0.05
PATIENCE_S = 120.0


def main(name: str) -> None:
    ending = Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    with anabranch.connect(os.environ["ANABRANCH_URL"], timeout=PATIENCE_S) as service:
        log = service.log(name, timeout=PATIENCE_S)
        number = 0
        while not ending.wait(PACE_S):
            log.append(f"load {number}".encode(), timeout=PATIENCE_S)
            sys.stdout.write(f"{number} {time.time_ns() // 1_000_000}\n")
            sys.stdout.flush()
            number += 1


if __name__ == "__main__":
    main(sys.argv[1])
