"""Flags go before the environment, that before a profile, and that before the default."""

import pytest

from anabranch.cli.service.choice import DEFAULT_URL, Given, choose
from anabranch.cli.service.profiles import Profile, Profiles
from anabranch.core.errors import BadRequest

PROD = Profile("anabranch://prod:1", token="of prod")
TEST = Profile("anabranch://test:1", token_file="/of/test")
BOTH = Profiles("prod", {"prod": PROD, "test": TEST})
NOTHING = Given()


@pytest.mark.parametrize(
    ("flags", "environment", "url"),
    [
        (NOTHING, NOTHING, PROD.url),
        (NOTHING, Given(profile="test"), f"{TEST.url}?token_file=%2Fof%2Ftest"),
        (NOTHING, Given(url="anabranch://env:1", profile="test"), "anabranch://env:1"),
        (Given(profile="prod"), Given(url="anabranch://env:1"), PROD.url),
        (Given(url="anabranch://flag:1", profile="prod"), NOTHING, "anabranch://flag:1"),
    ],
)
def test_the_address_that_was_said_most_directly_counts(
    flags: Given, environment: Given, url: str
) -> None:
    assert choose(flags, environment, BOTH)[0] == url


def test_without_a_profile_there_is_a_default() -> None:
    assert choose(NOTHING, NOTHING, Profiles()) == (DEFAULT_URL, None)


@pytest.mark.parametrize(
    ("flags", "environment", "token"),
    [
        (NOTHING, NOTHING, "of prod"),
        (NOTHING, Given(token="env"), "env"),
        (Given(token="flag"), Given(token="env"), "flag"),
        (Given(profile="prod"), Given(token="env"), "of prod"),
        (Given(url="anabranch://flag:1"), NOTHING, None),
        (Given(url="anabranch://flag:1"), Given(token="env"), "env"),
        (NOTHING, Given(url="anabranch://env:1"), None),
    ],
)
def test_a_profiles_token_is_shown_to_its_own_address_only(
    flags: Given, environment: Given, token: str | None
) -> None:
    assert choose(flags, environment, BOTH)[1] == token


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(BadRequest, match="only prod, test"):
        choose(Given(profile="prd"), NOTHING, BOTH)
