"""`pytest tests/scenarios --rewrite` writes what the scenarios expect anew."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the scenarios' outputs anew")
