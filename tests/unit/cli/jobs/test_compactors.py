"""Compactors, listed and ended."""

import pytest
from tests.commands import Command

import anabranch
from anabranch import testing
from anabranch.cli.failure import Exit
from anabranch.core.bolt.protocol.compactors import NewCopy
from anabranch.errors import CompactorEnded, NotFetchable


def test_compactors_are_listed_and_ended(ask: Command, service: testing.Server) -> None:
    with anabranch.connect(service.url) as client:
        compactor = client.compactor("by hand")
        made = compactor.description
        listed = ask("compactors", "-o", "json").json["compactors"]
        (found,) = (each for each in listed if each["id"] == made.id)
        assert (found["name"], found["ended"]) == ("by hand", -1)
        assert "by hand" in ask("compactors").out
        assert client.running_compactor(made).renew().expires >= made.expires
        with pytest.raises(NotFetchable):
            compactor.sign([NewCopy(1, 10, b"x" * 32)])
        number = str(made.id)
        assert ask("compactors", "end", number, "-o", "json").json == {"ended": made.id}
        with pytest.raises(CompactorEnded):
            compactor.renew()
    refused = ask("compactors", "end", "999999", "-o", "json", code=Exit.REFUSED).error
    assert refused["code"] == "compactor-ended"
