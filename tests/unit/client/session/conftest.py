"""What holds of a session holds of it with every engine's dialect."""

from collections.abc import Callable

import pytest
from tests.unit.client.session.stage import ENGINES, Engine, Stage


@pytest.fixture(params=sorted(ENGINES), scope="module")
def engine(request: pytest.FixtureRequest) -> Engine:
    return ENGINES[request.param]


@pytest.fixture
def stage(engine: Engine) -> Stage:
    return Stage(engine)


@pytest.fixture
def make_stage(engine: Engine) -> Callable[..., Stage]:
    return lambda **given: Stage(engine, **given)
