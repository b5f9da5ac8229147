"""The compiled protos that are committed are those of the sources beside them."""

from pathlib import Path

import pytest


def test_compiled_protos_are_what_their_sources_say(root: Path) -> None:
    pytest.importorskip("grpc_tools", reason="the compiler comes with the development tools")
    from tests.tidy.protos import compiled

    services = root / "services"
    made = compiled(services)
    assert len(made) == 2
    for path, text in made.items():
        assert (services / path).read_text() == text, "compile it again: `make protos`"
