"""Tests of a module lie at its own path below `tests/unit`, or in its package's folder there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

UNIT = Path("tests/unit")
ROOTS = {
    Path("services/anabranch"): UNIT,
    Path("operator/anabranch_operator"): UNIT / "operator",
    Path("spark-jobs/anabranch_spark"): UNIT / "spark",
}

ELSEWHERE = {
    ".": "tests/integration",
    "belfast": "tests/integration/belfast",
    "cli/bench": "tests/unit/benchmarks",
    "cli/demo": "tests/integration",
    "operator/api/generate": "tests/operator",
    "shell/etcd/api": "tests/integration/etcd",
    "shell/etcd/archive": "tests/integration/etcd",
    "shell/etcd/group": "tests/integration/etcd",
}
"""Packages that are tested only as what they make up: as commands, or before a real server."""

UNTESTED: frozenset[str] = frozenset()
"""Packages without tests. It only ever gets shorter."""


def modules(tracked: tuple[Path, ...]) -> Iterator[Path]:
    """Each module of the product as the path where its unit tests should be, without `test_`."""
    written = [
        path
        for path in tracked
        if path.suffix == ".py" and path.name != "__init__.py" and not path.match("*_pb2.py")
    ]
    for source, home in ROOTS.items():
        yield from (home / path.relative_to(source) for path in written if source in path.parents)


def own_tests(root: Path, module: Path) -> list[Path]:
    """Tests that the module's own name leads to."""
    folder, name = root / module.parent, module.stem
    return [*folder.glob(f"test_{name}.py"), *folder.glob(f"test_{name}_*.py")]


def package_tests(root: Path, module: Path) -> list[Path]:
    """Tests in the module's folder."""
    return [*(root / module.parent).glob("test_*.py")]


@pytest.fixture(scope="module")
def homes(tracked: tuple[Path, ...]) -> list[Path]:
    return list(modules(tracked))


def test_tests_of_every_module_are_found_by_its_path(root: Path, homes: list[Path]) -> None:
    lost = {
        str(module.parent.relative_to(UNIT))
        for module in homes
        if not own_tests(root, module) and not package_tests(root, module)
    }
    assert lost - ELSEWHERE.keys() - UNTESTED == set(), "write tests at these paths of tests/unit"
    assert (ELSEWHERE.keys() | UNTESTED) - lost == set(), "these have tests now: take them out"


def test_what_is_tested_elsewhere_has_tests_there(root: Path) -> None:
    assert all(any((root / folder).glob("test_*.py")) for folder in ELSEWHERE.values())


def test_at_the_root_of_unit_tests_there_are_only_folders(root: Path) -> None:
    assert [*(root / UNIT).glob("test_*.py")] == []


def test_a_module_without_tests_is_seen(tmp_path: Path) -> None:
    folder = tmp_path / UNIT / "core"
    folder.mkdir(parents=True)
    module = UNIT / "core" / "alarms.py"
    assert not own_tests(tmp_path, module)
    assert not package_tests(tmp_path, module)
    (folder / "test_health.py").touch()
    assert not own_tests(tmp_path, module)
    assert package_tests(tmp_path, module)
    (folder / "test_alarms_late.py").touch()
    assert own_tests(tmp_path, module)
