"""Worlds for the client's machine."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.unit.client.bolt.world import World

from anabranch.client.session.settings import Settings


@pytest.fixture(scope="session")
def make_world() -> Callable[..., World]:
    def make(**settings: Any) -> World:
        return World(Settings(**settings))

    return make


@pytest.fixture
def world(make_world: Callable[..., World]) -> Iterator[World]:
    """Connected, and at rest."""
    world = make_world()
    world.connect()
    yield world
    assert world.session.pending_bytes >= 0
