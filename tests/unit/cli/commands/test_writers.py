"""Writers of a log, listed and released."""

from tests.commands import Command

import anabranch
from anabranch import testing


def test_writers_are_listed_and_released(ask: Command, log: str, service: testing.Server) -> None:
    assert ask("writer", "list", log).out == f"{log} remembers no writers\n"
    with anabranch.connect(service.url) as client:
        writer = client.log(log, engine="bolt").writer("q")
        for version in (3, 4):
            for part in (0, 9):
                writer.append([b"a"], version=version, part=part)
        writer.complete(3, {0: 1, 9: 1})
    (listed,) = ask("writer", "list", log, "-o", "json").json
    assert listed.pop("at_ms") > 0
    parts = {"0": 1, "9": 1}
    assert listed == {"name": "q", "complete": 3, "parts": parts, "open": {"4": parts}}
    assert ask("writer", "list", log).out.splitlines()[1].split() == ["q", "3", "2", "1", "2"]
    assert ask("writer", "release", log, "q").out == "writer q is released\n"
    assert ask("writer", "release", log, "q", "-o", "json").json == {"released": "q"}
    assert ask("writer", "list", log, "-o", "json").json == []
