"""Runs in a pod: appends numbered records to a Belfast log until it is told to end.

A line for each that was acknowledged: its number, its position, and when that was. What a shard
that failed can't say is appended again, so a number may be there twice; nothing else is a reason.
"""

import os
import signal
import sys
import time
from threading import Event

from anabranch import belfast

PACE_S = 0.05
PATIENCE_S = 300.0


def main() -> None:
    ending = Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    with belfast.connect(os.environ["ANABRANCH_URL"], timeout=PATIENCE_S) as log:
        number = 0
        while not ending.wait(PACE_S):
            value = f"tick {number}".encode()
            position = log.append(value, retry_unknown=True, timeout=PATIENCE_S)
            sys.stdout.write(f"{number} {position} {time.time_ns() // 1_000_000}\n")
            sys.stdout.flush()
            number += 1


if __name__ == "__main__":
    main()
