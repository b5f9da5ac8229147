"""Helm, and what it makes of the charts."""

import pytest
from tests.charts.helm import Helm
from tests.kubernetes.fixtures import needs


@pytest.fixture(scope="session")
def helm() -> Helm:
    needs("helm")
    return Helm()
