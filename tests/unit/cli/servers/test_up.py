"""What `anabranch up` says to somebody who has just started a server."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from anabranch.apps.settings import Settings
from anabranch.apps.up import Endpoint
from anabranch.cli.servers.up import next_steps

SETTINGS = Settings()


def test_the_next_steps_name_the_data_directory_and_no_address_by_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    said = next_steps(SETTINGS, Endpoint("127.0.0.1:7420", "127.0.0.1:7421", 1))
    urls, kept = (
        "anabranch://127.0.0.1:7420 and http://127.0.0.1:7421",
        f"{tmp_path}/anabranch-data",
    )
    assert said.splitlines() == [
        f"Serving {urls}",
        f"Everything is kept in {kept}.",
        "Next, in another terminal:",
        "  anabranch log create orders",
        '  anabranch append orders "3 apples"',
        "  anabranch read orders",
    ]


def test_another_address_gets_a_profile_and_a_token_is_not_shown() -> None:
    guarded = replace(SETTINGS, memory=True, token="secret")
    said = next_steps(guarded, Endpoint("127.0.0.1:9", None, 1))
    assert "in memory, until this process ends" in said
    assert "  anabranch profile add local --use --url anabranch://127.0.0.1:9\n" in said
    assert "http://" not in said
    assert "export ANABRANCH_TOKEN=..." in said
    assert "secret" not in said
