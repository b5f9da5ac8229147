"""What a leader takes from a journal, and what it refuses."""

import msgspec
import pytest

from anabranch.core.bolt.metadata.leader import replayed
from anabranch.core.bolt.protocol.commands import FORMAT, Entry, RaiseFormat
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.state import State
from anabranch.core.errors import JournalTooNew
from anabranch.core.limits import Limits
from anabranch.core.types import MS

START = 1_000_000 * MS


def test_commands_of_a_later_version_are_refused_and_not_misread() -> None:
    known = msgspec.msgpack.encode([Entry(START, b"", RaiseFormat(FORMAT))])
    later = msgspec.msgpack.encode([Entry(START, b"", RaiseFormat(FORMAT + 1))])
    assert replayed("test", Limits(), None, [known]).replica.format == FORMAT
    with pytest.raises(JournalTooNew, match=f"format {FORMAT + 1}"):
        replayed("test", Limits(), None, [known, later])
    ahead = State("test", Limits())
    ahead.replica.format = FORMAT + 1
    with pytest.raises(JournalTooNew):
        replayed("test", Limits(), snapshot.save(ahead.replica), [])
