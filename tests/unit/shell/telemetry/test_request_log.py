"""What an operator is told of requests that failed."""

import io
import json

from anabranch.core.errors import BrokerDraining, StorageFull, UnknownLog
from anabranch.core.errors.refused import Refused
from anabranch.shell.telemetry.log import Log, LogFormat
from anabranch.shell.telemetry.request_log import Complaints


def test_the_first_of_a_kind_in_a_second_is_told_and_the_others_are_counted() -> None:
    lines = io.StringIO()
    complaints = Complaints(Log(lambda: 0, LogFormat.JSON, lines))
    full = Refused.of(StorageFull("the disk"))
    for request in range(5):
        complaints.note("1.2.3.4:5", request, full, 10.0 + request / 10)
    complaints.note("1.2.3.4:5", 9, full, 11.5)
    first, second = (json.loads(line) for line in lines.getvalue().splitlines())
    assert (first["client"], first["request"], first["code"]) == ("1.2.3.4:5", 0, "storage-full")
    assert (first["more_since"], second["request"], second["more_since"]) == (0, 9, 4)
    assert "no space is left" in first["reason"]


def test_what_a_client_can_help_itself_is_not_told() -> None:
    lines = io.StringIO()
    complaints = Complaints(Log(lambda: 0, LogFormat.JSON, lines))
    for number, error in enumerate((UnknownLog("orders"), BrokerDraining("broker-0"))):
        complaints.note("1.2.3.4:5", number, Refused.of(error), 10.0)
    complaints.note("1.2.3.4:5", 7, Refused("of-a-later-version", "what?", {}), 10.0)
    (line,) = lines.getvalue().splitlines()
    assert json.loads(line)["code"] == "of-a-later-version"
