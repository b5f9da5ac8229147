"""What an operator is told of requests that failed."""

import io
import json

from anabranch.core.errors import BrokerDraining, Forbidden, StorageFull, UnknownLog
from anabranch.core.errors.refused import Refused
from anabranch.core.rights.claims import LOGS, Claim, Subject, Verb
from anabranch.core.types import LogId
from anabranch.shell.telemetry.log import Log, LogFormat
from anabranch.shell.telemetry.request_log import RequestLog


def test_the_first_of_a_kind_in_a_second_is_told_and_the_others_are_counted() -> None:
    lines = io.StringIO()
    requests = RequestLog(Log(lambda: 0, LogFormat.JSON, lines))
    full = Refused.of(StorageFull("the disk"))
    for request in range(5):
        requests.refused("1.2.3.4:5", request, full, 10.0 + request / 10)
    requests.refused("1.2.3.4:5", 9, full, 11.5)
    first, second = (json.loads(line) for line in lines.getvalue().splitlines())
    assert (first["client"], first["request"], first["code"]) == ("1.2.3.4:5", 0, "storage-full")
    assert (first["more_since"], second["request"], second["more_since"]) == (0, 9, 4)
    assert "no space is left" in first["reason"]


def test_what_a_client_can_help_itself_is_not_told() -> None:
    lines = io.StringIO()
    requests = RequestLog(Log(lambda: 0, LogFormat.JSON, lines))
    for number, error in enumerate((UnknownLog("orders"), BrokerDraining("broker-0"))):
        requests.refused("1.2.3.4:5", number, Refused.of(error), 10.0)
    requests.refused("1.2.3.4:5", 7, Refused("of-a-later-version", "what?", {}), 10.0)
    (line,) = lines.getvalue().splitlines()
    assert json.loads(line)["code"] == "of-a-later-version"


def test_a_client_that_is_denied_something_is_told_of_once_a_second() -> None:
    lines = io.StringIO()
    requests = RequestLog(Log(lambda: 0, LogFormat.JSON, lines))
    denied = Refused.of(Forbidden("ann", "trim", "logs", "ticks", "shop"))
    for request in range(3):
        requests.refused("1.2.3.4:5", request, denied, 10.0 + request / 10)
    (line,) = map(json.loads, lines.getvalue().splitlines())
    assert (line["event"], line["client"], line["code"]) == (
        "a request was denied",
        "1.2.3.4:5",
        "forbidden",
    )
    assert "ann" in line["reason"]


def test_a_command_is_logged_with_who_gave_it_and_the_right_that_allowed_it() -> None:
    lines = io.StringIO()
    requests = RequestLog(Log(lambda: 0, LogFormat.JSON, lines))
    claims = [
        Claim(Subject(LOGS, "ticks", "shop"), (Verb.TRIM,)),
        Claim(LogId(7), (Verb.UPDATE,)),
    ]
    requests.allowed("1.2.3.4:5", "ann", "trim", claims)
    (line,) = map(json.loads, lines.getvalue().splitlines())
    assert (line["client"], line["who"], line["command"]) == ("1.2.3.4:5", "ann", "trim")
    assert line["by"] == "trim shop/logs/ticks update log 7"
