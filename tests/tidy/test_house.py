"""The repository around the source: roots, addresses, pins, decisions, and what an import costs."""

import json
import operator
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

DIRECT_DEPENDENCIES_MAX = 12
LOCKS = ("runtime", "build", "cluster", "spark", "dev")

REGISTRY = re.compile(
    r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|docker\.io|ghcr\.io|quay\.io|gcr\.io"
    r"|crates\.io|proxy\.golang\.org|anaconda\.org|maven\.org"
)
MACHINE_PATH = re.compile(r"(?<![\w.~$}>-])/(?:work|root|home|Users)/")
PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; .+?)? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")
LINK = re.compile(r"\]\((?P<target>[^)#\s]+)(?:#[^)\s]*)?\)")

# What only the processes of a cluster need, and only they load.
CLUSTER = frozenset(["boto3", "botocore", "google.protobuf", "grpc", "obstore"])

# Each of these costs tens of milliseconds, which a script that appends one record would pay.
HEAVY = frozenset(
    [
        "aiokafka",
        "anabranch.apps",
        "anabranch_sim",
        "click",
        "fastapi",
        "matplotlib",
        "numpy",
        "prometheus_client",
        "pydantic",
        "rich",
        "starlette",
        "uvicorn",
        *CLUSTER,
    ]
)


def addresses(text: str) -> Iterator[str]:
    """A registry belongs to whoever installs, a path to one machine: neither to the project."""
    for number, line in enumerate(text.splitlines(), 1):
        if REGISTRY.search(line) or MACHINE_PATH.search(line):
            yield f"{number}: {line.strip()}"


def unpinned(lock: str) -> Iterator[str]:
    """What a lock file may not hold: anything but exact versions, each with its hashes."""
    hashes = 1
    for line in lock.splitlines():
        if PIN.match(line):
            if not hashes:
                yield f"no hash before {line}"
            hashes = 0
        elif HASH.match(line):
            hashes += 1
        else:
            yield line
    if not hashes:
        yield "no hash at the end"


def pins(lock: str) -> set[tuple[str, str]]:
    return {(pin["name"], pin["version"]) for pin in map(PIN.match, lock.splitlines()) if pin}


def broken_links(page: Path) -> Iterator[str]:
    for link in LINK.finditer(page.read_text()):
        target = link["target"]
        if ":" not in target and not (page.parent / target).exists():
            yield f"{page.name} -> {target}"


@pytest.fixture(scope="module")
def locks(root: Path) -> dict[str, str]:
    return {name: (root / "requirements" / f"{name}.txt").read_text() for name in LOCKS}


@pytest.mark.parametrize("folder", ["services", "operator", "spark-jobs", "tests"])
def test_source_roots_are_no_packages(root: Path, folder: str) -> None:
    assert not (root / folder / "__init__.py").exists()


def test_operator_is_the_standard_librarys() -> None:
    assert operator.__file__ is not None
    assert Path(operator.__file__).parent == Path(sysconfig.get_path("stdlib"))


def test_no_text_names_a_registry_or_a_path(root: Path, tracked: tuple[Path, ...]) -> None:
    found = list[str]()
    for path in tracked:
        content = (root / path).read_bytes()
        if b"\0" not in content:
            found += [f"{path}:{line}" for line in addresses(content.decode())]
    assert found == []


@pytest.mark.parametrize(
    "text",
    ["--index-url https://\x70ypi.org/simple", "cd \x2fwork/main", "FROM \x67hcr.io/project/image"],
)
def test_addresses_are_seen(text: str) -> None:
    assert list(addresses(text)) == [f"1: {text}"]


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_exact_versions_and_hashes_only(locks: dict[str, str], name: str) -> None:
    assert list(unpinned(locks[name])) == []
    assert pins(locks[name])


@pytest.mark.parametrize(
    "lock",
    [
        "a==1 \\",
        "a==1 \\\nb==1 \\\n    --hash=sha256:" + "0" * 64,
        "a>=1 \\\n    --hash=sha256:" + "0" * 64,
        "--index-url https://example.org",
        "a @ https://example.org/a.whl",
    ],
)
def test_a_lock_that_pins_too_little_is_seen(lock: str) -> None:
    assert list(unpinned(lock)) != []


def test_what_is_tested_is_what_runs(locks: dict[str, str]) -> None:
    assert pins(locks["runtime"]) <= pins(locks["cluster"])
    assert pins(locks["cluster"]) | pins(locks["build"]) <= pins(locks["dev"])


def test_direct_dependencies_are_few_pinned_and_each_has_a_reason(
    root: Path, locks: dict[str, str]
) -> None:
    text = (root / "pyproject.toml").read_text()
    direct = tomllib.loads(text)["project"]["dependencies"]
    assert len(direct) <= DIRECT_DEPENDENCIES_MAX
    names = {re.split(r"[^a-z0-9-]", requirement)[0] for requirement in direct}
    assert names <= {name for name, _ in pins(locks["runtime"])}
    for requirement in direct:
        assert re.search(rf'^ +"{re.escape(requirement)}", +# \w+', text, re.MULTILINE), requirement


def test_every_decision_is_numbered_once_and_listed(root: Path) -> None:
    folder = root / "docs" / "decisions"
    decisions = sorted(page.name for page in folder.glob("*.md") if page.name != "README.md")
    assert decisions
    assert [name for name in decisions if not re.match(r"\d{4}-[a-z0-9-]+\.md$", name)] == []
    numbers = [name[:4] for name in decisions]
    assert len(numbers) == len(set(numbers))
    assert sorted(LINK.findall((folder / "README.md").read_text())) == decisions


def test_every_relative_link_leads_somewhere(root: Path, tracked: tuple[Path, ...]) -> None:
    pages = [root / path for path in tracked if path.suffix == ".md"]
    assert [broken for page in pages for broken in broken_links(page)] == []


def test_a_link_that_leads_nowhere_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[itself](page.md#top) [gone](gone.md) [far](https://example.org)")
    assert list(broken_links(page)) == ["page.md -> gone.md"]


def _loaded_by(package: str) -> frozenset[str]:
    """The modules in memory after a fresh interpreter has imported every module of the package."""
    program = (
        "import importlib, json, pkgutil, sys\n"
        f"package = importlib.import_module({package!r})\n"
        "for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "    importlib.import_module(module.name)\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    return _modules_after(program)


def _loaded_by_module(module: str) -> frozenset[str]:
    return _modules_after(f"import json, sys, {module}\nprint(json.dumps(sorted(sys.modules)))")


def _modules_after(program: str) -> frozenset[str]:
    output = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE
    ).stdout
    return frozenset(json.loads(output))


@pytest.mark.parametrize("package", ["anabranch.core", "anabranch.client"])
def test_a_program_that_uses_the_log_loads_none_of_the_server(root: Path, package: str) -> None:
    home = root / "services" / package.replace(".", "/")
    if not (home / "__init__.py").exists():
        pytest.skip(f"{package} isn't written yet")
    assert _loaded_by(package) & HEAVY == frozenset()


@pytest.mark.parametrize(
    "module",
    [
        "anabranch.apps.up",
        "anabranch.apps.http",
        "anabranch.cli.servers.up",
        "anabranch.cli.demo.demo",
    ],
)
def test_one_machine_loads_nothing_of_a_cluster(module: str) -> None:
    assert _loaded_by_module(module) & CLUSTER == frozenset()


@pytest.mark.parametrize("command", ["sequencer", "shard"])
def test_a_node_loads_an_engine_s_machines_when_it_knows_which(command: str) -> None:
    loaded = _loaded_by_module(f"anabranch.apps.pods.{command}")
    engines = ("anabranch.apps.belfast", "anabranch.apps.erwin", "anabranch.apps.lazy")
    assert [module for module in loaded if module.startswith(engines)] == []


def test_a_heavy_import_is_seen() -> None:
    assert _loaded_by("fastapi.dependencies") & HEAVY >= {"fastapi", "pydantic", "starlette"}
