"""The guide to operating a server: what it shows of back-up and settings, done."""

import re
from pathlib import Path

import pytest
from tests.integration.cli_server import Server, check_page

import anabranch
from anabranch.apps.settings import load

SHOWN = ("/var/lib/anabranch", "/backup", "/srv")


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "howto" / "operate.md").read_text()


def test_a_back_up_is_proved_and_restored(page: str, tmp_path: Path) -> None:
    for name in ("backup", "srv"):
        (tmp_path / name).mkdir()
    with Server.started(tmp_path) as server, anabranch.connect(server.url) as service:
        orders = service.create("orders")
        orders.append(b"kept")
        orders.cfork("plan", promotable=True).append(b"kept too")
        shell = server.terminal(tmp_path)
    places = (server.data, tmp_path / "backup", tmp_path / "srv")
    for shown, place in zip(SHOWN, places, strict=True):
        page = page.replace(shown, str(place))
    assert check_page(page, shell) == 4
    restored = tmp_path / "srv" / "restored"
    restored.rename(tmp_path / "srv" / "data")
    with (
        Server.started(tmp_path / "srv") as server,
        anabranch.connect(server.url) as service,
    ):
        read = [record.value for record in service.log("orders--plan").read(0)]
    assert read == [b"kept", b"kept too"]


def test_the_settings_file_that_is_shown_is_taken(page: str, tmp_path: Path) -> None:
    (shown,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "anabranch.toml"
    file.write_text(shown)
    assert load({"config": str(file)}, {}).data == "/var/lib/anabranch"
