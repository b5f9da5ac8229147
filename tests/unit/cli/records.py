"""Any records for properties of the command line, and how they look as lines of JSON."""

import json
from base64 import b64encode
from itertools import count
from typing import Any, NamedTuple

from hypothesis import strategies as st

Header = tuple[str, bytes | None]
_serials = count()


class Given(NamedTuple):
    """A record as a test thinks of it."""

    value: bytes | None
    key: bytes | None
    headers: tuple[Header, ...]
    timestamp: int

    @property
    def line(self) -> str:
        """What `append --json` takes, always in base64: the fields are spelled by hand here."""
        document: dict[str, Any] = {
            "value": _coded(self.value),
            "key": _coded(self.key),
            "headers": [{"name": name, "value": _coded(value)} for name, value in self.headers],
            "timestamp": self.timestamp,
            "encoding": "base64",
        }
        return json.dumps(document)


CONTENT = st.none() | st.binary(max_size=12) | st.text(max_size=6).map(str.encode)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
RECORDS = st.builds(
    Given,
    CONTENT,
    CONTENT,
    st.lists(st.tuples(NAMES, CONTENT), max_size=3).map(tuple),
    st.integers(0, 1 << 42),
)


def fresh_name() -> str:
    """A log's name that no other example uses."""
    return f"any-{next(_serials)}"


def _coded(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()
