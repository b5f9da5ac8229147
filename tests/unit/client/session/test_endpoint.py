"""What an address may be, before anything is dialed."""

import pytest

import anabranch
from anabranch.core.errors import BadRequest


@pytest.mark.parametrize("host", ["a..b:1", f"{'a' * 64}.org:1", "\u3002:1", "\ud800:1"])
def test_what_names_no_host_is_refused(host: str) -> None:
    with pytest.raises(BadRequest):
        anabranch.aio.connect(host)
    with pytest.raises(BadRequest):
        anabranch.belfast.aio.connect(f"{host}/c")


def test_a_token_file_that_no_disk_can_have_is_refused() -> None:
    with pytest.raises(BadRequest, match="token file"):
        anabranch.aio.connect("127.0.0.1:1?token_file=%00")
    with pytest.raises(BadRequest, match="token file"):
        anabranch.belfast.aio.connect("127.0.0.1:1/c?token_file=%00")


def test_a_client_that_names_itself_with_half_a_character_is_refused() -> None:
    with pytest.raises(BadRequest, match="client"):
        anabranch.aio.connect("h", settings=anabranch.Settings(client="\ud800"))


def test_the_address_of_the_other_kind_is_known_for_what_it_is() -> None:
    with pytest.raises(BadRequest, match=r"a Belfast log by itself.*anabranch\.belfast\.connect"):
        anabranch.connect("belfast://127.0.0.1:7440/cluster")
    with pytest.raises(BadRequest, match=r"it is a service.*anabranch\.connect\(url\)\.log"):
        anabranch.belfast.connect("anabranch://127.0.0.1:7420")
