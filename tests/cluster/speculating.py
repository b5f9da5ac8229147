"""Runs in a pod: reads a Belfast log from its start, ahead of its order.

A line for each record when its order is certain: its position and its value. A line `failed` for
each time that what was read ahead of its order was void.
"""

import os
import sys

from anabranch import belfast
from anabranch.client.session.records import Confirm, Deliver, LogRecord

PATIENCE_S = 300.0


def main() -> None:
    foretold: list[LogRecord] = []
    with (
        belfast.connect(os.environ["ANABRANCH_URL"], timeout=PATIENCE_S) as log,
        log.subscribe(0) as events,
    ):
        for event in events:
            match event:
                case Deliver(record, _):
                    foretold.append(record)
                case Confirm(up_to):
                    certain = [each for each in foretold if each.position < up_to]
                    foretold = foretold[len(certain) :]
                    tell(*(f"{each.position} {(each.value or b'').decode()}" for each in certain))
                case _:
                    foretold = [each for each in foretold if each.position < event.since]
                    tell(f"failed {event.since}")


def tell(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
